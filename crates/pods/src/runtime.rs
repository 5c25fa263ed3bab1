//! The pod runtime as the rest of the service sees it: leases of pods.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kube::Client;
use pool::{CallId, Refusal};
use registry::{Metadata, Reference};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use wire::Failure;

use crate::{
    cluster::{Cluster, RuntimeSettings, Titles, unknown_template},
    lease::{Granted, Lease, Ticket},
    pull_secret::PullSecret,
    template::source,
    view::PodsView,
    watch as cluster_watch,
    worker::{self, Arrival, Message, Worker},
    world::World,
};

/// The pod runtime. It works as long as this handle, or a clone of it, is there.
#[derive(Debug, Clone)]
pub struct Runtime {
    cluster: Arc<Cluster>,
    messages: mpsc::UnboundedSender<Message>,
    calls: Arc<AtomicU64>,
    view: watch::Receiver<Arc<PodsView>>,
    _alive: Arc<tokio_util::sync::DropGuard>,
}

impl Runtime {
    /// Starts the tasks that keep pods. They begin to look at the cluster at once and go on for ever,
    /// whether it answers or not.
    pub fn start(client: Client, settings: RuntimeSettings, world: Arc<dyn World>) -> Self {
        let alive = CancellationToken::new();
        let template_settings = source::TemplateSettings {
            config_map: settings.config_map.clone().map(|name| (settings.own_namespace.clone(), name)),
            pod_namespace: settings.namespace.clone(),
            wrapper_image: settings.wrapper_image.clone(),
            security: settings.security,
        };
        let (template, follow_template) = source::follow(client.clone(), template_settings);
        let pull_secret = settings
            .pull_secret
            .as_ref()
            .map(|(name, path)| PullSecret::new(client.clone(), &settings.namespace, name, path.clone()));
        let cluster =
            Arc::new(Cluster { client, settings, world, pull_secret, template, instance: instance() });
        let (messages, inbox) = mpsc::unbounded_channel();
        let (worker, view) = Worker::new(cluster.clone(), messages.downgrade());
        let (pods, services) = (messages.downgrade(), messages.downgrade());
        let tell_pod = move |change| worker::send(&pods, Message::Pod(change));
        let tell_service = move |change| worker::send(&services, Message::Service(change));
        if let Some(secret) = cluster.pull_secret.clone() {
            tokio::spawn(alive.clone().run_until_cancelled_owned(secret.follow()));
        }
        let tasks = [
            tokio::spawn(alive.clone().run_until_cancelled_owned(follow_template)),
            tokio::spawn(
                alive.clone().run_until_cancelled_owned(cluster_watch::pods(cluster.api(), tell_pod)),
            ),
            tokio::spawn(
                alive.clone().run_until_cancelled_owned(cluster_watch::services(cluster.api(), tell_service)),
            ),
            tokio::spawn(alive.clone().run_until_cancelled_owned(worker.run(inbox))),
        ];
        drop(tasks);
        Self { cluster, messages, calls: Arc::default(), view, _alive: Arc::new(alive.drop_guard()) }
    }

