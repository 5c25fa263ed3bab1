//! What the pool asks for, and what becomes of it.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use pool::{Action, CallId, Event, Moment, PodId, Reason, Refusal, Spec};
use registry::Reference;
use serde_json::json;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use wire::Failure;

use super::{Cause, Known, Launching, Message, Worker, send};
use crate::{
    address::AddressMode,
    connect::{Connection, Dial, Reached},
    launch::{self, Launch, Outcome, Removal, Step},
    lease::Granted,
    observe,
    render::{FIELD_MANAGER, RECLAIM_AFTER},
    runtime::authority,
    stages::Stages,
    template::WRAPPER_PORT,
    trouble,
    watch::Change,
};

impl Worker {
    pub(super) fn act(&mut self, action: Action<Cause>) {
        match action {
            Action::Launch { pod, function, spec, slot } => self.launch(pod, &function, spec, slot),
            Action::Connect { pod, uid } => self.connect(pod, uid),
            Action::Grant { call, pod } => self.grant(call, pod),
            Action::Refuse { call, refusal } => self.refuse(call, refusal),
            Action::Delete { pod, uid, reason } => self.delete(pod, &uid, reason),
            Action::Record { uid, keep_until, .. } => self.record(&uid, keep_until),
            Action::Lost { pod } => {
                if let Some(known) = self.pods.get_mut(&pod) {
                    known.end.token.cancel();
                    known.connection = None;
                }
            }
        }
    }

    fn launch(&mut self, pod: PodId, function: &Arc<str>, spec: Arc<Spec>, slot: usize) {
        let Ok(image) = Reference::parse(function) else { return };
        let take_over = self.launching.get(&pod).is_some_and(|launching| launching.is_taken);
        let launch = Launch {
            image,
            id: spec.stem.replace('*', &slot.to_string()),
            spec,
            mark: format!("{}-{}", self.cluster.instance, pod.0),
            exact_name: self.warm.remove(function),
            take_over,
        };
        info!(pod = launch.id, image = %function, "starting a pod");
        self.start_launch(pod, launch);
    }

    pub(super) fn start_launch(&mut self, pod: PodId, launch: Launch) {
        let since = self.awaited_since.unwrap_or_else(Instant::now);
        let launching = Launching { launch: launch.clone(), is_taken: false, since, resolved: None };
        self.launching.insert(pod, launching);
        let (cluster, messages) = (self.cluster.clone(), self.messages.clone());
        tokio::spawn(async move {
            let tell = |step| send(&messages, Message::Step { pod, step });
            let outcome = launch.run(&cluster, &tell).await;
            send(&messages, Message::Launch { pod, outcome });
        });
    }

    pub(super) fn stepped(&mut self, pod: PodId, step: Step) {
        match step {
            Step::Resolved => {
                if let Some(launching) = self.launching.get_mut(&pod) {
                    launching.resolved = Some(Instant::now());
                }
            }
            Step::Delayed(failure) => self.apply(Event::Trouble { pod, failure: Arc::new(failure) }),
        }
    }

    pub(super) fn launched(&mut self, pod: PodId, outcome: Outcome) {
        match outcome {
            Outcome::Launched(made) => {
                // The watch may be behind: what was made is as good as seen.
                if let Some(sighting) = observe::pod(&made) {
                    let uid = sighting.uid.clone();
                    // Also for a list that was read before and has not come to its end.
                    self.watched_pods.listed.insert(uid.clone());
                    self.watched_services.listed.insert(sighting.id.clone());
                    self.sightings.entry(uid.clone()).or_insert(sighting);
                    self.apply(Event::Launched { pod, uid });
                }
            }
            Outcome::Taken => {
                debug!(pod = pod.0, "another replica has the slot");
                if let Some(launching) = self.launching.get_mut(&pod) {
                    launching.is_taken = true;
                }
                self.apply(Event::Taken { pod });
            }
            Outcome::Failed { failure, lasting } => {
                if let Some(launching) = self.launching.remove(&pod) {
                    warn!(pod = launching.launch.id, cause = %failure, "cannot start a pod");
                }
                self.apply(Event::NotLaunched { pod, failure: Arc::new(*failure), lasting });
            }
        }
    }

