//! What the cluster shows.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use pool::{Event, Phase};
use tokio::time::Instant;
use tracing::{debug, warn};
use wire::Failure;

use super::{Cause, Message, Worker, send};
use crate::{
    address::Addresses,
    cluster::Cluster,
    launch,
    observe::Sighting,
    template::WRAPPER_PORT,
    trouble,
    watch::{Change, ServiceSighting},
};

/// How long trouble with a watch is believed. It is tried again, and complained of, more often; that it works
/// again is not seen before something changes.
const BELIEVED: Duration = Duration::from_mins(1);

/// How far a watch is.
#[derive(Debug)]
pub(super) struct Watched<K> {
    /// What a list that is under way has shown; what it does not show is gone.
    pub(super) listed: HashSet<K>,
    /// Whether a list has come to its end.
    pub(super) is_known: bool,
    trouble: Option<(Instant, Cause)>,
}

impl<K> Default for Watched<K> {
    fn default() -> Self {
        Self { listed: HashSet::new(), is_known: false, trouble: None }
    }
}

impl<K: Hash + Eq + Clone> Watched<K> {
    fn saw(&mut self, key: K) {
        self.listed.insert(key);
        self.trouble = None;
    }

    fn fail(&mut self, cause: String) {
        self.trouble = Some((Instant::now(), Arc::new(Failure::Unavailable { cause })));
    }

    fn trouble(&self) -> Option<Cause> {
        let (_, cause) = self.trouble.as_ref().filter(|(since, _)| since.elapsed() < BELIEVED)?;
        Some(cause.clone())
    }

    /// A list has come to its end: which of those that are known it did not show.
    fn missing<'a>(&mut self, known: impl Iterator<Item = &'a K>) -> Vec<K>
    where
        K: 'a,
    {
        self.is_known = true;
        self.trouble = None;
        known.filter(|key| !self.listed.contains(*key)).cloned().collect()
    }
}

impl Worker {
    pub(super) fn pod_changed(&mut self, change: Change<Box<Sighting>>) {
        match change {
            Change::Applied(sighting) => {
                self.watched_pods.saw(sighting.uid.clone());
                self.saw(*sighting);
            }
            Change::Deleted(sighting) => self.vanished(&sighting.uid),
            Change::Restarted => self.watched_pods.listed.clear(),
            Change::Listed => {
                for uid in self.watched_pods.missing(self.sightings.keys()) {
                    self.vanished(&uid);
                }
            }
            Change::Failed(cause) => self.watched_pods.fail(cause),
        }
    }

    /// Why changes of the cluster are not seen now, if they are not.
    pub(super) fn blindness(&self) -> Option<Cause> {
        self.watched_pods.trouble().or_else(|| self.watched_services.trouble())
    }

    fn saw(&mut self, sighting: Sighting) {
        let uid = sighting.uid.clone();
        if let Some(known) = self.numbers.get(&uid).and_then(|pod| self.pods.get_mut(pod)) {
            let addresses = addresses(&self.cluster, &self.services, &sighting);
            known.addresses.send_if_modified(|old| std::mem::replace(old, addresses) != addresses);
            known.stages.saw(&sighting);
            let has_died = known.connection.is_some() && sighting.phase != Phase::Alive;
            if let Some(trouble) = sighting.trouble.as_ref().filter(|_| has_died) {
                // The first word is the nearest to the cause. What kept it from starting is none.
                let _ = known.end.cause.set(trouble.clone());
            }
        }
        let observed = self.observed(&sighting);
        self.sightings.insert(uid.clone(), sighting);
        let Some(observed) = observed else { return };
        // First its place in the pool, then its trouble: the pool knows only what it has seen.
        let failed = observed.phase == Phase::Failed;
        if !failed || !self.numbers.contains_key(&uid) {
            self.apply(Event::Seen(observed));
        }
        self.report_trouble(&uid, failed);
    }

    fn report_trouble(&mut self, uid: &Arc<str>, failed: bool) {
        let Some(&pod) = self.numbers.get(uid) else { return };
        let Some(sighting) = self.sightings.get(uid) else { return };
        let is_connected = self.pods.get(&pod).is_some_and(|known| known.connection.is_some());
        let image = sighting.function.to_string();
        match &sighting.trouble {
            Some(trouble) if failed || (trouble.lasting && !is_connected) => {
                let failure = Arc::new(trouble.failure(&image));
                self.apply(Event::Broken { pod, failure, lasting: trouble.lasting });
            }
            Some(trouble) if !is_connected => {
                let failure = Arc::new(trouble.failure(&image));
                self.apply(Event::Trouble { pod, failure });
            }
            None if failed => {
                let cause = format!("the pod {} has failed", sighting.name);
                let failure = Arc::new(Failure::Unavailable { cause });
                self.apply(Event::Broken { pod, failure, lasting: false });
            }
            _ => {}
        }
    }

