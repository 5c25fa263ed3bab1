//! The pool as people and metrics see it.

use std::sync::Arc;

use crate::{Function, Moment, PodId};

/// The pool at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot<F> {
    /// Calls waiting for a pod.
    pub waiting: usize,
    /// Every pod the pool knows, by function, slot and number.
    pub pods: Vec<PodView<F>>,
}

/// One pod at one moment.
#[derive(Debug, Clone)]
pub struct PodView<F> {
    /// The pod.
    pub pod: PodId,
    /// The function it runs.
    pub function: Function,
    /// Its slot, from 1; 0 if it has none.
    pub slot: usize,
    /// Its unique name in the cluster, once it is there.
    pub uid: Option<Arc<str>>,
    /// Whether it is what its function's pods are to be now.
    pub current: bool,
    /// One of `launching`, `taken`, `starting`, `ready`, `doubted`, `ending`.
    pub phase: &'static str,
    /// Calls of this replica in it.
    pub calls: usize,
    /// When it was made, or its launch asked for.
    pub created: Moment,
    /// Until when it is kept if nobody uses it, as far as known.
    pub keep_until: Option<Moment>,
    /// When a call of this replica last entered or left it, if one ever did.
    pub last_used: Option<Moment>,
    /// What keeps it from coming up.
    pub trouble: Option<F>,
}
