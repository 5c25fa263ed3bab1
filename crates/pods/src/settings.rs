//! What operators may say about the pods of a function.

use std::time::Duration;

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, PodSecurityContext, ResourceRequirements};
use serde::Serialize;

/// Settings of one function's pods. What is `None` is left to the flags.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionSettings {
    /// How long a pod is kept after its last use.
    pub time_to_live: Option<Duration>,
    /// Pods kept whether they are used or not.
    pub min_pods: Option<usize>,
    /// Pods at most.
    pub max_pods: Option<usize>,
    /// The number of calls in a pod from which on another pod is wanted.
    pub max_queue: Option<usize>,
    /// How long one call may take.
    pub timeout: Option<Duration>,
    /// What replaces parts of the template.
    pub overrides: Overrides,
}

/// What replaces parts of a pod template: each part that is there as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Overrides {
    /// The pod's service account.
    pub service_account: Option<String>,
    /// The pod's security context.
    pub security_context: Option<PodSecurityContext>,
    /// For the first init container.
    pub init_container: ContainerOverrides,
    /// For the container that runs the function.
    pub container: ContainerOverrides,
}

/// What replaces parts of a container.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ContainerOverrides {
    /// Requests and limits, each replaced as a whole where given.
    pub resources: Option<ResourceRequirements>,
    /// All variables.
    pub env: Option<Vec<EnvVar>>,
    /// All sources of variables.
    pub env_from: Option<Vec<EnvFromSource>>,
}
