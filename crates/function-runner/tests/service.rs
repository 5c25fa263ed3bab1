//! The gRPC service as any client sees it: services, health, sizes, bad requests, connections.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{Buf, BufMut, Bytes};
use common::{EMPTY, call, runner, within_patience};
use testing::{Functions, Signal, in_own_thread, resource_list};
use tokio::net::{TcpListener, TcpStream};
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    transport::Channel,
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use wire::client::{CallOptions, Client, endpoint};

/// Sends and takes messages as they are.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;
    fn encoder(&mut self) -> Self {
        Self
    }
    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

const EVALUATE: &str = "/evaluator.FunctionEvaluator/EvaluateFunction";

async fn send_raw(channel: &Channel, path: &'static str, message: Bytes) -> Result<Bytes, Status> {
    let mut grpc = Grpc::new(channel.clone());
    within_patience(grpc.ready()).await.unwrap();
    let path = PathAndQuery::from_static(path);
    within_patience(grpc.unary(Request::new(message), path, Raw)).await.map(tonic::Response::into_inner)
}

/// A field of bytes, as protocol buffers write short ones.
fn field(number: u8, content: &str) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
    assert!(content.len() < 128);
    bytes.extend(content.as_bytes());
    bytes
}

fn echo() -> Functions {
    Functions::new().with_script("echo", "cat")
}

#[tokio::test]
async fn reflection_lists_all_services() {
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };
    let functions = echo();
    let server = runner(&functions).start();
    let mut client = ServerReflectionClient::new(server.channel().await);
    let ask = |request| ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let requests = vec![
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("evaluator.FunctionEvaluator".into())),
    ];
    let mut answers = client.server_reflection_info(tokio_stream::iter(requests)).await.unwrap().into_inner();
    let listed = within_patience(answers.message()).await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(listed) = listed else { panic!("{listed:?}") };
    let names: Vec<_> = listed.service.into_iter().map(|service| service.name).collect();
    for name in ["evaluator.FunctionEvaluator", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|listed| listed == name), "{names:?}");
    }
    let file = within_patience(answers.message()).await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::FileDescriptorResponse(file) = file else { panic!("{file:?}") };
    let descriptor = String::from_utf8_lossy(&file.file_descriptor_proto[0]).into_owned();
    assert!(descriptor.contains("EvaluateFunction") && descriptor.contains("Tag"), "{descriptor}");
}

