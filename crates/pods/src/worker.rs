//! The task that owns the pool: it tells the pool what happens and does what
//! the pool decides. It never waits for anything itself: what takes time is
//! done by tasks of its own, which report back.

mod asked;
mod clock;
mod scan;
mod shown;
mod wanted;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use pool::{CallId, Event, Limits, PodId, Pool, Refusal, Spec};
use registry::Reference;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::sync::DropGuard;
use wire::Failure;

use crate::{
    address::Addresses,
    cluster::{Cluster, Titles},
    connect::{Connection, Reached},
    launch::{Launch, Outcome, Step},
    lease::End,
    observe::Sighting,
    runtime::Reply,
    stages::Stages,
    view::PodsView,
    watch::{Change, ServiceSighting},
};
use clock::{Clock, at};
use shown::Watched;

/// Why something failed, as the pool passes it on.
type Cause = Arc<Failure>;

/// How long calls wait for a pod that is starting rather than crowd those that are ready.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pauses after failed starts of a function.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How long the first look at the cluster may take.
const LOOK_AROUND: Duration = Duration::from_secs(5);
/// How often metrics and people are told at most.
const TELL: Duration = Duration::from_millis(250);

/// What the worker is told.
#[derive(Debug)]
pub(crate) enum Message {
    Arrived(Box<Arrival>),
    Left(CallId),
    Wanted {
        image: Box<Reference>,
        titles: Titles,
    },
    SettingsChanged,
    Pod(Change<Box<Sighting>>),
    Service(Change<ServiceSighting>),
    /// How far a launch is.
    Step {
        pod: PodId,
        step: Step,
    },
    Launch {
        pod: PodId,
        outcome: Outcome,
    },
    Connected {
        pod: PodId,
        connection: Box<Connection>,
        reached: Reached,
    },
    /// What is to be thought of a pod whose connection broke.
    Judged {
        pod: PodId,
        uid: Arc<str>,
        verdict: Verdict,
    },
    /// Somebody wants to see the pool as it is now.
    Show(oneshot::Sender<Arc<PodsView>>),
    /// A pod is gone, and its slot is free.
    Gone {
        uid: Arc<str>,
    },
}

/// What is thought of a pod whose connection broke.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is being found out.
    Doubtful,
    /// It answers.
    Alive,
    /// It does not.
    Dead(Cause),
}

/// A call that needs a pod.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) call: CallId,
    pub(crate) image: Reference,
    pub(crate) spec: Arc<Spec>,
    /// When the call began to look for its image.
    pub(crate) since: Instant,
    pub(crate) until: Option<Instant>,
    pub(crate) reply: Reply,
}

impl Message {
    /// When it is too late for what it asks for.
    fn until(&self) -> Option<Instant> {
        match self {
            Self::Arrived(arrival) => arrival.until,
            _ => None,
        }
    }
}

