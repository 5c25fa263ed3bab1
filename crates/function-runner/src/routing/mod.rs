//! Which executor serves an image: sources of configuration are read into one
//! index, and calls look images up in it.

mod claim;
mod config_file;
mod follow;
mod index;
mod table;

use std::sync::{Arc, PoisonError, RwLock};

pub use claim::{Claim, Place, Versions};
pub use config_file::{ConfigFile, ConfigFileError, Problem};
pub use follow::{ConfigFollower, Look};
pub use index::{Executable, Index};
pub use table::{Match, Table};

/// The index in force; replaced as a whole, never changed in place.
#[derive(Debug, Clone, Default)]
pub struct Routing {
    current: Arc<RwLock<Arc<Index>>>,
}

impl Routing {
    /// Puts an index in force.
    pub fn replace(&self, index: Index) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(index);
    }

    /// The index in force now.
    pub fn index(&self) -> Arc<Index> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
