//! The settings of the service: flags and environment, checked as a whole.

mod telemetry;

use std::{
    fmt,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use flags::{Flag, Flags, GoDuration, Mistake, Mistakes};
use registry::Reference;

pub use telemetry::{MetricsExporter, Protocol, TelemetrySettings, TracesExporter};

use crate::args;

/// How the service is to run.
#[derive(Debug)]
pub struct Settings {
    /// The gRPC service.
    pub serving: Serving,
    /// The log.
    pub logging: Logging,
    /// Metrics and traces.
    pub telemetry: TelemetrySettings,
    /// Put before image references without a "/".
    pub default_image_prefix: String,
    /// The exec runtime, unless disabled.
    pub exec: Option<ExecSettings>,
    /// The pod runtime, unless disabled.
    pub pod: Option<PodSettings>,
}

/// The gRPC service.
#[derive(Debug, Clone)]
pub struct Serving {
    /// Its port.
    pub port: u16,
    /// The largest message, both ways.
    pub max_message: usize,
    /// The age at which connections are closed.
    pub max_connection_age: Option<Duration>,
    /// How long calls are answered after the first signal.
    pub shutdown_delay: Duration,
    /// How long running calls may take after that.
    pub shutdown_grace: Duration,
}

/// The log.
#[derive(Debug, Clone, Copy)]
pub struct Logging {
    /// From 0, errors only, to 5, everything.
    pub level: u8,
    /// One JSON object a line instead of text.
    pub json: bool,
}

/// The exec runtime.
#[derive(Debug, Clone)]
pub struct ExecSettings {
    /// The folder of the executables.
    pub functions: PathBuf,
    /// The file that says which images they serve.
    pub config: PathBuf,
    /// Whether that file was asked for, so that it must be there.
    pub config_required: bool,
    /// The longest run.
    pub timeout: Duration,
    /// Executables running at once.
    pub max_concurrent: NonZeroUsize,
    /// Calls waiting.
    pub max_queued: usize,
    /// Environment variables handed on.
    pub inherited: Vec<String>,
}

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
    /// How often unused pods are collected.
    pub scan_interval: Duration,
    /// Calls per pod before another is started.
    pub max_waitlist: usize,
    /// Pods of one function.
    pub max_parallel: usize,
    /// The ConfigMap of the template.
    pub template: Option<String>,
    /// The images to start pods for.
    pub cache_config: PathBuf,
    /// Whether to start them.
    pub warm_up: bool,
    /// Credentials and trust for private registries.
    pub private_registries: Option<PrivateRegistries>,
}

/// Credentials and trust for private registries.
#[derive(Debug, Clone)]
pub struct PrivateRegistries {
    /// The Docker configuration.
    pub auth_path: PathBuf,
    /// The secret made of it.
    pub auth_secret: String,
    /// The folder of the certificate authority, where it is to be used.
    pub tls_path: Option<PathBuf>,
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

/// What the settings are read from beside the flags; replaced in tests.
pub trait Surroundings {
    /// An environment variable, absent when empty.
    fn variable(&self, name: &str) -> Option<String>;
    /// Whether a file is there.
    fn exists(&self, path: &Path) -> bool;
    /// Processor cores.
    fn cores(&self) -> NonZeroUsize;
}

/// The machine we run on.
#[derive(Debug, Clone, Copy)]
pub struct Machine;

impl Surroundings for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn cores(&self) -> NonZeroUsize {
        std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
    }
}

/// The file of the in-cluster account.
const ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

impl Settings {
    /// Reads all flags and the environment, and reports all mistakes at once.
    pub fn read(mut flags: Flags, around: &dyn Surroundings) -> Result<Self, Mistakes> {
        flags.refuse_arguments();
        // Asked for before anything else is done; read here so that no flag goes unread.
        let _ = flags.get(&args::VERSION);
        let disabled = flags.get(&args::DISABLE_RUNTIMES);
        let is_enabled = |runtime: &str| !disabled.iter().any(|name| name == runtime);
        let serving = read_serving(&mut flags);
        let telemetry = telemetry::read(&mut flags, around);
        let exec = read_exec(&mut flags, around);
        let pod = read_pods(&mut flags, around, is_enabled("pod"));
        let settings = Self {
            serving,
            logging: read_logging(&flags),
            telemetry,
            default_image_prefix: read_prefix(&mut flags),
            exec: is_enabled("exec").then_some(exec),
            pod: is_enabled("pod").then_some(pod),
        };
        flags.finish(settings)
    }
}

pub(crate) fn read_logging(flags: &Flags) -> Logging {
    Logging { level: flags.get(&args::LOG_LEVEL), json: flags.get(&args::LOG_FORMAT) == "json" }
}