    fn connect(&mut self, pod: PodId, uid: Arc<str>) {
        let Some(sighting) = self.sightings.get(&uid) else { return };
        let launching = self.launching.remove(&pod);
        let (since, resolved) = launching.map_or((None, None), |it| (Some(it.since), it.resolved));
        let (addresses, receiver) = watch::channel(self.addresses(sighting));
        let dial = Dial {
            authority: authority(&sighting.id, &self.cluster.settings.namespace, WRAPPER_PORT),
            max_message: self.cluster.settings.max_message,
        };
        let cancelled = CancellationToken::new();
        let known = Known {
            uid: uid.clone(),
            name: sighting.name.as_str().into(),
            connection: None,
            end: Arc::default(),
            addresses,
            stages: Stages::new(since, resolved, sighting),
            _tasks: cancelled.clone().drop_guard(),
        };
        self.pods.insert(pod, known);
        self.numbers.insert(uid, pod);
        let messages = self.messages.clone();
        tokio::spawn(cancelled.run_until_cancelled_owned(async move {
            let (connection, reached) = dial.connect(receiver).await;
            send(&messages, Message::Connected { pod, connection: Box::new(connection), reached });
        }));
    }

    pub(super) fn connected(&mut self, pod: PodId, connection: Connection, reached: Reached) {
        let Some(known) = self.pods.get_mut(&pod) else { return };
        let connection = Arc::new(connection);
        known.connection = Some(connection.clone());
        let function = self.sightings.get(&known.uid).map(|sighting| sighting.function.clone());
        let world = &self.cluster.world;
        known.stages.connected(|stage, took| {
            world.cold_start(function.as_deref().unwrap_or_default(), stage, took);
        });
        info!(pod = %known.name, by = ?reached, "a pod is ready");
        if reached == Reached::Directly
            && self.cluster.settings.address == AddressMode::Auto
            && let Some(sighting) = self.sightings.get(&known.uid)
        {
            let dial = Dial {
                authority: authority(&sighting.id, &self.cluster.settings.namespace, WRAPPER_PORT),
                max_message: self.cluster.settings.max_message,
            };
            let (addresses, end) = (known.addresses.subscribe(), known.end.token.clone());
            tokio::spawn(end.run_until_cancelled_owned(async move {
                dial.move_to_service(&connection, addresses).await;
            }));
        }
        self.apply(Event::Connected { pod });
    }

    fn grant(&mut self, call: CallId, pod: PodId) {
        let Some(reply) = self.callers.remove(&call) else { return };
        let granted = self.pods.get(&pod).and_then(|known| {
            Some(Granted {
                pod,
                uid: known.uid.clone(),
                name: known.name.clone(),
                connection: known.connection.clone()?,
                end: known.end.clone(),
            })
        });
        let answer = granted.ok_or_else(|| {
            let cause = "a pod was given to a call that has no connection".to_owned();
            Refusal::Failed(Arc::new(Failure::Internal { cause }))
        });
        // A caller who went away returns the pod by its ticket.
        let _ = reply.send(answer);
    }

    fn refuse(&mut self, call: CallId, refusal: Refusal<Cause>) {
        let refusal = match refusal {
            // What a pod is waiting for cannot be seen.
            Refusal::TimedOut { trouble: None, for_room: false } => {
                Refusal::TimedOut { trouble: self.blindness(), for_room: false }
            }
            refusal => refusal,
        };
        if let Some(reply) = self.callers.remove(&call) {
            // A caller who went away needs no answer.
            let _ = reply.send(Err(refusal));
        }
    }

    fn delete(&mut self, pod: PodId, uid: &Arc<str>, reason: Reason) {
        self.cluster.world.evicted(reason);
        let Some(sighting) = self.sightings.get(uid).cloned() else { return };
        info!(pod = sighting.name, ?reason, number = pod.0, "removing a pod");
        let (cluster, messages) = (self.cluster.clone(), self.messages.clone());
        tokio::spawn(async move {
            match launch::remove_pod(&cluster, &sighting.name, &sighting.uid).await {
                // The watch tells when it is gone.
                Ok(Removal::Begun) => {}
                // The watch may never have shown it.
                Ok(Removal::WasGone) => send(&messages, Message::Pod(Change::Deleted(Box::new(sighting)))),
                // It is asked for again at a later scan.
                Err(error) => {
                    warn!(pod = sighting.name, cause = trouble::words(&error), "cannot remove a pod");
                }
            }
        });
    }

    fn record(&self, uid: &Arc<str>, keep_until: Moment) {
        let Some(sighting) = self.sightings.get(uid) else { return };
        let keep_for = keep_until.saturating_sub(self.clock.now());
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let until = since_1970.saturating_add(keep_for).as_secs();
        let (cluster, name) = (self.cluster.clone(), sighting.name.clone());
        // The unique name is a condition: the API server refuses it for another pod of that name.
        let patch = json!({"metadata": {
            "uid": &**uid,
            "annotations": {RECLAIM_AFTER: until.to_string()},
        }});
        tokio::spawn(async move {
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let patched =
                trouble::in_time(cluster.api::<Pod>().patch(&name, &params, &Patch::Merge(&patch))).await;
            if let Err(error) = patched {
                debug!(pod = name, cause = trouble::words(&error), "cannot record the use of a pod");
            }
        });
    }
}
