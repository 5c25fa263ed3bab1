//! The task that owns the pool: it tells the pool what happens and does what
//! the pool decides. It never waits for anything itself: what takes time is
//! done by tasks of its own, which report back.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use pool::{Action, CallId, Event, Limits, Moment, Observed, Phase, PodId, Pool, Reason, Refusal, Spec};
use registry::Reference;
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, MissedTickBehavior},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, info, warn};
use wire::Failure;

use crate::{
    address::{AddressMode, Addresses},
    cluster::{Cluster, revision},
    connect::{Connection, Dial, Reached},
    launch::{self, Launch, Outcome, Removal},
    lease::{End, Granted},
    observe::{self, Sighting},
    render::{FIELD_MANAGER, RECLAIM_AFTER},
    runtime::{Reply, authority},
    stages::Stages,
    template::{WRAPPER_PORT, source::TemplateState},
    trouble,
    view::{PodView, PodsView},
    watch::{Change, ServiceSighting},
};

/// Why something failed, as the pool passes it on.
type Cause = Arc<Failure>;

/// How long calls wait for a pod that is starting rather than crowd those that are ready.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pauses after failed starts of a function.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// The pool's clock begins this long before our start, so that older pods can be told apart by age.
const BEFORE: Duration = Duration::from_hours(24 * 365);
/// No pod is kept longer than to this second, whatever is written on it (the year 9999).
const LATEST: u64 = 253_402_300_799;
/// How long the first look at the cluster may take.
const LOOK_AROUND: Duration = Duration::from_secs(5);
/// How often metrics and people are told at most.
const TELL: Duration = Duration::from_millis(250);
/// The revision of pods whose Service is missing: no function's pods are to be like that.
const WITHOUT_SERVICE: &str = "without its Service";

/// What the worker is told.
#[derive(Debug)]
pub(crate) enum Message {
    Arrived(Box<Arrival>),
    Left(CallId),
    Wanted {
        image: Box<Reference>,
        stem: Arc<str>,
    },
    SettingsChanged,
    Pod(Change<Box<Sighting>>),
    Service(Change<ServiceSighting>),
    Launch {
        pod: PodId,
        outcome: Outcome,
    },
    Connected {
        pod: PodId,
        connection: Box<Connection>,
        reached: Reached,
    },
    Suspect {
        pod: PodId,
        failure: Cause,
    },
    /// Somebody wants to see the pool as it is now.
    Show(oneshot::Sender<Arc<PodsView>>),
    /// A pod is gone, and its slot is free.
    Gone {
        uid: Arc<str>,
    },
}

/// A call that needs a pod.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) call: CallId,
    pub(crate) image: Reference,
    pub(crate) spec: Arc<Spec>,
    pub(crate) until: Option<Instant>,
    pub(crate) reply: Reply,
}

/// A launch that was asked for, until its pod is seen.
#[derive(Debug)]
struct Launching {
    launch: Launch,
    /// Whether another replica has the slot.
    is_taken: bool,
    since: Instant,
}

/// A pod that the pool counts and the cluster has.
#[derive(Debug)]
struct Known {
    uid: Arc<str>,
    name: Arc<str>,
    connection: Option<Arc<Connection>>,
    end: Arc<End>,
    addresses: watch::Sender<Addresses>,
    stages: Stages,
    /// Ends the tasks that connect to it.
    _tasks: DropGuard,
}

/// The owner of the pool.
#[derive(Debug)]
pub(crate) struct Worker {
    cluster: Arc<Cluster>,
    messages: mpsc::WeakUnboundedSender<Message>,
    pool: Pool<Cause>,
    started: Instant,
    callers: HashMap<CallId, Reply>,
    launching: HashMap<PodId, Launching>,
    pods: HashMap<PodId, Known>,
    /// Pods of the cluster by their unique name, and which of them are ours.
    sightings: HashMap<Arc<str>, Sighting>,
    numbers: HashMap<Arc<str>, PodId>,
    services: HashMap<String, ServiceSighting>,
    /// What a list that is under way has shown; what it does not show is gone.
    listed_pods: HashSet<Arc<str>>,
    listed_services: HashSet<String>,
    are_pods_known: bool,
    are_services_known: bool,
    /// Functions whose next pod is named exactly by its id.
    warm: HashSet<Arc<str>>,
    view: watch::Sender<Arc<PodsView>>,
    told: Option<Instant>,
}

