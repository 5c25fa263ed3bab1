//! What tells one state of a file from another.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A file that changed this short a time ago may change again without a trace: the times of files are coarse.
const UNSETTLED: Duration = Duration::from_secs(2);

/// One state of a file. Two contents of a path do not have the same stamp, save those of a file that is not
/// [settled](Self::is_settled).
///
/// It is that of the file behind all links: a mounted ConfigMap or Secret is links to links, of which one is
/// moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Tells also a file that was replaced by one of the same age and size.
    changed: (i64, i64),
}

impl Stamp {
    /// The state a path's file is in now.
    pub fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::from(&metadata))
    }

    /// Whether the next change will be seen.
    pub fn is_settled(&self) -> bool {
        let changed = UNIX_EPOCH + Duration::from_secs(u64::try_from(self.changed.0).unwrap_or_default());
        SystemTime::now().duration_since(changed).is_ok_and(|age| age > UNSETTLED)
    }
}

impl From<&fs::Metadata> for Stamp {
    fn from(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
