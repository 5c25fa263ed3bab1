//! The folder of one service, in a place that it shares with others: it holds the private folders of calls,
//! and tells left-overs of a dead service from all that somebody else has made.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, lstat, mkdirat, openat, unlinkat,
};
use rustix::io::Errno;

use crate::{kill, removal};

/// What the names of these folders begin with.
const PREFIX: &str = "functions-";

/// A file in each of them, locked as long as its service lives, whatever process namespace that is in.
const LOCK: &str = ".lock";

/// What is in that file, before the folder's own name. It is written under the lock: where it is whole and
/// nobody holds the lock, the service is gone.
const MARKER: &str = "The private folders of functions. They are removed when this file is not locked: ";

/// A folder that only this user can enter, by a name that nobody can guess.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
    folder: OwnedFd,
    /// Which folder it is, whatever is found at its path.
    identity: (u64, u64),
    /// Without a lock it is as good a folder, only that no successor removes it.
    _lock: Option<File>,
}

impl Instance {
    pub(crate) fn make(place: &Path) -> io::Result<Self> {
        let name = format!("{PREFIX}{}", crate::calls::random_name());
        let path = place.join(&name);
        mkdirat(CWD, &path, Mode::RWXU)?;
        let folder = open_folder(CWD, &path)?;
        let stat = fstat(&folder)?;
        let lock = lock(&folder, &name)
            .inspect_err(|error| tracing::debug!(folder = %path.display(), %error, "cannot lock a folder"));
        Ok(Self { path, folder, identity: (stat.st_dev, stat.st_ino), _lock: lock.ok() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder itself, whatever is found at its path by now.
    pub(crate) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Whether this folder, and no other one or link, is at its path, and is as private as it was made.
    pub(crate) fn is_in_place(&self) -> bool {
        lstat(&self.path).is_ok_and(|stat| {
            (stat.st_dev, stat.st_ino) == self.identity && Mode::from_raw_mode(stat.st_mode) == Mode::RWXU
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Where calls have left something behind, a successor removes it, and knows it by this file.
        let holds = |name: &str| name != LOCK;
        if self.is_in_place() && !names(&self.folder).is_ok_and(|names| names.iter().any(|name| holds(name)))
        {
            let _ = unlinkat(&self.folder, LOCK, AtFlags::empty());
            let _ = unlinkat(CWD, &self.path, AtFlags::REMOVEDIR);
        }
    }
}

fn lock(folder: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, LOCK, flags, Mode::RUSR | Mode::WUSR)?);
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(format!("{MARKER}{name}\n").as_bytes())?;
    Ok(file)
}

/// Ends what services that died left alive, and removes the folders that they left in this place. Nothing is
/// touched that is not certainly theirs.
pub(crate) fn tidy(place: &Path) {
    let Ok(place_folder) = open_folder(CWD, place) else { return };
    for name in names(&place_folder).unwrap_or_default() {
        if let Some(abandoned) = Abandoned::find(&place_folder, &name) {
            let path = place.join(&name);
            match abandoned.remove(&place_folder, &name) {
                Ok(()) => tracing::debug!(folder = %path.display(), "removed a folder that was left behind"),
                Err(error) => tracing::debug!(folder = %path.display(), %error, "cannot remove a folder"),
            }
        }
    }
}

/// The folder of a service that is gone.
struct Abandoned {
    folder: OwnedFd,
    /// Locked, so that no other successor is at it.
    _lock: File,
}

impl Abandoned {
    /// If the entry of this name is one: a folder of this user, closed to others, in which a file that only a
    /// service writes is not locked.
    fn find(place: &OwnedFd, name: &str) -> Option<Self> {
        if !name.starts_with(PREFIX) {
            return None;
        }
        let is_ours = |file: &OwnedFd, kind: FileType| {
            fstat(file).is_ok_and(|stat| {
                stat.st_uid == rustix::process::geteuid().as_raw()
                    && FileType::from_raw_mode(stat.st_mode) == kind
                    && !Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO)
            })
        };
        let folder = open_folder(place, name).ok().filter(|folder| is_ours(folder, FileType::Directory))?;
        // A pipe by this name must not hold us up.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let lock = openat(&folder, LOCK, flags, Mode::empty()).ok();
        let lock = File::from(lock.filter(|file| is_ours(file, FileType::RegularFile))?);
        let expected = format!("{MARKER}{name}\n");
        let mut found = String::new();
        (&lock).take(expected.len() as u64 + 1).read_to_string(&mut found).ok()?;
        let is_dead = || flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        (found == expected && is_dead()).then_some(Self { folder, _lock: lock })
    }

    fn remove(self, place: &OwnedFd, name: &str) -> io::Result<()> {
        // Folders have the names of their calls, which the processes of these calls carry.
        let calls: HashSet<String> = names(&self.folder)?.into_iter().filter(|name| name != LOCK).collect();
        if !calls.is_empty() {
            kill::marked(|cookie| calls.contains(cookie));
        }
        for call in &calls {
            removal::remove(&self.folder, call)?;
        }
        // By now there is the lock in it, or nothing.
        Ok(removal::remove(place, name)?)
    }
}

fn open_folder(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

fn names(folder: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        // What is no text is no name of ours.
        if let Ok(name) = entry?.file_name().to_str()
            && name != "."
            && name != ".."
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
