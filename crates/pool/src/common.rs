//! What all functions have in common.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::calls::Calls;
use crate::room::Room;
use crate::slots::Slots;
use crate::{Action, Function, Limits, Moment, PodId};

/// The indexes over all functions, and the event being handled.
#[derive(Debug)]
pub(crate) struct Common<F> {
    pub(crate) limits: Limits,
    pub(crate) now: Moment,
    /// What is to be done.
    pub(crate) actions: Vec<Action<F>>,
    /// Functions to be looked at before the event is done with.
    pub(crate) touched: BTreeSet<Function>,
    pub(crate) calls: Calls,
    pub(crate) slots: Slots,
    pub(crate) room: Room,
    /// Every known pod, and its function.
    pub(crate) pods: HashMap<PodId, Function>,
    /// Every pod known to be in the cluster.
    pub(crate) uids: HashMap<Arc<str>, PodId>,
    /// When functions are to be looked at although nothing happened to them.
    pub(crate) timers: BTreeSet<(Moment, Function)>,
    last_pod: u64,
    last_grant: u64,
}

impl<F> Common<F> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            room: Room::new(limits.max_pods),
            limits,
            now: Moment::ZERO,
            actions: Vec::new(),
            touched: BTreeSet::new(),
            calls: Calls::default(),
            slots: Slots::default(),
            pods: HashMap::new(),
            uids: HashMap::new(),
            timers: BTreeSet::new(),
            last_pod: 0,
            last_grant: 0,
        }
    }

    /// Says what is to be done.
    pub(crate) fn act(&mut self, action: Action<F>) {
        self.actions.push(action);
    }

    /// A number for a new pod of a function.
    pub(crate) fn number_pod(&mut self, function: &Function) -> PodId {
        self.last_pod += 1;
        let pod = PodId(self.last_pod);
        self.pods.insert(pod, function.clone());
        pod
    }

    /// A number for a new grant.
    pub(crate) fn number_grant(&mut self) -> u64 {
        self.last_grant += 1;
        self.last_grant
    }
}
