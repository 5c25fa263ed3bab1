//! What operators say about the pods of each function.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use pods::settings::FunctionSettings;
use registry::{ImageKey, Reference};

type Known = HashMap<ImageKey, Arc<FunctionSettings>>;

/// From image to the settings of its pods. Replaced as a whole, shared by all who ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodFunctions {
    known: Arc<RwLock<Arc<Known>>>,
    /// For images nobody says anything about.
    usual: Arc<FunctionSettings>,
}

impl PodFunctions {
    /// The settings of an image's pods.
    pub(crate) fn settings(&self, image: &Reference) -> Arc<FunctionSettings> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        known.get(&image.key()).unwrap_or(&self.usual).clone()
    }

    /// Puts other settings in force.
    pub(crate) fn replace(&self, known: Known) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
    }
}
