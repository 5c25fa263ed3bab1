//! The pod runtime: its cluster, its pods and their bounds.

use std::{
    fmt,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use flags::Flags;
pub use pods::{AddressMode as PodAddress, PodSecurity};

use super::{Surroundings, positive};
use crate::args;

/// The pod runtime.
#[derive(Debug, Clone)]
pub struct PodSettings {
    /// How to reach the cluster.
    pub cluster: Cluster,
    /// The image of the wrapper server; set wherever there is a cluster.
    pub wrapper_image: Option<String>,
    /// The namespace of the pods.
    pub namespace: String,
    /// How long an unused pod is kept.
    pub ttl: Duration,
    /// How often unused pods are collected, if ever.
    pub scan_interval: Option<Duration>,
    /// Calls per pod before another is started.
    pub max_waitlist: usize,
    /// Pods of one function.
    pub max_parallel: usize,
    /// Pods of all functions together.
    pub max_pods: Option<NonZeroUsize>,
    /// Calls waiting for a pod.
    pub max_waiting_calls: usize,
    /// How long a pod may take until it accepts calls.
    pub ready_timeout: Duration,
    /// How long one function may run, if somebody said so; a caller's deadline may be shorter.
    pub timeout: Option<Duration>,
    /// Where pods are called.
    pub address: PodAddress,
    /// What pods may do where no template says so.
    pub security: PodSecurity,
    /// Whether pods run the digest of what was inspected in place of its tag.
    pub pin_digests: bool,
    /// The ConfigMap of the template.
    pub template: Option<String>,
    /// The images to start pods for.
    pub cache_config: PathBuf,
    /// Whether to start them.
    pub warm_up: bool,
}

/// How the cluster is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cluster {
    /// There is none.
    None,
    /// By a kubeconfig file.
    Kubeconfig(PathBuf),
    /// By the account of the pod we run in.
    InCluster,
}

/// The file of the in-cluster account.
const ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

impl PodSettings {
    /// Why no function can run in a pod, `None` if functions can.
    pub fn obstacle(&self) -> Option<&'static str> {
        match (&self.cluster, &self.wrapper_image) {
            (Cluster::None, _) => {
                Some("no cluster is configured (--kubeconfig, KUBECONFIG or an in-cluster account)")
            }
            (_, None) => {
                Some("the environment variable WRAPPER_SERVER_IMAGE does not name the wrapper server's image")
            }
            (_, Some(_)) => None,
        }
    }
}

pub(super) fn read(flags: &mut Flags, around: &dyn Surroundings) -> PodSettings {
    for flag in [&args::POD_NAMESPACE, &args::REGISTRY_AUTH_SECRET_NAME] {
        if !is_object_name(&flags.get(flag)) {
            flags.reject(flag, NAME_RULE);
        }
    }
    let template = flags.get(&args::FUNCTION_POD_TEMPLATE);
    if !template.is_empty() && !is_object_name(&template) {
        flags.reject(&args::FUNCTION_POD_TEMPLATE, NAME_RULE);
    }
    PodSettings {
        cluster: read_cluster(flags, around),
        wrapper_image: around.variable("WRAPPER_SERVER_IMAGE"),
        namespace: flags.get(&args::POD_NAMESPACE),
        ttl: flags.get(&args::POD_TTL).positive().unwrap_or_default(),
        scan_interval: flags.get(&args::SCAN_INTERVAL).positive(),
        max_waitlist: or_default(flags.get(&args::MAX_WAITLIST_LENGTH), 2),
        max_parallel: or_default(flags.get(&args::MAX_PARALLEL_PODS), 1),
        max_pods: NonZeroUsize::new(flags.get(&args::MAX_PODS)),
        max_waiting_calls: flags.get(&args::MAX_WAITING_CALLS),
        ready_timeout: positive(flags, &args::POD_READY_TIMEOUT),
        // Its default is for functions here: callers of the original may take as long as they like in pods.
        timeout: flags
            .get(&args::FUNCTION_TIMEOUT)
            .positive()
            .filter(|_| flags.given(&args::FUNCTION_TIMEOUT)),
        address: match flags.get(&args::POD_ADDRESS) {
            "service" => PodAddress::Service,
            "pod" => PodAddress::Pod,
            _ => PodAddress::Auto,
        },
        security: match flags.get(&args::POD_SECURITY) {
            "restricted" => PodSecurity::Restricted,
            _ => PodSecurity::Porch,
        },
        pin_digests: flags.get(&args::PIN_DIGESTS),
        template: (!template.is_empty()).then_some(template),
        cache_config: flags.get(&args::POD_CACHE_CONFIG),
        warm_up: flags.get(&args::WARM_UP_POD_CACHE),
    }
}

fn read_cluster(flags: &mut Flags, around: &dyn Surroundings) -> Cluster {
    let given = flags.get(&args::KUBECONFIG);
    if !given.as_os_str().is_empty() {
        if !around.exists(&given) {
            flags.reject(&args::KUBECONFIG, "must be a file that exists");
        }
        return Cluster::Kubeconfig(given);
    }
    if let Some(path) = around.variable("KUBECONFIG").map(PathBuf::from) {
        return Cluster::Kubeconfig(path);
    }
    let in_cluster =
        around.variable("KUBERNETES_SERVICE_HOST").is_some() && around.exists(Path::new(ACCOUNT_TOKEN));
    if in_cluster { Cluster::InCluster } else { Cluster::None }
}

const NAME_RULE: &str =
    "must be a Kubernetes name of lowercase letters, digits, '-' and '.', at most 253 characters";

fn is_object_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    name.len() <= 253 && name.split('.').all(part)
}

fn or_default(given: i64, default: usize) -> usize {
    usize::try_from(given).ok().filter(|given| *given > 0).unwrap_or(default)
}

impl fmt::Display for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Kubeconfig(path) => write!(formatter, "kubeconfig {}", path.display()),
            Self::InCluster => formatter.write_str("in-cluster account"),
        }
    }
}
