//! What callers and configuration ask for.

use std::sync::Arc;

use super::Pool;
use crate::calls::Place;
use crate::fleet::Fleet;
use crate::{Action, CallId, Function, Moment, Refusal, Spec};

impl<F: Clone> Pool<F> {
    pub(super) fn arrived(
        &mut self,
        call: CallId,
        function: &Function,
        spec: &Arc<Spec>,
        until: Option<Moment>,
    ) {
        self.left(call);
        if self.fleets.contains_key(function) {
            self.want(function, spec.clone(), false);
        }
        let crowded = self.is_crowded(0);
        if crowded && !self.fleets.get(function).is_some_and(Fleet::has_ready) {
            // Nothing is kept of it and nothing started for it.
            return self.refuse_crowded(call);
        }
        let (fleet, common) = self.fleet(function, spec);
        let end = until.unwrap_or(common.now.saturating_add(common.limits.ready_timeout));
        let ticket = fleet.queue.push(call, common.now, end);
        common.calls.put(call, Place::Waiting(function.clone(), ticket));
        if crowded {
            self.settle();
            if self.common.calls.is_waiting(call) && self.is_crowded(1) {
                self.left(call);
                self.refuse_crowded(call);
            }
        }
    }

    /// Whether no more calls can wait, those whose time is over and so many others not counted.
    fn is_crowded(&mut self, others: usize) -> bool {
        let limit = self.common.limits.max_waiting.max(1).saturating_add(others);
        if self.common.calls.waiting() >= limit {
            self.wake();
            self.settle();
        }
        self.common.calls.waiting() >= limit
    }

    fn refuse_crowded(&mut self, call: CallId) {
        let waiting = self.common.calls.waiting();
        self.common.act(Action::Refuse { call, refusal: Refusal::Crowded { waiting } });
    }

    pub(super) fn left(&mut self, call: CallId) {
        match self.common.calls.remove(call) {
            None => {}
            Some(Place::Waiting(function, ticket)) => {
                self.with(&function, |fleet, _| fleet.queue.remove(ticket));
                self.common.touched.insert(function);
            }
            Some(Place::In(id)) => self.with_pod(id, |fleet, common| {
                if let Some(pod) = fleet.pods.get_mut(&id) {
                    pod.calls.remove(&call);
                    fleet.touch(id, common);
                }
            }),
        }
    }

    pub(super) fn want(&mut self, function: &Function, spec: Arc<Spec>, warm: bool) {
        let (fleet, common) = self.fleet(function, &spec);
        fleet.respecify(spec, common.now);
        fleet.start_one |= warm;
    }

    pub(super) fn scan(&mut self) {
        self.common.touched.extend(self.fleets.keys().cloned());
        let all = std::mem::take(&mut self.common.touched);
        self.each(&all, Fleet::scan);
        self.common.touched.extend(all);
    }
}
