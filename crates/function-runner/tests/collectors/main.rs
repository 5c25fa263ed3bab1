//! Metrics and traces reach collectors, by the standard variables.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod collector;
#[path = "../common/mod.rs"]
mod common;

use std::process::Command;

use collector::{Collector, Encryption};
use common::{EMPTY, PATIENCE, PROGRAM, call, image, runner, within_patience};
use testing::{Functions, Server, ServerBuilder, Signal, eventually, registry::certificates::Authority};
use wire::{Propagators, TraceContext, client::CallOptions};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn traced() -> CallOptions {
    let trace = TraceContext::parse(&format!("00-{TRACE}-b7ad6b7169203331-01"));
    CallOptions { trace, ..CallOptions::default() }
}

/// A service about whose exporters nothing is said yet.
fn unspoken(functions: &Functions) -> ServerBuilder {
    runner(functions).variable("OTEL_METRICS_EXPORTER", "").flags(["--shutdown-delay=0"])
}

/// One that does not let collectors wait for long.
fn eager(functions: &Functions) -> ServerBuilder {
    unspoken(functions)
        .variable("OTEL_BSP_SCHEDULE_DELAY", "20")
        .variable("OTEL_METRIC_EXPORT_INTERVAL", "100")
}

/// Calls a function that fails, in the trace.
async fn call_traced(server: &Server) {
    let client = server.client().await;
    within_patience(client.evaluate(&image("fails"), EMPTY.into(), traced())).await.unwrap_err();
}

