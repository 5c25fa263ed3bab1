//! What the pod runtime asks of the rest of the service, and tells it.

use std::{sync::Arc, time::Duration};

use pool::Reason;
use registry::{Metadata, Reference};
use tokio::time::Instant;
use wire::Failure;

use crate::settings::FunctionSettings;

/// What the pod runtime asks of the rest of the service.
#[tonic::async_trait]
pub trait World: Send + Sync + 'static {
    /// What the registry says about an image, from a cache where that is warm.
    async fn inspect(&self, image: &Reference, deadline: Option<Instant>) -> Result<Arc<Metadata>, Failure>;

    /// What operators say about the pods of an image.
    fn settings(&self, image: &Reference) -> Arc<FunctionSettings>;

    /// Told what a pod's start took.
    fn cold_start(&self, function: &str, stage: ColdStart, took: Duration);

    /// Told that a pod goes.
    fn evicted(&self, reason: Reason);
}

/// A stage of a pod's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColdStart {
    /// From the decision until what the pod is made from is known: its image, template and pull secret.
    Resolve,
    /// Until the pod has a place on a node.
    Schedule,
    /// Until its init containers are done, their images' way to the node included.
    Start,
    /// Until the function's container runs: where the node lacks its image, mostly that image's way to it.
    Pull,
    /// Until the wrapper in it answers.
    Connect,
}

impl ColdStart {
    /// The stage as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Schedule => "schedule",
            Self::Start => "start",
            Self::Pull => "pull",
            Self::Connect => "connect",
        }
    }
}
