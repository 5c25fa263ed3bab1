//! Every flag of the service and of its subcommands, as tables.

use std::path::PathBuf;

use flags::{Command, Flag, GoDuration, Group};

const MIB: i64 = 1024 * 1024;

pub(crate) const PORT: Flag<u16> = Flag::integer(
    "port",
    9445,
    0..=65535,
    "Port of the gRPC service on all interfaces; 0 takes any free one.",
);
pub(crate) const METRICS_PORT: Flag<u16> = Flag::integer(
    "metrics-port",
    9464,
    0..=65535,
    "Port of the Prometheus metrics; 0 turns them off. Wins over OTEL_EXPORTER_PROMETHEUS_PORT.",
);
pub(crate) const MAX_REQUEST_BODY_SIZE: Flag<usize> = Flag::integer(
    "max-request-body-size",
    6 * MIB,
    1..=(2048 * MIB - 1),
    "Largest gRPC message in bytes, both ways; keep it the same on porch-server.",
)
.placeholder("BYTES");
pub(crate) const MAX_MEMORY: Flag<usize> = Flag::integer(
    "max-memory",
    0,
    0..=i64::MAX,
    "Bytes that calls may hold at once, from the request until the answer is written; more calls are refused. 0 means \
     half of what the container, or else the machine, has.",
)
.placeholder("BYTES");
pub(crate) const MAX_CONNECTION_AGE: Flag<GoDuration> = Flag::duration(
    "max-connection-age",
    GoDuration::ZERO,
    "Ask clients to reconnect after this long, so that replicas share them; 0 means never.",
);
pub(crate) const SHUTDOWN_DELAY: Flag<GoDuration> = Flag::duration(
    "shutdown-delay",
    GoDuration::from_seconds(5),
    "After a signal: report NOT_SERVING but still answer for this long.",
);
pub(crate) const SHUTDOWN_GRACE: Flag<GoDuration> = Flag::duration(
    "shutdown-grace",
    GoDuration::from_seconds(20),
    "After that: let running calls finish for this long before they are ended.",
);

pub(crate) const LOG_LEVEL: Flag<i64> = Flag::integer(
    "log-level",
    2,
    i64::MIN..=i64::MAX,
    "0 errors, 1 warnings, 2 calls and changes, 3 our decisions, 4 also the libraries, 5 also resources; less is 0, \
     more is 5.",
);
pub(crate) const LOG_FORMAT: Flag<&'static str> =
    Flag::choice("log-format", "text", &["text", "json"], "How log lines are written.");

pub(crate) const DISABLE_RUNTIMES: Flag<Vec<String>> =
    Flag::list("disable-runtimes", &[], &["exec", "pod"], "Runtimes not to use, separated by commas.");
pub(crate) const BUILTIN_FUNCTIONS: Flag<&'static str> = Flag::choice(
    "builtin-functions",
    "auto",
    &["off", "configured", "all", "auto"],
    "Functions that need no image: those that the goExecutor of a FunctionConfig lists, or besides them all \
     under the names of the catalog. auto means all where neither a cluster nor any configuration is given, else \
     configured.",
);
pub(crate) const DEFAULT_IMAGE_PREFIX: Flag<String> = Flag::text(
    "default-image-prefix",
    "ghcr.io/kptdev/krm-functions-catalog",
    "Put before image references without a \"/\".",
)
.placeholder("PREFIX");

pub(crate) const ALLOWED_IMAGES: Flag<Vec<String>> = Flag::list(
    "allowed-images",
    &[],
    &[],
    "Prefixes of the images that may be run, by whole parts of their names, separated by commas; others are \
     refused. Without any, all may be run.",
)
.placeholder("PREFIXES");

pub(crate) const FUNCTION_CONFIGS: Flag<PathBuf> = Flag::path(
    "function-configs",
    "",
    "Folder of FunctionConfigs as YAML, beside those of the cluster, which win; changes take effect at once.",
)
.placeholder("FOLDER");

pub(crate) const FUNCTIONS: Flag<PathBuf> =
    Flag::path("functions", "./functions", "Folder of the function executables.").placeholder("FOLDER");
pub(crate) const CONFIG: Flag<PathBuf> = Flag::path(
    "config",
    "./config.yaml",
    "Which images the executables serve; changes take effect at once. May be missing unless given; empty means none.",
)
.placeholder("FILE");
pub(crate) const FUNCTION_TIMEOUT: Flag<GoDuration> = Flag::duration(
    "function-timeout",
    GoDuration::from_minutes(5),
    "Longest run of a function here; a caller's shorter deadline wins. Functions in pods have no limit but the caller's \
     unless this is given.",
);
pub(crate) const MAX_CONCURRENT_EXECUTIONS: Flag<usize> = Flag::integer(
    "max-concurrent-executions",
    0,
    0..=100_000,
    "Executables running at once, and programs of starlark; 0 means twice the processor cores.",
);
pub(crate) const MAX_QUEUED_EXECUTIONS: Flag<usize> = Flag::integer(
    "max-queued-executions",
    256,
    0..=1_000_000,
    "Calls waiting for their turn, of executables and built-in functions together; more are refused.",
);
pub(crate) const EXEC_ENV: Flag<Vec<String>> = Flag::list(
    "exec-env",
    &[],
    &[],
    "Names of environment variables that executables may see, separated by commas.",
)
.placeholder("NAMES");