#[tokio::test]
async fn health_is_told_for_every_name() {
    let functions = echo();
    let server = runner(&functions).start();
    let mut client = HealthClient::new(server.channel().await);
    for service in ["", "evaluator.FunctionEvaluator", "no.such.Service"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = within_patience(client.check(request)).await.unwrap().into_inner();
        assert_eq!(answer.status().as_str_name(), "SERVING", "{service:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_sees_the_end_coming_and_then_ends() {
    let functions = echo();
    let mut server = runner(&functions).flags(["--shutdown-delay=100ms"]).start();
    let mut client = HealthClient::new(server.channel().await);
    let mut states = client.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    let first = within_patience(states.message()).await.unwrap().unwrap();
    assert_eq!(first.status().as_str_name(), "SERVING");
    server.signal(Signal::TERM);
    let second = within_patience(states.message()).await.unwrap().unwrap();
    assert_eq!(second.status().as_str_name(), "NOT_SERVING");
    let end = within_patience(states.message()).await;
    assert!(matches!(end, Ok(None)), "{end:?}");
    assert_eq!(server.wait(common::PATIENCE).code(), Some(0));
}

#[tokio::test]
async fn it_answers_on_both_address_families() {
    let functions = echo();
    let server = runner(&functions).start();
    for host in ["127.0.0.1", "[::1]"] {
        let channel = endpoint(&format!("{host}:{}", server.port())).unwrap().connect().await.unwrap();
        let answer = call(&Client::new(channel, 1 << 20), "echo", EMPTY.into()).await.unwrap();
        assert_eq!(answer.resource_list, EMPTY, "{host}");
    }
}

#[tokio::test]
async fn the_third_field_of_a_request_is_the_tag() {
    let functions = echo();
    let server = runner(&functions).start();
    let channel = server.channel().await;
    let request = |image: &str, tag: &str| [field(1, EMPTY), field(2, image), field(3, tag)].concat().into();
    for image in ["example.com/echo", "example.com/echo:v9"] {
        let answer = send_raw(&channel, EVALUATE, request(image, "v1")).await.unwrap();
        assert_eq!(answer, field(1, EMPTY), "{image}");
    }
    let unknown = send_raw(&channel, EVALUATE, request("example.com/echo:v1", "v2")).await.unwrap_err();
    assert_eq!(unknown.message(), r#"function "example.com/echo:v2" not found"#);
    for tag in ["not a tag", ">=", "v1@sha256:0"] {
        let invalid = send_raw(&channel, EVALUATE, request("example.com/echo:v1", tag)).await.unwrap_err();
        assert_eq!(invalid.code(), Code::InvalidArgument, "{invalid}");
        assert!(invalid.message().contains("neither a tag nor a version constraint"), "{invalid}");
        assert!(invalid.message().contains("right ones look like ~0.4"), "{invalid}");
    }
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_by_name_and_the_connection_stays_usable() {
    const LIMIT: usize = 65536;
    let functions = echo();
    let server = runner(&functions).flags([format!("--max-request-body-size={LIMIT}")]).start();
    let client = Client::new(server.channel().await, 64 << 20);
    let list = |size: usize| Bytes::from(format!("{EMPTY}{}\n", "#".repeat(size)));
    // The largest that fits goes in; the envelope of its answer fits as well.
    let fitting = list(LIMIT - EMPTY.len() - 100);
    assert_eq!(call(&client, "echo", fitting.clone()).await.unwrap().resource_list, fitting);
    // Just over the limit, some times over it, and more than any window of the connection holds.
    for size in [LIMIT, 4 * LIMIT, 20 << 20] {
        let refused = call(&client, "echo", list(size)).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        let told = refused.message();
        let real_size = list(size).len() + 2 + common::image("echo").len();
        let told_size: usize = told
            .strip_prefix("the message is ")
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .unwrap_or_default();
        assert!((real_size..real_size + 10).contains(&told_size), "{real_size}: {told}");
        assert!(told.contains("65536 bytes set by --max-request-body-size"), "{told}");
        assert_eq!(call(&client, "echo", fitting.clone()).await.unwrap().resource_list, fitting);
    }
}

#[tokio::test]
async fn an_empty_malformed_or_huge_image_is_an_invalid_argument() {
    let functions = echo();
    let server = runner(&functions).start();
    let client = server.client().await;
    let huge = "x".repeat(5 << 20);
    for (image, expected) in [
        ("", "it is empty"),
        ("https://example.com/echo", "it starts with a scheme"),
        ("example.com/Echo:v1", "capital letters"),
        ("example.com/echo:", "invalid image reference"),
        ("example.com/ec\u{0}ho\n", "invalid image reference"),
        (&huge, "it has 5242880 bytes"),
    ] {
        let call = client.evaluate(image, EMPTY.into(), CallOptions::default());
        let status = within_patience(call).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(expected), "{expected:?} is not in {}", status.message());
        assert!(status.message().len() < 2000, "{}", status.message().len());
    }
}

#[tokio::test]
async fn an_image_nobody_serves_is_not_found() {
    let functions = echo();
    let server = runner(&functions).start();
    let client = server.client().await;
    for (given, shown) in [
        ("example.com/unknown:v1", "example.com/unknown:v1"),
        // A bare name is looked up, and shown, under the default prefix.
        ("unknown:v1", "ghcr.io/kptdev/krm-functions-catalog/unknown:v1"),
    ] {
        let call = client.evaluate(given, EMPTY.into(), CallOptions::default());
        let status = within_patience(call).await.unwrap_err();
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message(), format!("function {shown:?} not found"));
    }
}

#[tokio::test]
async fn bare_names_are_served_under_the_default_prefix() {
    let functions =
        Functions::new().with_script("echo", "cat").with_entry("echo", &["example.org/fn/echo:v2"]);
    let server = runner(&functions).flags(["--default-image-prefix=example.org/fn"]).start();
    let client = server.client().await;
    let answer = within_patience(client.evaluate("echo:v2", EMPTY.into(), CallOptions::default())).await;
    assert_eq!(answer.unwrap().resource_list, EMPTY);
}

#[tokio::test]
async fn what_is_not_offered_is_unimplemented_and_garbage_is_told_from_it() {
    let functions = echo();
    let server = runner(&functions).start();
    let channel = server.channel().await;
    for path in ["/evaluator.FunctionEvaluator/NoSuchMethod", "/no.such.Service/Method", "/nothing"] {
        let status = send_raw(&channel, path, Bytes::new()).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented, "{path}: {status}");
    }
    for garbage in [&b"\xff\xff\xff\xff\xff\xff"[..], b"\x0a\xff\x7f", b"\x12\x04\xff\xfe\xfd\xfc"] {
        let status = send_raw(&channel, EVALUATE, Bytes::from_static(garbage)).await.unwrap_err();
        assert!(matches!(status.code(), Code::Internal | Code::InvalidArgument), "{status}");
        assert!(status.message().contains("decode"), "{status}");
    }
    let client = Client::new(channel, 1 << 20);
    assert!(call(&client, "echo", EMPTY.into()).await.is_ok());
}

#[tokio::test]
async fn a_request_that_does_not_arrive_in_time_is_answered_all_the_same() {
    let functions = echo();
    let server = runner(&functions).start();
    let mut grpc = Grpc::new(server.channel().await);
    within_patience(grpc.ready()).await.unwrap();
    let mut request = Request::new(tokio_stream::pending::<Bytes>());
    request.set_timeout(Duration::from_secs(2));
    let path = PathAndQuery::from_static(EVALUATE);
    let status = within_patience(grpc.client_streaming(request, path, Raw)).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert!(status.message().contains("before the whole request had arrived"), "{status}");
}

/// Hands connections on to `port`, and counts them.
async fn counting_proxy(port: u16) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (own, count)
}