impl Worker {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        messages: mpsc::WeakUnboundedSender<Message>,
    ) -> (Self, watch::Receiver<Arc<PodsView>>) {
        let settings = &cluster.settings;
        let pool = Pool::new(Limits {
            max_pods: settings.max_pods,
            max_waiting: settings.max_waiting,
            ready_timeout: settings.ready_timeout,
            claim_timeout: settings.claim_timeout,
            patience: PATIENCE,
            min_backoff: BACKOFF.0,
            max_backoff: BACKOFF.1,
        });
        let (view, receiver) = watch::channel(Arc::default());
        let worker = Self {
            cluster,
            messages,
            pool,
            started: Instant::now(),
            callers: HashMap::new(),
            launching: HashMap::new(),
            pods: HashMap::new(),
            sightings: HashMap::new(),
            numbers: HashMap::new(),
            services: HashMap::new(),
            listed_pods: HashSet::new(),
            listed_services: HashSet::new(),
            are_pods_known: false,
            are_services_known: false,
            warm: HashSet::new(),
            view,
            told: None,
        };
        (worker, receiver)
    }

    /// Works until the last handle of the runtime is gone.
    pub(crate) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Message>) {
        let mut template = self.cluster.template.clone();
        let mut scan = tokio::time::interval(self.cluster.settings.scan_interval);
        scan.set_missed_tick_behavior(MissedTickBehavior::Delay);
        scan.reset();
        self.look_around(&mut inbox).await;
        loop {
            let wake = self.pool.wake_at().map(|at| self.instant(at));
            let tell = self.told.map(|told| told + TELL);
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.handle(message),
                    None => return,
                },
                () = at(wake) => self.apply(Event::Tick),
                () = at(tell) => self.tell(),
                _ = scan.tick() => self.scan(),
                Ok(()) = template.changed() => self.respecify(),
            }
        }
    }

    /// Learns what pods there are before any are started: those of an earlier
    /// run or of another replica are to be used. Calls wait meanwhile, but not
    /// long: with the API server away, they are to hear of that.
    async fn look_around(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) {
        let latest = Instant::now() + LOOK_AROUND;
        let mut held = Vec::new();
        while !(self.are_pods_known && self.are_services_known) {
            match tokio::time::timeout_at(latest, inbox.recv()).await {
                Ok(Some(message @ (Message::Pod(_) | Message::Service(_)))) => self.handle(message),
                Ok(Some(message)) => held.push(message),
                Ok(None) | Err(_) => break,
            }
        }
        for message in held {
            self.handle(message);
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Arrived(arrival) => self.arrived(*arrival),
            Message::Left(call) => {
                self.callers.remove(&call);
                self.apply(Event::Left { call });
            }
            Message::Wanted { image, stem } => self.want(&image, stem, true),
            Message::SettingsChanged => self.respecify(),
            Message::Pod(change) => self.pod_changed(change),
            Message::Service(change) => self.service_changed(change),
            Message::Launch { pod, outcome } => self.launched(pod, outcome),
            Message::Connected { pod, connection, reached } => self.connected(pod, *connection, reached),
            Message::Suspect { pod, failure } => {
                if self.pods.contains_key(&pod) {
                    self.apply(Event::Broken { pod, failure, lasting: false });
                }
            }
            Message::Show(reply) => {
                self.tell();
                // Who asked may have gone.
                let _ = reply.send(self.view.borrow().clone());
            }
            Message::Gone { uid } => self.gone(&uid),
        }
    }

    fn arrived(&mut self, arrival: Arrival) {
        let Arrival { call, image, spec, until, reply } = arrival;
        self.callers.insert(call, reply);
        let until = until.map(|until| until.saturating_duration_since(self.started) + BEFORE);
        self.apply(Event::Arrived { call, function: image.as_given().into(), spec, until });
    }

    // What the pool decides.

    fn apply(&mut self, event: Event<Cause>) {
        let actions = self.pool.handle(event, self.now());
        for action in actions {
            self.act(action);
        }
        if self.told.is_none() {
            self.told = Some(Instant::now());
        }
    }

    fn act(&mut self, action: Action<Cause>) {
        match action {
            Action::Launch { pod, function, spec, slot } => self.launch(pod, &function, spec, slot),
            Action::Connect { pod, uid } => self.connect(pod, uid),
            Action::Grant { call, pod } => self.grant(call, pod),
            Action::Refuse { call, refusal } => {
                if let Some(reply) = self.callers.remove(&call) {
                    // A caller who went away needs no answer.
                    let _ = reply.send(Err(refusal));
                }
            }
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

    fn start_launch(&mut self, pod: PodId, launch: Launch) {
        let launching = Launching { launch: launch.clone(), is_taken: false, since: Instant::now() };
        self.launching.insert(pod, launching);
        let (cluster, messages) = (self.cluster.clone(), self.messages.clone());
        tokio::spawn(async move {
            let outcome = launch.run(&cluster).await;
            send(&messages, Message::Launch { pod, outcome });
        });
    }

    fn launched(&mut self, pod: PodId, outcome: Outcome) {
        match outcome {
            Outcome::Launched(made) => {
                // The watch may be behind: what was made is as good as seen.
                if let Some(sighting) = observe::pod(&made) {
                    let uid = sighting.uid.clone();
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
        let since = self.launching.remove(&pod).map(|launching| launching.since);
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
            stages: Stages::new(since, sighting),
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

    fn connected(&mut self, pod: PodId, connection: Connection, reached: Reached) {
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
        let keep_for = keep_until.saturating_sub(self.now());
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

    // What the cluster shows.

    fn pod_changed(&mut self, change: Change<Box<Sighting>>) {
        match change {
            Change::Applied(sighting) => {
                self.listed_pods.insert(sighting.uid.clone());
                self.saw(*sighting);
            }
            Change::Deleted(sighting) => self.vanished(&sighting.uid),
            Change::Restarted => self.listed_pods.clear(),
            Change::Listed => {
                self.are_pods_known = true;
                let missing = self.sightings.keys().filter(|uid| !self.listed_pods.contains(*uid));
                for uid in missing.cloned().collect::<Vec<_>>() {
                    self.vanished(&uid);
                }
            }
        }
    }

    fn saw(&mut self, sighting: Sighting) {
        let uid = sighting.uid.clone();
        if let Some(known) = self.numbers.get(&uid).and_then(|pod| self.pods.get_mut(pod)) {
            let addresses = addresses(&self.cluster, &self.services, &sighting);
            known.addresses.send_if_modified(|old| std::mem::replace(old, addresses) != addresses);
            known.stages.saw(&sighting);
            if let Some(trouble) = &sighting.trouble {
                // The first word is the nearest to the cause.
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

    fn gone(&mut self, uid: &Arc<str>) {
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

    fn service_changed(&mut self, change: Change<ServiceSighting>) {
        match change {
            Change::Applied(service) => {
                let id = service.id.clone();
                self.listed_services.insert(id.clone());
                self.services.insert(id.clone(), service);
                self.readdress(&id);
            }
            Change::Deleted(service) => self.service_vanished(&service.id),
            Change::Restarted => self.listed_services.clear(),
            Change::Listed => {
                self.are_services_known = true;
                let missing = self.services.keys().filter(|id| !self.listed_services.contains(*id));
                for id in missing.cloned().collect::<Vec<_>>() {
                    self.service_vanished(&id);
                }
            }
        }
    }

    fn service_vanished(&mut self, id: &str) {
        self.services.remove(id);
        self.readdress(id);
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

    fn addresses(&self, sighting: &Sighting) -> Addresses {
        addresses(&self.cluster, &self.services, sighting)
    }

    // What functions are to be.

    fn observed(&self, sighting: &Sighting) -> Option<Observed> {
        let image = Reference::parse(&sighting.function).ok()?;
        let state = self.cluster.template.borrow().clone();
        let settings = self.cluster.world.settings(&image);
        let own_version = sighting.template_version.as_deref().unwrap_or_default();
        let revision = if self.is_without_service(sighting) {
            WITHOUT_SERVICE.into()
        } else {
            revision(own_version, sighting.settings_version.as_deref().unwrap_or_default())
        };
        let version = match &state {
            TemplateState::Ready(template) => &*template.version,
            // Until the template is known, what is there is right.
            TemplateState::Unknown | TemplateState::Failed(_) => own_version,
        };
        let spec = self.cluster.spec(sighting.stem.clone(), version, &settings);
        Some(Observed {
            uid: sighting.uid.clone(),
            function: sighting.function.clone(),
            spec: Arc::new(spec),
            stem: sighting.stem.clone(),
            slot: sighting.slot,
            revision,
            phase: sighting.phase,
            created: self.moment(sighting.created),
            keep_until: sighting
                .reclaim_after
                .map(|unix| self.moment(UNIX_EPOCH + Duration::from_secs(unix.min(LATEST)))),
        })
    }

    fn want(&mut self, image: &Reference, stem: Arc<str>, warm: bool) {
        let TemplateState::Ready(template) = self.cluster.template.borrow().clone() else { return };
        let settings = self.cluster.world.settings(image);
        let function: Arc<str> = image.as_given().into();
        let spec = Arc::new(self.cluster.spec(stem, &template.version, &settings));
        if warm {
            self.warm.insert(function.clone());
        }
        self.apply(Event::Wanted { function: function.clone(), spec, warm });
        // Only a pod that is started right now gets that name.
        self.warm.remove(&function);
    }

    /// The template or settings changed: every function that has pods learns what they are to be now.
    fn respecify(&mut self) {
        let functions: HashMap<Arc<str>, Arc<str>> = self
            .sightings
            .values()
            .filter(|sighting| self.numbers.contains_key(&sighting.uid))
            .map(|sighting| (sighting.function.clone(), sighting.stem.clone()))
            .collect();
        for (function, stem) in functions {
            if let Ok(image) = Reference::parse(&function) {
                self.want(&image, stem, false);
            }
        }
    }

    // What is looked at now and then.

    fn scan(&mut self) {
        self.mark_pods_without_service();
        self.apply(Event::Scan);
        self.sweep_services();
    }

    /// Whether a pod's Service was deleted or never made. The two are watched apart, so young pods are not judged.
    fn is_without_service(&self, sighting: &Sighting) -> bool {
        let oldest = SystemTime::now() - self.cluster.settings.orphan_age();
        self.are_services_known && sighting.created < oldest && !self.services.contains_key(&sighting.id)
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

    fn tell(&mut self) {
        self.told = None;
        let now = self.now();
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

    // Time.

    fn now(&self) -> Moment {
        self.started.elapsed() + BEFORE
    }

    /// A time of the cluster's clock on ours.
    fn moment(&self, time: SystemTime) -> Moment {
        match time.duration_since(SystemTime::now()) {
            Ok(ahead) => self.now().saturating_add(ahead),
            Err(error) => self.now().saturating_sub(error.duration()),
        }
    }

    fn instant(&self, moment: Moment) -> Instant {
        self.started + moment.saturating_sub(BEFORE)
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

/// Sleeps until a time, or for ever.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Tells the worker, if it is still there.
pub(crate) fn send(messages: &mpsc::WeakUnboundedSender<Message>, message: Message) {
    if let Some(messages) = messages.upgrade() {
        // Nobody hears it when the service ends.
        let _ = messages.send(message);
    }
}
