//! The pods of one function and the calls that wait for them.

mod assess;
mod serve;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::common::Common;
use crate::pod::{Ending, Pod, Stage, Standing};
use crate::queue::{Guest, Queue};
use crate::room::{Need, Offer};
use crate::{Action, CallId, Function, Moment, Observed, PodId, Reason, Spec};

/// One function: what its pods are to be, and what they are.
///
/// Whatever happens to it, it is looked at anew in two steps: [`Fleet::assess`]
/// ends what is over and finds out how many pods to start; [`Fleet::serve`], after
/// those that have room are started, gives pods to calls and removes what is in the way.
#[derive(Debug)]
pub(crate) struct Fleet<F> {
    pub(crate) function: Function,
    pub(crate) spec: Arc<Spec>,
    pub(crate) pods: BTreeMap<PodId, Pod<F>>,
    pub(crate) queue: Queue,
    pub(crate) backoff: Option<Backoff<F>>,
    /// Whether one pod is to be started if there is none and nobody else needs the room.
    pub(crate) start_one: bool,
    /// What is entered for it in the common indexes.
    need: Option<Need>,
    offer: Offer,
    wake: Option<Moment>,
}

impl<F: Clone> Fleet<F> {
    pub(crate) fn new(function: Function, spec: Arc<Spec>) -> Self {
        Self {
            function,
            spec,
            pods: BTreeMap::new(),
            queue: Queue::default(),
            backoff: None,
            start_one: false,
            need: None,
            offer: Offer::default(),
            wake: None,
        }
    }

    /// Takes what the pods are to be from now on.
    pub(crate) fn respecify(&mut self, spec: Arc<Spec>, now: Moment) {
        if Arc::ptr_eq(&self.spec, &spec) || self.spec == spec {
            return;
        }
        if self.spec.revision != spec.revision || self.spec.stem != spec.stem {
            // What failed was something else; and who is being served goes on being served.
            self.backoff = None;
            let in_use = |pod: &Pod<F>| {
                let used = pod.last_used.is_some_and(|used| now < used.saturating_add(spec.time_to_live));
                pod.is_ready() && (used || !pod.calls.is_empty())
            };
            self.start_one |= self.pods.values().any(in_use);
        }
        self.spec = spec;
    }

    /// Whether calls of another function may use its pods, those that are on their way included: all of them run
    /// the image that function means, are made alike, and nothing is wrong with them.
    pub(crate) fn can_host(&self, spec: &Spec) -> bool {
        let alike = Spec { stem: self.spec.stem.clone(), ..spec.clone() };
        self.backoff.is_none() && *self.spec == alike && self.is_uniform() && self.wanted().next().is_some()
    }

    /// Takes out the waiting calls of other functions that its pods are not for any more.
    pub(crate) fn take_guests(&mut self) -> Vec<(CallId, Moment, Moment, Guest)> {
        let (is_uniform, image) = (self.is_uniform(), self.spec.image.clone());
        self.queue.take_guests(|guest| !is_uniform || guest.spec.image != image)
    }

