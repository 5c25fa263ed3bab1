//! What the cluster shows, and what became of what was asked for.

use std::sync::Arc;

use super::Pool;
use crate::common::Common;
use crate::fleet::Fleet;
use crate::pod::{Ending, Pod, Stage};
use crate::{Action, Observed, Phase, PodId, Reason};

impl<F: Clone> Pool<F> {
    pub(super) fn seen(&mut self, observed: &Observed) {
        let pod = match self.common.uids.get(&observed.uid) {
            Some(&pod) => {
                self.with_pod(pod, |fleet, common| {
                    if let Some(known) = fleet.pods.get_mut(&pod) {
                        known.observe(observed);
                    }
                    fleet.note_age(pod, common);
                });
                pod
            }
            None => self.find(observed),
        };
        self.with_pod(pod, |fleet, common| match observed.phase {
            Phase::Alive => {}
            Phase::Failed => fleet.failed(pod, None, false, common),
            Phase::Ending => fleet.ending(pod, common),
        });
    }

    /// A pod that was not known: the one that a launch is about, or another.
    fn find(&mut self, observed: &Observed) -> PodId {
        let claims = self.common.slots.claims(&observed.stem, observed.slot).collect::<Vec<_>>();
        let (fleet, common) = self.fleet(&observed.function, &observed.spec);
        let is_it =
            |claim: &PodId| fleet.pods.get(claim).is_some_and(|pod| pod.revision == observed.revision);
        let claim = claims.into_iter().find(is_it);
        let claimed = claim.is_some();
        let pod = claim.unwrap_or_else(|| fleet.adopt(Pod::found(observed, common.now), common));
        fleet.attach(pod, &observed.uid, Some(observed), common);
        match observed.phase {
            Phase::Alive => common.act(Action::Connect { pod, uid: observed.uid.clone() }),
            // What failed before anybody here waited for it says nothing about what is to come.
            Phase::Failed if !claimed => fleet.delete(pod, Reason::Failed, common),
            Phase::Ending if !claimed => fleet.end(pod, Ending::seen(), common),
            Phase::Failed | Phase::Ending => {}
        }
        pod
    }

    pub(super) fn gone(&mut self, uid: &Arc<str>) {
        let Some(&pod) = self.common.uids.get(uid) else { return };
        self.with_pod(pod, |fleet, common| {
            if fleet.pods.get(&pod).is_some_and(Pod::is_coming) {
                fleet.fail_start(pod, None, false, common);
            }
            fleet.vanish(pod, common);
        });
    }

    pub(super) fn launched(&mut self, pod: PodId, uid: &Arc<str>) {
        let known = self.common.uids.contains_key(uid);
        if !known && !self.common.pods.contains_key(&pod) {
            // Its launch had been given up.
            let (uid, reason) = (uid.clone(), Reason::Surplus);
            return self.common.act(Action::Delete { pod, uid, reason });
        }
        self.with_pod(pod, |fleet, common| fleet.launched(pod, uid, known, common));
    }

    pub(super) fn taken(&mut self, pod: PodId) {
        self.with_pod(pod, |fleet, common| {
            let Some(pod) = fleet.pods.get_mut(&pod) else { return };
            pod.asked = false;
            if pod.stage == Stage::Launching {
                pod.stage = Stage::Taken { since: common.now };
            }
        });
    }

    pub(super) fn not_launched(&mut self, pod: PodId, failure: F, lasting: bool) {
        self.with_pod(pod, |fleet, common| {
            let Some(known) = fleet.pods.get_mut(&pod) else { return };
            known.asked = false;
            // A pod that is there in spite of it is judged by what becomes of it.
            if known.uid.is_none() {
                fleet.fail_start(pod, Some(failure), lasting, common);
                fleet.remove(pod, common);
            }
        });
    }

    pub(super) fn connected(&mut self, pod: PodId) {
        self.with_pod(pod, |fleet, common| {
            let Some(known) = fleet.pods.get_mut(&pod) else { return };
            match known.stage {
                Stage::Starting { .. } => {}
                Stage::Doubted => return known.stage = Stage::Ready,
                _ => return,
            }
            if known.is_current(&fleet.spec) {
                fleet.backoff = None;
            }
            fleet.record(pod, Pod::become_ready, common);
        });
    }

    pub(super) fn doubted(&mut self, pod: PodId) {
        self.with_pod(pod, |fleet, _| {
            if let Some(known) = fleet.pods.get_mut(&pod).filter(|pod| pod.is_ready()) {
                known.stage = Stage::Doubted;
            }
        });
    }

    pub(super) fn broken(&mut self, pod: PodId, failure: F, lasting: bool) {
        self.with_pod(pod, |fleet, common| fleet.failed(pod, Some(failure), lasting, common));
    }

    pub(super) fn troubled(&mut self, pod: PodId, failure: F) {
        self.with_pod(pod, |fleet, _| {
            if let Some(pod) = fleet.pods.get_mut(&pod).filter(|pod| pod.is_coming()) {
                pod.trouble = Some(failure);
            }
        });
    }
}

impl<F: Clone> Fleet<F> {
    /// A launch made its pod, which may be known already.
    fn launched(&mut self, id: PodId, uid: &Arc<str>, known: bool, common: &mut Common<F>) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        pod.asked = false;
        let over = known || pod.gone.contains(uid);
        let id = match (&pod.uid, over) {
            (Some(_), true) => return,
            (None, true) => return self.remove(id, common),
            (None, false) => id,
            // What was seen in the slot was another one.
            (Some(_), false) => {
                let (stem, revision) = (pod.stem.clone(), pod.revision.clone());
                let another = Pod { stem, revision, ..Pod::launching(&self.spec, pod.slot, common.now) };
                self.adopt(another, common)
            }
        };
        self.attach(id, uid, None, common);
        common.act(Action::Connect { pod: id, uid: uid.clone() });
    }

    /// A pod is being deleted, by whomever.
    fn ending(&mut self, id: PodId, common: &mut Common<F>) {
        let Some(pod) = self.pods.get(&id) else { return };
        let ending = match pod.stage {
            Stage::Ending(ending) => Ending { seen: true, ..ending },
            _ => Ending { failed_start: pod.is_coming(), ..Ending::seen() },
        };
        if pod.is_coming() {
            self.fail_start(id, None, false, common);
        }
        self.end(id, ending, common);
    }

    /// A pod does not come up, or answers no longer.
    fn failed(&mut self, id: PodId, failure: Option<F>, lasting: bool, common: &mut Common<F>) {
        let Some(pod) = self.pods.get(&id) else { return };
        let coming = pod.is_coming();
        let before = match pod.stage {
            Stage::Ending(ending) => Some(ending),
            _ => None,
        };
        if coming {
            self.fail_start(id, failure, lasting, common);
        } else if let Some(failure) = failure.filter(|_| before.is_some_and(|ending| ending.failed_start)) {
            self.explain(id, failure, lasting);
        }
        self.lose(id, common);
        if before.is_some() {
            return;
        }
        if self.pods.get(&id).is_some_and(|pod| pod.uid.is_none()) {
            return self.remove(id, common);
        }
        self.delete(id, Reason::Failed, common);
    }
}
