//! Kills processes together with what they have started, and never one that merely got a number again.

use std::collections::HashSet;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
};

use crate::calls::COOKIE;
use crate::procfs::{self, Stat};

/// How often all processes are looked at for marks, and the time between: what cannot be killed is left.
const MARKED_TRIES: u32 = 500;
const MARKED_WAIT: Duration = Duration::from_millis(10);

/// Kills a call: its root, the root's process group and everything below the root. The root must be an
/// unreaped child of this process, so that its number, and its group's, still mean what they did.
pub(crate) fn call(root: Pid) {
    // What is stopped starts nothing more while its tree is walked. Errors mean that it has ended already.
    let _ = kill_process_group(root, Signal::STOP);
    if let Some(stat) = procfs::stat(root) {
        all(&below(stat));
    }
    let _ = kill_process_group(root, Signal::KILL);
    let _ = kill_process(root, Signal::KILL);
}

/// Kills the rest of a call's process group once its root has ended; the root must not be reaped yet.
pub(crate) fn group(root: Pid) {
    let _ = kill_process_group(root, Signal::KILL);
}

/// Kills a process and everything below it.
pub(crate) fn tree(top: Stat) {
    let _ = send(top, Signal::STOP);
    let mut targets = below(top);
    targets.push(top);
    all(&targets);
}

/// Kills every process that carries the mark of such a call, with what is below it, until there is none: it may
/// be starting new ones all the time.
pub(crate) fn marked(is_such: impl Fn(&str) -> bool) {
    let is_marked = |pid| procfs::environment_values(pid, COOKIE).iter().any(|cookie| is_such(cookie));
    for _ in 0..MARKED_TRIES {
        let found: Vec<Stat> =
            procfs::all().into_iter().filter_map(procfs::stat).filter(|stat| !stat.zombie).collect();
        let found: Vec<Stat> = found.into_iter().filter(|stat| is_marked(stat.pid)).collect();
        if found.is_empty() {
            return;
        }
        found.into_iter().for_each(tree);
        std::thread::sleep(MARKED_WAIT);
    }
}

fn all(targets: &[Stat]) {
    // First all stop: whoever still runs would replace the killed ones by new ones.
    for &target in targets {
        let _ = send(target, Signal::STOP);
    }
    for &target in targets {
        if let Err(error) = send(target, Signal::KILL) {
            tracing::warn!(pid = %target.pid, %error, "cannot kill a process that a function left behind");
        }
    }
}

/// Every process reachable from `top` by parent links, parents before children.
fn below(top: Stat) -> Vec<Stat> {
    let mut seen = HashSet::from([top.pid, rustix::process::getpid()]);
    let mut found: Vec<Stat> = Vec::new();
    let mut next = Some(top);
    let mut visited = 0;
    while let Some(parent) = next {
        let children = procfs::children(parent.pid);
        // Only if the parent is still the same process were these its children.
        if procfs::stat(parent.pid).is_some_and(|now| now.started == parent.started) {
            let stats = children.into_iter().filter_map(procfs::stat);
            let stats = stats.filter(|child| child.parent == parent.pid.as_raw_pid());
            found.extend(stats.filter(|child| seen.insert(child.pid)));
        }
        next = found.get(visited).copied();
        visited += 1;
    }
    found
}

/// Signals exactly the process that was seen: a pidfd holds on to it while its start time is compared.
fn send(target: Stat, signal: Signal) -> Result<(), Errno> {
    let same = || procfs::stat(target.pid).is_some_and(|now| now.started == target.started);
    let sent = match pidfd_open(target.pid, PidfdFlags::empty()) {
        Ok(process) if same() => pidfd_send_signal(process, signal),
        // No pidfd on this kernel or in this sandbox: what remains is a window of microseconds.
        Err(error) if error != Errno::SRCH && same() => kill_process(target.pid, signal),
        _ => Ok(()),
    };
    match sent {
        Err(Errno::SRCH) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_with_another_start_time_is_spared() {
        let mut child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let real = procfs::stat(Pid::from_child(&child)).unwrap();
        send(Stat { started: real.started + 1, ..real }, Signal::KILL).unwrap();
        assert!(child.try_wait().unwrap().is_none());
        send(real, Signal::KILL).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        send(real, Signal::KILL).unwrap(); // gone is no error
    }

    #[test]
    fn the_whole_tree_is_found() {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "(sleep 60; :) & (sleep 61; :) & echo ready; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let top = procfs::stat(Pid::from_child(&child)).unwrap();
        let patience = std::time::Instant::now();
        while below(top).len() < 4 && patience.elapsed().as_secs() < 5 {
            std::thread::yield_now();
        }
        let found = below(top);
        assert_eq!(found.len(), 4, "two sub-shells and two sleeps");
        tree(top);
        child.wait().unwrap();
        let alive = |stat: &Stat| {
            procfs::stat(stat.pid).is_some_and(|now| now.started == stat.started && !now.zombie)
        };
        while found.iter().any(alive) && patience.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        assert!(!found.iter().any(alive));
    }
}
