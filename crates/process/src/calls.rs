//! The calls that run now, and what running calls and the sweeper tell each other.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use rustix::process::Pid;
use tokio::sync::Notify;

use crate::Scratch;
use crate::folder::PrivateFolder;
use crate::memory::Memory;

/// The environment variable that marks every process of a call.
pub const COOKIE: &str = "FUNCTION_CALL";

/// The number of a call, unique within this process.
pub(crate) type CallNumber = u64;

/// State shared by the supervisor's handles, its running calls and its sweeper.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Unlike that of any other supervisor, so that a nested one's processes are not taken for ours.
    prefix: String,
    next: AtomicU64,
    /// Held shared from before a root exists until it is registered; held exclusively by the sweeper while
    /// it judges, so that an unregistered child is certainly no root.
    spawning: RwLock<()>,
    roots: Mutex<HashMap<Pid, CallNumber>>,
    discarded: Mutex<Vec<PrivateFolder>>,
    spare: Mutex<Vec<PrivateFolder>>,
    sweeps_asked: AtomicU64,
    /// There is something for the sweeper to do.
    pub(crate) work: Notify,
    /// Somebody waits until it is done.
    pub(crate) hurry: Notify,
    /// What calls have to share.
    pub(crate) memory: Memory,
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self {
            prefix: format!("function-{}", random_name()),
            next: AtomicU64::new(1),
            spawning: RwLock::default(),
            roots: Mutex::default(),
            discarded: Mutex::default(),
            spare: Mutex::default(),
            sweeps_asked: AtomicU64::new(0),
            work: Notify::new(),
            hurry: Notify::new(),
            memory: Memory::own(),
        }
    }

    pub(crate) fn next_number(&self) -> CallNumber {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// What the cookies of all calls begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The value of [`COOKIE`] for a call; its private folder has the same name.
    pub(crate) fn cookie(&self, call: CallNumber) -> String {
        format!("{}-{call}", self.prefix)
    }

    /// The call a cookie was made for, if it is one of this supervisor.
    pub(crate) fn parse_cookie(&self, cookie: &str) -> Option<CallNumber> {
        cookie.strip_prefix(self.prefix.as_str())?.strip_prefix('-')?.parse().ok()
    }

    /// The call in whose private folder a path lies.
    pub(crate) fn parse_path(&self, path: &Path) -> Option<CallNumber> {
        let names = path.iter().filter_map(|name| name.to_str());
        names.map(|name| name.trim_end_matches(" (deleted)")).find_map(|name| self.parse_cookie(name))
    }

    /// Starts a root with `spawn` and registers it, out of the sweeper's sight in between.
    pub(crate) fn register(
        &self,
        call: CallNumber,
        spawn: impl FnOnce() -> io::Result<Pid>,
    ) -> io::Result<Pid> {
        let _shared = self.spawning.read().unwrap_or_else(PoisonError::into_inner);
        let root = spawn()?;
        lock(&self.roots).insert(root, call);
        Ok(root)
    }

    /// The call has ended: whatever is left of it is the sweeper's now.
    pub(crate) fn end(&self, call: CallNumber, root: Option<Pid>, folder: Option<PrivateFolder>) {
        if let Some(root) = root {
            let mut roots = lock(&self.roots);
            // A root is reaped before it comes here, so its number may be another call's root by now.
            if roots.get(&root) == Some(&call) {
                roots.remove(&root);
            }
        }
        if let Some(folder) = folder {
            lock(&self.discarded).push(folder);
        }
        self.work.notify_one();
    }

    pub(crate) fn stop_spawning(&self) -> RwLockWriteGuard<'_, ()> {
        self.spawning.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn roots(&self) -> MutexGuard<'_, HashMap<Pid, CallNumber>> {
        lock(&self.roots)
    }

    /// Private folders of ended calls; the caller is to remove them, or to keep them for other calls.
    pub(crate) fn take_discarded(&self) -> Vec<PrivateFolder> {
        std::mem::take(&mut lock(&self.discarded))
    }

    /// Folders as good as new, kept because making and removing one costs as much as starting a process.
    pub(crate) fn spare_folders(&self) -> MutexGuard<'_, Vec<PrivateFolder>> {
        lock(&self.spare)
    }

    /// A private folder of this name: a spare one in the same place, or a new one.
    pub(crate) fn private_folder(&self, scratch: &Scratch, name: &str) -> io::Result<PrivateFolder> {
        let instance = scratch.instance()?;
        let spare = {
            let mut spare = self.spare_folders();
            let at = spare.iter().position(|folder| folder.is_in(&instance));
            at.map(|at| spare.swap_remove(at))
        };
        match spare.and_then(|folder| folder.renamed(name).ok()) {
            Some(folder) => Ok(folder),
            None => PrivateFolder::make(instance, name),
        }
    }

    /// Asks for a sweep; one that answers to the returned number, or a later one, began after this.
    pub(crate) fn ask_sweep(&self) -> u64 {
        let asked = self.sweeps_asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.hurry.notify_one();
        asked
    }

    pub(crate) fn sweeps_asked(&self) -> u64 {
        self.sweeps_asked.load(Ordering::SeqCst)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing can be left half done under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name no one else has chosen. Not a secret: the standard library's hash seeds are random enough.
pub(crate) fn random_name() -> String {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_recognised_and_others_are_not() {
        let calls = Calls::new();
        let other = Calls::new();
        let cookie = calls.cookie(17);
        assert_eq!(calls.parse_cookie(&cookie), Some(17));
        for wrong in ["", "17", "-17", &cookie[1..], &other.cookie(17), &format!("{cookie}x")] {
            assert_eq!(calls.parse_cookie(wrong), None, "{wrong}");
        }
        assert_eq!(calls.parse_path(Path::new(&format!("/tmp/{cookie}/a/b"))), Some(17));
        assert_eq!(calls.parse_path(Path::new(&format!("/tmp/{cookie} (deleted)"))), Some(17));
        assert_eq!(calls.parse_path(Path::new("/tmp/a")), None);
    }

    #[test]
    fn ending_a_call_spares_a_later_root_with_the_same_number() {
        let calls = Calls::new();
        calls.register(1, || Ok(Pid::INIT)).unwrap();
        calls.register(2, || Ok(Pid::INIT)).unwrap();
        calls.end(1, Some(Pid::INIT), None);
        assert_eq!(calls.roots().get(&Pid::INIT), Some(&2));
        calls.end(2, Some(Pid::INIT), None);
        assert!(calls.roots().is_empty());
    }
}
