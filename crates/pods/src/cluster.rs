//! The cluster as the runtime's tasks see it: the API, the template in force,
//! the pull secret, and the settings they all share.

use std::{fmt::Debug, path::PathBuf, sync::Arc, time::Duration};

use kube::{Api, Client, Resource, core::NamespaceResourceScope};
use pool::Spec;
use registry::Reference;
use tokio::sync::watch;
use wire::Failure;

use crate::{
    address::AddressMode,
    names::{PodName, checksum},
    pull_secret::PullSecret,
    settings::{FunctionSettings, Overrides},
    template::{PodSecurity, Template, source::TemplateState},
    world::World,
};

/// How long a launch waits until the template is known for the first time.
const FIRST_TEMPLATE: Duration = Duration::from_secs(20);
/// The message limit of wrappers that were not told another.
const USUAL_MESSAGE: usize = 6 * 1024 * 1024;

/// What the pod runtime is told at its start.
#[derive(Debug, Clone)]
pub struct RuntimeSettings {
    /// Where function pods are.
    pub namespace: String,
    /// Where we are ourselves.
    pub own_namespace: String,
    /// The wrapper server's image.
    pub wrapper_image: String,
    /// What pods may do where no template says so.
    pub security: PodSecurity,
    /// The ConfigMap in our namespace that holds the templates.
    pub config_map: Option<String>,
    /// The largest message, both ways.
    pub max_message: usize,
    /// How long a pod is kept after its last use.
    pub time_to_live: Duration,
    /// How often pods that nobody needs are looked for; never, if `None`.
    pub scan_interval: Option<Duration>,
    /// Pods of one function at most.
    pub max_parallel: usize,
    /// Calls in a pod from which on another pod is wanted.
    pub max_queue: usize,
    /// Pods of all functions together at most.
    pub max_pods: Option<usize>,
    /// Calls that may wait for a pod.
    pub max_waiting: usize,
    /// How long a pod may take to be ready.
    pub ready_timeout: Duration,
    /// How long a slot claimed by another replica may stay without a pod.
    pub claim_timeout: Duration,
    /// Which address of a pod calls go to.
    pub address: AddressMode,
    /// Whether pods run the digest of what was inspected.
    pub pin_digests: bool,
    /// The secret that function images are pulled with: its name, and the file it is made from.
    pub pull_secret: Option<(String, PathBuf)>,
}

/// The cluster, shared by all tasks of the runtime.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) settings: RuntimeSettings,
    pub(crate) world: Arc<dyn World>,
    pub(crate) pull_secret: Option<PullSecret>,
    pub(crate) template: watch::Receiver<TemplateState>,
    /// Tells this process from other replicas and from those before it.
    pub(crate) instance: String,
}

impl Cluster {
    /// The API of a kind in the namespace of pods.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.settings.namespace)
    }

    /// The template in force; waits for the first.
    pub(crate) async fn template(&self) -> Result<Arc<Template>, (Failure, bool)> {
        let mut template = self.template.clone();
        let known = template.wait_for(|state| !matches!(state, TemplateState::Unknown));
        let state = tokio::time::timeout(FIRST_TEMPLATE, known).await;
        match state.ok().and_then(Result::ok).as_deref() {
            Some(TemplateState::Ready(template)) => Ok(template.clone()),
            Some(TemplateState::Failed(error)) if error.may_pass() => {
                Err((Failure::Unavailable { cause: error.to_string() }, false))
            }
            Some(TemplateState::Failed(error)) => Err((Failure::Unusable { cause: error.to_string() }, true)),
            Some(TemplateState::Unknown) | None => Err((unknown_template(), false)),
        }
    }

    /// The name of the secret an image is pulled with, if it needs one.
    pub(crate) async fn pull_secret(&self, image: &Reference) -> Result<Option<String>, (Failure, bool)> {
        let Some(secret) = self.pull_secret.as_ref().filter(|_| !registry::is_exempt(image)) else {
            return Ok(None);
        };
        secret.ensure().await.map(Some).map_err(|error| {
            let cause = format!("cannot prepare the secret to pull {} with: {error}", image.as_given());
            if error.may_pass() {
                (Failure::Unavailable { cause }, false)
            } else {
                (Failure::Unusable { cause }, true)
            }
        })
    }

    /// What pods of an image are to be.
    pub(crate) fn spec(&self, titles: Titles, template_version: &str, settings: &FunctionSettings) -> Spec {
        let Titles { stem, image } = titles;
        Spec {
            stem,
            image,
            revision: revision(template_version, &self.settings_version(settings)),
            min_pods: settings.min_pods.unwrap_or(0),
            // Who asks for so many and says nothing of a limit means at least so many.
            max_pods: settings
                .max_pods
                .unwrap_or_else(|| self.settings.max_parallel.max(settings.min_pods.unwrap_or(0))),
            max_queue: settings.max_queue.unwrap_or(self.settings.max_queue),
            time_to_live: settings.time_to_live.unwrap_or(self.settings.time_to_live),
        }
    }

    /// Tells pods of different settings apart. Nothing for pods as they are without
    /// settings, so that those of the original are up to date.
    pub(crate) fn settings_version(&self, settings: &FunctionSettings) -> String {
        let max_message = self.settings.max_message;
        if settings.overrides == Overrides::default() && max_message == USUAL_MESSAGE {
            return String::new();
        }
        let overrides = serde_json::to_vec(&settings.overrides).unwrap_or_default();
        checksum(&[max_message.to_string().as_bytes(), &overrides].concat())
    }
}

/// What the pods of an image are called, and what they run.
#[derive(Debug, Clone)]
pub(crate) struct Titles {
    /// The stem of their names.
    pub(crate) stem: Arc<str>,
    /// Repository and digest, the same for all tags of one image; empty if the digest is not known.
    pub(crate) image: Arc<str>,
}

impl Titles {
    /// Those of an image whose manifest has this digest.
    pub(crate) fn new(image: &Reference, digest: &str) -> Self {
        Self { stem: PodName::new(image, digest).stem().into(), image: Self::image(image, digest) }
    }

    /// What pods of an image run.
    pub(crate) fn image(image: &Reference, digest: &str) -> Arc<str> {
        format!("{}@{digest}", image.full_name()).into()
    }
}

impl RuntimeSettings {
    /// How long a Service may be without a pod before it is taken for forgotten.
    pub(crate) fn orphan_age(&self) -> Duration {
        self.claim_timeout * 3
    }
}

impl Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cluster").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Until the API server has told the template.
pub(crate) fn unknown_template() -> Failure {
    let cause = "the pod template is not known yet: the API server has not answered".to_owned();
    Failure::Unavailable { cause }
}

/// What a pod must be made from to be up to date, beside its image.
pub(crate) fn revision(template: &str, settings: &str) -> Arc<str> {
    format!("{template}/{settings}").into()
}
