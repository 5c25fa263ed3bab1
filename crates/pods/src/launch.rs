//! Making a pod: its Service first, whose name claims the slot, then the pod.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{
    api::core::v1::{Pod, Service},
    jiff::Timestamp,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use pool::Spec;
use registry::{Metadata, Reference};
use tracing::{debug, warn};
use wire::Failure;

use crate::{
    cluster::Cluster,
    marks::{CLAIMED_BY, DIGEST, FUNCTION, LAUNCH, is_function_service},
    render::{self, FIELD_MANAGER, IMAGE_LABEL, RECLAIM_AFTER, SETTINGS_VERSION},
    settings::FunctionSettings,
    template::{Template, WRAPPER_PORT},
    trouble::{self, Meaning, Tries, patiently, persistently},
};

/// A pod to be made.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// The function's image.
    pub(crate) image: Reference,
    /// What the pod is to be.
    pub(crate) spec: Arc<Spec>,
    /// The pod's id: the name of its Service.
    pub(crate) id: String,
    /// Marks the pod as made by this launch, so that it is recognised if the answer to its creation is lost.
    pub(crate) mark: String,
    /// Whether the pod's name is to be exactly its id.
    pub(crate) exact_name: bool,
    /// Whether a Service that is there may be used: nobody makes a pod for it.
    pub(crate) take_over: bool,
}

/// What became of a launch.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The pod is made.
    Launched(Box<Pod>),
    /// Another replica has the slot.
    Taken,
    /// There is no pod.
    Failed { failure: Box<Failure>, lasting: bool },
}

impl From<(Failure, bool)> for Outcome {
    fn from((failure, lasting): (Failure, bool)) -> Self {
        Self::Failed { failure: Box::new(failure), lasting }
    }
}

/// What is told of a launch before its end.
#[derive(Debug)]
pub(crate) enum Step {
    /// What the pod is made from is known.
    Resolved,
    /// Something holds it up that may pass.
    Delayed(Failure),
}

/// Who is told.
pub(crate) type Tell<'a> = &'a (dyn Fn(Step) + Send + Sync);

type Trouble = (Failure, bool);

impl Launch {
    /// Makes the pod.
    pub(crate) async fn run(self, cluster: &Cluster, tell: Tell<'_>) -> Outcome {
        match self.try_run(cluster, tell).await {
            Ok(Some(pod)) => Outcome::Launched(Box::new(pod)),
            Ok(None) => Outcome::Taken,
            Err(trouble) => trouble.into(),
        }
    }

    async fn try_run(&self, cluster: &Cluster, tell: Tell<'_>) -> Result<Option<Pod>, Trouble> {
        let inspected = cluster.world.inspect(&self.image, None).await;
        let metadata = inspected.map_err(|failure| {
            let lasting = is_lasting(&failure);
            (failure, lasting)
        })?;
        let template = cluster.template().await?;
        let delayed = delayed(tell, "cannot prepare the secret to pull images with");
        let pull_secret = patiently(cluster.pull_secret(&self.image), delayed).await?;
        tell(Step::Resolved);
        let settings = cluster.world.settings(&self.image);
        let mut service = render::service(&template, &self.id, &cluster.settings.namespace);
        service
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(CLAIMED_BY.to_owned(), cluster.instance.clone());
        let pod = self.render(cluster, &template, &metadata, &settings, pull_secret.as_deref());

        let Some(claim) = self.claim(cluster, &service, tell).await? else { return Ok(None) };
        match self.create(cluster, pod, tell).await {
            Ok(pod) => Ok(Some(pod)),
            Err(trouble) => {
                release(cluster, &claim).await;
                Err(trouble)
            }
        }
    }

    fn render(
        &self,
        cluster: &Cluster,
        template: &Template,
        metadata: &Metadata,
        settings: &FunctionSettings,
        pull_secret: Option<&str>,
    ) -> Pod {
        let pinned =
            cluster.settings.pin_digests.then(|| self.image.with_digest(&metadata.digest).ok()).flatten();
        let image = pinned.as_ref().unwrap_or(&self.image);
        let arguments: Vec<String> = metadata.entrypoint.iter().chain(&metadata.command).cloned().collect();
        let keep_until = Timestamp::now().as_second()
            + i64::try_from(self.spec.time_to_live.as_secs()).unwrap_or(i64::MAX / 2);
        let mut annotations = BTreeMap::from([
            (RECLAIM_AFTER.to_owned(), keep_until.to_string()),
            (FUNCTION.to_owned(), self.image.as_given().to_owned()),
            (DIGEST.to_owned(), metadata.digest.clone()),
            (LAUNCH.to_owned(), self.mark.clone()),
        ]);
        let version = cluster.settings_version(settings);
        if !version.is_empty() {
            annotations.insert(SETTINGS_VERSION.to_owned(), version);
        }
        render::pod(
            template,
            &render::PodRequest {
                id: &self.id,
                exact_name: self.exact_name,
                image: image.as_given(),
                arguments: &arguments,
                overrides: &settings.overrides,
                annotations: &annotations,
                max_message: cluster.settings.max_message,
                port: WRAPPER_PORT,
                pull_secret,
                namespace: &cluster.settings.namespace,
            },
        )
    }

