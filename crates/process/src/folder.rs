//! The private folder of one call.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat};

use crate::instance::Instance;
use crate::removal;

/// A folder in that of the service. All is done to the entry of its name there, which is never followed should
/// a function have put a link in its place.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    instance: Arc<Instance>,
    name: String,
}

impl PrivateFolder {
    pub(crate) fn make(instance: Arc<Instance>, name: &str) -> io::Result<Self> {
        mkdirat(instance.folder(), name, Mode::RWXU)?;
        Ok(Self { instance, name: name.to_owned() })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.instance.path().join(&self.name)
    }

    /// Whether it is in this folder of a service.
    pub(crate) fn is_in(&self, instance: &Arc<Instance>) -> bool {
        Arc::ptr_eq(&self.instance, instance)
    }

    /// The same folder under another name.
    pub(crate) fn renamed(mut self, name: &str) -> io::Result<Self> {
        let folder = self.instance.folder();
        if let Err(error) = renameat(folder, &self.name, folder, name) {
            // It goes the way of all folders that are not wanted.
            let _ = self.remove();
            return Err(error.into());
        }
        name.clone_into(&mut self.name);
        Ok(self)
    }

    /// Whether nothing tells that it has been used: it is empty, and only its owner may enter.
    pub(crate) fn is_as_new(&self) -> bool {
        let folder = self.instance.folder();
        let is_private = statat(folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && Mode::from_raw_mode(stat.st_mode) == Mode::RWXU
        });
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let is_empty = || -> io::Result<bool> {
            let opened = openat(folder, &self.name, flags, Mode::empty())?;
            // Itself and the one above it.
            Ok(Dir::read_from(opened)?.take(3).count() == 2)
        };
        is_private && is_empty().unwrap_or(false)
    }

    /// Removes it if there is nothing in it; whether it is gone.
    pub(crate) fn remove_empty(&self) -> bool {
        unlinkat(self.instance.folder(), &self.name, AtFlags::REMOVEDIR).is_ok()
    }

    /// Removes it with all it holds.
    pub(crate) fn remove(&self) -> io::Result<()> {
        Ok(removal::remove(self.instance.folder(), &self.name)?)
    }
}
