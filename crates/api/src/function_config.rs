//! `FunctionConfig`: which executors serve the images of a function, and how.

use k8s_openapi::{
    api::core::v1::{EnvFromSource, EnvVar, PodSecurityContext, ResourceRequirements},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long an idle pod is kept where nothing else is said.
pub const DEFAULT_TIME_TO_LIVE: &str = "30m";

/// Which executors serve the images of a function.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "config.porch.kpt.dev",
    version = "v1alpha1",
    kind = "FunctionConfig",
    plural = "functionconfigs",
    singular = "functionconfig",
    namespaced,
    status = "FunctionConfigStatus",
    derive = "PartialEq",
    doc = "Which executors serve the images of a function, and how.",
    printcolumn = r#"{"name": "Server Applied", "type": "integer", "jsonPath": ".status.apiServerObservedGeneration"}"#,
    printcolumn = r#"{"name": "FnRunner Applied", "type": "integer", "jsonPath": ".status.functionRunnerObservedGeneration"}"#,
    printcolumn = r#"{"name": "Controller Applied", "type": "integer", "jsonPath": ".status.controllerObservedGeneration"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "priority": 1, "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.podExecutor) || has(self.binaryExecutor) || has(self.goExecutor)",
    "message": "at least one of podExecutor, binaryExecutor and goExecutor must be set",
}]))]
pub struct FunctionConfigSpec {
    /// The name of the function's images: the last part of their repositories, such as `set-namespace`.
    #[schemars(length(min = 1))]
    pub image: String,
    /// What the images' repositories may begin with, by whole parts; "" is the default prefix of the function
    /// runner. Without any, the images may be anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefixes: Option<Vec<String>>,
    /// How the function's pods are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_executor: Option<PodExecutor>,
    /// Serves images by an executable that the function runner has at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_executor: Option<BinaryExecutor>,
    /// Serves images by a function that is built into Porch or the function runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub go_executor: Option<GoExecutor>,
}

/// How the pods of a function are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodExecutor {
    /// The tags this is about: tags, digests, version constraints such as ~0.4, or *. Without any, all. A pod of
    /// the first is started before anybody calls, and with minReplicas pods of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// How long a pod is kept after its last use, such as 30m or 1h30m; 0s means what the function runner's flags
    /// say.
    #[serde(default = "default_time_to_live")]
    #[schemars(extend("format" = "duration"))]
    pub time_to_live: String,
    /// Pods of one image at most; 0 means what the function runner's flags say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null))]
    pub max_parallel_executions: Option<i64>,
    /// The number of calls in a pod from which on another pod is wanted; 0 means what the function runner's flags
    /// say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null))]
    pub preferred_max_queue_length: Option<i64>,
    /// Pods of each of the tags that are kept whether they are used or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_replicas: Option<i64>,
    /// How long one call may take in a pod, such as 30s; 0s or nothing means what the function runner's flags say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "duration"))]
    pub timeout: Option<String>,
    /// What replaces parts of the pod template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_overrides: Option<TemplateOverrides>,
}

/// What replaces parts of the pod template, each part as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateOverrides {
    /// The account the pods run under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The pods' security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,
    /// For the first init container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_container: Option<ContainerOverrides>,
    /// For the container that runs the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerOverrides>,
}

/// What replaces parts of a container, each part as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerOverrides {
    /// Requests and limits, each replaced as a whole where given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// All environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
    /// All sources of environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_from: Option<Vec<EnvFromSource>>,
}

/// An executable and the images it serves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BinaryExecutor {
    /// The executable: a path from the functions folder of the function runner, or an absolute path.
    #[schemars(length(min = 1))]
    pub path: String,
    /// The tags it serves: tags, digests, version constraints such as ~0.4, or *.
    #[schemars(length(min = 1))]
    pub tags: Vec<String>,
}

/// A function that is built into Porch or the function runner, and the images it serves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoExecutor {
    /// The function's name in Porch; without one, the name of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tags it serves: tags, digests, version constraints such as ~0.4, or *.
    #[schemars(length(min = 1))]
    pub tags: Vec<String>,
}

/// What became of a FunctionConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionConfigStatus {
    /// The generation that the Porch server has put in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server_observed_generation: Option<i64>,
    /// The generation that the function runner has put in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_runner_observed_generation: Option<i64>,
    /// The generation that the Porch controllers have put in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_observed_generation: Option<i64>,
    /// Why one of them could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Ready tells whether the function runner has put everything in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// What serves the function's images in the function runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executors: Option<Vec<ExecutorStatus>>,
}

/// What became of one executor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorStatus {
    /// Which one: binary, pod or go.
    #[serde(rename = "type")]
    pub type_: String,
    /// The tags it serves, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// What else is to be known, such as why it serves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

fn default_time_to_live() -> String {
    DEFAULT_TIME_TO_LIVE.to_owned()
}
