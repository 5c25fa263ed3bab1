//! Keeps the routing in step with `config.yaml` while the service runs.
//!
//! The file is looked at once a second: mounted ConfigMaps change by a
//! symbolic link far up the path, which file notification misses easily,
//! while one `stat` a second costs nothing.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use tracing::{error, info, warn};

use super::{ConfigFile, ConfigFileError, Index, Routing};

/// How often the file is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// What identifies one state of a file, followed through symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// How a look at the file ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing changed.
    Same,
    /// A new configuration is in force.
    Replaced,
    /// The file is broken; the old configuration stays in force.
    Kept,
}

/// Follows one `config.yaml`.
#[derive(Debug)]
pub struct ConfigFollower {
    path: PathBuf,
    functions: PathBuf,
    default_prefix: String,
    routing: Routing,
    stamp: Option<Stamp>,
}

impl ConfigFollower {
    /// Reads the file for the first time. A missing file is an error only
    /// where it was asked for.
    pub fn start(
        path: &Path,
        required: bool,
        functions: &Path,
        default_prefix: &str,
        routing: Routing,
    ) -> Result<Self, ConfigFileError> {
        let mut follower = Self {
            path: path.to_owned(),
            functions: functions.to_owned(),
            default_prefix: default_prefix.to_owned(),
            routing,
            stamp: Stamp::of(path),
        };
        follower.load(!required)?;
        Ok(follower)
    }

    /// Looks at the file again and again, telling each change to `observe`.
    pub async fn follow(mut self, observe: impl Fn(&Look)) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            observe(&self.look());
        }
    }

    /// Looks at the file once.
    pub fn look(&mut self) -> Look {
        let stamp = Stamp::of(&self.path);
        if stamp == self.stamp {
            return Look::Same;
        }
        self.stamp = stamp;
        match self.load(false) {
            Ok(()) => Look::Replaced,
            Err(cause) => {
                error!(%cause, "the changed configuration is broken; the one before stays in force");
                Look::Kept
            }
        }
    }

    fn load(&mut self, may_be_missing: bool) -> Result<(), ConfigFileError> {
        let file = match ConfigFile::read(&self.path) {
            Err(error) if error.is_missing() && may_be_missing => {
                self.routing.replace(Index::default());
                info!(path = %self.path.display(), "there is no configuration file: no executables are served");
                return Ok(());
            }
            read => read?,
        };
        let (index, problems) = file.index(&self.functions, &self.default_prefix);
        for problem in &problems {
            warn!(path = %self.path.display(), "{problem}");
        }
        info!(path = %self.path.display(), images = index.len(), problems = problems.len(), "executables configured");
        self.routing.replace(index);
        Ok(())
    }
}
