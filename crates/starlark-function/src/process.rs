//! The function as the only thing that a process does.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::run;

/// What the process may use, in kB. It is more than the interpreter's own limit, which does not count all.
const MAXIMUM_RESIDENT: u64 = 768 << 10;

/// What the process may ask for: three times as much, since what grows is copied, and the deepest stack. The
/// interpreter cannot say anything when it gets no more, so this is only the last line of defence.
const MAXIMUM_MEMORY: u64 = 3 << 30;

/// How often the memory is looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);

const TOO_MUCH_MEMORY: &str = "the program needs more memory than it may have";

/// Why the process ended without an answer, by what it left on stderr: the runtime ends it where a single value
/// gets no memory, or where values are nested deeper than the stack is, and cannot say more than that.
pub fn why_it_ended(stderr: &str) -> Option<&'static str> {
    let has = |words: &str| stderr.contains(words);
    if has(TOO_MUCH_MEMORY) || (has("memory allocation of ") && has(" bytes failed")) {
        Some(
            "the program needs more memory than the 768 MiB that it may have; make it work on less at a time",
        )
    } else if has("has overflowed its stack") {
        Some("the program nests values or calls too deeply; make it nest less")
    } else {
        None
    }
}

/// Reads a `ResourceList` from stdin, writes the changed one to stdout, and says by the exit code whether the
/// program succeeded. The memory of the process is bounded from here on.
pub fn main() -> ExitCode {
    limit(Resource::Data, MAXIMUM_MEMORY);
    // A program that dies of this limit must not fill the disk with its memory.
    limit(Resource::Core, 0);
    // What a panic of the interpreter says is in the results.
    std::panic::set_hook(Box::new(|_| {}));
    // Where there can be no thread, the limits are still there.
    let _ = thread::Builder::new().stack_size(64 << 10).spawn(watch_memory);
    let mut input = Vec::new();
    if let Err(error) = std::io::stdin().lock().read_to_end(&mut input) {
        print_line(&format!("failed to evaluate function: cannot read stdin: {error}"));
        return ExitCode::FAILURE;
    }
    let environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let outcome = run(&input, &environment, &print_line);
    // Where nobody reads, there is nobody to tell.
    let _ = std::io::stderr().lock().write_all(outcome.stderr.as_bytes());
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(&outcome.output).and_then(|()| stdout.flush());
    if let Err(error) = written {
        print_line(&format!("failed to evaluate function: cannot write stdout: {error}"));
        return ExitCode::FAILURE;
    }
    if outcome.succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ends the process, with words that tell why, when it uses too much memory.
fn watch_memory() {
    while let Some(resident) = resident() {
        if resident > MAXIMUM_RESIDENT {
            print_line(&format!("failed to evaluate function: {TOO_MUCH_MEMORY}"));
            std::process::exit(1);
        }
        thread::sleep(WATCH_INTERVAL);
    }
}

/// What the process uses, in kB.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Lowers a limit of this process and all that it starts.
fn limit(resource: Resource, most: u64) {
    let Rlimit { maximum, .. } = getrlimit(resource);
    let current = Some(maximum.map_or(most, |maximum| maximum.min(most)));
    // Lowering one's own limits is always allowed.
    let _ = setrlimit(resource, Rlimit { current, maximum });
}

fn print_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
