//! The task that kills and reaps what functions left behind, and removes their private folders.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, RawPid, WaitOptions, getpid, waitpid};
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep};

use crate::calls::{COOKIE, CallNumber, Calls};
use crate::folder::PrivateFolder;
use crate::kill;
use crate::procfs::{self, Stat};

/// Between a reason to sweep and the sweep: gathers the ends of many calls, most of which leave nothing.
const GATHER: Duration = Duration::from_millis(20);
/// Between sweeps while there is something to kill: it may be starting new processes all the time.
const PURSUIT: Duration = Duration::from_millis(2);
/// The longest wait before looking again at something that does not die.
const LONGEST_RETRY: Duration = Duration::from_millis(500);
/// How long a dead helper of other code here waits for that code to reap it.
const OWNER_GRACE: Duration = Duration::from_secs(10);
/// Folders kept for the next calls, and for how long.
const MOST_SPARE: usize = 16;
const SPARE_LIFE: Duration = Duration::from_secs(1);
/// How often a folder's removal is tried, each time after twice the wait: dying processes may still be
/// writing into it.
const REMOVAL_TRIES: u32 = 10;
const REMOVAL_WAIT: Duration = Duration::from_millis(10);

/// The result of the latest sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Swept {
    /// It answers all requests up to this one.
    pub(crate) asked: u64,
    /// No function, nothing of a function and no private folder is left.
    pub(crate) clean: bool,
}

#[derive(Debug)]
pub(crate) struct Sweeper {
    calls: Arc<Calls>,
    swept: watch::Sender<Swept>,
    own: Pid,
    own_group: RawPid,
    /// When this supervisor started, in ticks, and the children that were there: what had started before it
    /// is none of its business. Ticks are coarse, so the children of that moment are remembered one by one.
    started: u64,
    older: HashSet<(Pid, u64)>,
    /// Orphans seen in the latest sweep, by number and start time.
    known: HashMap<(Pid, u64), Orphan>,
    removals: JoinSet<Result<Removal, JoinError>>,
    /// When the spare folders were last added to.
    spared: Instant,
}

/// What is remembered of an orphan from sweep to sweep.
#[derive(Clone, Copy, Debug)]
struct Orphan {
    call: Option<CallNumber>,
    seen: Instant,
}

/// An attempt to remove a private folder.
#[derive(Debug)]
struct Removal {
    folder: PrivateFolder,
    tries: u32,
    result: io::Result<()>,
}

/// What is to be done about a child that is no root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Not ours to touch.
    Foreign,
    /// A dead child of other code here; it is reaped when nobody else does.
    Owned,
    /// Its call, or one that may be its call, still runs.
    Spare,
    Kill,
}

impl Sweeper {
    pub(crate) fn new(calls: Arc<Calls>, swept: watch::Sender<Swept>) -> Self {
        let own = getpid();
        let older = procfs::children(own).into_iter().filter_map(procfs::stat);
        Self {
            calls,
            swept,
            own,
            // Not by asking for our group's number: it has none where it lies outside our process namespace.
            own_group: procfs::stat(own).map_or(0, |stat| stat.group),
            started: procfs::ticks_since_boot(),
            older: older.map(|stat| (stat.pid, stat.started)).collect(),
            known: HashMap::new(),
            removals: JoinSet::new(),
            spared: Instant::now(),
        }
    }

    pub(crate) async fn work(mut self, mut children: Signal) {
        let mut retry = None;
        loop {
            let (mut longer, mut hurried) = (false, false);
            let has_spare = !self.calls.spare_folders().is_empty();
            tokio::select! {
                () = self.calls.work.notified() => {}
                () = self.calls.hurry.notified() => hurried = true,
                _ = children.recv() => {}
                Some(done) = self.removals.join_next() => self.removed(done),
                () = sleep(retry.unwrap_or_default()), if retry.is_some() => longer = true,
                () = sleep(SPARE_LIFE), if has_spare => {}
            }
            if !hurried {
                tokio::select! {
                    () = sleep(if retry.is_none() { GATHER } else { PURSUIT }) => {}
                    // Whoever waits for a sweep has no more calls to end.
                    () = self.calls.hurry.notified() => {}
                }
            }
            let again = self.sweep();
            retry = match retry {
                _ if !again => None,
                Some(last) if longer => Some((last * 2).min(LONGEST_RETRY)),
                _ => Some(PURSUIT),
            };
        }
    }

    /// One pass over this process's children and the discarded folders. Whether to look again soon, even if
    /// nothing asks for it.
    fn sweep(&mut self) -> bool {
        let asked = self.calls.sweeps_asked();
        // In this order: what ends after the look at the running calls asks for another sweep.
        let idle = self.calls.roots().is_empty();
        // Before the children are listed: of a call that ended by now, all that is left will be among them.
        let discarded = self.calls.take_discarded();
        let left = self.sweep_children();
        // Whoever waits for all to be gone does not want folders kept.
        let keep = left.none && asked == self.swept.borrow().asked;
        self.keep_or_remove(discarded, keep);
        let clean = idle && left.alive == 0 && self.removals.is_empty();
        self.swept.send_replace(Swept { asked, clean });
        left.again
    }

