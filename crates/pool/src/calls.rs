//! Where each call is.

use std::collections::HashMap;

use crate::queue::Ticket;
use crate::{CallId, Function, PodId};

/// Every call the pool knows.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    places: HashMap<CallId, Place>,
    waiting: usize,
}

/// Where a call is.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// In the queue of a function.
    Waiting(Function, Ticket),
    /// In a pod.
    In(PodId),
}

impl Calls {
    /// Notes where a call is now.
    pub(crate) fn put(&mut self, call: CallId, place: Place) {
        self.waiting += usize::from(matches!(place, Place::Waiting(..)));
        let before = self.places.insert(call, place);
        self.waiting -= usize::from(matches!(before, Some(Place::Waiting(..))));
    }

    /// Forgets a call and tells where it was.
    pub(crate) fn remove(&mut self, call: CallId) -> Option<Place> {
        let before = self.places.remove(&call);
        self.waiting -= usize::from(matches!(before, Some(Place::Waiting(..))));
        before
    }

    /// Whether a call is waiting.
    pub(crate) fn is_waiting(&self, call: CallId) -> bool {
        matches!(self.places.get(&call), Some(Place::Waiting(..)))
    }

    /// How many wait, over all functions.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }
}
