//! Which pod has which slot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::pod::Pod;
use crate::{Function, Moment, PodId};

/// The slots in use, by the stem of the names they make. A slot has several pods
/// only by accident: replicas that took each other's claims over, or pods made by hand.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    stems: HashMap<Arc<str>, BTreeMap<usize, Vec<Holder>>>,
}

#[derive(Debug)]
struct Holder {
    pod: PodId,
    function: Function,
    revision: Arc<str>,
    /// Whether it is in the cluster as far as known, and not just a claim.
    exists: bool,
    /// Its age by the cluster's word, while it is alive.
    age: Option<Age>,
}

/// When a pod was made and, among pods made at the same moment, its unique name:
/// an order all replicas agree on.
pub(crate) type Age = (Moment, Arc<str>);

impl Slots {
    /// The lowest number that no pod has.
    pub(crate) fn lowest_free(&self, stem: &str) -> usize {
        let used = self.stems.get(stem).into_iter().flat_map(BTreeMap::keys);
        used.zip(1..).take_while(|&(&slot, expected)| slot == expected).count() + 1
    }

    /// Enters a pod. Slot 0 is none at all.
    pub(crate) fn hold<F>(&mut self, id: PodId, pod: &Pod<F>, function: &Function) {
        if pod.slot > 0 {
            let (function, revision) = (function.clone(), pod.revision.clone());
            let holder = Holder { pod: id, function, revision, exists: false, age: None };
            self.stems.entry(pod.stem.clone()).or_default().entry(pod.slot).or_default().push(holder);
        }
    }

    /// Notes whether a pod exists, and how old it is if that is known and it is alive.
    /// Returns the functions whose pods in the slot may see it differently now.
    pub(crate) fn note(
        &mut self,
        stem: &str,
        slot: usize,
        pod: PodId,
        exists: bool,
        age: Option<Age>,
    ) -> Vec<Function> {
        let Some(holders) = self.stems.get_mut(stem).and_then(|slots| slots.get_mut(&slot)) else {
            return Vec::new();
        };
        if let Some(holder) = holders.iter_mut().find(|holder| holder.pod == pod) {
            holder.exists = exists;
            holder.age = age;
        }
        others(holders, pod)
    }

    /// Takes a pod out. Returns the functions of the pods that stay.
    pub(crate) fn release(&mut self, stem: &str, slot: usize, pod: PodId) -> Vec<Function> {
        let Some(slots) = self.stems.get_mut(stem) else { return Vec::new() };
        let Some(holders) = slots.get_mut(&slot) else { return Vec::new() };
        holders.retain(|holder| holder.pod != pod);
        let others = others(holders, pod);
        if holders.is_empty() {
            slots.remove(&slot);
        }
        if slots.is_empty() {
            self.stems.remove(stem);
        }
        others
    }

    /// The pods in a slot which are claims so far.
    pub(crate) fn claims(&self, stem: &str, slot: usize) -> impl Iterator<Item = PodId> {
        self.holders(stem, slot).iter().filter(|holder| !holder.exists).map(|holder| holder.pod)
    }

    /// Whether a slot has a pod in the cluster other than this one.
    pub(crate) fn has_other(&self, stem: &str, slot: usize, pod: PodId) -> bool {
        self.holders(stem, slot).iter().any(|holder| holder.pod != pod && holder.exists)
    }

    /// Whether a slot has a living pod that is older than this one. Of one function's pods that
    /// were made from different things one is outdated, and age says nothing about which.
    pub(crate) fn has_elder(&self, stem: &str, slot: usize, pod: PodId) -> bool {
        let holders = self.holders(stem, slot);
        if holders.len() < 2 {
            return false;
        }
        let Some(own) = holders.iter().find(|holder| holder.pod == pod) else { return false };
        let older = |other: &Holder| other.age.is_some() && own.age.is_some() && other.age < own.age;
        let rivals = |other: &Holder| other.function != own.function || other.revision == own.revision;
        holders.iter().any(|other| older(other) && rivals(other))
    }

    fn holders(&self, stem: &str, slot: usize) -> &[Holder] {
        self.stems.get(stem).and_then(|slots| slots.get(&slot)).map_or(&[], Vec::as_slice)
    }
}

fn others(holders: &[Holder], pod: PodId) -> Vec<Function> {
    holders.iter().filter(|holder| holder.pod != pod).map(|holder| holder.function.clone()).collect()
}
