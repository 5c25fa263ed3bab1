//! A model of the API server and the pods behind it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pool::{Function, Moment, Observed, Phase, Spec};

use crate::random::Random;
use crate::scenario::whole;

pub(crate) struct Cluster {
    pub(crate) now: Moment,
    pub(crate) pods: BTreeMap<Arc<str>, ClusterPod>,
    /// The claims on slots by stem and slot, and since when they are there.
    claims: BTreeMap<(Arc<str>, usize), Moment>,
    /// The function and the stem of every pod there ever was.
    made: BTreeMap<Arc<str>, (Function, Arc<str>)>,
}

pub(crate) struct ClusterPod {
    pub(crate) observed: Observed,
    /// Whether it answers, if it has not failed.
    pub(crate) answers: bool,
}

impl ClusterPod {
    /// Whether connections to it work.
    pub(crate) fn is_reachable(&self) -> bool {
        self.answers && self.observed.phase != Phase::Failed
    }
}

impl Cluster {
    pub(crate) fn new(now: Moment) -> Self {
        Self { now, pods: BTreeMap::new(), claims: BTreeMap::new(), made: BTreeMap::new() }
    }

    /// Claims a slot. Unclaimed slots are free to be claimed; a claim without a pod can be
    /// taken over by one who insists after some time.
    pub(crate) fn claim(&mut self, stem: &Arc<str>, slot: usize, insist: Option<Duration>) -> bool {
        let key = (stem.clone(), slot);
        let free = match self.claims.get(&key) {
            None => true,
            Some(&since) => !self.has_pod(stem, slot) && insist.is_some_and(|time| self.now >= since + time),
        };
        if free {
            self.claims.insert(key, self.now);
        }
        free
    }

    pub(crate) fn free(&mut self, stem: &Arc<str>, slot: usize) {
        if !self.has_pod(stem, slot) {
            self.claims.remove(&(stem.clone(), slot));
        }
    }

    fn has_pod(&self, stem: &Arc<str>, slot: usize) -> bool {
        self.pods.values().any(|pod| pod.observed.slot == slot && pod.observed.stem == *stem)
    }

    /// Makes a pod. Its unique name tells nothing about the order in which pods were made.
    pub(crate) fn make(&mut self, function: &Function, spec: &Arc<Spec>, slot: usize) -> Arc<str> {
        let number = Random::new(self.made.len() as u64).next() % 0xffff;
        let uid: Arc<str> = format!("{number:04x}-{}", self.made.len()).into();
        let observed = Observed {
            uid: uid.clone(),
            function: function.clone(),
            spec: spec.clone(),
            stem: spec.stem.clone(),
            slot,
            revision: spec.revision.clone(),
            phase: Phase::Alive,
            created: whole(self.now),
            keep_until: None,
            is_shortened: false,
        };
        self.made.insert(uid.clone(), (function.clone(), spec.stem.clone()));
        self.pods.insert(uid.clone(), ClusterPod { observed, answers: false });
        uid
    }

    /// A pod vanishes. Its claim goes with it unless somebody forgets it.
    pub(crate) fn vanish(&mut self, uid: &Arc<str>, forget_claim: bool) {
        let Some(pod) = self.pods.remove(uid) else { return };
        if !forget_claim {
            self.free(&pod.observed.stem, pod.observed.slot);
        }
    }

    /// The function and the stem of a pod there is or was.
    pub(crate) fn made(&self, uid: &Arc<str>) -> (Function, Arc<str>) {
        self.made[uid].clone()
    }

    /// The pods which make a function's number: alive and of this spec.
    pub(crate) fn current(&self, function: &Function, spec: &Spec) -> usize {
        let pods = self.pods.values().map(|pod| &pod.observed);
        let current = |pod: &&Observed| {
            pod.phase == Phase::Alive
                && pod.function == *function
                && pod.stem == spec.stem
                && pod.revision == spec.revision
        };
        pods.filter(current).count()
    }
}