pub(crate) const KUBECONFIG: Flag<PathBuf> = Flag::path(
    "kubeconfig",
    "",
    "Cluster access; else KUBECONFIG, else the in-cluster account, else no cluster.",
)
.placeholder("FILE");
pub(crate) const POD_NAMESPACE: Flag<String> =
    Flag::text("pod-namespace", "porch-fn-system", "Namespace of the function pods.").placeholder("NAME");
pub(crate) const POD_TTL: Flag<GoDuration> = Flag::duration(
    "pod-ttl",
    GoDuration::from_minutes(30),
    "How long an unused function pod is kept; 0 or less means until unused pods are collected next.",
);
pub(crate) const SCAN_INTERVAL: Flag<GoDuration> = Flag::duration(
    "scan-interval",
    GoDuration::from_minutes(1),
    "How often unused pods are collected; 0 or less means never.",
);
pub(crate) const POD_CACHE_CONFIG: Flag<PathBuf> = Flag::path(
    "pod-cache-config",
    "/pod-cache-config/pod-cache-config.yaml",
    "Images to start pods for beforehand.",
)
.placeholder("FILE");
pub(crate) const WARM_UP_POD_CACHE: Flag<bool> = Flag::boolean(
    "warm-up-pod-cache",
    true,
    "Start the pods of --pod-cache-config and of FunctionConfigs beforehand.",
);
pub(crate) const FUNCTION_POD_TEMPLATE: Flag<String> = Flag::text(
    "function-pod-template",
    "",
    "ConfigMap with the template of function pods; empty means the built-in one.",
)
.placeholder("NAME");
pub(crate) const MAX_WAITLIST_LENGTH: Flag<i64> = Flag::integer(
    "max-waitlist-length",
    2,
    i64::MIN..=i64::MAX,
    "Calls per pod before another pod is started; 0 or less means the default.",
);
pub(crate) const MAX_PARALLEL_PODS: Flag<i64> = Flag::integer(
    "max-parallel-pods-per-function",
    1,
    i64::MIN..=i64::MAX,
    "Pods of one function at most; 0 or less means the default.",
);

pub(crate) const MAX_PODS: Flag<usize> =
    Flag::integer("max-pods", 0, 0..=1_000_000, "Pods of all functions together at most; 0 means no limit.");
pub(crate) const MAX_WAITING_CALLS: Flag<usize> = Flag::integer(
    "max-waiting-calls",
    1000,
    0..=1_000_000,
    "Calls waiting for a pod to start; more are refused.",
);
pub(crate) const POD_READY_TIMEOUT: Flag<GoDuration> = Flag::duration(
    "pod-ready-timeout",
    GoDuration::from_seconds(60),
    "How long a pod may take to start before it is given up.",
);
pub(crate) const POD_ADDRESS: Flag<&'static str> = Flag::choice(
    "pod-address",
    "auto",
    &["auto", "service", "pod"],
    "Where pods are called: auto means their own address until their Service answers.",
);
pub(crate) const POD_SECURITY: Flag<&'static str> = Flag::choice(
    "pod-security",
    "porch",
    &["porch", "restricted"],
    "What function pods may do where no template says so: what those of Porch's own runner may, or no more than a \
     function needs.",
);
pub(crate) const PIN_DIGESTS: Flag<bool> = Flag::boolean(
    "pin-digests",
    false,
    "Let pods run the digest of the image that was inspected in place of its tag.",
);

pub(crate) const IMAGE_REFRESH_INTERVAL: Flag<GoDuration> = Flag::duration(
    "image-refresh-interval",
    GoDuration::from_minutes(10),
    "When what a tag names is asked for again, in the background.",
);
pub(crate) const REGISTRY_MIRRORS: Flag<Vec<String>> = Flag::list(
    "registry-mirrors",
    &[],
    &[],
    "Registries, or paths in them, that are asked first in place of others, such as docker.io=mirror.example/hub, \
     separated by commas.",
)
.placeholder("PREFIX=MIRROR,…");
pub(crate) const INSECURE_REGISTRIES: Flag<Vec<String>> = Flag::list(
    "insecure-registries",
    &[],
    &[],
    "Hosts, with or without port, whose certificates are not checked and which may speak plain HTTP.",
)
.placeholder("HOSTS");