pub(crate) fn read_prefix(flags: &mut Flags) -> String {
    let prefix = flags.get(&args::DEFAULT_IMAGE_PREFIX);
    if !prefix.is_empty()
        && let Err(error) = Reference::check_prefix(&prefix)
    {
        flags.reject(
            &args::DEFAULT_IMAGE_PREFIX,
            format!("must be a registry and path such as example.com/functions, or nothing ({error})"),
        );
    }
    prefix
}

pub(crate) fn read_exec(flags: &mut Flags, around: &dyn Surroundings) -> ExecSettings {
    let max_concurrent = NonZeroUsize::new(flags.get(&args::MAX_CONCURRENT_EXECUTIONS))
        .unwrap_or_else(|| around.cores().saturating_mul(const { NonZeroUsize::new(2).unwrap() }));
    let inherited = flags.get(&args::EXEC_ENV);
    if let Some(odd) = inherited.iter().find(|name| name.contains(['=', '\0'])) {
        flags.reject(&args::EXEC_ENV, format!("must be names only, without values; {odd:?} is none"));
    }
    ExecSettings {
        functions: flags.get(&args::FUNCTIONS),
        config: flags.get(&args::CONFIG),
        config_required: flags.given(&args::CONFIG),
        timeout: positive(flags, &args::FUNCTION_TIMEOUT),
        max_concurrent,
        max_queued: flags.get(&args::MAX_QUEUED_EXECUTIONS),
        inherited,
    }
}

fn read_serving(flags: &mut Flags) -> Serving {
    let age = not_negative(flags, &args::MAX_CONNECTION_AGE);
    Serving {
        port: flags.get(&args::PORT),
        max_message: flags.get(&args::MAX_REQUEST_BODY_SIZE),
        max_connection_age: (!age.is_zero()).then_some(age),
        shutdown_delay: not_negative(flags, &args::SHUTDOWN_DELAY),
        shutdown_grace: not_negative(flags, &args::SHUTDOWN_GRACE),
    }
}

fn read_pods(flags: &mut Flags, around: &dyn Surroundings, enabled: bool) -> PodSettings {
    let cluster = read_cluster(flags, around);
    let wrapper_image = around.variable("WRAPPER_SERVER_IMAGE");
    if enabled && cluster != Cluster::None && wrapper_image.is_none() {
        flags.add(environment(
            "WRAPPER_SERVER_IMAGE",
            "must name the wrapper server's image for the pod runtime; \
             set it, or turn the runtime off with --disable-runtimes=pod",
        ));
    }
    for flag in [&args::POD_NAMESPACE, &args::REGISTRY_AUTH_SECRET_NAME] {
        if !is_object_name(&flags.get(flag)) {
            flags.reject(flag, NAME_RULE);
        }
    }
    let template = flags.get(&args::FUNCTION_POD_TEMPLATE);
    if !template.is_empty() && !is_object_name(&template) {
        flags.reject(&args::FUNCTION_POD_TEMPLATE, NAME_RULE);
    }
    let registries = PrivateRegistries {
        auth_path: flags.get(&args::REGISTRY_AUTH_SECRET_PATH),
        auth_secret: flags.get(&args::REGISTRY_AUTH_SECRET_NAME),
        tls_path: Some(flags.get(&args::TLS_SECRET_PATH))
            .filter(|_| flags.get(&args::ENABLE_PRIVATE_REGISTRIES_TLS)),
    };
    PodSettings {
        cluster,
        wrapper_image,
        namespace: flags.get(&args::POD_NAMESPACE),
        ttl: positive(flags, &args::POD_TTL),
        scan_interval: positive(flags, &args::SCAN_INTERVAL),
        max_waitlist: or_default(flags.get(&args::MAX_WAITLIST_LENGTH), 2),
        max_parallel: or_default(flags.get(&args::MAX_PARALLEL_PODS), 1),
        template: (!template.is_empty()).then_some(template),
        cache_config: flags.get(&args::POD_CACHE_CONFIG),
        warm_up: flags.get(&args::WARM_UP_POD_CACHE),
        private_registries: flags.get(&args::ENABLE_PRIVATE_REGISTRIES).then_some(registries),
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

/// A mistake in an environment variable.
fn environment(name: &str, reason: &str) -> Mistake {
    Mistake::Other(format!("environment variable {name}: {reason}"))
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

pub(crate) fn not_negative(flags: &mut Flags, flag: &Flag<GoDuration>) -> Duration {
    duration(flags, flag, |value| !value.is_negative(), "must be a duration such as 30s, 0 or more")
}

fn positive(flags: &mut Flags, flag: &Flag<GoDuration>) -> Duration {
    duration(flags, flag, |value| *value > GoDuration::ZERO, "must be a duration such as 30s, more than 0")
}

fn duration(
    flags: &mut Flags,
    flag: &Flag<GoDuration>,
    is_right: fn(&GoDuration) -> bool,
    rule: &str,
) -> Duration {
    let value = flags.get(flag);
    if !is_right(&value) {
        flags.reject(flag, rule);
    }
    value.positive().unwrap_or_default()
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
