//! The pool as people and metrics see it.

use std::{sync::Arc, time::Duration};

/// All pods and the calls that wait for one.
#[derive(Debug, Clone, Default)]
pub struct PodsView {
    /// Calls that wait for a pod.
    pub waiting: usize,
    /// The pods.
    pub pods: Vec<PodView>,
}

/// One pod.
#[derive(Debug, Clone)]
pub struct PodView {
    /// The image its callers ask for.
    pub function: Arc<str>,
    /// Its name; its id while it has none.
    pub name: String,
    /// How far it is.
    pub phase: &'static str,
    /// Whether it is what the function's pods are to be now.
    pub is_current: bool,
    /// Calls in it.
    pub calls: usize,
    /// Its age.
    pub age: Duration,
    /// How long it is kept if it is not used again.
    pub keeps: Option<Duration>,
    /// What keeps it from coming up.
    pub trouble: Option<String>,
}