pub(crate) const ENABLE_PRIVATE_REGISTRIES: Flag<bool> =
    Flag::boolean("enable-private-registries", false, "Use the credentials below for images.");
pub(crate) const REGISTRY_AUTH_SECRET_PATH: Flag<PathBuf> = Flag::path(
    "registry-auth-secret-path",
    "/var/tmp/config-secret/.dockerconfigjson",
    "Docker configuration with the credentials.",
)
.placeholder("FILE");
pub(crate) const REGISTRY_AUTH_SECRET_NAME: Flag<String> = Flag::text(
    "registry-auth-secret-name",
    "auth-secret",
    "Secret made of it in the pod namespace, for pulling images.",
)
.placeholder("NAME");
pub(crate) const ENABLE_PRIVATE_REGISTRIES_TLS: Flag<bool> =
    Flag::boolean("enable-private-registries-tls", false, "Trust the certificate authority below.");
pub(crate) const TLS_SECRET_PATH: Flag<PathBuf> =
    Flag::path("tls-secret-path", "/var/tmp/tls-secret/", "Folder with ca.crt or ca.pem.")
        .placeholder("FOLDER");

pub(crate) const VERSION: Flag<bool> =
    Flag::boolean("version", false, "Print version, commit and toolchain.");

pub(crate) const IMAGE: Flag<String> =
    Flag::text("image", "", "The function's image.").placeholder("REFERENCE");
pub(crate) const ADDRESS: Flag<String> =
    Flag::text("address", "", "Ask the service at HOST:PORT; without it the function is evaluated here.")
        .placeholder("HOST:PORT");
pub(crate) const RUNNING_AT: Flag<String> =
    Flag::text("address", ":9445", "Where the service is.").placeholder("HOST:PORT");
pub(crate) const TIMEOUT: Flag<GoDuration> =
    Flag::duration("timeout", GoDuration::ZERO, "Give up after this long; 0 means never.");
pub(crate) const TAG: Flag<String> =
    Flag::text("tag", "", "A tag or a version constraint such as ~0.4, in place of the image's own tag.")
        .placeholder("TAG");
pub(crate) const OUTPUT: Flag<&'static str> =
    Flag::choice("output", "text", &["text", "json"], "How the answer is written.");

const SERVING_GROUP: Group = Group {
    heading: "Serving",
    flags: &[
        PORT.spec(),
        METRICS_PORT.spec(),
        MAX_REQUEST_BODY_SIZE.spec(),
        MAX_MEMORY.spec(),
        MAX_CONNECTION_AGE.spec(),
        SHUTDOWN_DELAY.spec(),
        SHUTDOWN_GRACE.spec(),
    ],
};
const LOGGING_GROUP: Group = Group { heading: "Logging", flags: &[LOG_LEVEL.spec(), LOG_FORMAT.spec()] };
const CHOOSING_GROUP: Group = Group {
    heading: "Choosing how a function runs",
    flags: &[
        BUILTIN_FUNCTIONS.spec(),
        DISABLE_RUNTIMES.spec(),
        DEFAULT_IMAGE_PREFIX.spec(),
        ALLOWED_IMAGES.spec(),
        FUNCTION_CONFIGS.spec(),
    ],
};
const EXEC_GROUP: Group = Group {
    heading: "Functions as executables (runtime exec)",
    flags: &[FUNCTIONS.spec(), CONFIG.spec(), EXEC_ENV.spec()],
};
const LIMITS_GROUP: Group = Group {
    heading: "Limits of functions",
    flags: &[FUNCTION_TIMEOUT.spec(), MAX_CONCURRENT_EXECUTIONS.spec(), MAX_QUEUED_EXECUTIONS.spec()],
};

const POD_GROUP: Group = Group {
    heading: "Functions in pods (runtime pod)",
    flags: &[
        KUBECONFIG.spec(),
        POD_NAMESPACE.spec(),
        POD_TTL.spec(),
        SCAN_INTERVAL.spec(),
        MAX_WAITLIST_LENGTH.spec(),
        MAX_PARALLEL_PODS.spec(),
        MAX_PODS.spec(),
        MAX_WAITING_CALLS.spec(),
        POD_READY_TIMEOUT.spec(),
        POD_ADDRESS.spec(),
        POD_SECURITY.spec(),
        PIN_DIGESTS.spec(),
        FUNCTION_POD_TEMPLATE.spec(),
        POD_CACHE_CONFIG.spec(),
        WARM_UP_POD_CACHE.spec(),
    ],
};
const REGISTRIES_GROUP: Group = Group {
    heading: "Registries",
    flags: &[IMAGE_REFRESH_INTERVAL.spec(), REGISTRY_MIRRORS.spec(), INSECURE_REGISTRIES.spec()],
};
const PRIVATE_REGISTRIES_GROUP: Group = Group {
    heading: "Private registries",
    flags: &[
        ENABLE_PRIVATE_REGISTRIES.spec(),
        REGISTRY_AUTH_SECRET_PATH.spec(),
        REGISTRY_AUTH_SECRET_NAME.spec(),
        ENABLE_PRIVATE_REGISTRIES_TLS.spec(),
        TLS_SECRET_PATH.spec(),
    ],
};