/// Waits until there is a span here and the count of calls there.
fn wait_for(traces: &Collector, metrics: &Collector) {
    eventually("the span arrives", || !traces.received().spans.is_empty());
    eventually("metrics arrive", || {
        metrics.received().metrics.iter().any(|name| name == "function_runner.calls")
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_sent_yet_is_sent_before_the_end() {
    let (functions, collector) = (failing(), Collector::http(None).await);
    let mut server = unspoken(&functions).variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url).start();
    call_traced(&server).await;
    server.signal(Signal::TERM);
    assert_eq!(server.wait(PATIENCE).code(), Some(0));
    check_span(&collector);
    check_metrics(&collector);
}

fn failing() -> Functions {
    Functions::new().with_script("fails", "cat; echo boom >&2; exit 1")
}

/// The one span that a collector has is that of the call.
fn check_span(collector: &Collector) {
    let received = collector.received();
    assert_eq!(received.spans.len(), 1, "{received:?}");
    let number = |bytes: &[u8]| bytes.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let span = &received.spans[0];
    assert_eq!(
        (number(&span.trace_id), number(&span.parent_span_id)),
        (u128::from_str_radix(TRACE, 16).unwrap(), 0xb7ad_6b71_6920_3331)
    );
    assert_eq!(span.name, "evaluator.FunctionEvaluator/EvaluateFunction");
    let shown = format!("{:?}", span.attributes);
    for expected in ["function.image", "example.com/fails:v1", "function.evaluator", "rpc.grpc.status_code"] {
        assert!(shown.contains(expected), "{shown}");
    }
    assert!(span.status.as_ref().unwrap().message.contains("boom"), "{:?}", span.status);
}

fn check_metrics(collector: &Collector) {
    let received = collector.received();
    for expected in ["function_runner.calls", "rpc.server.duration", "process.cpu"] {
        assert!(received.metrics.iter().any(|name| name == expected), "{expected} is not in {received:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_enough_and_may_be_encrypted() {
    let (authority, clients) = (Authority::new("collectors"), Authority::new("clients"));
    let (identity, own) = (authority.server(), clients.server());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (ca, certificate, key) =
        (file("ca.pem", &authority.pem), file("own.pem", &own.certificate), file("own.key", &own.key));
    let encryptions = [
        None,
        Some(Encryption { identity: &identity, clients: None }),
        Some(Encryption { identity: &identity, clients: Some(&clients) }),
    ];
    let functions = failing();
    for encryption in &encryptions {
        let collectors = [
            ("", Collector::http(encryption.as_ref()).await),
            ("grpc", Collector::grpc(encryption.as_ref()).await),
        ];
        for (protocol, collector) in collectors {
            let mut server = eager(&functions)
                .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
                .variable("OTEL_EXPORTER_OTLP_PROTOCOL", protocol);
            if let Some(Encryption { clients, .. }) = encryption {
                server = server.variable("OTEL_EXPORTER_OTLP_CERTIFICATE", &ca);
                if clients.is_some() {
                    server = server
                        .variable("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &certificate)
                        .variable("OTEL_EXPORTER_OTLP_CLIENT_KEY", &key);
                }
            }
            let server = server.start();
            call_traced(&server).await;
            wait_for(&collector, &collector);
            check_span(&collector);
            check_metrics(&collector);
            assert!(!server.log().contains("do not reach"), "{}", server.log());
            assert!(server.log().contains(&format!("trace=\"{TRACE}\"")), "{}", server.log());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_compression_and_paths_are_as_the_variables_say() {
    let functions = failing();
    for (protocol, collector) in
        [("http/protobuf", Collector::http(None).await), ("grpc", Collector::grpc(None).await)]
    {
        let server = eager(&functions)
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("{}/prefix", collector.url))
            .variable("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
            .variable("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
            .variable("OTEL_EXPORTER_OTLP_HEADERS", "authorization=let%20me%20in")
            .variable("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "tenant=seven")
            .start();
        call_traced(&server).await;
        wait_for(&collector, &collector);
        check_span(&collector);
        check_metrics(&collector);
        let received = collector.received();
        for (path, head) in &received.requests {
            let (expected, missing) =
                if path.contains("metrics") { ("seven", "let me in") } else { ("let me in", "seven") };
            assert!(head.contains(expected) && !head.contains(missing), "{path}: {head}");
            assert!(protocol == "grpc" || head.contains("content-encoding: gzip"), "{head}");
            assert!(protocol != "grpc" || head.contains("\"grpc-encoding\": \"gzip\""), "{head}");
        }
        let paths: Vec<_> = received.requests.iter().map(|(path, _)| path.as_str()).collect();
        if protocol != "grpc" {
            assert!(
                paths.contains(&"/prefix/v1/traces") && paths.contains(&"/prefix/v1/metrics"),
                "{paths:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_signal_may_have_a_collector_of_its_own() {
    let (traces, metrics) = (Collector::http(None).await, Collector::grpc(None).await);
    let functions = failing();
    let server = eager(&functions)
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        .variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{}/my/spans", traces.url))
        .variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &metrics.url)
        .variable("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc")
        .start();
    call_traced(&server).await;
    wait_for(&traces, &metrics);
    check_span(&traces);
    check_metrics(&metrics);
    assert_eq!(traces.received().requests[0].0, "/my/spans");
    assert!(traces.received().metrics.is_empty() && metrics.received().spans.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_nobody_we_trust_vouches_for_gets_nothing_and_that_is_said() {
    let (authority, another) = (Authority::new("collectors"), Authority::new("another"));
    let identity = authority.server();
    let encryption = Encryption { identity: &identity, clients: None };
    let folder = tempfile::tempdir().unwrap();
    another.put(folder.path());
    let functions = failing();
    for (protocol, collector) in [
        ("http/protobuf", Collector::http(Some(&encryption)).await),
        ("grpc", Collector::grpc(Some(&encryption)).await),
    ] {
        let server = eager(&functions)
            .variable("OTEL_TRACES_EXPORTER", "otlp")
            .variable("OTEL_METRICS_EXPORTER", "none")
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
            .variable("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
            .variable("OTEL_EXPORTER_OTLP_CERTIFICATE", folder.path().join("ca.crt").to_str().unwrap())
            .start();
        call_traced(&server).await;
        eventually("it is told", || server.log().contains("traces do not reach the collector"));
        assert!(collector.received().requests.is_empty(), "{:?}", collector.received());
        let log = server.log();
        let told = log.lines().find(|line| line.contains("traces do not reach the collector"));
        assert!(told.is_some_and(|line| line.contains("UnknownIssuer")), "{protocol}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_disturbs_nobody_and_is_told_of_once() {
    let functions = Functions::new().with_script("echo", "cat");
    let mut server = unspoken(&functions)
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        .variable("OTEL_METRIC_EXPORT_INTERVAL", "20")
        .start();
    let client = server.client().await;
    eventually("it is told", || server.log().contains("metrics do not reach the collector"));
    call(&client, "echo", EMPTY.into()).await.unwrap();
    drop(client);
    server.signal(Signal::TERM);
    assert_eq!(server.wait(PATIENCE).code(), Some(0));
    let log = server.log();
    let told: Vec<_> =
        log.lines().filter(|line| line.contains("metrics do not reach the collector")).collect();
    assert!(told.len() == 1 && told[0].contains("onnection refused"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_takes_what_it_is_sent_again_is_told_of() {
    let collector = Collector::http(None).await;
    collector.refuse(true);
    let functions = Functions::new();
    let server = unspoken(&functions)
        .variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &format!("{}/metrics", collector.url))
        .variable("OTEL_METRIC_EXPORT_INTERVAL", "20")
        .start();
    eventually("it is told", || server.log().contains("metrics do not reach the collector"));
    assert!(server.log().contains("403"), "{}", server.log());
    collector.refuse(false);
    eventually("it is told", || server.log().contains("metrics reach the collector again"));
    assert!(!collector.received().metrics.is_empty());
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("any");
    let own = authority.server();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, content) in [
        ("garbage", "not a certificate"),
        ("ca", &authority.pem),
        ("own", &own.certificate),
        ("key", &own.key),
    ] {
        std::fs::write(path(name), content).unwrap();
    }
    let [ca, certificate, key] =
        ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"].map(|what| format!("OTEL_EXPORTER_OTLP_{what}"));
    for variable in [&ca, &certificate, &key] {
        for file in ["absent", "garbage"] {
            for protocol in ["grpc", "http/protobuf"] {
                let output = Command::new(PROGRAM)
                    .args(["--port=0", "--metrics-port=0"])
                    .env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://localhost:9")
                    .env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
                    .envs([(&ca, path("ca")), (&certificate, path("own")), (&key, path("key"))])
                    .env(variable, path(file))
                    .output()
                    .unwrap();
                let told = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(1), "{told}");
                let expected = format!("{}, which {variable} names", path(file));
                assert!(told.contains(&expected), "{protocol}: {expected} is not in {told}");
            }
        }
    }
}

#[tokio::test]
async fn the_headers_of_the_callers_trace_are_those_of_the_propagators() {
    let functions = Functions::new().with_script("echo", "cat");
    let (b3, _) = Propagators::read("b3");
    for (list, carried_by, is_taken) in [
        ("", Propagators::default(), true),
        ("b3", b3, true),
        ("b3", Propagators::default(), false),
        ("none", Propagators::default(), false),
        ("jaeger,tracecontext", Propagators::default(), true),
    ] {
        let server = runner(&functions).variable("OTEL_PROPAGATORS", list).start();
        let client = server.client().await;
        let trace = traced().trace.map(|trace| trace.carried_by(carried_by, None));
        let options = CallOptions { trace, ..CallOptions::default() };
        within_patience(client.evaluate(&image("echo"), EMPTY.into(), options)).await.unwrap();
        eventually("the call is logged", || server.log().contains(" INFO call "));
        let log = server.log();
        assert_eq!(log.contains(&format!("trace=\"{TRACE}\"")), is_taken, "{list}: {log}");
        assert_eq!(log.contains("WARN OTEL_PROPAGATORS has [\"jaeger\"]"), list.contains("jaeger"), "{log}");
    }
}
