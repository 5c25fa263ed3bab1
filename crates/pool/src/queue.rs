//! Calls that wait, first come, first served, each with its own end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{CallId, Function, Moment, Spec};

/// Place of a call in its queue.
pub(crate) type Ticket = u64;

/// The waiting calls of one function.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    calls: BTreeMap<Ticket, Waiting>,
    ends: BTreeSet<(Moment, Ticket)>,
    last: Ticket,
}

#[derive(Debug)]
struct Waiting {
    call: CallId,
    arrived: Moment,
    end: Moment,
    guest: Option<Guest>,
}

/// A call of another function of the same image: what it wants, which the pods there must be.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    pub(crate) function: Function,
    pub(crate) spec: Arc<Spec>,
}

impl Queue {
    /// Puts a call at the back.
    pub(crate) fn push(
        &mut self,
        call: CallId,
        arrived: Moment,
        end: Moment,
        guest: Option<Guest>,
    ) -> Ticket {
        self.last += 1;
        self.calls.insert(self.last, Waiting { call, arrived, end, guest });
        self.ends.insert((end, self.last));
        self.last
    }

    /// Takes the first call.
    pub(crate) fn pop(&mut self) -> Option<CallId> {
        let (ticket, waiting) = self.calls.pop_first()?;
        self.ends.remove(&(waiting.end, ticket));
        Some(waiting.call)
    }

    /// Takes a call whose end has come.
    pub(crate) fn pop_ended(&mut self, now: Moment) -> Option<CallId> {
        let &(end, ticket) = self.ends.first()?;
        if end > now {
            return None;
        }
        self.ends.pop_first();
        self.calls.remove(&ticket).map(|waiting| waiting.call)
    }

    /// Takes out a call that waits no longer.
    pub(crate) fn remove(&mut self, ticket: Ticket) {
        if let Some(waiting) = self.calls.remove(&ticket) {
            self.ends.remove(&(waiting.end, ticket));
        }
    }

    /// Takes out the guests that cannot stay, with when each arrived and ends.
    pub(crate) fn take_guests(
        &mut self,
        mut must_go: impl FnMut(&Guest) -> bool,
    ) -> Vec<(CallId, Moment, Moment, Guest)> {
        let gone = self.calls.extract_if(.., |_, waiting| waiting.guest.as_ref().is_some_and(&mut must_go));
        let gone = gone.filter_map(|(ticket, Waiting { call, arrived, end, guest })| {
            self.ends.remove(&(end, ticket));
            Some((call, arrived, end, guest?))
        });
        gone.collect()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Since when the first has been waiting.
    pub(crate) fn oldest(&self) -> Option<Moment> {
        self.calls.first_key_value().map(|(_, waiting)| waiting.arrived)
    }

    /// When the next call ends if it gets no pod.
    pub(crate) fn next_end(&self) -> Option<Moment> {
        self.ends.first().map(|&(end, _)| end)
    }
}
