//! What is to be done.

use std::sync::Arc;

use crate::{CallId, Function, Moment, PodId, Spec};

/// Something for the pool's owner to do, and to report on where said.
#[derive(Debug, Clone)]
pub enum Action<F> {
    /// Claim the slot and make the pod. Ends with `Launched`, `Taken` or `NotLaunched`.
    Launch {
        /// The pod.
        pod: PodId,
        /// The function it is for.
        function: Function,
        /// What it is to be.
        spec: Arc<Spec>,
        /// Its slot.
        slot: usize,
    },
    /// Connect to a pod as soon as it answers. Ends with `Connected` or `Broken`,
    /// unless the pod goes before.
    Connect {
        /// The pod.
        pod: PodId,
        /// Its unique name in the cluster.
        uid: Arc<str>,
    },
    /// Let a call use a pod until it reports `Left`.
    Grant {
        /// The call.
        call: CallId,
        /// The pod.
        pod: PodId,
    },
    /// Tell a waiting call that it gets no pod. It is forgotten.
    Refuse {
        /// The call.
        call: CallId,
        /// Why.
        refusal: Refusal<F>,
    },
    /// Delete a pod and then free its slot. Ends with `Gone`; asked for again
    /// while the pod is still seen alive at a later `Scan`.
    Delete {
        /// The pod.
        pod: PodId,
        /// Its unique name in the cluster.
        uid: Arc<str>,
        /// Why.
        reason: Reason,
    },
    /// Record on a pod until when it is to be kept, for other replicas and restarts.
    Record {
        /// The pod.
        pod: PodId,
        /// Its unique name in the cluster.
        uid: Arc<str>,
        /// Until when.
        keep_until: Moment,
    },
    /// Calls in the pod will get no answer: it is dead. Never said of pods that are
    /// merely being deleted. What is known of the pod can be dropped.
    Lost {
        /// The pod.
        pod: PodId,
    },
}

/// Why a call got no pod.
#[derive(Debug, Clone)]
pub enum Refusal<F> {
    /// Too many calls wait already.
    Crowded {
        /// How many.
        waiting: usize,
    },
    /// The pod could not be started.
    Failed(F),
    /// Its time is over.
    TimedOut {
        /// What kept it waiting, as far as known.
        trouble: Option<F>,
        /// Whether it waited for room under the limit over all functions.
        for_room: bool,
    },
}

/// Why a pod goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It was not used for its time to live.
    Idle,
    /// It failed.
    Failed,
    /// It did not become ready in time.
    NotReady,
    /// It is made from an older image, template or settings.
    Outdated,
    /// There are more pods than the function's limit.
    Surplus,
    /// Another function needs the room.
    Room,
}
