//! What is over, and how many pods to start.

use super::Fleet;
use crate::common::Common;
use crate::pod::{Pod, Stage, Standing};
use crate::room::{Need, Urgency};
use crate::{Action, Moment, PodId, Reason, Refusal};

impl<F: Clone> Fleet<F> {
    /// Ends what is over and enters how many pods are needed.
    pub(crate) fn assess(&mut self, common: &mut Common<F>) {
        if self.backoff.as_ref().is_some_and(|backoff| backoff.is_over(common.now, &common.limits)) {
            self.backoff = None;
        }
        self.end_waits(common);
        self.rank(common);
        if self.give_up(common) {
            self.rank(common);
        }
        let before = self.need;
        self.enter_need(None, common);
        let start_one = std::mem::take(&mut self.start_one) && self.wanted().next().is_none();
        if start_one && !self.is_pausing(common) && common.room.is_spare(common.pods.len()) {
            self.launch(common);
        }
        let need = self.find_need(before, common);
        self.enter_need(need, common);
    }

    /// One pod was needed and is started.
    pub(crate) fn launch_needed(&mut self, common: &mut Common<F>) {
        let Some(need) = self.need else { return };
        let left = Need { urgency: Urgency::More, count: need.count - 1, ..need };
        self.enter_need((left.count > 0).then_some(left), common);
        self.launch(common);
    }

    fn enter_need(&mut self, need: Option<Need>, common: &mut Common<F>) {
        common.room.need(&self.function, self.need, need);
        self.need = need;
    }

    /// Refuses the calls whose time is over.
    fn end_waits(&mut self, common: &mut Common<F>) {
        let for_room = self.need.is_some() && !self.pods.values().any(Pod::is_coming);
        while let Some(call) = self.queue.pop_ended(common.now) {
            common.calls.remove(call);
            let mut coming = self.pods.values().filter(|pod| pod.is_coming());
            let of_pod = coming.find_map(|pod| pod.trouble.as_ref());
            let of_start = self.backoff.as_ref().and_then(|backoff| backoff.failure.as_ref());
            let trouble = of_pod.or(of_start).cloned();
            common.act(Action::Refuse { call, refusal: Refusal::TimedOut { trouble, for_room } });
        }
    }

    /// Finds out which pods are what pods are to be. Those of the lowest slots are,
    /// however far they are, so that all replicas come to the same result.
    fn rank(&mut self, common: &Common<F>) {
        let mut ranked = Vec::with_capacity(self.pods.len());
        for (&id, pod) in self.pods.iter_mut().filter(|(_, pod)| !pod.is_ending()) {
            if !pod.is_current(&self.spec) {
                pod.standing = Standing::Outdated;
            } else if common.slots.has_elder(&pod.stem, pod.slot, id) {
                pod.standing = Standing::Surplus;
            } else {
                // Slot 0, which is none, comes last.
                ranked.push((pod.slot.wrapping_sub(1), id));
            }
        }
        ranked.sort_unstable();
        for (place, (_, id)) in ranked.into_iter().enumerate() {
            let standing = if place < self.max_pods() { Standing::Wanted } else { Standing::Surplus };
            if let Some(pod) = self.pods.get_mut(&id) {
                pod.standing = standing;
            }
        }
    }

    /// Gives up pods that do not come, and says whether it did.
    fn give_up(&mut self, common: &mut Common<F>) -> bool {
        let coming: Vec<PodId> =
            self.pods.iter().filter(|(_, pod)| pod.is_coming()).map(|(&id, _)| id).collect();
        let mut any = false;
        for id in coming {
            any |= self.give_up_one(id, common);
        }
        any
    }

    fn give_up_one(&mut self, id: PodId, common: &mut Common<F>) -> bool {
        let Some(pod) = self.pods.get(&id) else { return false };
        let (now, limits) = (common.now, &common.limits);
        let over = |moment: Option<Moment>| moment.is_some_and(|moment| moment <= now);
        let late = self.queue.is_empty() && over(pod.late_at(limits.ready_timeout));
        match pod.stage {
            Stage::Taken { .. } => {
                let useless =
                    pod.standing != Standing::Wanted || common.slots.has_other(&pod.stem, pod.slot, id);
                if useless || late {
                    self.remove(id, common);
                    return true;
                }
                if over(pod.insist_at(limits.claim_timeout)) {
                    self.ask(id, common);
                }
                false
            }
            Stage::Starting { .. } if late => {
                self.fail_start(id, None, false, common);
                self.delete(id, Reason::NotReady, common);
                true
            }
            _ => false,
        }
    }

    /// How many pods are missing.
    fn find_need(&self, before: Option<Need>, common: &Common<F>) -> Option<Need> {
        if self.is_pausing(common) {
            return None;
        }
        let waiting = self.queue.len();
        let (mut wanted, mut coming, mut spare) = (0_usize, 0_usize, 0_usize);
        for pod in self.wanted() {
            wanted += 1;
            coming += usize::from(pod.is_coming());
            if pod.stage != Stage::Doubted {
                spare = spare.saturating_add(self.max_queue().saturating_sub(pod.calls.len()));
            }
        }
        let for_calls = waiting.saturating_sub(spare).div_ceil(self.max_queue());
        // What there was no room for stays needed while calls crowd the pods there are,
        // and while what it is to replace makes way.
        let makes_way = |pod: &Pod<F>| pod.is_ending() && pod.standing == Standing::Outdated;
        let pressed = self.pods.values().any(|pod| pod.is_ready() || makes_way(pod));
        let still = usize::from(before.is_some() && spare == 0 && pressed);
        let missing = for_calls.max(still).max(self.min_pods().saturating_sub(wanted));
        let mut count = missing.min(self.max_pods().saturating_sub(wanted));
        if self.backoff.is_some() {
            // After a failure one is tried at a time until one comes up.
            count = count.min(1_usize.saturating_sub(coming));
        }
        if count == 0 {
            return None;
        }
        let none = waiting > 0 && !self.pods.values().any(|pod| pod.is_coming() || pod.is_ready());
        let urgency = if none { Urgency::First } else { Urgency::More };
        let since = self.queue.oldest().or(before.map(|need| need.since)).unwrap_or(common.now);
        Some(Need { urgency, since, count })
    }

    pub(super) fn is_pausing(&self, common: &Common<F>) -> bool {
        self.backoff.as_ref().is_some_and(|backoff| backoff.pausing(common.now).is_some())
    }
}
