//! What callers and configuration ask for.

use std::sync::Arc;

use super::Pool;
use crate::calls::Place;
use crate::fleet::Fleet;
use crate::queue::Guest;
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
        let home = self.home(function, spec);
        let guest = home.is_some().then(|| Guest { function: function.clone(), spec: spec.clone() });
        let (function, spec) = home.as_ref().map_or((function, spec), |(function, spec)| (function, spec));
        if self.fleets.contains_key(function) {
            self.want(function, spec.clone(), false);
        }
        let crowded = self.is_crowded(0);
        if crowded && !self.fleets.get(function).is_some_and(Fleet::has_ready) {
            // Nothing is kept of it and nothing started for it.
            return self.refuse_crowded(call);
        }
        let now = self.common.now;
        let end = until.unwrap_or(now.saturating_add(self.common.limits.ready_timeout));
        self.enqueue(call, function, spec, (now, end), guest);
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

    fn enqueue(
        &mut self,
        call: CallId,
        function: &Function,
        spec: &Arc<Spec>,
        (arrived, end): (Moment, Moment),
        guest: Option<Guest>,
    ) {
        let (fleet, common) = self.fleet(function, spec);
        let ticket = fleet.queue.push(call, arrived, end, guest);
        common.calls.put(call, Place::Waiting(function.clone(), ticket));
    }

    /// The function whose pods serve another that has none: one of the same image, such as another tag of it,
    /// whose pods are to be the same in everything but their names.
    fn home(&self, function: &Function, spec: &Spec) -> Option<(Function, Arc<Spec>)> {
        if spec.image.is_empty() || self.fleets.contains_key(function) {
            return None;
        }
        let homes = self.fleets.values().filter(|fleet| fleet.can_host(spec));
        homes.map(|fleet| (fleet.function.clone(), fleet.spec.clone())).min_by(|a, b| a.0.cmp(&b.0))
    }

    /// Guests leave where the pods are no longer, or not all, what they want, and wait as functions of their own.
    pub(super) fn send_guests_home(&mut self) {
        let mut leaving = Vec::new();
        for function in &self.common.touched {
            leaving.extend(self.fleets.get_mut(function).into_iter().flat_map(Fleet::take_guests));
        }
        for (call, arrived, end, Guest { function, spec }) in leaving {
            self.enqueue(call, &function, &spec, (arrived, end), None);
        }
    }

    /// What the pods of a function are to be from now on. One that is to be warm gets a pod of its own.
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