    /// A pod for one call of an image, as soon as there is one.
    pub async fn lease(
        &self,
        image: &Reference,
        metadata: &Metadata,
        since: Instant,
        deadline: Option<Instant>,
    ) -> Result<Lease, Failure> {
        let no_pod =
            |cause: Failure| Failure::NoPod { image: image.as_given().to_owned(), cause: Box::new(cause) };
        let started = Instant::now();
        let template = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, self.cluster.template()).await,
            None => Ok(self.cluster.template().await),
        };
        let template = match template {
            Ok(template) => template.map_err(|(failure, _)| no_pod(failure))?,
            Err(_) => {
                let trouble = Some(Arc::new(unknown_template()));
                let refusal = Refusal::TimedOut { trouble, for_room: false };
                return Err(refused(image, refusal, started.elapsed()));
            }
        };
        let settings = self.cluster.world.settings(image);
        let titles = Titles::new(image, &metadata.digest);
        let spec = Arc::new(self.cluster.spec(titles, &template.version, &settings));
        let call = CallId(self.calls.fetch_add(1, Ordering::Relaxed));
        let (reply, answer) = oneshot::channel();
        let arrival = Arrival { call, image: image.clone(), spec, since, until: deadline, reply };
        self.messages.send(Message::Arrived(Box::new(arrival))).map_err(|_| no_pod(ended()))?;
        // From here on the call is known to the pool until it is told otherwise.
        let ticket = Ticket::new(call, self.messages.clone());
        match answer.await.map_err(|_| no_pod(ended()))? {
            Ok(granted) => Ok(Lease::new(ticket, granted)),
            Err(refusal) => Err(refused(image, refusal, started.elapsed())),
        }
    }

    /// Lets the function have a pod before it is called.
    pub async fn warm_up(&self, image: &Reference, metadata: &Metadata) -> Result<(), Failure> {
        self.cluster.template().await.map_err(|(failure, _)| failure)?;
        let titles = Titles::new(image, &metadata.digest);
        let wanted = Message::Wanted { image: Box::new(image.clone()), titles };
        self.messages.send(wanted).map_err(|_| ended())
    }

    /// Lets all functions learn of changed settings.
    pub fn settings_changed(&self) {
        let _ = self.messages.send(Message::SettingsChanged);
    }

    /// How long a call of an image may take in its pod, where operators say so.
    pub fn timeout(&self, image: &Reference) -> Option<Duration> {
        self.cluster.world.settings(image).timeout
    }

    /// The pool as it is now.
    pub async fn look(&self) -> Arc<PodsView> {
        let (reply, answer) = oneshot::channel();
        let _ = self.messages.send(Message::Show(reply));
        // Without a worker, what it told last stands.
        answer.await.unwrap_or_else(|_| self.view())
    }

    /// The pool as it was a moment ago.
    pub fn view(&self) -> Arc<PodsView> {
        self.view.borrow().clone()
    }
}

/// A word that no other replica has, nor we after a restart.
fn instance() -> String {
    let mut random = [0_u8; 8];
    // Without randomness, which Linux does not lack, the time will do.
    if ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        random = u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap_or_default().to_be_bytes();
    }
    format!("{:016x}", u64::from_be_bytes(random))
}

/// What a call that got no pod is told.
fn refused(image: &Reference, refusal: Refusal<Arc<Failure>>, waited: Duration) -> Failure {
    let image = image.as_given().to_owned();
    let cause = match refusal {
        Refusal::Failed(failure) => (*failure).clone(),
        Refusal::Crowded { waiting } => Failure::Exhausted {
            image: image.clone(),
            cause: format!(
                "{waiting} calls wait for a pod already; try again later, or raise --max-waiting-calls"
            ),
            stderr: String::new(),
        },
        Refusal::TimedOut { trouble, for_room } => {
            let waited = format!("waited {:.2}s for a pod", waited.as_secs_f64());
            let why = match (trouble, for_room) {
                (Some(trouble), _) => format!(": {trouble}"),
                (None, true) => " to go, because --max-pods are running and none is idle".to_owned(),
                (None, false) => ", which was still starting".to_owned(),
            };
            return Failure::TimedOut { image, cause: waited + &why, stderr: String::new() };
        }
    };
    Failure::NoPod { image, cause: Box::new(cause) }
}

fn ended() -> Failure {
    Failure::Unavailable {
        cause: "the pod runtime has ended; the function runner is shutting down".to_owned(),
    }
}

/// The name a pod is called by.
pub(crate) fn authority(service: &str, namespace: &str, port: u16) -> String {
    format!("{service}.{namespace}.svc.cluster.local:{port}")
}

/// What is sent to a caller.
pub(crate) type Reply = oneshot::Sender<Result<Granted, Refusal<Arc<Failure>>>>;
