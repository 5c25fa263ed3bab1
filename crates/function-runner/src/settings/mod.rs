//! The settings of the service: flags and environment, checked as a whole.

mod builtin;
mod collector;
mod pods;
mod registries;
mod telemetry;

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use flags::{Flag, Flags, GoDuration, Mistake, Mistakes};
use registry::Reference;

pub use builtin::BuiltinSettings;
pub use collector::{Collector, NamedFile, Protocol, TlsFiles};
pub use pods::{Cluster, PodAddress, PodSecurity, PodSettings};
pub use registries::{PrivateRegistries, RegistrySettings};
pub use telemetry::{MetricsExporter, TelemetrySettings, TracesExporter};

pub(crate) use builtin::{Besides, read as read_builtin};
pub(crate) use registries::read_allowed;

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
    /// Registries, and which images may be used.
    pub registries: RegistrySettings,
    /// FunctionConfigs.
    pub function_configs: FunctionConfigSettings,
    /// The built-in functions.
    pub builtin: BuiltinSettings,
    /// Functions as processes, whoever runs them.
    pub processes: ProcessSettings,
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
    /// The bytes that calls may hold at once, and who says so.
    pub memory: MaxMemory,
    /// The age at which connections are closed.
    pub max_connection_age: Option<Duration>,
    /// How long calls are answered after the first signal.
    pub shutdown_delay: Duration,
    /// How long running calls may take after that.
    pub shutdown_grace: Duration,
}

/// The bytes that calls may hold at once.
#[derive(Debug, Clone, Copy)]
pub struct MaxMemory {
    /// So many.
    pub bytes: usize,
    /// Why, in words.
    pub reason: &'static str,
}

/// The log.
#[derive(Debug, Clone, Copy)]
pub struct Logging {
    /// From 0, errors only, to 5, everything.
    pub level: u8,
    /// One JSON object a line instead of text.
    pub json: bool,
}

/// Where FunctionConfigs are.
#[derive(Debug, Clone)]
pub struct FunctionConfigSettings {
    /// The folder of those in files.
    pub folder: Option<PathBuf>,
    /// The cluster of the others. They also say which executables there are, so that it counts whichever
    /// runtimes are enabled.
    pub cluster: Cluster,
    /// Their namespace.
    pub namespace: String,
}

/// The exec runtime.
#[derive(Debug, Clone)]
pub struct ExecSettings {
    /// The folder of the executables.
    pub functions: PathBuf,
    /// The file that says which images they serve; empty if there is none.
    pub config: PathBuf,
    /// Whether that file was asked for, so that it must be there.
    pub config_required: bool,
}

/// Functions as processes.
#[derive(Debug, Clone)]
pub struct ProcessSettings {
    /// The longest run.
    pub timeout: Duration,
    /// Functions running at once.
    pub max_concurrent: NonZeroUsize,
    /// Calls waiting.
    pub max_queued: usize,
    /// Environment variables handed on.
    pub inherited: Vec<String>,
}

/// What the settings are read from beside the flags; replaced in tests.
pub trait Surroundings {
    /// An environment variable, absent when empty.
    fn variable(&self, name: &str) -> Option<String>;
    /// Whether a file is there.
    fn exists(&self, path: &Path) -> bool;
    /// Processor cores.
    fn cores(&self) -> NonZeroUsize;
    /// The memory that the container, or else the machine, has, where that is known.
    fn memory(&self) -> Option<u64>;
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

    fn memory(&self) -> Option<u64> {
        process::available_memory()
    }
}

impl Settings {
    /// Reads all flags and the environment, and reports all mistakes at once.
    pub fn read(mut flags: Flags, around: &dyn Surroundings) -> Result<Self, Mistakes> {
        flags.refuse_arguments();
        // Asked for before anything else is done; read here so that no flag goes unread.
        let _ = flags.get(&args::VERSION);
        let settings = Self::gather(&mut flags, around);
        let lacks_wrapper = |pod: &PodSettings| pod.cluster != Cluster::None && pod.wrapper_image.is_none();
        if settings.pod.as_ref().is_some_and(lacks_wrapper) {
            flags.add(environment(
                "WRAPPER_SERVER_IMAGE",
                "must name the wrapper server's image for the pod runtime; \
                 set it, or turn the runtime off with --disable-runtimes=pod",
            ));
        }
        flags.finish(settings)
    }

