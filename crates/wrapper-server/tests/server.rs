//! Starting the wrapper server: its command line, its health, its metrics.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

use std::{
    net::{Ipv6Addr, TcpListener, TcpStream},
    process::{Command, Output, Stdio},
};

use testing::{Server, ServerBuilder, eventually, free_port, resource_list};
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use wire::client::{CallOptions, Client};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wrapper-server");

/// A server of a function that is a shell script.
fn wrapper(script: &str) -> ServerBuilder {
    Server::of(PROGRAM).rest(["--", "/bin/sh", "-c", script])
}

/// A command line that ends by itself.
fn run(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(PROGRAM).args(arguments).env("OTEL_METRICS_EXPORTER", "none").output().unwrap();
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    (output, text)
}

#[tokio::test]
async fn flags_take_one_dash_or_two_and_their_value_either_way() {
    for spelling in [
        vec!["--max-request-body-size", "5000", "--verbosity", "2"],
        vec!["-max-request-body-size", "5000", "-verbosity", "2"],
        vec!["--max-request-body-size=5000", "--verbosity=2"],
        vec!["-max-request-body-size=5000", "-verbosity=2"],
    ] {
        let server = wrapper("cat").flags(spelling.iter().copied()).start();
        let client = server.client().await;
        client.evaluate("x", resource_list(&["a"]), CallOptions::default()).await.unwrap();
        let refused =
            client.evaluate("x", vec![b'#'; 6000].into(), CallOptions::default()).await.unwrap_err();
        assert!(refused.message().contains("5000 bytes"), "{spelling:?}: {refused:?}");
    }
}

#[tokio::test]
async fn the_port_is_the_one_asked_for_on_both_families() {
    let port = free_port();
    let server = wrapper("cat").flags([format!("-port={port}")]).start();
    assert_eq!(server.port(), port);
    for host in ["127.0.0.1", "[::1]", "localhost"] {
        let channel = wire::client::endpoint(&format!("{host}:{port}")).unwrap().connect().await.unwrap();
        let list = resource_list(&["a"]);
        Client::new(channel, 10_000).evaluate("x", list, CallOptions::default()).await.unwrap();
    }
}

#[tokio::test]
async fn arguments_of_the_entrypoint_are_its_own_even_when_they_look_like_flags() {
    let script = r#"printf '%s|' "$@" >&2; cat"#;
    let theirs = ["--port", "1", "-h", "--", "--unknown=x", "", "two words", "--verbosity"];
    // What is no flag ends the flags, with or without dashes before it.
    for before in [&["--", "/bin/sh", "-c", script, "sh"][..], &["/bin/sh", "-c", script, "sh"]] {
        let server = Server::of(PROGRAM).rest(before.iter().chain(&theirs).copied()).start();
        let list = resource_list(&["a"]);
        let answer = server.client().await.evaluate("x", list, CallOptions::default()).await.unwrap();
        let expected = "--port|1|-h|--|--unknown=x||two words|--verbosity|";
        assert_eq!(String::from_utf8_lossy(&answer.log), expected);
    }
}

#[tokio::test]
async fn a_bare_name_is_looked_up_in_the_path() {
    let server = Server::of(PROGRAM).rest(["--", "cat"]).start();
    let list = resource_list(&["a", "b"]);
    let answer = server.client().await.evaluate("x", list.clone(), CallOptions::default()).await.unwrap();
    assert_eq!(answer.resource_list, list);
}

