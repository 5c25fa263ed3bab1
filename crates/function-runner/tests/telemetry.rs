//! What operators see: logs, metrics and traces.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{collections::HashSet, process::Command, time::Duration};

use bytes::Bytes;
use common::{EMPTY, PROGRAM, call, call_within, image, runner, within_patience};
use testing::{Functions, Server, eventually};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use wire::{TraceContext, client::CallOptions};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn traced() -> CallOptions {
    let trace = TraceContext::parse(&format!("00-{TRACE}-b7ad6b7169203331-01"));
    CallOptions { trace, ..CallOptions::default() }
}

/// The lines about calls, once there are `count`.
fn call_lines(server: &Server, words: &str, count: usize) -> Vec<String> {
    let lines = || -> Vec<String> {
        server.log().lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
    };
    eventually("the calls are logged", || lines().len() >= count);
    lines()
}

/// The value of `name=` in a line of the log, without quotes.
fn value<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, rest) = line.split_once(&format!(" {name}=")).unwrap_or_else(|| panic!("no {name} in {line}"));
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.split('"').next());
    quoted.unwrap_or_else(|| rest.split(' ').next().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_has_one_line_that_tells_all_about_it() {
    let functions = Functions::new()
        .with_script("echo", "echo word >&2; cat")
        .with_script("fails", "cat; exit 1")
        .with_script("stuck", "sleep 300");
    let server = runner(&functions).start();
    let client = server.client().await;
    let _ = call(&client, "echo", EMPTY.into()).await;
    let _ = call(&client, "fails", EMPTY.into()).await;
    let _ = call(&client, "nobody", EMPTY.into()).await;
    let _ = within_patience(client.evaluate("Not An Image", EMPTY.into(), CallOptions::default())).await;
    let _ = call_within(&client, "stuck", EMPTY.into(), Duration::from_secs(2)).await;
    let _ = tokio::time::timeout(Duration::from_millis(200), call(&client, "stuck", EMPTY.into())).await;
    let lines = call_lines(&server, " call function=", 6);
    let size = EMPTY.len().to_string();
    let expected = [
        (image("echo"), "exec", "Ok", (EMPTY.len() + "word\n".len()).to_string()),
        (image("fails"), "exec", "Internal", "0".into()),
        (image("nobody"), "none", "NotFound", "0".into()),
        (String::new(), "none", "InvalidArgument", "0".into()),
        (image("stuck"), "exec", "DeadlineExceeded", "0".into()),
        (image("stuck"), "exec", "Cancelled", "0".into()),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, (function, evaluator, code, sent)) in lines.iter().zip(&expected) {
        let told = (value(line, "function"), value(line, "evaluator"), value(line, "code"));
        assert_eq!(told, (function.as_str(), *evaluator, *code), "{line}");
        assert_eq!(
            (value(line, "bytes_in"), value(line, "bytes_out")),
            (size.as_str(), sent.as_str()),
            "{line}"
        );
        assert!(value(line, "duration_ms").parse::<f64>().unwrap() > 0.0, "{line}");
        let trace = value(line, "trace");
        assert!(trace.len() == 32 && trace.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
        assert_eq!(line.contains(" error="), *code != "Ok", "{line}");
        // What fails because of its caller or its function is no trouble of the service.
        assert!(line.contains(if *code == "Ok" { " INFO call " } else { " WARN call " }), "{line}");
    }
    let traces: HashSet<_> = lines.iter().map(|line| value(line, "trace")).collect();
    assert_eq!(traces.len(), lines.len(), "each call has a trace of its own");
}

#[tokio::test]
async fn the_log_as_json_is_one_object_a_line_with_the_callers_trace() {
    let functions = Functions::new().with_script("echo", "cat");
    let server = runner(&functions).flags(["--log-format=json"]).start();
    let client = server.client().await;
    within_patience(client.evaluate(&image("echo"), EMPTY.into(), traced())).await.unwrap();
    call_lines(&server, r#""message":"call""#, 1);
    let log = server.log();
    let objects: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let call = objects.iter().find(|object| object["message"] == "call").unwrap();
    assert_eq!(call["function"], image("echo"));
    assert_eq!(
        (&call["evaluator"], &call["code"], &call["level"]),
        (&"exec".into(), &"Ok".into(), &"INFO".into())
    );
    assert_eq!((&call["bytes_in"], &call["bytes_out"]), (&EMPTY.len().into(), &EMPTY.len().into()));
    assert_eq!(call["trace"], TRACE);
    assert!(call["duration_ms"].as_f64().is_some_and(|duration| duration > 0.0), "{call}");
}

#[tokio::test]
async fn what_whoever_runs_the_service_must_look_after_is_an_error() {
    let functions = Functions::new().with_script("broken", "");
    // Neither a program nor a script.
    functions.write_executable("broken", "\u{7f}ELF");
    let server = runner(&functions).start();
    let client = server.client().await;
    let _ = call(&client, "broken", EMPTY.into()).await;
    let lines = call_lines(&server, " call function=", 1);
    assert!(lines[0].contains("ERROR call "), "{lines:?}");
}

#[tokio::test]
async fn what_a_function_that_succeeded_says_is_in_the_log_but_not_all_of_a_flood() {
    let functions = Functions::new()
        .with_script("says", r"cat; printf 'one\n\033[31mtwo\n' >&2")
        .with_script("floods", "cat; head -c 300000 /dev/zero | tr '\\0' x >&2")
        .with_script("garbles", r"cat; printf '\377\376' >&2")
        .with_script("fails", "cat; echo refusal >&2; exit 1")
        .with_script("silent", "cat");
    let server = runner(&functions).start();
    let client = server.client().await;
    for name in ["says", "floods", "garbles", "fails", "silent"] {
        let _ = call(&client, name, EMPTY.into()).await;
    }
    call_lines(&server, " call function=", 5);
    let log = server.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains(" INFO stderr ")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    let (says, floods) = (lines[0], lines[1]);
    assert_eq!((value(says, "function"), value(says, "bytes")), (image("says").as_str(), "13"), "{says}");
    assert!(says.contains(r#"text="one\n\u{1b}[31mtwo""#), "{says}");
    assert_eq!(value(says, "trace").len(), 32, "{says}");
    assert_eq!(value(floods, "text").len(), 2048, "{floods}");
    assert!(!log.contains("refusal"), "{log}");
}

#[tokio::test]
async fn the_log_tells_as_much_as_its_level_says() {
    let functions = Functions::new()
        .with_script("odd", "echo words >&2; sed s,config.kubernetes.io/v1,example.com/v9,")
        .with_script("fails", "cat; exit 1")
        .with_entry("absent", &["example.com/absent:v1"]);
    for (level, warns, tells) in [("0", false, false), ("1", true, false), ("2", true, true)] {
        // The line that tells the port is of level 2.
        let mut child = Command::new(PROGRAM)
            .args(functions.flags())
            .args(["--port=0", &format!("--log-level={level}"), "--metrics-port=0"])
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = None;
        eventually("it listens", || {
            port = listening_port(child.id());
            port.is_some()
        });
        let port = port.unwrap();
        let channel = wire::client::endpoint(&format!("127.0.0.1:{port}")).unwrap().connect().await.unwrap();
        let client = wire::client::Client::new(channel, 1 << 20);
        call(&client, "odd", EMPTY.into()).await.unwrap();
        call(&client, "fails", EMPTY.into()).await.unwrap_err();
        child.kill().unwrap();
        let log = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        assert_eq!(log.contains("unknown apiVersion"), warns, "level {level}:\n{log}");
        assert_eq!(log.contains("absent is missing"), warns, "level {level}:\n{log}");
        assert_eq!(log.contains(" WARN call "), warns, "level {level}:\n{log}");
        assert_eq!(log.contains(" INFO call "), tells, "level {level}:\n{log}");
        assert_eq!(log.contains(" INFO stderr "), tells, "level {level}:\n{log}");
    }
}

/// The port that a process listens on, as the kernel tells it.
fn listening_port(process: u32) -> Option<u16> {
    const LISTENING: &str = "0A";
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let open: HashSet<_> = descriptors
        .filter_map(|descriptor| {
            std::fs::read_link(descriptor.ok()?.path()).ok()?.to_str().map(str::to_owned)
        })
        .collect();
    ["tcp6", "tcp"].iter().find_map(|family| {
        let sockets = std::fs::read_to_string(format!("/proc/{process}/net/{family}")).ok()?;
        sockets.lines().skip(1).find_map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let is_ours = open.contains(&format!("socket:[{}]", fields.get(9)?));
            let port = fields.get(1)?.rsplit(':').next()?;
            (is_ours && fields.get(3) == Some(&LISTENING)).then(|| u16::from_str_radix(port, 16).ok())?
        })
    })
}

#[tokio::test]
async fn resources_are_in_the_log_at_level_five_and_never_below() {
    let functions = Functions::new()
        .with_script("echo", "cat")
        .with_script("fails", "cat; exit 1")
        .with_script("garbles", "sed 's/items:/items: [/'")
        .with_script("trails", "cat; cat; echo '{['")
        .with_script("dumps", "tee /dev/stderr; exit 1");
    let secret = "s3cr3t-in-a-resource";
    let list: Bytes = format!("{EMPTY}# {secret}\nfunctionConfig: {{password: {secret}}}\n").into();
    for level in 2..=5 {
        let server = runner(&functions).flags([format!("--log-level={level}")]).start();
        let client = server.client().await;
        for name in ["echo", "fails", "garbles", "trails", "dumps"] {
            let _ = call(&client, name, list.clone()).await;
        }
        call_lines(&server, " call function=", 5);
        assert_eq!(server.log().contains(secret), level == 5, "level {level}:\n{}", server.log());
    }
}

#[tokio::test]
async fn metrics_have_the_names_that_readers_of_the_original_expect_and_our_own() {
    let functions = Functions::new().with_script("echo", "cat").with_script("fails", "cat; exit 1");
    let server = runner(&functions).metrics().start();
    let client = server.client().await;
    call(&client, "echo", EMPTY.into()).await.unwrap();
    call(&client, "fails", EMPTY.into()).await.unwrap_err();
    let mut health = HealthClient::new(server.channel().await);
    health.check(HealthCheckRequest::default()).await.unwrap();
    let expected = [
        "rpc_server_duration_milliseconds_count{",
        "rpc_server_request_size_bytes_count{",
        "rpc_server_response_size_bytes_count{",
        r#"rpc_method="Check""#,
        r#"rpc_method="EvaluateFunction""#,
        r#"rpc_service="evaluator.FunctionEvaluator""#,
        r#"rpc_server_duration_milliseconds_bucket{rpc_grpc_status_code="0",rpc_method="Check",rpc_service="grpc.health.v1.Health",rpc_system="grpc",le="0.05"}"#,
        "go_goroutines ",
        "go_threads ",
        "go_memstats_heap_inuse_bytes ",
        "process_cpu_seconds_total ",
        "process_resident_memory_bytes ",
        "process_virtual_memory_bytes ",
        "process_open_fds ",
        "process_max_fds ",
        "process_start_time_seconds ",
        r#"function_runner_call_duration_seconds_bucket{evaluator="exec",function="echo",le="0.00005"}"#,
        "function_runner_builtins_running 0",
        r#"function_runner_calls_total{code="Ok",evaluator="exec",function="echo"} 1"#,
        r#"function_runner_calls_total{code="Internal",evaluator="exec",function="fails"} 1"#,
        r#"function_runner_call_duration_seconds_count{evaluator="exec",function="echo"} 1"#,
        "function_runner_calls_running 0",
        "function_runner_executions_queued 0",
        "function_runner_executions_running 0",
        r#"function_runner_resource_list_bytes_total{direction="in"}"#,
        r#"function_runner_resource_list_bytes_total{direction="out"}"#,
        "function_runner_build_info{",
        "function_runner_config_valid 1",
    ];
    let missing = || expected.iter().find(|name| !server.metrics().contains(**name));
    eventually("all metrics are there", || {
        if let Some(name) = missing() {
            println!("waiting for {name}");
        }
        missing().is_none()
    });
    let page = server.metrics();
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let build = page.lines().find(|line| line.starts_with("function_runner_build_info{")).unwrap();
    for label in ["version=", "commit=", "toolchain="] {
        assert!(build.contains(label), "{build}");
    }
}

#[tokio::test]
async fn readers_may_ask_for_the_head_of_the_page_and_for_exemplars() {
    let functions = Functions::new().with_script("echo", "cat");
    // The interface may be named.
    let server = runner(&functions).metrics().variable("OTEL_EXPORTER_PROMETHEUS_HOST", "localhost").start();
    let client = server.client().await;
    within_patience(client.evaluate(&image("echo"), EMPTY.into(), traced())).await.unwrap();
    eventually("the call is counted", || server.metrics().contains("function_runner_calls_total{"));
    let head = server.ask_metrics("HEAD /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    let page = server.ask_metrics(
        "GET /metrics HTTP/1.1\r\nHost: test\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n",
    );
    assert!(page.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0"), "{page}");
    assert!(page.ends_with("\n# EOF\n"), "{page}");
    let exemplar = format!(" # {{trace_id=\"{TRACE}\"}} ");
    let shown = page.lines().filter(|line| line.contains(&exemplar)).collect::<Vec<_>>();
    assert_eq!(shown.len(), 1, "{page}");
    assert!(
        shown[0].starts_with("function_runner_call_duration_seconds_bucket{evaluator=\"exec\""),
        "{shown:?}"
    );
    assert!(!server.metrics().contains(TRACE));
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_stay_few_whatever_names_are_thrown_at_them() {
    const SERVED: usize = 260;
    let images: Vec<String> = (0..SERVED).map(|number| format!("example.com/served-{number}:v1")).collect();
    let references: Vec<&str> = images.iter().map(String::as_str).collect();
    let functions = Functions::new().with_entry("echo", &references);
    functions.write_executable("echo", "#!/bin/sh\nexec cat\n");
    let server = runner(&functions).metrics().flags(["--log-level=2"]).start();
    let client = server.client().await;
    let ask = |images: Vec<String>| {
        let client = client.clone();
        tokio::spawn(async move {
            for image in images {
                let _ = within_patience(client.evaluate(&image, EMPTY.into(), CallOptions::default())).await;
            }
        })
    };
    let unknown =
        |caller: usize| (0..500).map(|number| format!("example.com/{caller}/f{number}:v{number}")).collect();
    let mut callers: Vec<_> = (0..6).map(|caller| ask(unknown(caller))).collect();
    callers.extend(images.chunks(SERVED / 4).map(|images| ask(images.to_vec())));
    for caller in callers {
        caller.await.unwrap();
    }
    eventually("all calls are counted", || {
        let page = server.metrics();
        let lines = page.lines().filter(|line| line.starts_with("function_runner_calls_total"));
        let total: usize = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum();
        total == 3000 + SERVED
    });
    let page = server.metrics();
    let named = |page: &str| -> HashSet<String> {
        let labels = page.lines().filter_map(|line| line.split_once("function=\"")?.1.split('"').next());
        labels.map(str::to_owned).collect()
    };
    let labels = named(&page);
    assert!(labels.len() > 100 && labels.len() <= 201, "{}", labels.len());
    assert!(
        labels.contains("other")
            && labels.iter().all(|label| label == "other" || label.starts_with("served-"))
    );
    assert!(page.contains(r#"{code="NotFound",evaluator="none",function="other"} 3000"#), "{page}");
}

#[test]
fn a_metrics_port_in_use_is_a_clear_error() {
    let taken = std::net::TcpListener::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = Command::new(PROGRAM)
        .args(["--port=0", &format!("--metrics-port={port}")])
        .env_remove("OTEL_METRICS_EXPORTER")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let expected =
        format!("cannot listen on port {port} for metrics; choose another with --metrics-port, 0 for none");
    assert!(told.contains(&expected) && told.contains("in use"), "{told}");
}
