//! What the cluster shows of function pods, in our words.

mod trouble;

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use k8s_openapi::{
    api::core::v1::{ContainerStatus, Pod, PodSpec, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use pool::Phase;

pub use trouble::{Trouble, TroubleKind};

use crate::{
    marks::{DIGEST, FUNCTION},
    names::parse_id,
    render::{IMAGE_LABEL, RECLAIM_AFTER, SETTINGS_VERSION, TEMPLATE_VERSION},
    template::FUNCTION_CONTAINER,
};

/// Containers of service meshes, through which alone the pod may be reached.
const MESH_CONTAINERS: [&str; 6] =
    ["istio-proxy", "linkerd-proxy", "kuma-sidecar", "consul-dataplane", "envoy-sidecar", "envoy"];

/// A function pod as the cluster shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sighting {
    /// Its unique name.
    pub uid: Arc<str>,
    /// Its name.
    pub name: String,
    /// Its id, which is also the name of its service.
    pub id: String,
    /// The stem of its id.
    pub stem: Arc<str>,
    /// Its slot; 0 for ids of older releases.
    pub slot: usize,
    /// The image its callers ask for.
    pub function: Arc<str>,
    /// The image it runs: the same, or by digest.
    pub image: Arc<str>,
    /// The digest that image had when the pod was made, where that is written on it.
    pub digest: Option<String>,
    /// The version of the template it was made from.
    pub template_version: Option<String>,
    /// The version of the settings it was made with.
    pub settings_version: Option<String>,
    /// When it was made.
    pub created: SystemTime,
    /// Until when it is to be kept, in seconds since 1970.
    pub reclaim_after: Option<u64>,
    /// How far it is.
    pub phase: Phase,
    /// Its own address.
    pub address: Option<IpAddr>,
    /// Whether the function's container runs.
    pub is_running: bool,
    /// Whether it belongs to a service mesh.
    pub has_mesh_sidecar: bool,
    /// How often the function's container was started again.
    pub restarts: u32,
    /// What keeps it from coming up, or what it died of.
    pub trouble: Option<Trouble>,
    /// How far it came when.
    pub progress: Progress,
}

/// When a pod reached its stages, to the second, as far as the cluster tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// It was given a node.
    pub scheduled: Option<SystemTime>,
    /// Its init containers were done.
    pub initialized: Option<SystemTime>,
    /// The function's container was started, its image being there.
    pub started: Option<SystemTime>,
    /// All its containers were ready.
    pub ready: Option<SystemTime>,
}

/// What is to be seen of a pod. `None` if it is no function pod of ours.
pub fn pod(pod: &Pod) -> Option<Sighting> {
    let id = pod.metadata.labels.as_ref()?.get(IMAGE_LABEL)?;
    let (stem, slot) = parse_id(id)?;
    let spec = pod.spec.as_ref()?;
    let image =
        spec.containers.iter().find(|container| container.name == FUNCTION_CONTAINER)?.image.as_ref()?;
    let annotation = |name| pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(name));
    let unknown = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&unknown);
    let function = status.container_statuses.iter().flatten().find(|it| it.name == FUNCTION_CONTAINER);
    Some(Sighting {
        uid: pod.metadata.uid.as_deref()?.into(),
        name: pod.metadata.name.clone()?,
        id: id.clone(),
        stem: stem.into(),
        slot,
        function: annotation(FUNCTION).unwrap_or(image).as_str().into(),
        image: image.as_str().into(),
        digest: annotation(DIGEST).cloned(),
        template_version: annotation(TEMPLATE_VERSION).cloned(),
        settings_version: annotation(SETTINGS_VERSION).cloned(),
        created: pod.metadata.creation_timestamp.as_ref().map_or(UNIX_EPOCH, moment),
        reclaim_after: annotation(RECLAIM_AFTER).and_then(|seconds| seconds.trim().parse().ok()),
        phase: phase(pod, status, function),
        address: status.pod_ip.as_ref().and_then(|address| address.parse().ok()),
        is_running: function.is_some_and(is_running),
        has_mesh_sidecar: has_mesh_sidecar(spec),
        restarts: function.map_or(0, |function| u32::try_from(function.restart_count).unwrap_or_default()),
        trouble: trouble::of(spec, status),
        progress: progress(status, function),
    })
}

fn phase(pod: &Pod, status: &PodStatus, function: Option<&ContainerStatus>) -> Phase {
    if pod.metadata.deletion_timestamp.is_some() {
        return Phase::Ending;
    }
    match status.phase.as_deref() {
        Some("Failed" | "Succeeded" | "Unknown") => Phase::Failed,
        // A restarted wrapper knows nothing of the calls it had.
        _ if function.is_some_and(has_ended) => Phase::Failed,
        _ => Phase::Alive,
    }
}

fn is_running(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Whether a container ended, be it that it was started again.
fn has_ended(container: &ContainerStatus) -> bool {
    let states = [&container.state, &container.last_state];
    container.restart_count > 0 || states.into_iter().flatten().any(|state| state.terminated.is_some())
}

fn has_mesh_sidecar(pod: &PodSpec) -> bool {
    // A sidecar may be an init container that is restarted always.
    let containers = pod.containers.iter().chain(pod.init_containers.iter().flatten());
    containers.map(|container| container.name.as_str()).any(|name| MESH_CONTAINERS.contains(&name))
}

fn progress(status: &PodStatus, function: Option<&ContainerStatus>) -> Progress {
    let reached = |stage: &str| {
        let condition = status.conditions.iter().flatten().find(|condition| condition.type_ == stage)?;
        condition.last_transition_time.as_ref().filter(|_| condition.status == "True").map(moment)
    };
    let started =
        function.and_then(|function| function.state.as_ref()?.running.as_ref()?.started_at.as_ref());
    Progress {
        scheduled: reached("PodScheduled"),
        initialized: reached("Initialized"),
        started: started.map(moment),
        ready: reached("Ready"),
    }
}

/// A time of the cluster.
pub(crate) fn moment(time: &Time) -> SystemTime {
    let milliseconds = u64::try_from(time.0.as_millisecond()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(milliseconds)
}