#[test]
fn a_wrong_command_line_ends_with_2_and_tells_every_mistake() {
    for arguments in [&[][..], &["--port", "0"], &["--port", "0", "--"], &["--port", "0", "--", ""]] {
        let (output, text) = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains("the entrypoint is missing"), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty());
    }
    let (output, text) = run(&["-prot=1", "--max-request-body-size", "0", "--verbosity=much", "--", "cat"]);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in [
        "3 mistakes",
        "-prot",
        "did you mean --port?",
        "--max-request-body-size \"0\"",
        "--verbosity \"much\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn help_is_printed_and_is_no_failure() {
    for spelling in ["-h", "--help"] {
        let (output, _) = run(&[spelling]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        for part in
            ["wrapper-server [flags] -- ENTRYPOINT", "--port", "9446", "--max-request-body-size", "6291456"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn a_port_in_use_is_told_with_its_flag() {
    let taken = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (output, text) = run(&["--port", &port, "--", "cat"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&port) && text.contains("--port") && text.contains("in use"), "{text}");
}

#[tokio::test]
async fn verbosity_decides_what_is_told() {
    // Without the line that tells its port, only one that was asked for is known.
    let port = free_port();
    let script = "cat; echo 'results: [{message: m, severity: error}]'";
    let mut server = Command::new(PROGRAM)
        .args(["--verbosity=1", "--port", &port.to_string(), "--", "/bin/sh", "-c", script])
        .env("OTEL_METRICS_EXPORTER", "none")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("it accepts", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let channel = wire::client::endpoint(&format!("127.0.0.1:{port}")).unwrap().connect().await.unwrap();
    let list = resource_list(&["a"]);
    Client::new(channel, 10_000).evaluate("x", list, CallOptions::default()).await.unwrap();
    server.kill().unwrap();
    let told = String::from_utf8(server.wait_with_output().unwrap().stderr).unwrap();
    assert_eq!(told, "WARN the function exited with 0 but reported an error result\n");
}

#[tokio::test]
async fn a_line_is_told_for_each_call_and_never_its_content() {
    let server = wrapper("cat; echo grumble >&2").start();
    let (client, list) = (server.client().await, resource_list(&["confidential"]));
    client.evaluate("example.com/named:v1", list.clone(), CallOptions::default()).await.unwrap();
    let line = format!("bytes_in={} bytes_out={}", list.len(), list.len());
    eventually("the call's line", || server.log().contains(&line));
    let log = server.log();
    assert!(log.contains("INFO call code=Ok duration="), "{log}");
    assert!(!log.contains("confidential") && !log.contains("grumble"), "{log}");
}

#[tokio::test]
async fn health_is_served_for_every_name_and_can_be_watched() {
    let server = wrapper("cat").start();
    let mut client = HealthClient::new(server.channel().await);
    for service in ["", "evaluator.FunctionEvaluator", "no such service"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let checked = client.check(request.clone()).await.unwrap().into_inner();
        assert_eq!(checked.status(), ServingStatus::Serving, "{service:?}");
        let first = client.watch(request).await.unwrap().into_inner().message().await.unwrap().unwrap();
        assert_eq!(first.status(), ServingStatus::Serving, "{service:?}");
    }
}

#[tokio::test]
async fn unknown_services_and_methods_are_unimplemented() {
    let server = wrapper("cat").start();
    for path in ["/evaluator.FunctionEvaluator/Evaluate", "/other.Service/Method", "/"] {
        let mut client = tonic::client::Grpc::new(server.channel().await);
        client.ready().await.unwrap();
        let codec = tonic_prost::ProstCodec::<HealthCheckRequest, HealthCheckRequest>::default();
        let request = tonic::Request::new(HealthCheckRequest::default());
        let status = client.unary(request, path.parse().unwrap(), codec).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented, "{path}: {status:?}");
    }
}

#[tokio::test]
async fn metrics_have_the_names_that_readers_of_the_original_look_for() {
    let server = wrapper("cat").metrics().start();
    let mut health = HealthClient::new(server.channel().await);
    health.check(HealthCheckRequest::default()).await.unwrap();
    let counted = r#"rpc_server_duration_milliseconds_count{rpc_system="grpc",rpc_service="grpc.health.v1.Health",rpc_method="Check",rpc_grpc_status_code="0"} 1"#;
    // A call is counted when its answer has left, which its reader may know first.
    eventually("the health check is counted", || server.metrics().contains(counted));
    let page = server.metrics();
    for part in ["HTTP/1.1 200 OK", "\ngo_goroutines ", "rpc_server_request_size_bytes_bucket{"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn metrics_count_calls_by_code_and_not_by_image() {
    let server = wrapper("grep -q good || exit 3; echo 'kind: ResourceList'").metrics().start();
    let client = server.client().await;
    for image in ["a", "b", "c"] {
        client.evaluate(image, resource_list(&["good"]), CallOptions::default()).await.unwrap();
        client.evaluate(image, resource_list(&["bad"]), CallOptions::default()).await.unwrap_err();
    }
    let line = |code: u8| {
        format!(
            "rpc_server_duration_milliseconds_count{{rpc_system=\"grpc\",rpc_service=\"evaluator.FunctionEvaluator\",\
             rpc_method=\"EvaluateFunction\",rpc_grpc_status_code=\"{code}\"}} 3\n"
        )
    };
    eventually("all calls are counted", || {
        let page = server.metrics();
        page.contains(&line(0)) && page.contains(&line(13))
    });
    assert_eq!(server.metrics().matches("milliseconds_count{").count(), 2);
}

#[tokio::test]
async fn metrics_may_be_offered_on_an_interface_that_is_named() {
    let server = wrapper("cat").metrics().variable("OTEL_EXPORTER_PROMETHEUS_HOST", "localhost").start();
    let head = server.ask_metrics("HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn metrics_can_be_turned_off() {
    let port = free_port().to_string();
    let server = wrapper("cat").variable("OTEL_EXPORTER_PROMETHEUS_PORT", &port).start();
    HealthClient::new(server.channel().await).check(HealthCheckRequest::default()).await.unwrap();
    let refused = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn metrics_that_cannot_be_offered_are_a_warning_only() {
    let taken = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (variables, warning) in [
        ([("OTEL_METRICS_EXPORTER", "prometheus"), ("OTEL_EXPORTER_PROMETHEUS_PORT", &*port)], &*port),
        (
            [("OTEL_METRICS_EXPORTER", "prometheus"), ("OTEL_EXPORTER_PROMETHEUS_PORT", "many")],
            "OTEL_EXPORTER_PROMETHEUS_PORT is no port",
        ),
        (
            [("OTEL_EXPORTER_PROMETHEUS_PORT", "1234"), ("OTEL_EXPORTER_PROMETHEUS_HOST", "no host")],
            "port 1234 of no host for metrics",
        ),
        ([("OTEL_METRICS_EXPORTER", "console"), ("OTEL_EXPORTER_PROMETHEUS_PORT", "1")], "\"console\""),
    ] {
        let start = wrapper("cat").variable("OTEL_METRICS_EXPORTER", "");
        let server = variables.iter().fold(start, |start, (name, value)| start.variable(name, value)).start();
        HealthClient::new(server.channel().await).check(HealthCheckRequest::default()).await.unwrap();
        eventually("the warning", || server.log().contains("WARN") && server.log().contains(warning));
    }
}
