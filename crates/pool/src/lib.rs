//! Decisions about function pods, as a pure state machine: which pod a call
//! is given, when pods are started and when they go.
//!
//! [`Pool::handle`] takes what happened and answers what is to be done. It does
//! no I/O and has no clock of its own, so tests can drive it through any order
//! of events. Its owner carries the actions out and reports what became of them.

mod action;
mod backoff;
mod calls;
mod common;
mod event;
mod fleet;
mod pod;
mod pool;
mod queue;
mod room;
mod slots;
mod snapshot;

pub use action::{Action, Reason, Refusal};
pub use event::{Event, Observed, Phase};
pub use pool::Pool;
pub use snapshot::{PodView, Snapshot};

use std::{sync::Arc, time::Duration};

/// A moment, as time since the pool's owner started. It never goes back.
pub type Moment = Duration;

/// A function: the image its callers ask for.
pub type Function = Arc<str>;

/// One call, numbered by the pool's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// One pod, numbered by the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodId(pub u64);

/// What the pods of a function are to be, and how many of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What the names of its pods have in common apart from the slot. Functions
    /// of the same stem share their slots, because slots make names.
    pub stem: Arc<str>,
    /// What its pods run, whatever it is called: functions of one image may share their pods. Empty if not known.
    pub image: Arc<str>,
    /// What a pod must have been made from to be up to date: image, template, settings.
    pub revision: Arc<str>,
    /// Pods kept whether they are used or not.
    pub min_pods: usize,
    /// Pods at most; at least 1.
    pub max_pods: usize,
    /// The number of calls in a pod from which on another pod is wanted; at least 1.
    pub max_queue: usize,
    /// How long a pod is kept after its last use.
    pub time_to_live: Duration,
}

/// Bounds over all functions.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Pods of all functions together; at least 1.
    pub max_pods: Option<usize>,
    /// Calls waiting for a pod; at least 1.
    pub max_waiting: usize,
    /// How long a pod may take to be ready, and a call without a deadline waits.
    pub ready_timeout: Duration,
    /// How long a slot taken by another replica may stay without a pod before it is taken over.
    pub claim_timeout: Duration,
    /// How long calls wait for a pod that is starting rather than crowd those that are ready.
    pub patience: Duration,
    /// The pause after a failed start; it doubles with each further failure up to `max_backoff`.
    pub min_backoff: Duration,
    /// The longest pause.
    pub max_backoff: Duration,
}
