//! What can happen.

use std::sync::Arc;

use crate::{CallId, Function, Moment, PodId, Spec};

/// Something that happened. `F` is why something failed, which the pool only passes on.
#[derive(Debug, Clone)]
pub enum Event<F> {
    /// A call needs a pod.
    Arrived {
        /// The call.
        call: CallId,
        /// What it wants to run.
        function: Function,
        /// What pods of that function are to be from now on.
        spec: Arc<Spec>,
        /// When it must be answered.
        until: Option<Moment>,
    },
    /// A call needs its pod no longer: it is over, or was given up while it waited.
    Left {
        /// The call.
        call: CallId,
    },
    /// A function is to have a pod before anybody calls, or its settings changed.
    Wanted {
        /// The function.
        function: Function,
        /// What its pods are to be from now on.
        spec: Arc<Spec>,
        /// Whether a pod is to be started now if there is none.
        warm: bool,
    },
    /// A pod as the cluster shows it: the first time, or changed.
    Seen(Observed),
    /// The cluster has a pod no longer, and its slot is free.
    Gone {
        /// The pod's unique name in the cluster.
        uid: Arc<str>,
    },
    /// A launch made its pod.
    Launched {
        /// The pod.
        pod: PodId,
        /// Its unique name in the cluster.
        uid: Arc<str>,
    },
    /// A launch found its slot taken by another replica, whose pod is to be waited for.
    Taken {
        /// The pod.
        pod: PodId,
    },
    /// A launch did not make a pod.
    NotLaunched {
        /// The pod.
        pod: PodId,
        /// Why.
        failure: F,
        /// Whether trying again soon is of no use.
        lasting: bool,
    },
    /// A pod answers, for the first time or again.
    Connected {
        /// The pod.
        pod: PodId,
    },
    /// The connection to a pod broke, and what became of the pod is being found out. Until `Connected` or
    /// `Broken` it takes no new calls; those in it go on.
    Doubted {
        /// The pod.
        pod: PodId,
    },
    /// A pod will not come up, or answers no longer.
    Broken {
        /// The pod.
        pod: PodId,
        /// Why.
        failure: F,
        /// Whether trying again soon is of no use.
        lasting: bool,
    },
    /// Something keeps a pod from coming up that may pass.
    Trouble {
        /// The pod.
        pod: PodId,
        /// What; told to those whose wait ends meanwhile.
        failure: F,
    },
    /// Time passed; sent at least at [`Pool::wake_at`](crate::Pool::wake_at).
    Tick,
    /// Pods that nobody needs are to go now.
    Scan,
}

/// A pod of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Its unique name.
    pub uid: Arc<str>,
    /// The function it runs.
    pub function: Function,
    /// Settings of that function, used if the pool knows none yet.
    pub spec: Arc<Spec>,
    /// The stem of its name.
    pub stem: Arc<str>,
    /// Its slot, from 1; 0 for names of older releases, which have none.
    pub slot: usize,
    /// What it was made from.
    pub revision: Arc<str>,
    /// How far it is.
    pub phase: Phase,
    /// When it was made. Of two pods in one slot the older stays.
    pub created: Moment,
    /// Until when it is to be kept by what is recorded on it, by whomever.
    pub keep_until: Option<Moment>,
    /// Whether somebody has brought that forward since it was seen last.
    pub is_shortened: bool,
}

/// How far a pod of the cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It may come to answer, or does.
    Alive,
    /// It has failed and answers no more.
    Failed,
    /// It is being deleted: its calls end in peace, it gets no new ones.
    Ending,
}
