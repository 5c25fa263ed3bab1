//! Keeps the routing in step with `config.yaml` while the service runs.
//!
//! The file is looked at once a second: mounted ConfigMaps change by a
//! symbolic link far up the path, which file notification misses easily,
//! while one `stat` a second costs nothing.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use files::Followed;
use tracing::{error, info, warn};

use super::{ConfigFile, ConfigFileError, Index, Routing, config_file::LARGEST};

/// How often the file is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

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
    file: Followed,
    functions: PathBuf,
    default_prefix: String,
    routing: Routing,
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
            file: Followed::new(path.to_owned(), LARGEST),
            functions: functions.to_owned(),
            default_prefix: default_prefix.to_owned(),
            routing,
        };
        if let Some(read) = follower.file.look() {
            follower.load(read, !required)?;
        }
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
        let Some(read) = self.file.look() else { return Look::Same };
        match self.load(read, false) {
            Ok(()) => Look::Replaced,
            Err(cause) => {
                error!(%cause, "the changed configuration is broken; the one before stays in force");
                Look::Kept
            }
        }
    }

    fn load(&mut self, read: io::Result<Vec<u8>>, may_be_missing: bool) -> Result<(), ConfigFileError> {
        let path = self.file.path();
        let file = match ConfigFile::of(path, read) {
            Err(error) if error.is_missing() && may_be_missing => {
                self.routing.replace(Index::default());
                info!(path = %path.display(), "there is no configuration file: no executables are served");
                return Ok(());
            }
            read => read?,
        };
        let (index, problems) = file.index(&self.functions, &self.default_prefix);
        for problem in &problems {
            warn!(path = %path.display(), "{problem}");
        }
        info!(path = %path.display(), images = index.executables.len(), problems = problems.len(), "executables configured");
        self.routing.replace(index);
        Ok(())
    }
}
