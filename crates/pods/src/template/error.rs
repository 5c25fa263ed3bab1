//! Why a template cannot be used.

use super::{FUNCTION_CONTAINER, WRAPPER_PORT};

/// Why there is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the template for function pods in {origin} cannot be used: {problem}")]
pub struct TemplateError {
    /// The object the template is in.
    pub origin: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl TemplateError {
    /// Whether the trouble may pass without anybody changing the template.
    pub fn may_pass(&self) -> bool {
        matches!(self.problem, Problem::Unreachable(_))
    }
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no such object.
    #[error("it does not exist; create it, or name another with --function-pod-template")]
    Missing,
    /// We may not read it.
    #[error("reading it is forbidden ({0}); allow the service account to get it")]
    Forbidden(String),
    /// The API server did not give it, for now.
    #[error("the API server did not answer as it should: {0}")]
    Unreachable(String),
    /// A ConfigMap without the key.
    #[error("it has no key {0:?}; put a Pod in YAML there")]
    NoKey(&'static str),
    /// More text than a template can need.
    #[error("key {key:?} has {size} bytes, more than {limit}; make it smaller")]
    TooLarge {
        /// The key.
        key: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The most it may have.
        limit: usize,
    },
    /// The text is not what it should be.
    #[error("key {key:?} is not a valid {kind}: {cause}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// What it should be.
        kind: &'static str,
        /// What is wrong where.
        cause: String,
    },
    /// No pod in the template.
    #[error("it has no spec for the pod; give one with a container named {FUNCTION_CONTAINER:?}")]
    NoPod,
    /// No container to run the function in.
    #[error(
        "the pod has no container named {FUNCTION_CONTAINER:?}, only {0}; name the one that is to run the function so"
    )]
    NoFunction(String),
    /// Several containers to run the function in.
    #[error("the pod has {0} containers named {FUNCTION_CONTAINER:?}; keep one of them")]
    ManyFunctions(usize),
    /// The container would start the function, not the wrapper.
    #[error(
        "container {FUNCTION_CONTAINER:?} has no command; let it start the wrapper server: \
         [\"/wrapper-server-tools/wrapper-server\"]"
    )]
    NoCommand,
    /// What we add would be arguments of something else.
    #[error(
        "container {FUNCTION_CONTAINER:?} has \"--\" among its args; leave it out, the function's command is added"
    )]
    Separator,
    /// Not a service with an address.
    #[error("the service is of type {0}, which has no address; make it ClusterIP")]
    ServiceType(String),
    /// Nothing leads to the wrapper.
    #[error("the service has no port {WRAPPER_PORT}; add one that leads to the wrapper server's port")]
    NoPort,
}
