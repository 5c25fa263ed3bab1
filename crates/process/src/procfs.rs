//! What /proc tells about processes. Everything here may be outdated when it is read: a process can end at
//! any time, and its number can be given to another one.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::{Pid, RawPid};

/// The part of `/proc/PID/stat` that matters here. `pid` and `started` together name a process for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: Pid,
    pub(crate) zombie: bool,
    pub(crate) parent: RawPid,
    pub(crate) group: RawPid,
    /// In clock ticks since boot.
    pub(crate) started: u64,
}

pub(crate) fn stat(pid: Pid) -> Option<Stat> {
    parse_stat(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(pid: Pid, line: &[u8]) -> Option<Stat> {
    // The second field is the program's name in parentheses, which may itself contain anything.
    let name_end = line.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let started = fields.nth(16)?.parse().ok()?; // field 22 of the line
    Some(Stat { pid, zombie, parent, group, started })
}

/// The children of all threads of a process.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    static LISTED: OnceLock<bool> = OnceLock::new();
    // Kernels can be built without these lists.
    if *LISTED.get_or_init(|| fs::exists("/proc/thread-self/children").unwrap_or(false)) {
        children_by_list(pid)
    } else {
        children_by_scan(pid)
    }
}

fn children_by_list(pid: Pid) -> Vec<Pid> {
    let mut children = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return children };
    for thread in threads.flatten() {
        let Ok(list) = fs::read_to_string(thread.path().join("children")) else { continue };
        children.extend(list.split_ascii_whitespace().filter_map(parse_pid));
    }
    children
}

fn children_by_scan(parent: Pid) -> Vec<Pid> {
    let is_child = |&pid: &Pid| stat(pid).is_some_and(|stat| stat.parent == parent.as_raw_pid());
    all().into_iter().filter(is_child).collect()
}

/// All processes.
pub(crate) fn all() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes.flatten().filter_map(|entry| parse_pid(entry.file_name().to_str()?)).collect()
}

/// Whether a child of process `own` may have been given to it, rather than started by it: the kernel gives
/// orphans to the first thread, and a thread keeps the children that it has started.
pub(crate) fn may_be_adopted(own: Pid, child: Pid) -> bool {
    fs::read_to_string(format!("/proc/{own}/task/{own}/children"))
        .is_ok_and(|list| list.split_ascii_whitespace().filter_map(parse_pid).any(|pid| pid == child))
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

/// The values of an environment variable that a process was started with; empty when that is not for us to
/// read.
pub(crate) fn environment_values(pid: Pid, name: &str) -> Vec<String> {
    // The kernel gives no program more than 6 MiB of arguments and environment.
    const MAXIMUM: u64 = 8 << 20;
    let mut block = Vec::new();
    let read = fs::File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(MAXIMUM).read_to_end(&mut block));
    if read.is_err() {
        return Vec::new();
    }
    let values = block.split(|&byte| byte == 0).filter_map(|variable| {
        let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    });
    values.collect()
}

/// The working folder of a process; with ` (deleted)` at its end when it no longer exists.
pub(crate) fn working_folder(pid: Pid) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Whether /proc shows the processes under the numbers that system calls take.
pub(crate) fn is_ours() -> bool {
    fs::read_link("/proc/self")
        .ok()
        .and_then(|link| parse_pid(link.to_str()?))
        .is_some_and(|pid| pid == rustix::process::getpid())
}

/// Now, in the clock ticks of [`Stat::started`].
pub(crate) fn ticks_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds * per_second + nanoseconds * per_second / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_cannot_forge_the_fields() {
        let pid = Pid::INIT;
        let line = b"1 (a) Z 9 9 (x) S 7 8 8 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0 0\n";
        let expected = Stat { pid, zombie: false, parent: 7, group: 8, started: 12345 };
        assert_eq!(parse_stat(pid, line), Some(expected));
        for end in 0..30 {
            assert_eq!(parse_stat(pid, &line[..end]), None);
        }
        assert_eq!(parse_stat(pid, b""), None);
    }

    #[test]
    fn lists_and_scan_agree_and_time_is_in_the_same_ticks() {
        let own = rustix::process::getpid();
        let before = ticks_since_boot();
        let mut child = std::process::Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let after = ticks_since_boot();
        let pid = Pid::from_child(&child);
        assert!(children_by_list(own).contains(&pid));
        assert!(children_by_scan(own).contains(&pid));
        let started = stat(pid).unwrap().started;
        assert!(before <= started && started <= after, "{before} {started} {after}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children_by_list(own).contains(&pid));
        assert!(is_ours());
    }
}
