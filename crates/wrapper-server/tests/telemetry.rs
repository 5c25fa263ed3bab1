//! Spans and metrics reach a collector, by the standard variables.
#![allow(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::{AggregationTemporality, metric::Data},
    trace::v1::{span::SpanKind, status::StatusCode},
};
use prost::Message as _;
use testing::{Server, ServerBuilder, Signal, eventually, resource_list};
use wire::{TraceContext, client::CallOptions};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wrapper-server");
const PATIENCE: Duration = Duration::from_secs(30);
const TRACE: u128 = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c;
const PARENT: u64 = 0xb7ad_6b71_6920_3331;

/// The heads and bodies of the requests that a collector got.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that gives this answer to everybody.
fn collector(answer: &'static str) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, requests) = (format!("http://{}", listener.local_addr().unwrap()), Requests::default());
    let kept = requests.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (mut reader, mut head) = (BufReader::new(&stream), String::new());
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            kept.lock().unwrap().push((head, body));
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    (url, requests)
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A server of a script about whose exporters nothing is said yet.
fn wrapper(script: &str) -> ServerBuilder {
    Server::of(PROGRAM).rest(["--", "/bin/sh", "-c", script]).variable("OTEL_METRICS_EXPORTER", "")
}

fn end(mut server: Server) -> String {
    server.signal(Signal::TERM);
    assert_eq!(server.wait(PATIENCE).code(), Some(0));
    server.log()
}

fn traced(flags: u8) -> CallOptions {
    CallOptions { trace: Some(TraceContext::new(TRACE, PARENT, flags, None)), ..CallOptions::default() }
}

/// The value of an attribute, as text.
fn value(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key).unwrap();
    match found.value.clone().unwrap().value.unwrap() {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_enough_for_spans_and_metrics() {
    let (url, requests) = collector(TAKEN);
    let server = wrapper("grep -q good && echo 'kind: ResourceList'")
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
        .variable("OTEL_EXPORTER_OTLP_HEADERS", "authorization=let%20me%20in")
        .variable("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=a-pod")
        .start();
    let client = server.client().await;
    client.evaluate("example.com/f:v1", resource_list(&["good"]), traced(1)).await.unwrap();
    client.evaluate("example.com/f:v1", resource_list(&["bad"]), traced(1)).await.unwrap_err();
    // Whoever is asked not to be recorded is not, and whoever says nothing is.
    client.evaluate("example.com/f:v1", resource_list(&["good"]), traced(0)).await.unwrap();
    client.evaluate("example.com/f:v1", resource_list(&["good"]), CallOptions::default()).await.unwrap();
    drop(client);
    let log = end(server);
    assert!(log.contains("INFO call code=Ok duration=") && log.contains(&format!(" trace={TRACE:032x}")));
    assert!(log.contains("WARN call code=Internal "), "{log}");

    let requests = requests.lock().unwrap().clone();
    let (traces, metrics): (Vec<_>, Vec<_>) =
        requests.iter().partition(|(head, _)| head.starts_with("POST /v1/traces HTTP/1.1\r\n"));
    assert!(
        requests.iter().all(|(head, _)| head.contains("\r\nauthorization: let me in\r\n")),
        "{requests:?}"
    );
    let traces: Vec<_> =
        traces.iter().map(|(_, body)| ExportTraceServiceRequest::decode(&body[..]).unwrap()).collect();
    let resource = traces[0].resource_spans[0].resource.clone().unwrap();
    assert_eq!(value(&resource.attributes, "service.name"), "wrapper-server");
    assert_eq!(value(&resource.attributes, "k8s.pod.name"), "a-pod");
    let resources = traces.into_iter().flat_map(|request| request.resource_spans);
    let spans: Vec<_> =
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect();
    assert_eq!(spans.len(), 3, "{spans:?}");
    for (span, code) in spans.iter().zip(["0", "13"]) {
        assert_eq!(
            (&span.trace_id[..], &span.parent_span_id[..]),
            (&TRACE.to_be_bytes()[..], &PARENT.to_be_bytes()[..])
        );
        assert_eq!(span.name, "evaluator.FunctionEvaluator/EvaluateFunction");
        assert_eq!((span.kind(), span.span_id.len()), (SpanKind::Server, 8));
        assert!(span.start_time_unix_nano > 0 && span.end_time_unix_nano >= span.start_time_unix_nano);
        assert_eq!(value(&span.attributes, "rpc.grpc.status_code"), code);
        assert_eq!(value(&span.attributes, "function.image"), "example.com/f:v1");
    }
    assert_eq!(spans[0].status, None);
    let status = spans[1].status.clone().unwrap();
    assert!(status.code() == StatusCode::Error && status.message.contains("example.com/f:v1"), "{status:?}");
    assert!(spans[2].parent_span_id.is_empty() && spans[2].trace_id != TRACE.to_be_bytes(), "{spans:?}");

    let (head, body) = metrics.last().unwrap();
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    let request = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
    let sent = &request.resource_metrics[0].scope_metrics[0].metrics;
    let names: Vec<_> = sent.iter().map(|metric| (metric.name.as_str(), metric.unit.as_str())).collect();
    let expected = [
        ("rpc.server.duration", "ms"),
        ("rpc.server.request.size", "By"),
        ("rpc.server.response.size", "By"),
    ];
    assert_eq!(names, expected);
    for metric in sent {
        let Some(Data::Histogram(histogram)) = &metric.data else { panic!("{metric:?}") };
        assert_eq!(histogram.aggregation_temporality(), AggregationTemporality::Cumulative);
        for point in &histogram.data_points {
            assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
            assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
            let expected = if value(&point.attributes, "rpc.grpc.status_code") == "0" { 3 } else { 1 };
            assert_eq!(
                (point.count, value(&point.attributes, "rpc.method").as_str()),
                (expected, "EvaluateFunction")
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_refuses_or_is_away_is_told_of_and_holds_nobody_up() {
    let (refusing, _) = collector("HTTP/1.1 503 Service Unavailable\r\n\r\n");
    let (garbling, _) = collector("\u{0}\u{0}\u{0}");
    let away = "http://127.0.0.1:9".to_owned();
    for (url, cause) in
        [(&refusing, "503 Service Unavailable"), (&garbling, "it answered"), (&away, "refused")]
    {
        let server = wrapper("cat").variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url).start();
        let client = server.client().await;
        client.evaluate("x", resource_list(&["a"]), CallOptions::default()).await.unwrap();
        drop(client);
        let log = end(server);
        let told: Vec<_> =
            log.lines().filter(|line| line.contains("traces do not reach the collector")).collect();
        assert!(told.len() == 1 && told[0].contains(cause), "{log}");
    }
}

#[tokio::test]
async fn what_the_wrapper_does_not_send_is_said_at_the_start() {
    let server = wrapper("cat").variable("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318").start();
    eventually("the warnings", || server.log().matches("not encrypted").count() == 2);
    server.client().await.evaluate("x", resource_list(&["a"]), CallOptions::default()).await.unwrap();
}