#[tokio::test(flavor = "multi_thread")]
async fn old_connections_are_left_without_losing_a_call() {
    const CALLERS: usize = 4;
    let functions = Functions::new().with_script("slow", "cat; sleep 0.05");
    let server = runner(&functions).flags(["--max-connection-age=300ms"]).start();
    let (port, connections) = counting_proxy(server.port()).await;
    let endpoint = endpoint(&format!("127.0.0.1:{port}")).unwrap();
    let caller = |number: usize| {
        let (endpoint, connections) = (endpoint.clone(), connections.clone());
        async move {
            let client = Client::new(endpoint.connect().await.unwrap(), 1 << 20);
            let mut calls = 0_usize;
            // Each has left a connection three times, or others have more often.
            while connections.load(Ordering::Relaxed) < 4 * CALLERS {
                let input = resource_list(&[&format!("call-{number}-{calls}")]);
                let answer = call(&client, "slow", input.clone()).await.unwrap();
                assert_eq!(answer.resource_list, input, "call {calls} of {number}");
                calls += 1;
            }
            calls
        }
    };
    let callers: Vec<_> = (0..CALLERS).map(|number| in_own_thread(caller(number))).collect();
    let mut answered = 0;
    for caller in callers {
        answered += tokio::time::timeout(Duration::from_mins(1), caller).await.unwrap().unwrap();
    }
    // Whatever the service took in, it answered.
    let taken = || server.log().matches(" call function=").count();
    testing::eventually("every call is logged", || taken() >= answered);
    assert_eq!((taken(), server.log().matches("code=Ok").count()), (answered, answered));
}