    /// A pod is gone: its calls are lost, and its slot is free as soon as its Service is gone too.
    fn vanished(&mut self, uid: &Arc<str>) {
        let Some(sighting) = self.sightings.get_mut(uid) else { return };
        sighting.phase = Phase::Ending;
        let id = sighting.id.clone();
        if let Some(known) = self.numbers.get(uid).and_then(|pod| self.pods.get(pod)) {
            known.end.token.cancel();
        }
        let sighting = sighting.clone();
        if let Some(observed) = self.observed(&sighting).filter(|_| self.numbers.contains_key(uid)) {
            self.apply(Event::Seen(observed));
        }
        let has_other = self.sightings.values().any(|other| other.id == id && other.uid != *uid);
        match self.services.get(&id).filter(|_| !has_other) {
            Some(service) => {
                let (cluster, messages) = (self.cluster.clone(), self.messages.clone());
                let (service, uid) = (service.clone(), uid.clone());
                tokio::spawn(async move {
                    // One that stays is an orphan for the next scan.
                    if let Err(error) = launch::remove_service(&cluster, &service.id, &service.uid).await {
                        warn!(
                            service = service.id,
                            cause = trouble::words(&error),
                            "cannot remove a Service"
                        );
                    }
                    send(&messages, Message::Gone { uid });
                });
            }
            None => self.gone(&uid.clone()),
        }
    }

    pub(super) fn gone(&mut self, uid: &Arc<str>) {
        if let Some(sighting) = self.sightings.remove(uid) {
            debug!(pod = sighting.name, "a pod is gone");
        }
        self.apply(Event::Gone { uid: uid.clone() });
        // Another may have come in its place under the same number.
        if let Some(pod) = self.numbers.remove(uid)
            && self.pods.get(&pod).is_some_and(|known| known.uid == *uid)
        {
            self.pods.remove(&pod);
        }
    }

    pub(super) fn service_changed(&mut self, change: Change<ServiceSighting>) {
        match change {
            Change::Applied(service) => {
                let id = service.id.clone();
                self.watched_services.saw(id.clone());
                self.services.insert(id.clone(), service);
                self.readdress(&id);
            }
            Change::Deleted(service) => self.service_vanished(&service.id),
            Change::Restarted => self.watched_services.listed.clear(),
            Change::Listed => {
                for id in self.watched_services.missing(self.services.keys()) {
                    self.service_vanished(&id);
                }
            }
            Change::Failed(cause) => self.watched_services.fail(cause),
        }
    }

    fn service_vanished(&mut self, id: &str) {
        self.services.remove(id);
        self.readdress(id);
        self.forget_launches();
        // Whoever had claimed the slot has left it.
        let left = self.launching.iter().find(|(_, it)| it.is_taken && it.launch.id == id);
        if let Some((&pod, launching)) = left {
            let launch = launching.launch.clone();
            self.start_launch(pod, launch);
        }
    }

    /// Pods learn the address of their Service.
    fn readdress(&mut self, id: &str) {
        for sighting in self.sightings.values().filter(|sighting| sighting.id == id) {
            if let Some(known) = self.numbers.get(&sighting.uid).and_then(|pod| self.pods.get(pod)) {
                let addresses = addresses(&self.cluster, &self.services, sighting);
                known.addresses.send_if_modified(|old| std::mem::replace(old, addresses) != addresses);
            }
        }
    }

    /// Drops the launches that the pool has given up.
    pub(super) fn forget_launches(&mut self) {
        self.launching.retain(|pod, _| self.pool.knows(*pod));
    }

    pub(super) fn addresses(&self, sighting: &Sighting) -> Addresses {
        addresses(&self.cluster, &self.services, sighting)
    }
}

fn addresses(
    cluster: &Cluster,
    services: &HashMap<String, ServiceSighting>,
    sighting: &Sighting,
) -> Addresses {
    let service = services.get(&sighting.id).and_then(|service| service.address);
    cluster.settings.address.choose(sighting.address, service, sighting.has_mesh_sidecar, WRAPPER_PORT)
}