    /// Whether all its pods are of one image: where a tag has moved, those of the old one serve for a while.
    fn is_uniform(&self) -> bool {
        self.pods.values().all(|pod| pod.is_ending() || pod.stem == self.spec.stem)
    }

    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.queue.is_empty() && self.backoff.is_none() && self.min_pods() == 0
    }

    /// Whether a pod takes calls.
    pub(crate) fn has_ready(&self) -> bool {
        self.pods.values().any(Pod::is_ready)
    }

    /// Asks for one more pod.
    pub(crate) fn launch(&mut self, common: &mut Common<F>) {
        let pod = common.number_pod(&self.function);
        let slot = common.slots.lowest_free(&self.spec.stem);
        let launching = Pod::launching(&self.spec, slot, common.now);
        common.slots.hold(pod, &launching, &self.function);
        self.pods.insert(pod, launching);
        self.ask(pod, common);
    }

    /// Asks for a pod.
    fn ask(&mut self, id: PodId, common: &mut Common<F>) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        pod.asked = true;
        pod.stage = Stage::Launching;
        let (function, spec) = (self.function.clone(), self.spec.clone());
        common.act(Action::Launch { pod: id, function, spec, slot: pod.slot });
    }

    /// Enters a pod that is in the cluster and was not asked for.
    pub(crate) fn adopt(&mut self, found: Pod<F>, common: &mut Common<F>) -> PodId {
        let pod = common.number_pod(&self.function);
        common.slots.hold(pod, &found, &self.function);
        self.pods.insert(pod, found);
        pod
    }

    /// Notes that a pod is in the cluster, under which unique name, and what the cluster says of it.
    pub(crate) fn attach(
        &mut self,
        id: PodId,
        uid: &Arc<str>,
        observed: Option<&Observed>,
        common: &mut Common<F>,
    ) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        pod.uid = Some(uid.clone());
        common.uids.insert(uid.clone(), id);
        pod.stage = Stage::Starting { since: common.now };
        // Whatever kept it from being made has passed.
        pod.trouble = None;
        if let Some(observed) = observed {
            pod.observe(observed);
        }
        self.note_age(id, common);
    }

    /// Tells the others in a pod's slot how it is now.
    pub(crate) fn note_age(&self, id: PodId, common: &mut Common<F>) {
        let Some(pod) = self.pods.get(&id) else { return };
        let known = pod.seen && !pod.is_ending();
        let age = pod.uid.clone().filter(|_| known).map(|uid| (pod.created, uid));
        common.touched.extend(common.slots.note(&pod.stem, pod.slot, id, pod.uid.is_some(), age));
    }

    /// A pod is not in the cluster any more.
    pub(crate) fn vanish(&mut self, id: PodId, common: &mut Common<F>) {
        self.lose(id, common);
        let Some(pod) = self.pods.get_mut(&id) else { return };
        if !pod.asked {
            return self.remove(id, common);
        }
        if let Some(uid) = &pod.uid {
            common.uids.remove(uid);
        }
        pod.forget();
        self.note_age(id, common);
    }

    /// Forgets a pod.
    pub(crate) fn remove(&mut self, id: PodId, common: &mut Common<F>) {
        self.lose(id, common);
        let Some(pod) = self.pods.remove(&id) else { return };
        // It had to go before its replacement could come.
        self.start_one |= pod.standing == Standing::Outdated && self.need.is_some();
        common.pods.remove(&id);
        if let Some(uid) = &pod.uid {
            common.uids.remove(uid);
        }
        common.touched.extend(common.slots.release(&pod.stem, pod.slot, id));
    }

    /// A pod takes no more calls and will go.
    pub(crate) fn end(&mut self, id: PodId, ending: Ending, common: &mut Common<F>) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        pod.stage = Stage::Ending(ending);
        self.note_age(id, common);
    }

    /// Has a pod deleted.
    pub(crate) fn delete(&mut self, id: PodId, reason: Reason, common: &mut Common<F>) {
        let Some(pod) = self.pods.get(&id) else { return };
        let Some(uid) = pod.uid.clone() else { return };
        let failed_start = pod.is_coming() && matches!(reason, Reason::Failed | Reason::NotReady);
        self.end(id, Ending { asked: Some((common.now, reason)), seen: false, failed_start }, common);
        common.act(Action::Delete { pod: id, uid, reason });
    }

    /// The calls in a pod get no answer.
    pub(crate) fn lose(&mut self, id: PodId, common: &mut Common<F>) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        if pod.calls.is_empty() {
            return;
        }
        for call in pod.calls.drain() {
            common.calls.remove(call);
        }
        common.act(Action::Lost { pod: id });
    }

    /// A pod did not come up. Pods from something older say nothing about those to come.
    pub(crate) fn fail_start(
        &mut self,
        id: PodId,
        failure: Option<F>,
        lasting: bool,
        common: &mut Common<F>,
    ) {
        let Some(pod) = self.pods.get(&id).filter(|pod| pod.is_current(&self.spec)) else { return };
        let failure = failure.or_else(|| pod.trouble.clone());
        let before = self.backoff.take();
        self.backoff = Some(Backoff::after(before, failure, lasting, common.now, &common.limits));
    }

    /// Why a start failed, told after the fact.
    pub(crate) fn explain(&mut self, id: PodId, failure: F, lasting: bool) {
        let current = self.pods.get(&id).is_some_and(|pod| pod.is_current(&self.spec));
        if let Some(backoff) = self.backoff.as_mut().filter(|_| current) {
            backoff.failure = Some(failure);
            backoff.lasting = lasting;
        }
    }

    /// Notes a use of a pod.
    pub(crate) fn touch(&mut self, id: PodId, common: &mut Common<F>) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        pod.last_used = Some(common.now);
        if pod.is_ready() {
            self.record(id, Pod::record_use, common);
        }
    }

    /// Has it recorded until when a pod is to be kept, if that is worth it.
    pub(crate) fn record(
        &mut self,
        id: PodId,
        until: impl FnOnce(&mut Pod<F>, Duration, Moment) -> Option<Moment>,
        common: &mut Common<F>,
    ) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let recorded = until(pod, self.spec.time_to_live, common.now);
        if let (Some(keep_until), Some(uid)) = (recorded, pod.uid.clone()) {
            common.act(Action::Record { pod: id, uid, keep_until });
        }
    }

    fn wanted(&self) -> impl Iterator<Item = &Pod<F>> {
        self.pods.values().filter(|pod| pod.standing == Standing::Wanted && !pod.is_ending())
    }

    fn max_queue(&self) -> usize {
        self.spec.max_queue.max(1)
    }

    fn max_pods(&self) -> usize {
        self.spec.max_pods.max(1)
    }

    fn min_pods(&self) -> usize {
        self.spec.min_pods.min(self.max_pods())
    }
}