/// A launch that was asked for, until its pod is seen.
#[derive(Debug)]
struct Launching {
    launch: Launch,
    /// Whether another replica has the slot.
    is_taken: bool,
    since: Instant,
    /// When it was known what to make it from.
    resolved: Option<Instant>,
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
    clock: Clock,
    callers: HashMap<CallId, Reply>,
    launching: HashMap<PodId, Launching>,
    pods: HashMap<PodId, Known>,
    /// Pods of the cluster by their unique name, and which of them are ours.
    sightings: HashMap<Arc<str>, Sighting>,
    numbers: HashMap<Arc<str>, PodId>,
    services: HashMap<String, ServiceSighting>,
    watched_pods: Watched<Arc<str>>,
    watched_services: Watched<String>,
    /// Functions whose next pod is named exactly by its id.
    warm: HashSet<Arc<str>>,
    /// Since when the call that is being handled waits for a pod.
    awaited_since: Option<Instant>,
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
            clock: Clock::new(),
            callers: HashMap::new(),
            launching: HashMap::new(),
            pods: HashMap::new(),
            sightings: HashMap::new(),
            numbers: HashMap::new(),
            services: HashMap::new(),
            watched_pods: Watched::default(),
            watched_services: Watched::default(),
            warm: HashSet::new(),
            awaited_since: None,
            view,
            told: None,
        };
        (worker, receiver)
    }

    /// Works until the last handle of the runtime is gone.
    pub(crate) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Message>) {
        let mut template = self.cluster.template.clone();
        let scan_interval = self.cluster.settings.scan_interval;
        let mut next_scan = scan_interval.map(|interval| Instant::now() + interval);
        self.look_around(&mut inbox).await;
        loop {
            let wake = self.pool.wake_at().map(|at| self.clock.instant(at));
            let tell = self.told.map(|told| told + TELL);
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.handle(message),
                    None => return,
                },
                () = at(wake) => self.apply(Event::Tick),
                () = at(tell) => self.tell(),
                () = at(next_scan) => {
                    self.scan();
                    next_scan = scan_interval.map(|interval| Instant::now() + interval);
                }
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
        while !(self.watched_pods.is_known && self.watched_services.is_known) {
            let next = held.iter().filter_map(Message::until).min().map_or(latest, |until| until.min(latest));
            match tokio::time::timeout_at(next, inbox.recv()).await {
                Ok(Some(message @ (Message::Pod(_) | Message::Service(_)))) => self.handle(message),
                Ok(Some(message)) => held.push(message),
                Err(_) if next < latest => held = self.refuse_late(held),
                Ok(None) | Err(_) => break,
            }
        }
        for message in held {
            self.handle(message);
        }
    }

    /// Tells the calls whose time is over that nothing is known of the cluster yet; the others go on waiting.
    fn refuse_late(&self, held: Vec<Message>) -> Vec<Message> {
        let now = Instant::now();
        let is_late = |message: &Message| message.until().is_some_and(|until| until <= now);
        let (late, held): (Vec<_>, Vec<_>) = held.into_iter().partition(is_late);
        let cause = "it is not known yet what pods there are: the API server has not answered".to_owned();
        let trouble = self.blindness().unwrap_or_else(|| Arc::new(Failure::Unavailable { cause }));
        for message in late {
            if let Message::Arrived(arrival) = message {
                let refusal = Refusal::TimedOut { trouble: Some(trouble.clone()), for_room: false };
                // A caller who went away needs no answer.
                let _ = arrival.reply.send(Err(refusal));
            }
        }
        held
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Arrived(arrival) => self.arrived(*arrival),
            Message::Left(call) => {
                self.callers.remove(&call);
                self.apply(Event::Left { call });
            }
            Message::Wanted { image, titles } => self.want(&image, titles, true),
            Message::SettingsChanged => self.respecify(),
            Message::Pod(change) => self.pod_changed(change),
            Message::Service(change) => self.service_changed(change),
            Message::Step { pod, step } => self.stepped(pod, step),
            Message::Launch { pod, outcome } => self.launched(pod, outcome),
            Message::Connected { pod, connection, reached } => self.connected(pod, *connection, reached),
            Message::Judged { pod, uid, verdict } => self.judged(pod, &uid, verdict),
            Message::Show(reply) => {
                self.tell();
                // Who asked may have gone.
                let _ = reply.send(self.view.borrow().clone());
            }
            Message::Gone { uid } => self.gone(&uid),
        }
    }

    fn arrived(&mut self, arrival: Arrival) {
        let Arrival { call, image, spec, since, until, reply } = arrival;
        self.callers.insert(call, reply);
        let until = until.map(|until| self.clock.moment_of(until));
        // A pod that is started for this very call is awaited since then.
        self.awaited_since = Some(since);
        self.apply(Event::Arrived { call, function: image.as_given().into(), spec, until });
        self.awaited_since = None;
    }

    /// The connection to a pod broke. Another may have come in its place under the same number.
    fn judged(&mut self, pod: PodId, uid: &Arc<str>, verdict: Verdict) {
        if self.pods.get(&pod).is_some_and(|known| known.uid == *uid) {
            self.apply(match verdict {
                Verdict::Doubtful => Event::Doubted { pod },
                Verdict::Alive => Event::Connected { pod },
                Verdict::Dead(failure) => Event::Broken { pod, failure, lasting: false },
            });
        }
    }

    /// Tells the pool what happened and does what it decides.
    fn apply(&mut self, event: Event<Cause>) {
        let actions = self.pool.handle(event, self.clock.now());
        for action in actions {
            self.act(action);
        }
        if self.told.is_none() {
            self.told = Some(Instant::now());
        }
    }
}

/// Tells the worker, if it is still there.
pub(crate) fn send(messages: &mpsc::WeakUnboundedSender<Message>, message: Message) {
    if let Some(messages) = messages.upgrade() {
        // Nobody hears it when the service ends.
        let _ = messages.send(message);
    }
}
