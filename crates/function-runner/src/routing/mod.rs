//! Which executor serves an image: sources of configuration are read into one
//! index, and calls look images up in it.

mod builtins;
mod claim;
mod config_file;
mod folder;
mod follow;
mod index;
pub mod objects;
mod origin;
mod sources;
mod table;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;
use tracing::warn;

pub use builtins::every_builtin;
pub use claim::{Claim, Place};
pub use config_file::{ConfigFile, ConfigFileError, Fault, Problem};
pub use folder::Folder;
pub use follow::{FileFollower, FileSettings, Look, StartError};
pub use index::{BuiltinFunction, Executable, Index, Layer, PodFunction, WarmUp, check_executable};
pub use origin::Origin;
pub use sources::{Built, Object, Reason, Sources, Terms, Verdict};
pub use table::{Match, Table};

/// Larger files are refused: no sensible configuration comes near.
pub const LARGEST_FILE: u64 = 4 * 1024 * 1024;

/// What is configured, and the index made from it; that is replaced as a whole, never changed in place. A clone
/// shares both.
#[derive(Debug, Clone)]
pub struct Routing {
    terms: Arc<Terms>,
    sources: Arc<Mutex<Sources>>,
    built: watch::Sender<Arc<Built>>,
}

impl Routing {
    /// Nothing is configured yet.
    pub fn new(terms: Terms) -> Self {
        let sources = Sources::default();
        let built = watch::Sender::new(Arc::new(sources.build(&terms)));
        Self { terms: Arc::new(terms), sources: Arc::new(Mutex::new(sources)), built }
    }

    /// What holds whatever is configured.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Changes what is configured, and puts the index of that in force.
    pub fn change(&self, change: impl FnOnce(&mut Sources)) -> Arc<Built> {
        // Held until the index is in force: the last change must not be overtaken.
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut sources);
        let built = Arc::new(sources.build(&self.terms));
        let before = self.built.send_replace(built.clone());
        let told: HashSet<_> = before.warnings.iter().collect();
        for warning in built.warnings.iter().filter(|warning| !told.contains(warning)) {
            warn!("{warning}");
        }
        built
    }

    /// The index in force now.
    pub fn index(&self) -> Arc<Index> {
        self.built.borrow().index.clone()
    }

    /// Tells of every change.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Built>> {
        self.built.subscribe()
    }
}
