//! Ends functions whose service has died without ending them, as by SIGKILL.
//!
//! Nothing in a process is run when it is killed, so this is a process of its own: the same program, started
//! once, that sleeps until the pipe to its service breaks. To have each function die with its parent
//! (`PR_SET_PDEATHSIG`) would need a fork in place of the standard library's way of starting a process, which
//! takes twice as long, and more the more memory the service uses; and what functions have started would live.

use std::env;
use std::io::{self, PipeWriter, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::{Scratch, instance, kill};

/// The first argument by which a program is a watchdog; the second is what the marks of calls begin with, the
/// third the number of the service's process.
const AS_WATCHDOG: &str = "as-watchdog";

/// How often and after which pauses to look whether the service is quite gone: its locks end after its pipes.
const LOOKS: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// Starts one for the calls whose marks begin with this. It ends when the returned pipe is closed.
///
/// `None` for the first process of a container or machine: with it the kernel ends all others.
pub(crate) fn start(prefix: &str) -> io::Result<Option<PipeWriter>> {
    if rustix::process::getpid().is_init() {
        return Ok(None);
    }
    let (reader, writer) = io::pipe()?;
    // What is sent to our group, as by a terminal, is not meant for it.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("watchdog").args([AS_WATCHDOG, prefix, &std::process::id().to_string()]).process_group(0);
    // It has no use for our secrets, only for where folders are made.
    let place = env::var_os("TMPDIR").map(|place| ("TMPDIR", place));
    command.env_clear().envs(place);
    // Dropping the handle of a child leaves it running; it is reaped by the sweeper.
    command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/").spawn()?;
    Ok(Some(writer))
}

/// To be called first in a program whose supervisor has a watchdog: if it was started as that, does its work,
/// and says so.
pub fn run_as_watchdog() -> bool {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let [AS_WATCHDOG, prefix, service] = arguments[..] else { return false };
    // Nothing is ever written.
    let _ = io::stdin().read(&mut [0]);
    kill::marked(|cookie| !prefix.is_empty() && cookie.starts_with(prefix));
    for _ in 0..LOOKS {
        if std::os::unix::process::parent_id().to_string() != service {
            break;
        }
        thread::sleep(PAUSE);
    }
    for candidate in Scratch::candidates() {
        instance::tidy(&candidate);
    }
    true
}
