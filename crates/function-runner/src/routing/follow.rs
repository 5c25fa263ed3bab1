//! Keeps the routing in step with files while the service runs.
//!
//! They are looked at once a second: mounted ConfigMaps change by a symbolic
//! link far up the path, which file notification misses easily, while one
//! `stat` a second costs nothing.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use files::Followed;
use pods::pod_cache;
use tracing::{error, info, warn};

use super::{ConfigFile, ConfigFileError, Folder, LARGEST_FILE, Routing, Sources};

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// The files to follow.
#[derive(Debug, Clone, Default)]
pub struct FileSettings {
    /// `config.yaml`, and whether it must be there.
    pub config: Option<(PathBuf, bool)>,
    /// `pod-cache-config`.
    pub pod_cache: Option<PathBuf>,
    /// The folder of FunctionConfigs.
    pub function_configs: Option<PathBuf>,
}

/// Why the service cannot start from its files.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its `config.yaml`.
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    /// Its folder of FunctionConfigs.
    #[error("cannot read the folder {} of --function-configs: {source}", path.display())]
    FunctionConfigs {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// How a look at the files ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing changed.
    Same,
    /// A new configuration is in force.
    Replaced,
    /// A file is broken; the old configuration stays in force.
    Kept,
}

/// Follows the files.
#[derive(Debug)]
pub struct FileFollower {
    config: Option<Followed>,
    pod_cache: Option<Followed>,
    folder: Option<Folder>,
    is_config_broken: bool,
    routing: Routing,
}

impl FileFollower {
    /// Reads the files for the first time. A missing file is an error only
    /// where it was asked for.
    pub fn start(settings: FileSettings, routing: Routing) -> Result<Self, StartError> {
        let FileSettings { config, pod_cache, function_configs } = settings;
        let (config, required) = config.map_or((None, false), |(path, required)| (Some(path), required));
        let mut follower = Self {
            config: config.map(|path| Followed::new(path, LARGEST_FILE)),
            pod_cache: pod_cache.map(|path| Followed::new(path, LARGEST_FILE)),
            folder: None,
            is_config_broken: false,
            routing,
        };
        if let Some(read) = follower.config.as_mut().and_then(Followed::look) {
            follower.load_config(read, !required)?;
        }
        if let Some(path) = function_configs {
            let mut folder = Folder::new(path.clone(), follower.routing.terms().default_prefix.clone());
            folder.check().map_err(|source| StartError::FunctionConfigs { path, source })?;
            if let Some(files) = folder.look() {
                follower.routing.change(|sources| sources.files = files);
            }
            follower.folder = Some(folder);
        }
        follower.look_at_pod_cache();
        Ok(follower)
    }

    /// Looks at the files again and again, telling each change to `observe`.
    pub async fn follow(mut self, observe: impl Fn(&Look)) {
        if self.is_broken() {
            observe(&Look::Kept);
        }
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            observe(&self.look());
        }
    }

    /// Looks at the files once.
    pub fn look(&mut self) -> Look {
        self.look_at_pod_cache();
        let has_changed = self.look_at_config() | self.look_at_folder();
        match (has_changed, self.is_broken()) {
            (false, _) => Look::Same,
            (true, false) => Look::Replaced,
            (true, true) => Look::Kept,
        }
    }

    /// Whether a file is not in force as it is.
    fn is_broken(&self) -> bool {
        self.is_config_broken || self.folder.as_ref().is_some_and(Folder::is_broken)
    }

    fn look_at_folder(&mut self) -> bool {
        let Some(folder) = &mut self.folder else { return false };
        let was_broken = folder.is_broken();
        let files = folder.look();
        let has_changed = files.is_some() || folder.is_broken() != was_broken;
        if let Some(files) = files {
            self.routing.change(|sources| sources.files = files);
        }
        has_changed
    }

    fn look_at_config(&mut self) -> bool {
        let Some(read) = self.config.as_mut().and_then(Followed::look) else { return false };
        let loaded = self.load_config(read, false);
        if let Err(cause) = &loaded {
            error!(%cause, "the changed configuration is broken; the one before stays in force");
        }
        self.is_config_broken = loaded.is_err();
        true
    }

    fn load_config(&self, read: io::Result<Vec<u8>>, may_be_missing: bool) -> Result<(), ConfigFileError> {
        let Some(path) = self.config.as_ref().map(Followed::path) else { return Ok(()) };
        let file = match ConfigFile::of(path, read) {
            Err(error) if error.is_missing() && may_be_missing => {
                self.routing.change(|sources| sources.config_file = None);
                info!(path = %path.display(), "there is no configuration file: no executables are served");
                return Ok(());
            }
            read => read?,
        };
        if let Some(functions) = &self.routing.terms().functions {
            let (layer, problems) = file.layer(path, functions, &self.routing.terms().default_prefix);
            for problem in &problems {
                warn!(path = %path.display(), "{problem}");
            }
            info!(path = %path.display(), images = layer.executables.len(), problems = problems.len(), "executables configured");
        }
        self.routing.change(|sources| sources.config_file = Some((path.into(), Arc::new(file))));
        Ok(())
    }

    /// A missing or malformed file is no failure of the service.
    fn look_at_pod_cache(&mut self) {
        let Some(file) = &mut self.pod_cache else { return };
        let Some(read) = file.look() else { return };
        let path = file.path();
        let pod_cache = match read {
            Ok(text) => match read_pod_cache(path, &text, &self.routing.terms().default_prefix) {
                Some(entries) => Some((path.into(), entries)),
                None => return,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                info!(path = %path.display(), "there is no pod cache file: it names no function to warm up");
                None
            }
            Err(cause) => {
                warn!(path = %path.display(), %cause, "cannot read the pod cache file");
                return;
            }
        };
        self.routing.change(|sources: &mut Sources| sources.pod_cache = pod_cache);
    }
}

fn read_pod_cache(path: &Path, text: &[u8], default_prefix: &str) -> Option<Arc<[pod_cache::Entry]>> {
    let path = path.display();
    match pod_cache::parse(text) {
        Ok((entries, warnings)) => {
            for warning in warnings {
                warn!(%path, "{warning}");
            }
            for entry in &entries {
                if let Err(cause) = registry::Reference::parse_with_prefix(&entry.image, default_prefix) {
                    warn!(%path, %cause, "an image is not warmed up");
                }
            }
            info!(%path, functions = entries.len(), "pod cache configured");
            Some(entries.into())
        }
        Err(cause) => {
            warn!(%path, cause, "the pod cache file is malformed and not used");
            None
        }
    }
}
