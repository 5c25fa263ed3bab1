//! Which pods calls are given, and which pods go.

use std::time::Duration;

use super::Fleet;
use crate::calls::Place;
use crate::common::Common;
use crate::pod::{Ending, Pod, Stage, Standing};
use crate::room::Offer;
use crate::{Action, Moment, PodId, Reason, Refusal};

/// How long a deletion may stay without effect before it is asked for again.
const DELETE_AGAIN: Duration = Duration::from_secs(30);

impl<F: Clone> Fleet<F> {
    /// Gives pods to calls, removes pods that are in the way, and enters when to be looked at again.
    pub(crate) fn serve(&mut self, common: &mut Common<F>) {
        let waited = !self.queue.is_empty();
        self.give_out(common);
        self.refuse_hopeless(common);
        if waited && self.queue.is_empty() && self.pods.values().any(Pod::is_coming) {
            // Nobody waits any more for those that are coming: some may be given up.
            common.touched.insert(self.function.clone());
        }
        self.replace(common);
        self.renew(common);
        self.enter(common);
    }

    /// Has it recorded in time that pods with calls in them are to be kept.
    fn renew(&mut self, common: &mut Common<F>) {
        let time_to_live = self.spec.time_to_live;
        let due = |pod: &Pod<F>| pod.renew_at(time_to_live).is_some_and(|renew_at| renew_at <= common.now);
        let due: Vec<PodId> = self.pods.iter().filter(|(_, pod)| due(pod)).map(|(&id, _)| id).collect();
        for id in due {
            self.touch(id, common);
        }
    }

    /// Gives waiting calls to the least loaded pods, in turn among equals. While more
    /// pods are about to be ready, each gets no more than its share.
    fn give_out(&mut self, common: &mut Common<F>) {
        if self.queue.is_empty() {
            return;
        }
        let serving = self.serving();
        if serving.is_empty() {
            return;
        }
        let patience = common.limits.patience;
        let awaited = |pod: &&Pod<F>| pod.awaited_until(common.now, patience).is_some();
        let soon = self.pods.values().filter(awaited).count();
        let load = |id: &PodId| self.pods.get(id).map_or(0, |pod| pod.calls.len());
        let calls = self.queue.len() + serving.iter().map(load).sum::<usize>();
        let share = calls.div_ceil(serving.len() + soon);
        let bound = if soon == 0 { usize::MAX } else { share.max(self.max_queue()) };
        while !self.queue.is_empty() {
            let load = |id: &PodId| self.pods.get(id).map(|pod| (pod.calls.len(), pod.last_grant, *id));
            let Some((load, _, id)) = serving.iter().filter_map(load).min() else { return };
            if load >= bound {
                return;
            }
            self.grant(id, common);
        }
    }

    /// The pods that take calls now: those that are wanted or, while none of them is ready, the others.
    fn serving(&self) -> Vec<PodId> {
        let wanted = self.wanted().any(Pod::is_ready);
        let serves = |pod: &Pod<F>| pod.is_ready() && (!wanted || pod.standing == Standing::Wanted);
        self.pods.iter().filter(|(_, pod)| serves(pod)).map(|(&id, _)| id).collect()
    }

    fn grant(&mut self, id: PodId, common: &mut Common<F>) {
        let Some(call) = self.queue.pop() else { return };
        let Some(pod) = self.pods.get_mut(&id) else { return };
        pod.calls.insert(call);
        pod.last_grant = common.number_grant();
        common.calls.put(call, Place::In(id));
        common.act(Action::Grant { call, pod: id });
        self.touch(id, common);
    }

    /// Refuses the calls for which no pod is coming nor soon will be.
    fn refuse_hopeless(&mut self, common: &mut Common<F>) {
        let Some(backoff) = self.backoff.as_ref() else { return };
        let hopeless = backoff.lasting && backoff.pausing(common.now).is_some();
        let Some(failure) = backoff.failure.clone().filter(|_| hopeless) else { return };
        if self.pods.values().any(|pod| !pod.is_ending()) {
            return;
        }
        while let Some(call) = self.queue.pop() {
            common.calls.remove(call);
            common.act(Action::Refuse { call, refusal: Refusal::Failed(failure.clone()) });
        }
    }

