//! The command line and the environment: what is accepted, and what is said of the rest.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{
    ffi::OsString,
    fs,
    num::NonZeroUsize,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use common::PROGRAM;
use flags::{Mistakes, Outcome};
use function_runner::{
    args,
    builtin::Offered,
    settings::{Cluster, Settings, Surroundings},
};
use proptest::prelude::*;

/// A machine with these variables and files, three cores and a gibibyte of memory.
#[derive(Default)]
struct Around<'a> {
    variables: &'a [(&'a str, &'a str)],
    files: &'a [&'a str],
}

impl Surroundings for Around<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }
    fn exists(&self, path: &Path) -> bool {
        self.files.iter().any(|file| Path::new(file) == path)
    }
    fn cores(&self) -> NonZeroUsize {
        NonZeroUsize::new(3).unwrap()
    }
    fn memory(&self) -> Option<u64> {
        Some(1 << 30)
    }
}

fn read_on(around: &Around<'_>, arguments: &[&str]) -> Result<Settings, Mistakes> {
    match args::SERVER.parse(arguments.iter().map(OsString::from)) {
        Outcome::Flags(flags) => Settings::read(flags, around),
        Outcome::Help => panic!("{arguments:?} asks for help"),
    }
}

fn read(arguments: &[&str]) -> Result<Settings, Mistakes> {
    read_on(&Around::default(), arguments)
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env_remove("KUBECONFIG").env_remove("WRAPPER_SERVER_IMAGE").output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Name, the default as the settings hold it, another value, and that one as the settings hold it.
const VALUED: &[(&str, &str, &str, &str)] = &[
    ("port", "port: 9445", "8445", "port: 8445"),
    ("builtin-functions", "offered: All", "off", "offered: Off"),
    ("builtin-functions", "offered: All", "configured", "offered: Configured"),
    ("disable-runtimes", "exec: Some(", "exec", "exec: None"),
    ("disable-runtimes", "pod: Some(", "exec, pod", "pod: None"),
    ("log-level", "level: 2", "5", "level: 5"),
    ("functions", r#"functions: "./functions""#, "/f", r#"functions: "/f""#),
    ("config", r#"config: "./config.yaml""#, "/c.yaml", r#"config: "/c.yaml""#),
    ("config", "config_required: false", "./config.yaml", "config_required: true"),
    (
        "pod-cache-config",
        r#"cache_config: "/pod-cache-config/pod-cache-config.yaml""#,
        "/p.yaml",
        r#"cache_config: "/p.yaml""#,
    ),
    ("pod-namespace", r#"namespace: "porch-fn-system""#, "pods", r#"namespace: "pods""#),
    ("pod-ttl", "ttl: 1800s", "1h30m", "ttl: 5400s"),
    ("scan-interval", "scan_interval: Some(60s)", "1.5s", "scan_interval: Some(1.5s)"),
    ("pod-security", "security: Porch", "restricted", "security: Restricted"),
    ("function-pod-template", "template: None", "my-template", r#"template: Some("my-template")"#),
    ("max-request-body-size", "max_message: 6291456", "1000", "max_message: 1000"),
    ("max-waitlist-length", "max_waitlist: 2", "7", "max_waitlist: 7"),
    ("max-parallel-pods-per-function", "max_parallel: 1", "3", "max_parallel: 3"),
    (
        "registry-auth-secret-path",
        r#"auth_path: "/var/tmp/config-secret/.dockerconfigjson""#,
        "/d.json",
        r#"auth_path: "/d.json""#,
    ),
    ("registry-auth-secret-name", r#"auth_secret: "auth-secret""#, "mine", r#"auth_secret: "mine""#),
    ("tls-secret-path", r#"tls_path: Some("/var/tmp/tls-secret/")"#, "/t", r#"tls_path: Some("/t")"#),
    (
        "default-image-prefix",
        r#"default_image_prefix: "ghcr.io/kptdev/krm-functions-catalog""#,
        "example.com/functions",
        r#"default_image_prefix: "example.com/functions""#,
    ),
    ("default-image-prefix", "krm-functions-catalog", "", r#"default_image_prefix: """#),
    ("kubeconfig", "cluster: None", "/kube", r#"cluster: Kubeconfig("/kube")"#),
    ("metrics-port", "prometheus_port: 9464", "0", "prometheus_port: 0"),
    (
        "max-memory",
        "memory: MaxMemory { bytes: 536870912,",
        "20000000",
        "memory: MaxMemory { bytes: 20000000,",
    ),
    ("max-connection-age", "max_connection_age: None", "10m", "max_connection_age: Some(600s)"),
    ("shutdown-delay", "shutdown_delay: 5s", "0", "shutdown_delay: 0ns"),
    ("shutdown-grace", "shutdown_grace: 20s", "1m", "shutdown_grace: 60s"),
    ("log-format", "json: false", "json", "json: true"),
    ("function-timeout", "timeout: 300s", "250ms", "timeout: 250ms"),
    ("max-concurrent-executions", "max_concurrent: 6", "4", "max_concurrent: 4"),
    ("max-queued-executions", "max_queued: 256", "0", "max_queued: 0"),
    ("exec-env", "inherited: []", "A,B", r#"inherited: ["A", "B"]"#),
    ("image-refresh-interval", "refresh_interval: 600s", "90s", "refresh_interval: 90s"),
    ("insecure-registries", "insecure: []", "a.example, b:5000", r#"insecure: ["a.example", "b:5000"]"#),
    ("registry-mirrors", "mirrors: []", "docker.io=m.example/hub", "mirrors: [Mirror {"),
    ("function-configs", "folder: None", "/d", r#"folder: Some("/d")"#),
    ("allowed-images", "allowed: AllowedImages([])", "ghcr.io/org", "allowed: AllowedImages([Prefix {"),
    ("max-pods", "max_pods: None", "20", "max_pods: Some(20)"),
    ("max-waiting-calls", "max_waiting_calls: 1000", "5", "max_waiting_calls: 5"),
    ("pod-ready-timeout", "ready_timeout: 60s", "2m", "ready_timeout: 120s"),
    ("pod-address", "address: Auto", "service", "address: Service"),
    ("pod-address", "address: Auto", "pod", "address: Pod"),
];

const SWITCHES: &[(&str, &str, &str)] = &[
    ("warm-up-pod-cache", "warm_up: true", "warm_up: false"),
    ("enable-private-registries", "private_registries: Some(", "private_registries: None"),
    ("enable-private-registries-tls", "tls_path: Some(", "tls_path: None"),
    ("pin-digests", "pin_digests: true", "pin_digests: false"),
];

/// Makes the values about private registries show in the settings.
const PRIVATE: [&str; 2] = ["--enable-private-registries", "--enable-private-registries-tls"];

#[test]
fn every_valued_flag_has_its_default_and_is_read_in_all_spellings_of_go() {
    let around =
        Around { variables: &[("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")], files: &["/kube"] };
    let shown = |arguments: &[&str]| {
        let all: Vec<&str> = PRIVATE.iter().chain(arguments).copied().collect();
        format!("{:?}", read_on(&around, &all).unwrap())
    };
    let defaults = shown(&[]);
    for (name, default, value, expected) in VALUED {
        assert!(defaults.contains(default), "--{name}: no {default} in {defaults}");
        assert!(!defaults.contains(expected), "--{name}: {expected} is there by default");
        let (one, two) = (format!("-{name}"), format!("--{name}"));
        let joined = [format!("{one}={value}"), format!("{two}={value}")];
        for arguments in [vec![&*joined[0]], vec![&*joined[1]], vec![&*one, value], vec![&*two, value]] {
            let settings = shown(&arguments);
            assert!(settings.contains(expected), "{arguments:?}: no {expected} in {settings}");
        }
    }
}

#[test]
fn every_switch_is_read_bare_and_with_a_value() {
    let shown = |arguments: &[&str]| {
        let all: Vec<&str> = PRIVATE.iter().chain(arguments).copied().collect();
        format!("{:?}", read(&all).unwrap())
    };
    for (name, on, off) in SWITCHES {
        for spelling in ["-N", "--N", "-N=true", "--N=true", "--N=1", "--N=T"] {
            let settings = shown(&[&spelling.replace('N', name)]);
            assert!(settings.contains(on), "{spelling} {name}: {settings}");
        }
        for spelling in ["-N=false", "--N=false", "--N=0"] {
            let settings = shown(&[&spelling.replace('N', name)]);
            assert!(settings.contains(off), "{spelling} {name}: {settings}");
        }
    }
    let defaults = format!("{:?}", read(&[]).unwrap());
    for expected in ["warm_up: true", "private_registries: None", "pin_digests: false"] {
        assert!(defaults.contains(expected), "no {expected} in {defaults}");
    }
}

#[test]
fn every_flag_of_the_tables_is_covered_here() {
    let help = args::SERVER.help();
    let names = help.lines().filter_map(|line| line.strip_prefix("  --")?.split_whitespace().next());
    for name in names {
        let known = VALUED.iter().any(|(covered, ..)| *covered == name)
            || SWITCHES.iter().any(|(covered, ..)| *covered == name)
            || name == "version";
        assert!(known, "--{name} has no row in this test");
    }
}

#[test]
fn built_in_functions_are_all_offered_where_nothing_is_configured() {
    const CACHE: &str = "/pod-cache-config/pod-cache-config.yaml";
    const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let wrapper = ("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1");
    let decided = |arguments: &[&str], variables: &[(&str, &str)], files: &[&str]| {
        let settings = read_on(&Around { variables, files }, arguments).unwrap();
        (settings.builtin.offered, settings.builtin.reason)
    };
    let reason = "neither a cluster nor any configuration is given";
    assert_eq!(decided(&[], &[wrapper], &["/kube"]), (Offered::All, reason.to_owned()));
    let host = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    let kubeconfig = ("KUBECONFIG", "/kube");
    for (arguments, variables, files, reason) in [
        (&["--kubeconfig=/kube"][..], &[wrapper][..], &["/kube"][..], "a cluster is configured"),
        (&[], &[wrapper, kubeconfig], &[], "a cluster is configured"),
        (&["--disable-runtimes=pod"], &[kubeconfig], &[], "a cluster is configured"),
        (&[], &[wrapper, host], &[ACCOUNT], "a cluster is configured"),
        (&["--function-configs=/d"], &[], &[], "--function-configs is given"),
        (&["--config=./config.yaml"], &[], &[], "--config is given"),
        (&[], &[], &["./config.yaml"], "./config.yaml is there"),
        (&[], &[], &[CACHE], "/pod-cache-config/pod-cache-config.yaml is there"),
        (&["--pod-cache-config=/p"], &[], &["/p"], "/p is there"),
    ] {
        assert_eq!(decided(arguments, variables, files), (Offered::Configured, reason.to_owned()));
        for (word, offered) in
            [("off", Offered::Off), ("configured", Offered::Configured), ("all", Offered::All)]
        {
            let flag = format!("--builtin-functions={word}");
            let decided = decided(&[arguments, &[&*flag]].concat(), variables, files);
            assert_eq!(decided, (offered, "--builtin-functions says so".to_owned()));
        }
    }
    for hostile in
        ["", "ALL", "automatic", "true", "off,all", "configured ", "\u{1b}[31m", &"x".repeat(10_000)]
    {
        let told = read(&[&format!("--builtin-functions={hostile}")]).unwrap_err().to_string();
        assert!(told.contains("must be one of off, configured, all, auto") && told.len() < 1000, "{told}");
        assert!(!told.contains('\u{1b}'), "{told:?}");
    }
}

#[test]
fn zero_or_less_means_the_default_for_pods() {
    for value in ["0", "-1", "-9223372036854775808"] {
        let waitlist = format!("--max-waitlist-length={value}");
        let parallel = format!("--max-parallel-pods-per-function={value}");
        let pod = read(&[&waitlist, &parallel]).unwrap().pod.unwrap();
        assert_eq!((pod.max_waitlist, pod.max_parallel), (2, 1));
    }
}

#[test]
fn the_command_line_of_the_manifests_is_accepted() {
    let settings = read(&[
        "--config=/config.yaml",
        "--functions=/functions",
        "--pod-namespace=porch-fn-system",
        "--max-request-body-size=6291456",
        "--max-parallel-pods-per-function=2",
        "--max-waitlist-length=1",
        "--warm-up-pod-cache=true",
    ])
    .unwrap();
    let (exec, pod) = (settings.exec.unwrap(), settings.pod.unwrap());
    assert_eq!((exec.config, exec.config_required), (PathBuf::from("/config.yaml"), true));
    assert_eq!((pod.max_parallel, pod.max_waitlist, pod.warm_up), (2, 1, true));
}

#[test]
fn the_manifests_of_all_three_generations_are_accepted() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let manifests = workspace.parent().unwrap().join("shared/porch");
    if !manifests.is_dir() {
        println!("{} is absent: the manifests are not tried", manifests.display());
        return;
    }
    for generation in ["v1.5.3", "v1.5.8", "head"] {
        let manifest = fs::read_to_string(manifests.join(generation).join("2-function-runner.yaml")).unwrap();
        let words = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
        let command: Vec<String> = manifest
            .lines()
            .skip_while(|line| line.trim() != "command:")
            .skip(1)
            .map_while(|line| words(line).strip_prefix("- ").map(str::to_owned))
            .collect();
        assert!(command[0].ends_with("/server") && command.len() > 4, "{generation}: {command:?}");
        let arguments: Vec<&str> = command[1..].iter().map(String::as_str).collect();
        let variables = [
            ("WRAPPER_SERVER_IMAGE", "docker.io/nephio/porch-wrapper-server:latest"),
            ("OTEL_METRICS_EXPORTER", "prometheus"),
            ("OTEL_EXPORTER_PROMETHEUS_HOST", "0.0.0.0"),
            ("OTEL_EXPORTER_PROMETHEUS_PORT", "9464"),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_SERVICE_NAME", "porch-function-runner"),
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ];
        let around =
            Around { variables: &variables, files: &["/var/run/secrets/kubernetes.io/serviceaccount/token"] };
        let settings = read_on(&around, &arguments).unwrap_or_else(|error| panic!("{generation}: {error}"));
        assert_eq!(settings.pod.unwrap().cluster, Cluster::InCluster);
    }
}

#[test]
fn what_the_original_takes_is_no_mistake() {
    let level = |given: &str| read(&[&format!("--log-level={given}")]).unwrap().logging.level;
    assert_eq!(["-3", "0", "5", "6", "100000"].map(level), [0, 0, 5, 5, 5]);
    for given in ["0", "0s", "-1s", "-1h"] {
        let settings = read(&[&format!("--scan-interval={given}"), &format!("--pod-ttl={given}")]);
        let pods = settings.unwrap().pod.unwrap();
        assert_eq!((pods.scan_interval, pods.ttl.as_nanos()), (None, 0), "{given}");
    }
}

#[test]
fn functions_in_pods_have_a_time_limit_only_if_one_is_given() {
    let limits = |arguments: &[&str]| {
        let settings = read(arguments).unwrap();
        (settings.processes.timeout.as_secs(), settings.pod.unwrap().timeout.map(|it| it.as_secs()))
    };
    assert_eq!(limits(&[]), (300, None));
    assert_eq!(limits(&["--function-timeout=5m"]), (300, Some(300)));
    assert_eq!(limits(&["--function-timeout=1h"]), (3600, Some(3600)));
}

#[test]
fn all_mistakes_are_told_together_each_with_flag_value_and_what_is_accepted() {
    let output = run(&[
        "--port=70000",
        "-log-level",
        "all",
        "--log-format=xml",
        "--disable-runtimes=exec,pods",
        "--pod-ttl=soon",
        "--function-timeout=-1s",
        "--pod-namespace=Not_A_Name",
        "--max-waitlist-length=many",
        "--warm-up-pod-cache=perhaps",
        "--default-image-prefix=example.com/UPPER",
        "--exec-env=A=b",
        "--kubeconfig=/nonexistent/kubeconfig",
        "--image-refresh-interval=0",
        "--insecure-registries=a.example,http://b.example",
        "--registry-mirrors=docker.io:m.example",
        "--allowed-images=ghcr.io/org,ghcr.io/org/set-",
        "--pod-address=node",
        "stray",
        "--max-pods=-1",
        "--portt=1",
    ]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty());
    let told = text(&output.stderr);
    for expected in [
        "21 mistakes",
        r#"--port "70000": must be a whole number from 0 to 65535"#,
        r#"-log-level "all": must be a whole number"#,
        r#"--log-format "xml": must be one of text, json"#,
        r#"--disable-runtimes "exec,pods": must be some of exec, pod"#,
        r#"--pod-ttl "soon": "#,
        r#"--function-timeout "-1s": must be a duration such as 30s, more than 0"#,
        r#"--pod-namespace "Not_A_Name": must be a Kubernetes name"#,
        r#"--max-waitlist-length "many": must be a whole number"#,
        r#"--warm-up-pod-cache "perhaps": must be true or false"#,
        r#"--default-image-prefix "example.com/UPPER": must be a registry and path"#,
        r#"--exec-env "A=b": must be names only"#,
        r#"--kubeconfig "/nonexistent/kubeconfig": must be a file that exists"#,
        r#"--image-refresh-interval "0": must be a duration such as 30s, more than 0"#,
        r#"--insecure-registries "a.example,http://b.example": must be hosts"#,
        r#"--registry-mirrors "docker.io:m.example": "docker.io:m.example" is no mirror: there is no = in it"#,
        r#"--allowed-images "ghcr.io/org,ghcr.io/org/set-": "ghcr.io/org/set-" is no prefix of images"#,
        "or like ghcr.io/kptdev/set-* for part of a name",
        r#"--pod-address "node": must be one of auto, service, pod"#,
        r#"--max-pods "-1": must be a whole number from 0 to 1000000"#,
        "--portt: unknown flag; did you mean --port?",
        r#""stray": unexpected argument"#,
        "function-runner --help",
    ] {
        assert!(told.contains(expected), "{expected:?} is not in:\n{told}");
    }
}

#[test]
fn help_is_grouped_and_explains_every_flag() {
    for spelling in ["--help", "-h", "-help"] {
        let output = run(&[spelling]);
        assert_eq!(output.status.code(), Some(0));
        let help = text(&output.stdout);
        for heading in ["Serving:", "Logging:", "(runtime exec):", "(runtime pod):", "Private registries:"] {
            assert!(help.contains(heading), "{heading} is not in:\n{help}");
        }
        for name in VALUED.iter().map(|row| row.0).chain(SWITCHES.iter().map(|row| row.0)) {
            assert!(help.contains(&format!("\n  --{name}")), "--{name} is not in:\n{help}");
        }
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
    for (command, expected) in [("eval", "--address HOST:PORT"), ("explain", "explain IMAGE [flags]")] {
        let output = run(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains(expected), "{output:?}");
    }
}

#[test]
fn the_version_tells_version_commit_and_toolchain() {
    for spelling in ["--version", "-version", "version"] {
        let output = run(&[spelling]);
        assert_eq!(output.status.code(), Some(0));
        let line = text(&output.stdout);
        let version = format!("function-runner {} (commit ", env!("CARGO_PKG_VERSION"));
        assert!(line.starts_with(&version) && line.contains(", rustc 1."), "{line}");
    }
}

#[test]
fn an_unknown_command_names_those_there_are() {
    let output = run(&["evaluate"]);
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(
        told.contains("evaluate: no such command")
            && told.contains("doc, eval, explain, functions, pods, validate, version"),
        "{told}"
    );
}

#[test]
fn a_cluster_needs_the_image_of_the_wrapper_server() {
    let token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let in_cluster = Around { variables: &[("KUBERNETES_SERVICE_HOST", "10.0.0.1")], files: &[token] };
    let by_variable = Around { variables: &[("KUBECONFIG", "/kube")], files: &[] };
    let by_flag = Around { variables: &[], files: &["/kube"] };
    for (around, arguments) in
        [(&in_cluster, &[][..]), (&by_variable, &[][..]), (&by_flag, &["--kubeconfig=/kube"][..])]
    {
        let told = read_on(around, arguments).unwrap_err().to_string();
        assert!(told.starts_with("1 mistake"), "{told}");
        for word in ["WRAPPER_SERVER_IMAGE", "pod runtime", "--disable-runtimes=pod"] {
            assert!(told.contains(word), "{told}");
        }
        let disabled: Vec<&str> = arguments.iter().copied().chain(["--disable-runtimes=pod"]).collect();
        assert!(read_on(around, &disabled).is_ok());
    }
}

#[test]
fn private_credentials_and_authority_are_used_when_the_flags_say_so() {
    let options = |arguments: &[&str]| read(arguments).unwrap().registries.options();
    let paths = ["--registry-auth-secret-path=/d.json", "--tls-secret-path=/t"];
    let with = |flags: &[&str]| options(&[&paths[..], flags].concat()).private;
    assert!(with(&[]).is_none());
    // The authority alone is nobody's: it needs both.
    assert!(with(&["--enable-private-registries-tls"]).is_none());
    let private = with(&["--enable-private-registries"]).unwrap();
    assert_eq!((private.keychain.path(), private.ca_folder), (Some(Path::new("/d.json")), None));
    let private = with(&PRIVATE).unwrap();
    assert_eq!(private.ca_folder.as_deref(), Some(Path::new("/t")));
}

#[test]
fn proxies_are_those_of_the_environment() {
    let variables = [("HTTPS_PROXY", "http://me:hidden@proxy.example:3128"), ("no_proxy", "a.example")];
    let settings = read_on(&Around { variables: &variables, files: &[] }, &[]).unwrap();
    let shown = format!("{:?}", settings.registries.options());
    assert!(shown.contains(r#"Proxies { http: false, https: true, except: "a.example" }"#), "{shown}");
    assert!(!format!("{settings:?}").contains("hidden"));
}

#[test]
fn a_mirror_that_could_never_be_asked_is_a_mistake() {
    let mirror = "--registry-mirrors=ghcr.io=m.example/ghcr,docker.io=m.example/hub";
    let read = |allowed: &str| read(&[mirror, &format!("--allowed-images={allowed}")]);
    for allowed in ["", "m.example", "ghcr.io/org,m.example/ghcr/org,m.example/h*"] {
        assert_eq!(read(allowed).unwrap().registries.mirrors.len(), 2, "{allowed}");
    }
    let told = read("ghcr.io/org,m.example/hub/org").unwrap_err().to_string();
    assert!(told.contains("m.example/ghcr is not under --allowed-images"), "{told}");
}

#[test]
fn a_cluster_is_found_where_it_is_named_and_nowhere_else() {
    let wrapper = ("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1");
    let cluster = |variables: &[(&str, &str)], files: &[&str], arguments: &[&str]| {
        read_on(&Around { variables, files }, arguments).unwrap().pod.unwrap().cluster
    };
    let home = [wrapper, ("HOME", "/root")];
    assert_eq!(cluster(&home, &["/root/.kube/config"], &[]), Cluster::None);
    // The account's file alone, or the variable alone, is no cluster.
    assert_eq!(cluster(&[wrapper, ("KUBERNETES_SERVICE_HOST", "10.0.0.1")], &[], &[]), Cluster::None);
    let both = [wrapper, ("KUBECONFIG", "/variable"), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")];
    assert_eq!(cluster(&both, &[], &[]), Cluster::Kubeconfig("/variable".into()));
    let flag = cluster(&both, &["/flag"], &["--kubeconfig=/flag"]);
    assert_eq!(flag, Cluster::Kubeconfig("/flag".into()));
}

#[test]
fn mistakes_in_the_telemetry_variables_are_told_with_what_is_accepted() {
    for (name, value, accepted) in [
        ("OTEL_METRICS_EXPORTER", "prometheus,graphite", "prometheus, otlp, console, none"),
        ("OTEL_TRACES_EXPORTER", "jaeger", "otlp, console, none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon", "grpc or http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "grpc or http/protobuf"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grcp", "grpc or http/protobuf"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "a URL such as http://collector:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://collector", "a URL such as http://collector:4318"),
        ("OTEL_EXPORTER_PROMETHEUS_HOST", "not an address", "an address such as 0.0.0.0"),
        ("OTEL_EXPORTER_PROMETHEUS_PORT", "70000", "a port from 0 to 65535"),
    ] {
        // With an endpoint, so that the variables of collectors are of account.
        let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"), (name, value)];
        let variables = if name == variables[0].0 { &variables[1..] } else { &variables[..] };
        let told = read_on(&Around { variables, files: &[] }, &[]).unwrap_err().to_string();
        let odd = value.rsplit(',').next().unwrap();
        for expected in [name, odd, accepted] {
            assert!(told.contains(expected), "{expected:?} is not in:\n{told}");
        }
        // Each is told once, though a general variable serves several signals.
        assert_eq!(told.matches(name).count(), 1, "{told}");
    }
    let off =
        Around { variables: &[("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "x")], files: &[] };
    assert!(read_on(&off, &[]).unwrap().telemetry.metrics.is_empty());
}

#[test]
fn an_endpoint_means_otlp_over_http_and_the_exporters_variables_win() {
    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    let telemetry = |variables: &[(&str, &str)]| {
        let read = read_on(&Around { variables, files: &[] }, &[]).unwrap().telemetry;
        (format!("{:?}", read.metrics), format!("{:?}", read.traces))
    };
    let otlp = "[Otlp(Collector { protocol: HttpProtobuf, timeout: 10s, tls: None })]";
    let grpc = otlp.replace("HttpProtobuf", "Grpc");
    let pair = |metrics: &str, traces: &str| (metrics.to_owned(), traces.to_owned());
    assert_eq!(telemetry(&[]), pair("[Prometheus]", "[]"));
    assert_eq!(telemetry(&[ENDPOINT]), pair(otlp, otlp));
    assert_eq!(
        telemetry(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector")]),
        pair("[Prometheus]", otlp)
    );
    assert_eq!(telemetry(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://collector")]), pair(otlp, "[]"));
    assert_eq!(
        telemetry(&[ENDPOINT, ("OTEL_METRICS_EXPORTER", "prometheus"), ("OTEL_TRACES_EXPORTER", "none")]),
        pair("[Prometheus]", "[]")
    );
    assert_eq!(telemetry(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]), pair(&grpc, &grpc));
    let around = Around { variables: &[ENDPOINT], files: &[] };
    let both = read_on(&around, &["--metrics-port=9000"]).unwrap().telemetry;
    assert_eq!(format!("{:?}", both.metrics), otlp.replace(']', ", Prometheus]"));
    // A scheme decides about encryption; gRPC without one is encrypted unless told otherwise.
    let bare = [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")];
    assert!(telemetry(&bare).1.contains("tls: Some("), "{:?}", telemetry(&bare));
    assert_eq!(telemetry(&[bare[0], bare[1], ("OTEL_EXPORTER_OTLP_INSECURE", "true")]), pair(&grpc, &grpc));
    let lone = [("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c"), ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key")];
    let told = read_on(&Around { variables: &lone, files: &[] }, &[]).unwrap_err().to_string();
    assert_eq!(told.matches("OTEL_EXPORTER_OTLP_CLIENT_KEY").count(), 1, "{told}");
}

#[test]
fn what_is_only_odd_about_telemetry_is_noted_and_done_without() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "rot13"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_PROPAGATORS", "xray"),
        ("OTEL_EXPORTER_PROMETHEUS_HOST", "localhost"),
    ];
    let read = read_on(&Around { variables: &variables, files: &[] }, &[]).unwrap().telemetry;
    let notes: Vec<_> = read.notes.iter().map(|note| note.split(' ').next().unwrap()).collect();
    assert_eq!(notes, ["OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_PROPAGATORS"]);
    assert_eq!(read.prometheus_host.as_deref(), Some("localhost"));
    assert_eq!(read.propagators, wire::Propagators::default());
}

#[test]
fn the_tables_of_flags_are_sound() {
    assert_eq!(args::SERVER.defects(), Vec::<String>::new());
    assert_eq!(args::EVAL.defects(), Vec::<String>::new());
    assert_eq!(args::EXPLAIN.defects(), Vec::<String>::new());
    assert_eq!(args::PODS.defects(), Vec::<String>::new());
    assert_eq!(args::VALIDATE.defects(), Vec::<String>::new());
}

#[test]
fn a_configuration_file_that_was_asked_for_must_be_there_and_parse() {
    let output = run(&["--port=0", "--metrics-port=0", "--config=/nonexistent/config.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("cannot read /nonexistent/config.yaml: No such file"),
        "{output:?}"
    );
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    fs::write(&config, "functions: 5\n").unwrap();
    let output = run(&["--port=0", "--metrics-port=0", &format!("--config={}", config.display())]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is not a valid configuration: "), "{output:?}");
}

#[test]
fn without_configuration_and_cluster_it_serves_and_says_so() {
    let server = testing::Server::of(PROGRAM).start();
    let log = server.log();
    assert_eq!(log.matches("running without the pod runtime").count(), 1, "{log}");
    assert!(log.contains("there is no configuration file: no executables are served"), "{log}");
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    let taken = std::net::TcpListener::bind("[::]:0").unwrap();
    let port = format!("--port={}", taken.local_addr().unwrap().port());
    let output = run(&[&port, "--metrics-port=0"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("cannot listen on port") && told.contains("choose another with --port"), "{told}");
}

/// Arguments that look like flags more often than chance would have it.
fn argument() -> impl Strategy<Value = OsString> {
    let names: Vec<&str> =
        VALUED.iter().map(|row| row.0).chain(SWITCHES.iter().map(|row| row.0)).chain(["version"]).collect();
    let values = prop_oneof![
        any::<String>(),
        any::<i64>().prop_map(|number| number.to_string()),
        "-?[0-9]{1,20}(\\.[0-9]{1,3})?(ns|us|ms|s|m|h|)",
    ];
    let flag = (prop::sample::select(names), values, "--?", any::<bool>()).prop_map(
        |(name, value, dashes, joined)| {
            if joined { format!("{dashes}{name}={value}") } else { format!("{dashes}{name}") }.into()
        },
    );
    prop_oneof![
        4 => flag,
        1 => any::<String>().prop_map(OsString::from),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(OsString::from_vec),
    ]
}

proptest! {
    #[test]
    fn no_command_line_and_no_environment_can_panic_the_settings(
        arguments in prop::collection::vec(argument(), 0..12),
        variable in prop::sample::select(vec![
            "OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL",
            "OTEL_EXPORTER_PROMETHEUS_PORT", "OTEL_EXPORTER_PROMETHEUS_HOST", "KUBECONFIG",
        ]),
        value in any::<String>(),
    ) {
        if let Outcome::Flags(flags) = args::SERVER.parse(arguments) {
            let around = Around { variables: &[(variable, &value)], files: &[] };
            if let Err(mistakes) = Settings::read(flags, &around) {
                prop_assert!(!mistakes.list().is_empty());
                prop_assert!(mistakes.to_string().len() < 20_000);
            }
        }
    }
}

#[test]
fn calls_may_hold_what_the_flag_says_or_half_of_what_there_is() {
    let memory = |arguments: &[&str]| read(arguments).map(|settings| settings.serving.memory.bytes);
    assert_eq!(memory(&[]).unwrap(), 512 << 20);
    assert_eq!(memory(&["--max-memory=0"]).unwrap(), 512 << 20);
    assert_eq!(memory(&["--max-memory=100000000"]).unwrap(), 100_000_000);
    for odd in ["-1", "256Mi", "99999999999999999999", "", "x"] {
        let told = memory(&[&format!("--max-memory={odd}")]).unwrap_err().to_string();
        assert!(told.contains("max-memory"), "{told}");
    }
    let little = memory(&["--max-memory=12582911"]).unwrap_err().to_string();
    assert!(little.contains("must be at least twice --max-request-body-size"), "{little}");
    assert_eq!(memory(&["--max-memory=2000", "--max-request-body-size=1000"]).unwrap(), 2000);
}