    fn sweep_children(&mut self) -> Left {
        let mut left = Left::default();
        let mut orphans = procfs::children(self.own);
        {
            let roots = self.calls.roots();
            orphans.retain(|pid| !roots.contains_key(pid));
        }
        if orphans.is_empty() {
            self.known.clear();
            left.none = true;
            return left;
        }
        // A root that was being started while the children were listed is registered once this is held.
        let calls = self.calls.clone();
        let _exclusive = calls.stop_spawning();
        let roots = calls.roots().clone();
        orphans.retain(|pid| !roots.contains_key(pid));

        let mut known = std::mem::take(&mut self.known);
        let mut oldest_root = None;
        for orphan in orphans.into_iter().filter_map(procfs::stat) {
            if orphan.parent != self.own.as_raw_pid() {
                continue;
            }
            let key = (orphan.pid, orphan.started);
            let before = known.remove(&key);
            let seen = before.map_or_else(Instant::now, |before| before.seen);
            let call = before.and_then(|before| before.call).or_else(|| self.identify(orphan));
            let verdict = match call {
                Some(call) if roots.values().any(|&running| running == call) => Verdict::Spare,
                Some(_) => Verdict::Kill,
                None => {
                    // Read only when it matters: it takes a file per running call.
                    let oldest = *oldest_root.get_or_insert_with(|| oldest(roots.keys().copied()));
                    self.judge_unmarked(orphan, oldest)
                }
            };
            let reapable = verdict != Verdict::Owned || seen.elapsed() >= OWNER_GRACE;
            if orphan.zombie && reapable && reap(orphan.pid) {
                continue;
            }
            match verdict {
                Verdict::Foreign => {}
                Verdict::Owned => left.again = true,
                Verdict::Spare => left.alive += 1,
                Verdict::Kill => {
                    tracing::debug!(pid = %orphan.pid, ?call, "killing what a function left behind");
                    kill::tree(orphan);
                    left.alive += 1;
                    left.again = true;
                }
            }
            self.known.insert(key, Orphan { call, seen });
        }
        left
    }

    /// The call that an orphan belongs to, by its own marks.
    fn identify(&self, orphan: Stat) -> Option<CallNumber> {
        let cookies = procfs::environment_values(orphan.pid, COOKIE);
        cookies
            .iter()
            .find_map(|cookie| self.calls.parse_cookie(cookie))
            .or_else(|| self.calls.parse_path(&procfs::working_folder(orphan.pid)?))
    }

    fn judge_unmarked(&self, orphan: Stat, oldest_root: Option<u64>) -> Verdict {
        // A function can join our group, but not become a child of another thread than the first.
        if orphan.group == self.own_group && !procfs::may_be_adopted(self.own, orphan.pid) {
            return if orphan.zombie { Verdict::Owned } else { Verdict::Foreign };
        }
        if orphan.started < self.started || self.older.contains(&(orphan.pid, orphan.started)) {
            return Verdict::Foreign;
        }
        // Ticks are coarse: a root of the same tick may have started it.
        match oldest_root {
            Some(oldest) if oldest <= orphan.started => Verdict::Spare,
            _ => Verdict::Kill,
        }
    }

    /// Keeps folders that are as new for the next calls, if they may be kept; removes the others, and those
    /// that nobody has wanted for a while.
    fn keep_or_remove(&mut self, mut discarded: Vec<PrivateFolder>, keep: bool) {
        if keep && !discarded.is_empty() {
            self.spared = Instant::now();
            let calls = self.calls.clone();
            let mut spare = calls.spare_folders();
            let mut room = MOST_SPARE.saturating_sub(spare.len());
            spare.extend(discarded.extract_if(.., |folder| {
                let kept = room > 0 && folder.is_as_new();
                room -= usize::from(kept);
                kept
            }));
        }
        if !keep || self.spared.elapsed() >= SPARE_LIFE {
            discarded.append(&mut self.calls.spare_folders());
        }
        for folder in discarded {
            // Mostly functions leave nothing in it.
            if !folder.remove_empty() {
                self.remove_later(folder, 1, Duration::ZERO);
            }
        }
    }

    fn remove_later(&mut self, folder: PrivateFolder, tries: u32, wait: Duration) {
        self.removals.spawn(async move {
            sleep(wait).await;
            let remove = move || {
                let result = folder.remove();
                Removal { folder, tries, result }
            };
            spawn_blocking(remove).await
        });
    }

    fn removed(&mut self, removal: Result<Result<Removal, JoinError>, JoinError>) {
        let Ok(Ok(Removal { folder, tries, result: Err(error) })) = removal else { return };
        if tries < REMOVAL_TRIES {
            self.remove_later(folder, tries + 1, REMOVAL_WAIT * (1 << tries));
        } else {
            let path = folder.path();
            tracing::warn!(folder = %path.display(), %error, "cannot remove a private folder: remove it by hand");
        }
    }
}

/// What a pass over the children leaves.
#[derive(Debug, Default)]
struct Left {
    /// There is no child but the functions that run.
    none: bool,
    /// Living processes of functions.
    alive: usize,
    /// Something was killed or waits for its owner: look again soon.
    again: bool,
}

/// When the oldest of these processes started.
fn oldest(roots: impl Iterator<Item = Pid>) -> Option<u64> {
    roots.filter_map(procfs::stat).map(|root| root.started).min()
}

/// Reaps one dead child; `false` if it is not quite dead: its first thread has ended, others have not.
fn reap(pid: Pid) -> bool {
    // By number, never any child: that would take the exit status of someone else's.
    !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}