    /// Claims the slot by its Service. `None`: another replica has it.
    async fn claim(
        &self,
        cluster: &Cluster,
        service: &Service,
        tell: Tell<'_>,
    ) -> Result<Option<Service>, Trouble> {
        let api: Api<Service> = cluster.api();
        let what = "cannot create the Service of a function pod";
        let params = post();
        match persistently(|| api.create(&params, service), delayed(tell, what)).await {
            Ok(created) => return Ok(Some(created)),
            Err(error) if trouble::meaning(&error) == Meaning::Exists => {}
            Err(error) => return Err(trouble::failure(what, &error)),
        }
        let what = "cannot look at the Service of a function pod";
        let there = match persistently(|| api.get_opt(&self.id), delayed(tell, what)).await {
            Ok(Some(there)) => there,
            // It went between the two questions; the next launch will find the name free.
            Ok(None) => return Ok(None),
            Err(error) => return Err(trouble::failure(what, &error)),
        };
        if !is_function_service(&there) {
            let cause = format!(
                "the Service {} in {} is not one of the function runner's and is in the way of the pod; remove it",
                self.id, cluster.settings.namespace
            );
            return Err((Failure::Unusable { cause }, true));
        }
        let is_ours = there.annotations().get(CLAIMED_BY) == Some(&cluster.instance);
        let is_old = age(&there).is_some_and(|age| age > cluster.settings.claim_timeout);
        if is_ours || self.take_over || (is_old && !self.has_pod(cluster).await) {
            debug!(service = self.id, "using a Service that has no pod");
            return Ok(Some(there));
        }
        Ok(None)
    }

    /// Whether there is a pod for the Service. When in doubt there is.
    async fn has_pod(&self, cluster: &Cluster) -> bool {
        let found = trouble::in_time(cluster.api::<Pod>().list(&self.of_this_id())).await;
        found.map_or(true, |pods| !pods.items.is_empty())
    }

    fn of_this_id(&self) -> ListParams {
        ListParams::default().labels(&format!("{}={}", IMAGE_LABEL, self.id))
    }

    async fn create(&self, cluster: &Cluster, mut pod: Pod, tell: Tell<'_>) -> Result<Pod, Trouble> {
        let api: Api<Pod> = cluster.api();
        let what = format!("cannot create a pod in {}", cluster.settings.namespace);
        let delayed = delayed(tell, &what);
        let mut tries = Tries::default();
        loop {
            let params = post();
            let error = match patiently(trouble::in_time(api.create(&params, &pod)), &delayed).await {
                Ok(created) => return Ok(created),
                Err(error) => error,
            };
            let meaning = trouble::meaning(&error);
            let is_worth_a_try = meaning == Meaning::Exists || trouble::may_pass(meaning);
            let Some(pause) = is_worth_a_try.then(|| tries.next(&error, &delayed)).flatten() else {
                return Err(trouble::failure(&what, &error));
            };
            tokio::time::sleep(pause).await;
            // The answer may have been lost, not the request.
            if let Some(made) = self.find(&api).await {
                return Ok(made);
            }
            // A pod of that name is on its way out, or was made by hand.
            if let Some(name) = pod.metadata.name.take_if(|_| meaning == Meaning::Exists) {
                pod.metadata.generate_name = Some(format!("{name}-"));
            }
        }
    }

    async fn find(&self, api: &Api<Pod>) -> Option<Pod> {
        let pods = trouble::in_time(api.list(&self.of_this_id())).await.ok()?;
        pods.items.into_iter().find(|pod| pod.annotations().get(LAUNCH) == Some(&self.mark))
    }
}

/// Tells of trouble with what is being done.
fn delayed<'a>(tell: Tell<'a>, what: &'a str) -> impl Fn(&str) + Send + Sync + use<'a> {
    move |words| tell(Step::Delayed(Failure::Unavailable { cause: format!("{what}: {words}") }))
}

fn post() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// Whether the failure to learn about an image will not pass by itself soon.
fn is_lasting(failure: &Failure) -> bool {
    use tonic::Code;
    matches!(failure.code(), Code::FailedPrecondition | Code::PermissionDenied | Code::InvalidArgument)
}

fn age(service: &Service) -> Option<Duration> {
    let created = service.metadata.creation_timestamp.as_ref()?.0;
    Duration::try_from(Timestamp::now().duration_since(created)).ok()
}

/// Frees the slot again; a claim that stays is found by the next scan.
async fn release(cluster: &Cluster, claim: &Service) {
    let Some(uid) = claim.uid() else { return };
    if let Err(error) = remove_service(cluster, &claim.name_any(), &uid).await {
        warn!(service = claim.name_any(), cause = trouble::words(&error), "cannot remove the Service");
    }
}

/// How a removal went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It is on its way out.
    Begun,
    /// There was nothing of that unique name any more.
    WasGone,
}

/// Deletes this very Service; one that is gone is as good.
pub(crate) async fn remove_service(cluster: &Cluster, name: &str, uid: &str) -> kube::Result<Removal> {
    let api: Api<Service> = cluster.api();
    remove(&api, name, uid).await
}

/// Deletes this very pod, with the grace it asks for itself.
pub(crate) async fn remove_pod(cluster: &Cluster, name: &str, uid: &str) -> kube::Result<Removal> {
    let api: Api<Pod> = cluster.api();
    remove(&api, name, uid).await
}

async fn remove<K>(api: &Api<K>, name: &str, uid: &str) -> kube::Result<Removal>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let params = DeleteParams {
        preconditions: Some(kube::api::Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    let ask = || async {
        match api.delete(name, &params).await {
            // A conflict: what has the name now is another.
            Err(error) if matches!(trouble::meaning(&error), Meaning::Missing | Meaning::Conflict) => {
                Ok(Removal::WasGone)
            }
            outcome => outcome.map(|_| Removal::Begun),
        }
    };
    // Nobody waits for it.
    persistently(ask, |_| {}).await
}
