//! Starts the pod runtime from the settings.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use anyhow::Context as _;
use kube::Client;
use pods::{Runtime, RuntimeSettings, own_namespace};
use tracing::info;

use super::{ServiceWorld, Warming, keep_warm};
use crate::{
    evaluate::PodEvaluator,
    images::Images,
    routing::Routing,
    settings::{PodSettings, RegistrySettings},
    telemetry::PodMetrics,
};

/// How long another replica may take from claiming a slot to making its pod.
const CLAIM: Duration = Duration::from_secs(10);

/// The pod runtime and the evaluator that uses it.
pub(crate) struct PodRuntime {
    pub(crate) evaluator: PodEvaluator,
    pub(crate) runtime: Runtime,
}

/// Starts the pod runtime.
pub(crate) fn start(
    client: Client,
    settings: &PodSettings,
    registries: &RegistrySettings,
    images: Arc<Images>,
    routing: &Routing,
    max_message: usize,
    metrics: &PodMetrics,
) -> anyhow::Result<PodRuntime> {
    let PodSettings {
        cluster,
        wrapper_image,
        namespace,
        ttl,
        scan_interval,
        max_waitlist,
        max_parallel,
        max_pods,
        max_waiting_calls,
        ready_timeout,
        timeout,
        address,
        security,
        pin_digests,
        template,
        cache_config: _,
        warm_up,
    } = settings;
    let runtime_settings = RuntimeSettings {
        namespace: namespace.clone(),
        own_namespace: own_namespace(),
        // Settings are refused where there is a cluster and this is missing.
        wrapper_image: wrapper_image.clone().context("WRAPPER_SERVER_IMAGE is not set")?,
        security: *security,
        config_map: template.clone(),
        max_message,
        time_to_live: *ttl,
        scan_interval: *scan_interval,
        max_parallel: *max_parallel,
        max_queue: *max_waitlist,
        max_pods: max_pods.map(NonZeroUsize::get),
        max_waiting: *max_waiting_calls,
        ready_timeout: *ready_timeout,
        claim_timeout: CLAIM,
        address: *address,
        pin_digests: *pin_digests,
        pull_secret: registries
            .private_registries
            .as_ref()
            .map(|private| (private.auth_secret.clone(), private.auth_path.clone())),
    };
    let world = ServiceWorld { images: images.clone(), routing: routing.clone(), metrics: metrics.clone() };
    info!(%cluster, namespace, "all other images run in pods");
    let runtime = Runtime::start(client, runtime_settings, Arc::new(world));
    metrics.observe(&runtime);
    let warming = Warming {
        images: images.clone(),
        is_wanted: *warm_up,
        most: max_pods.map(NonZeroUsize::get),
        ready_timeout: *ready_timeout,
    };
    tokio::spawn(keep_warm(runtime.clone(), warming, routing.subscribe()));
    let evaluator = PodEvaluator::new(runtime.clone(), images, metrics.clone(), *timeout);
    Ok(PodRuntime { evaluator, runtime })
}
