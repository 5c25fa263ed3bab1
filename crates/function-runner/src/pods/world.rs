//! What the pod runtime asks of the service.

use std::{sync::Arc, time::Duration};

use pods::{ColdStart, Reason, World, settings::FunctionSettings};
use registry::{Metadata, Reference};
use tokio::time::Instant;
use wire::Failure;

use crate::{images::Images, routing::Routing, telemetry::PodMetrics};

/// The service as the pod runtime sees it.
#[derive(Debug)]
pub(crate) struct ServiceWorld {
    pub(crate) images: Arc<Images>,
    pub(crate) routing: Routing,
    pub(crate) metrics: PodMetrics,
}

#[tonic::async_trait]
impl World for ServiceWorld {
    async fn inspect(&self, image: &Reference, deadline: Option<Instant>) -> Result<Arc<Metadata>, Failure> {
        self.images.resolve(image, None, deadline).await
    }

    fn settings(&self, image: &Reference) -> Arc<FunctionSettings> {
        self.routing.index().pod(image).map(|function| function.settings.clone()).unwrap_or_default()
    }

    fn cold_start(&self, function: &str, stage: ColdStart, took: Duration) {
        self.metrics.cold_start(function, stage.name(), took);
    }

    fn evicted(&self, reason: Reason) {
        self.metrics.evicted(reason);
    }
}