    /// The settings as far as they can be read. Mistakes are noted in the flags.
    pub(crate) fn gather(flags: &mut Flags, around: &dyn Surroundings) -> Self {
        let disabled = flags.get(&args::DISABLE_RUNTIMES);
        let is_enabled = |runtime: &str| !disabled.iter().any(|name| name == runtime);
        let serving = read_serving(flags, around);
        let telemetry = telemetry::read(flags, around);
        let exec = read_exec(flags);
        let pod = pods::read(flags, around);
        let function_configs = FunctionConfigSettings {
            folder: read_folder(flags),
            cluster: pod.cluster.clone(),
            namespace: pod.namespace.clone(),
        };
        let pod_cache = Some(pod.cache_config.as_path());
        let besides = Besides { function_configs: &function_configs, exec: &exec, pod_cache };
        let builtin = read_builtin(flags, &besides, around);
        Self {
            serving,
            logging: read_logging(flags),
            telemetry,
            default_image_prefix: read_prefix(flags),
            registries: registries::read(flags, around),
            function_configs,
            builtin,
            processes: read_processes(flags, around),
            exec: is_enabled("exec").then_some(exec),
            pod: is_enabled("pod").then_some(pod),
        }
    }
}

pub(crate) fn read_logging(flags: &Flags) -> Logging {
    Logging { level: log_level(flags), json: flags.get(&args::LOG_FORMAT) == "json" }
}

/// The level of the log: as the original, whoever asks for more gets all there is.
pub(crate) fn log_level(flags: &Flags) -> u8 {
    u8::try_from(flags.get(&args::LOG_LEVEL).clamp(0, 5)).unwrap_or_default()
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

/// The folder of FunctionConfigs, if one was named.
pub(crate) fn read_folder(flags: &Flags) -> Option<PathBuf> {
    Some(flags.get(&args::FUNCTION_CONFIGS)).filter(|folder| !folder.as_os_str().is_empty())
}

pub(crate) fn read_exec(flags: &Flags) -> ExecSettings {
    let config = flags.get(&args::CONFIG);
    ExecSettings {
        functions: flags.get(&args::FUNCTIONS),
        config_required: flags.given(&args::CONFIG) && !config.as_os_str().is_empty(),
        config,
    }
}

pub(crate) fn read_processes(flags: &mut Flags, around: &dyn Surroundings) -> ProcessSettings {
    let max_concurrent = NonZeroUsize::new(flags.get(&args::MAX_CONCURRENT_EXECUTIONS))
        .unwrap_or_else(|| around.cores().saturating_mul(const { NonZeroUsize::new(2).unwrap() }));
    let inherited = flags.get(&args::EXEC_ENV);
    if let Some(odd) = inherited.iter().find(|name| name.contains(['=', '\0'])) {
        flags.reject(&args::EXEC_ENV, format!("must be names only, without values; {odd:?} is none"));
    }
    ProcessSettings {
        timeout: positive(flags, &args::FUNCTION_TIMEOUT),
        max_concurrent,
        max_queued: flags.get(&args::MAX_QUEUED_EXECUTIONS),
        inherited,
    }
}

/// The share of the memory that calls get where nobody says: the rest is for the program, for what functions that
/// are part of it take beside their messages, and for functions as processes.
const CALLS: u64 = 2;

fn read_max_memory(flags: &mut Flags, around: &dyn Surroundings) -> MaxMemory {
    let (given, message) = (flags.get(&args::MAX_MEMORY), flags.get(&args::MAX_REQUEST_BODY_SIZE));
    if given == 0 {
        let derived = around.memory().map(|bytes| usize::try_from(bytes / CALLS).unwrap_or(usize::MAX));
        return match derived {
            Some(bytes) => MaxMemory { bytes, reason: "half of what the container or the machine has" },
            None => MaxMemory { bytes: usize::MAX, reason: "nothing says what memory there is" },
        };
    }
    if given < message.saturating_mul(2) {
        let rule = "must be at least twice --max-request-body-size, for one request and its answer";
        flags.reject(&args::MAX_MEMORY, rule);
    }
    MaxMemory { bytes: given, reason: "--max-memory says so" }
}

fn read_serving(flags: &mut Flags, around: &dyn Surroundings) -> Serving {
    let age = not_negative(flags, &args::MAX_CONNECTION_AGE);
    Serving {
        port: flags.get(&args::PORT),
        max_message: flags.get(&args::MAX_REQUEST_BODY_SIZE),
        memory: read_max_memory(flags, around),
        max_connection_age: (!age.is_zero()).then_some(age),
        shutdown_delay: not_negative(flags, &args::SHUTDOWN_DELAY),
        shutdown_grace: not_negative(flags, &args::SHUTDOWN_GRACE),
    }
}

/// A mistake in an environment variable.
fn environment(name: &str, reason: &str) -> Mistake {
    Mistake::Other(format!("environment variable {name}: {reason}"))
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
