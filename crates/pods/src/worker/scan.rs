//! What is looked at, and told, now and then.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use pool::{Event, Phase};
use tracing::{info, warn};

use super::Worker;
use crate::{
    launch,
    observe::Sighting,
    trouble,
    view::{PodView, PodsView},
};

impl Worker {
    pub(super) fn scan(&mut self) {
        self.forget_launches();
        self.mark_pods_without_service();
        self.apply(Event::Scan);
        self.sweep_services();
    }

    /// Whether a pod's Service was deleted or never made. The two are watched apart, so young pods are not judged.
    pub(super) fn is_without_service(&self, sighting: &Sighting) -> bool {
        let oldest = SystemTime::now() - self.cluster.settings.orphan_age();
        self.watched_services.is_known
            && sighting.created < oldest
            && !self.services.contains_key(&sighting.id)
    }

    /// Pods that cannot be reached by their Service count as outdated: the next call starts another.
    fn mark_pods_without_service(&mut self) {
        let marked = self.sightings.values().filter(|sighting| {
            self.numbers.contains_key(&sighting.uid)
                && sighting.phase == Phase::Alive
                && self.is_without_service(sighting)
        });
        for observed in marked.filter_map(|sighting| self.observed(sighting)).collect::<Vec<_>>() {
            self.apply(Event::Seen(observed));
        }
    }

    /// Services whose pods are gone, or were never made, are removed.
    fn sweep_services(&mut self) {
        let oldest = SystemTime::now() - self.cluster.settings.orphan_age();
        let has_pod: HashSet<&str> = self.sightings.values().map(|sighting| sighting.id.as_str()).collect();
        let is_coming: HashSet<&str> = self.launching.values().map(|it| it.launch.id.as_str()).collect();
        let orphans = self.services.values().filter(|service| {
            service.created < oldest
                && !has_pod.contains(service.id.as_str())
                && !is_coming.contains(service.id.as_str())
        });
        for service in orphans.cloned() {
            info!(service = service.id, "removing a Service that has no pod");
            let cluster = self.cluster.clone();
            tokio::spawn(async move {
                if let Err(error) = launch::remove_service(&cluster, &service.id, &service.uid).await {
                    warn!(service = service.id, cause = trouble::words(&error), "cannot remove a Service");
                }
            });
        }
    }

    pub(super) fn tell(&mut self) {
        self.told = None;
        let now = self.clock.now();
        let snapshot = self.pool.snapshot();
        let pods = snapshot.pods.iter().map(|pod| {
            let sighting = pod.uid.as_ref().and_then(|uid| self.sightings.get(uid));
            let id = || self.launching.get(&pod.pod).map(|it| it.launch.id.clone());
            PodView {
                function: pod.function.clone(),
                name: sighting.map(|it| it.name.clone()).or_else(id).unwrap_or_default(),
                phase: pod.phase,
                is_current: pod.current,
                calls: pod.calls,
                age: now.saturating_sub(pod.created),
                keeps: pod.keep_until.map(|until| until.saturating_sub(now)),
                trouble: pod.trouble.as_ref().map(ToString::to_string),
            }
        });
        let view = PodsView { waiting: snapshot.waiting, pods: pods.collect() };
        self.view.send_replace(Arc::new(view));
    }
}
