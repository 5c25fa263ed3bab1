//! Starts the pod runtime from the settings.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use anyhow::Context as _;
use pods::{Access, Runtime, RuntimeSettings, own_namespace};
use tracing::info;

use super::{PodCacheFollower, PodFunctions, ServiceWorld, Warming};
use crate::{
    evaluate::PodEvaluator,
    images::Images,
    settings::{Cluster, PodSettings, RegistrySettings},
    telemetry::PodMetrics,
};

/// How long another replica may take from claiming a slot to making its pod.
const CLAIM: Duration = Duration::from_secs(10);

/// The pod runtime and the evaluator that uses it.
pub(crate) struct PodRuntime {
    pub(crate) evaluator: PodEvaluator,
    pub(crate) runtime: Runtime,
}

/// Starts the pod runtime; `None` where there is no cluster.
pub(crate) async fn start(
    settings: &PodSettings,
    registries: &RegistrySettings,
    images: Arc<Images>,
    default_prefix: &str,
    max_message: usize,
    metrics: PodMetrics,
) -> anyhow::Result<Option<PodRuntime>> {
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
        pin_digests,
        template,
        cache_config,
        warm_up,
    } = settings;
    let access = match cluster {
        Cluster::None => {
            info!(
                "no cluster is configured (--kubeconfig, KUBECONFIG or an in-cluster account): \
                 running without the pod runtime, images without an executable are answered NotFound"
            );
            return Ok(None);
        }
        Cluster::Kubeconfig(path) => Access::Kubeconfig(path.clone()),
        Cluster::InCluster => Access::InCluster,
    };
    let counted = metrics.clone();
    let client = access.client(Arc::new(move |request| counted.requested(request))).await?;
    let runtime_settings = RuntimeSettings {
        namespace: namespace.clone(),
        own_namespace: own_namespace(),
        // Settings are refused where there is a cluster and this is missing.
        wrapper_image: wrapper_image.clone().context("WRAPPER_SERVER_IMAGE is not set")?,
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
    let functions = PodFunctions::default();
    let world =
        ServiceWorld { images: images.clone(), functions: functions.clone(), metrics: metrics.clone() };
    info!(%cluster, namespace, "images without an executable run in pods");
    let runtime = Runtime::start(client, runtime_settings, Arc::new(world));
    metrics.observe(&runtime);
    let follower = PodCacheFollower::new(cache_config.clone(), default_prefix.to_owned(), functions);
    let warming = warm_up.then(|| Warming {
        images: images.clone(),
        most: max_pods.map(NonZeroUsize::get),
        ready_timeout: *ready_timeout,
    });
    tokio::spawn(follower.follow(runtime.clone(), warming));
    let evaluator = PodEvaluator::new(runtime.clone(), images, *timeout);
    Ok(Some(PodRuntime { evaluator, runtime }))
}
