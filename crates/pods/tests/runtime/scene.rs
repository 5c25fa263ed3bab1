//! A runtime, its cluster, and one function.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pods::{
    AddressMode, ColdStart, Lease, PodSecurity, PodsView, Reason, Runtime, RuntimeSettings, World,
    settings::FunctionSettings,
};
use registry::{Metadata, Platform, Reference, Trust};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};
use wire::Failure;

use crate::cluster::{Asked, Cluster, Reaction};

pub(crate) const IMAGE: &str = "example.com/set-owner:v1";
/// The name of the first Service, and of the pod behind it without its last five characters.
pub(crate) const ID: &str = "set-owner-v1-1-01234567";

pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) runtime: Runtime,
    pub(crate) world: Arc<TestWorld>,
}

/// What the runtime asks of the service around it.
#[derive(Debug, Default)]
pub(crate) struct TestWorld {
    pub(crate) settings: Mutex<FunctionSettings>,
    pub(crate) stages: Mutex<Vec<&'static str>>,
}

#[tonic::async_trait]
impl World for TestWorld {
    async fn inspect(&self, _: &Reference, _: Option<Instant>) -> Result<Arc<Metadata>, Failure> {
        Ok(Arc::new(metadata()))
    }

    fn settings(&self, _: &Reference) -> Arc<FunctionSettings> {
        Arc::new(self.settings.lock().unwrap().clone())
    }

    fn cold_start(&self, _: &str, stage: ColdStart, _: Duration) {
        self.stages.lock().unwrap().push(stage.name());
    }

    fn evicted(&self, _: Reason) {}
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(Cluster::new(), |_| {})
    }

    /// With what is in the cluster already, and other settings.
    pub(crate) fn with(cluster: Cluster, change: impl FnOnce(&mut RuntimeSettings)) -> Self {
        let mut settings = RuntimeSettings {
            namespace: "functions".to_owned(),
            own_namespace: "porch-system".to_owned(),
            wrapper_image: "example.com/wrapper-server:v1".to_owned(),
            security: PodSecurity::Porch,
            config_map: None,
            max_message: 6 * 1024 * 1024,
            time_to_live: Duration::from_mins(30),
            scan_interval: Some(Duration::from_mins(1)),
            max_parallel: 1,
            max_queue: 2,
            max_pods: None,
            max_waiting: 1000,
            ready_timeout: Duration::from_mins(1),
            claim_timeout: Duration::from_secs(10),
            address: AddressMode::Pod,
            pin_digests: false,
            pull_secret: None,
        };
        change(&mut settings);
        let world = Arc::<TestWorld>::default();
        let runtime = Runtime::start(cluster.client(), settings, world.clone());
        Self { cluster, runtime, world }
    }

    /// A call that waits for a pod, for so long.
    pub(crate) fn call(&self, seconds: u64) -> JoinHandle<Result<Lease, Failure>> {
        self.call_as(image(), seconds)
    }

    /// The same by another name of the image.
    pub(crate) fn call_as(&self, image: Reference, seconds: u64) -> JoinHandle<Result<Lease, Failure>> {
        let runtime = self.runtime.clone();
        tokio::spawn(async move {
            let deadline = Instant::now() + Duration::from_secs(seconds);
            runtime.lease(&image, &metadata(), Instant::now(), Some(deadline)).await
        })
    }

    /// What a call hears that waits for so long and gets no pod.
    pub(crate) async fn complaint(&self, seconds: u64) -> String {
        self.call(seconds).await.unwrap().map(|lease| lease.pod().to_owned()).unwrap_err().to_string()
    }

    /// The phases of all pods.
    pub(crate) async fn phases(&self) -> Vec<&'static str> {
        let view: Arc<PodsView> = self.runtime.look().await;
        view.pods.iter().map(|pod| pod.phase).collect()
    }

    /// From now on such requests meet with this, so many times.
    pub(crate) fn hinder(&self, verb: &'static str, kind: &'static str, times: usize, reaction: Reaction) {
        hinder(&self.cluster, verb, kind, times, reaction);
    }
}

pub(crate) fn hinder(
    cluster: &Cluster,
    verb: &'static str,
    kind: &'static str,
    mut times: usize,
    reaction: Reaction,
) {
    cluster.script(move |asked: &Asked| {
        if times == 0 || !asked.is(verb, kind) {
            return Reaction::Do;
        }
        times -= 1;
        reaction.clone()
    });
}

pub(crate) fn image() -> Reference {
    Reference::parse(IMAGE).unwrap()
}

pub(crate) fn metadata() -> Metadata {
    Metadata {
        reference: image(),
        source: image(),
        digest: format!("sha256:{}", "0123456789abcdef".repeat(4)),
        entrypoint: vec!["/set-owner".to_owned()],
        command: Vec::new(),
        user: String::new(),
        environment: Vec::new(),
        working_dir: String::new(),
        platform: Platform::linux("amd64"),
        credential: None,
        trust: Trust::System,
    }
}

/// A Service of another replica, made then.
pub(crate) fn claim_of_another(created: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": ID, "namespace": "functions", "creationTimestamp": created,
            "annotations": {"fn.kpt.dev/claimed-by": "another"},
        },
        "spec": {"clusterIP": "10.0.0.1", "selector": {"fn.kpt.dev/image": ID}},
    })
}