    /// Deletes pods that others have replaced. An outdated pod is replaced only by a newer
    /// one: replicas that do not agree on what is current must not delete each other's. Nor
    /// is a pod that the cluster has not shown yet: it may turn out to be the older in its slot.
    fn replace(&mut self, common: &mut Common<F>) {
        let Some(newest) = self.wanted().filter(|pod| pod.is_ready()).map(|pod| pod.created).max() else {
            return;
        };
        let replaced = |pod: &Pod<F>| match pod.standing {
            Standing::Wanted => None,
            Standing::Outdated => (pod.created <= newest).then_some(Reason::Outdated),
            Standing::Surplus => Some(Reason::Surplus),
        };
        let settled = |pod: &Pod<F>| matches!(pod.stage, Stage::Starting { .. } | Stage::Ready) && pod.seen;
        let idle = |pod: &Pod<F>| settled(pod) && pod.calls.is_empty();
        let candidates = self.pods.iter().filter(|(_, pod)| idle(pod));
        let replaced: Vec<_> =
            candidates.filter_map(|(&id, pod)| replaced(pod).map(|reason| (id, reason))).collect();
        for (id, reason) in replaced {
            self.delete(id, reason, common);
        }
    }

    /// The pods that nobody would miss now, the longest unused first.
    fn dispensable(&self) -> Vec<(Moment, Moment, PodId)> {
        if !self.queue.is_empty() {
            return Vec::new();
        }
        let ready = self.wanted().filter(|pod| pod.is_ready()).count();
        // Others are kept in place of those that are not there yet: surplus ones until they are,
        // outdated ones if they cannot be started.
        let lacking = ready < self.min_pods();
        let mut spare = ready.saturating_sub(self.min_pods());
        let mut idle: Vec<_> =
            self.pods.iter().filter(|(_, pod)| pod.is_ready() && pod.calls.is_empty()).collect();
        let time_to_live = self.spec.time_to_live;
        let key =
            |id: PodId, pod: &Pod<F>| (pod.unused_since(time_to_live), pod.kept_until(time_to_live), id);
        idle.sort_by_key(|&(&id, pod)| key(id, pod));
        idle.retain(|(_, pod)| match pod.standing {
            Standing::Wanted if spare == 0 => false,
            Standing::Wanted => {
                spare -= 1;
                true
            }
            Standing::Surplus => !lacking,
            Standing::Outdated => !lacking || self.backoff.is_none(),
        });
        idle.into_iter().map(|(&id, pod)| key(id, pod)).collect()
    }

    /// Removes what nobody needs, keeps what is in use, and insists on deletions.
    pub(crate) fn scan(&mut self, common: &mut Common<F>) {
        let now = common.now;
        let used: Vec<PodId> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.is_ready() && !pod.calls.is_empty())
            .map(|(&id, _)| id)
            .collect();
        for id in used {
            self.touch(id, common);
        }
        for (_, kept_until, id) in self.dispensable() {
            if kept_until <= now {
                self.delete(id, Reason::Idle, common);
            }
        }
        for (&id, pod) in &mut self.pods {
            let Stage::Ending(Ending { asked: Some((asked, reason)), seen: false, .. }) = &mut pod.stage
            else {
                continue;
            };
            if let Some(uid) = pod.uid.clone().filter(|_| now > asked.saturating_add(DELETE_AGAIN)) {
                *asked = now;
                common.act(Action::Delete { pod: id, uid, reason: *reason });
            }
        }
    }

    /// Enters in the common indexes how it is now.
    pub(crate) fn enter(&mut self, common: &mut Common<F>) {
        if common.room.is_limited() {
            let ending = self.pods.values().filter(|pod| pod.is_ending()).count();
            let offer = Offer { idle: self.dispensable(), ending };
            common.room.offer(&self.offer, &offer);
            self.offer = offer;
        }
        let wake = self.next_wake(common);
        if wake != self.wake {
            if let Some(wake) = self.wake {
                common.timers.remove(&(wake, self.function.clone()));
            }
            common.timers.extend(wake.map(|wake| (wake, self.function.clone())));
            self.wake = wake;
        }
    }

    /// When it must be looked at again though nothing happens to it.
    fn next_wake(&self, common: &Common<F>) -> Option<Moment> {
        let (now, limits) = (common.now, &common.limits);
        let waits = !self.queue.is_empty();
        let crowding = waits && self.has_ready();
        let lacking = waits || self.wanted().count() < self.min_pods();
        let pause = self.backoff.as_ref().filter(|_| lacking).and_then(|backoff| backoff.pausing(now));
        let of_pods = self.pods.values().flat_map(|pod| {
            [
                pod.insist_at(limits.claim_timeout),
                pod.late_at(limits.ready_timeout).filter(|_| !waits),
                pod.awaited_until(now, limits.patience).filter(|_| crowding),
                pod.renew_at(self.spec.time_to_live),
            ]
        });
        [self.queue.next_end(), pause].into_iter().chain(of_pods).flatten().min()
    }
}