/// The service itself.
pub static SERVER: Command = Command {
    name: "function-runner",
    usage: "[flags]   or: function-runner functions|doc|eval|explain|pods|validate --help",
    summary: "Evaluates KRM functions for Porch over gRPC: built-in ones, local executables, images in pods.",
    groups: &[
        SERVING_GROUP,
        LOGGING_GROUP,
        CHOOSING_GROUP,
        EXEC_GROUP,
        LIMITS_GROUP,
        POD_GROUP,
        REGISTRIES_GROUP,
        PRIVATE_REGISTRIES_GROUP,
        Group { heading: "Other", flags: &[VERSION.spec()] },
    ],
};

/// `function-runner eval`.
pub static EVAL: Command = Command {
    name: "function-runner eval",
    usage: "--image REFERENCE [flags] < resources.yaml",
    summary: "Runs one function over the ResourceList on standard input. The changed one goes to standard \
              output, the function's log to standard error. When the function fails, its ResourceList is printed \
              all the same, and the exit code is 1.",
    groups: &[
        Group { heading: "What to run", flags: &[IMAGE.spec(), ADDRESS.spec(), TIMEOUT.spec()] },
        Group {
            heading: "Limits and names",
            flags: &[
                MAX_REQUEST_BODY_SIZE.spec(),
                DEFAULT_IMAGE_PREFIX.spec(),
                ALLOWED_IMAGES.spec(),
                BUILTIN_FUNCTIONS.spec(),
                FUNCTION_CONFIGS.spec(),
                LOG_LEVEL.spec(),
                LOG_FORMAT.spec(),
            ],
        },
        EXEC_GROUP,
        LIMITS_GROUP,
    ],
};

/// `function-runner functions`. It takes all flags of the service, so that its command line can be repeated.
pub static FUNCTIONS_COMMAND: Command = Command {
    name: "function-runner functions",
    usage: "[flags]",
    summary: "Lists what a service with these flags can run, and by which executor. Runs nothing.",
    groups: &[
        Group { heading: "How it is listed", flags: &[OUTPUT.spec()] },
        CHOOSING_GROUP,
        EXEC_GROUP,
        LIMITS_GROUP,
        REGISTRIES_GROUP,
        PRIVATE_REGISTRIES_GROUP,
        POD_GROUP,
        SERVING_GROUP,
        LOGGING_GROUP,
    ],
};

/// `function-runner doc`.
pub static DOC: Command = Command {
    name: "function-runner doc",
    usage: "NAME",
    summary: "Shows what a built-in function does, what its functionConfig may say, and an example of one.",
    groups: &[],
};

/// `function-runner pods`.
pub static PODS: Command = Command {
    name: "function-runner pods",
    usage: "[flags]",
    summary: "Shows the function pods of a running service: what they run, how far they are, how many calls \
              are in them and how long they are kept.",
    groups: &[Group { heading: "Which service", flags: &[RUNNING_AT.spec(), OUTPUT.spec()] }],
};

/// `function-runner validate`.
pub static VALIDATE: Command = Command {
    name: "function-runner validate",
    usage: "[flags] FILE…",
    summary: "Checks configuration offline, with line numbers: FunctionConfigs, config.yaml and pod-cache-config. \
              Of a folder, all its YAML and JSON files. Exits with 1 when something is wrong.",
    groups: &[Group { heading: "What it is checked against", flags: &[DEFAULT_IMAGE_PREFIX.spec()] }],
};

/// `function-runner explain`. It takes all flags of the service, so that its command line can be repeated.
pub static EXPLAIN: Command = Command {
    name: "function-runner explain",
    usage: "IMAGE [flags]",
    summary: "Tells which executor of a service with these flags would run the image and why, and what its registry \
              says of it. Runs nothing; exits with 1 when nothing would run it.",
    groups: &[
        Group { heading: "What to explain", flags: &[TAG.spec(), OUTPUT.spec(), TIMEOUT.spec()] },
        CHOOSING_GROUP,
        EXEC_GROUP,
        LIMITS_GROUP,
        REGISTRIES_GROUP,
        PRIVATE_REGISTRIES_GROUP,
        POD_GROUP,
        SERVING_GROUP,
        LOGGING_GROUP,
    ],
};
