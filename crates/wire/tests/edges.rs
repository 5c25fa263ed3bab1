//! What a server answers to requests that are odd, endless, or more than it has memory for.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use h2::{RecvStream, SendStream, client::SendRequest};
use http::{HeaderMap, Request, StatusCode};
use prost::Message;
use tokio::net::TcpStream;
use tonic::{Code, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_types::StatusExt;
use wire::{
    Arrival, CallMemory, Failure, FinishedRpc, Front, Health, Memory, Observer, ServeOptions,
    proto::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
    },
};

const EVALUATE: &str = "evaluator.FunctionEvaluator/EvaluateFunction";
const HEALTH: &str = "grpc.health.v1.Health/Check";
/// The largest message.
const LIMIT: usize = 1024 * 1024;
/// What all calls together may hold.
const MEMORY: usize = 8 * LIMIT;
/// Long enough for any answer on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

struct Unobserved;

impl Observer for Unobserved {
    fn finished(&self, _: &FinishedRpc) {}
}

/// Answers with what it is sent; `wait` is never answered, `fail` fails at length.
struct Echo;

#[tonic::async_trait]
impl FunctionEvaluator for Echo {
    async fn evaluate_function(
        &self,
        request: tonic::Request<EvaluateFunctionRequest>,
    ) -> Result<Response<EvaluateFunctionResponse>, Status> {
        let arrival: Arrival = request.extensions().get().copied().unwrap();
        let memory: CallMemory = request.extensions().get().cloned().unwrap();
        let request = request.into_inner();
        match request.image.as_str() {
            "wait" => {
                let _kept = memory.keep(request.resource_list);
                drop(memory);
                std::future::pending().await
            }
            "fail" => {
                let words = || "why \u{1F600} ".repeat(100_000);
                let failure = Failure::FunctionFailed {
                    image: request.image,
                    exit: "exit status 1".into(),
                    results: words(),
                    stderr: words(),
                    output: Box::new(request.resource_list),
                };
                Err(failure.into_status(arrival.room))
            }
            _ => Ok(Response::new(EvaluateFunctionResponse {
                resource_list: request.resource_list,
                log: Bytes::new(),
            })),
        }
    }
}

/// A server, and what its calls hold.
fn start() -> (SocketAddr, Memory) {
    let memory = Memory::new(MEMORY);
    let health = Health::new();
    health.set_serving(true);
    let service = FunctionEvaluatorServer::new(Echo)
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    let front = Front::new(LIMIT, memory.clone(), Arc::new(Unobserved))
        .mount(service, &["EvaluateFunction"])
        .mount_small(health.service(), &["Check", "Watch"]);
    let listener = wire::listen(Some([127, 0, 0, 1].into()), 0).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(wire::serve(listener, front, ServeOptions::default(), std::future::pending()));
    (address, memory)
}

/// A connection from an address of its own.
async fn connect_from(source: [u8; 4], to: SocketAddr, window: u32) -> SendRequest<Bytes> {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    let stream: TcpStream = socket.connect(to).await.unwrap();
    let (client, connection) = h2::client::Builder::new()
        .initial_window_size(window)
        .max_header_list_size(64 * 1024)
        .initial_max_send_streams(1000)
        .handshake(stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

async fn connect(to: SocketAddr) -> SendRequest<Bytes> {
    connect_from([127, 0, 0, 1], to, 16 * 1024 * 1024).await
}

fn request(path: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::post(format!("http://service/{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", "application/grpc");
    }
    request.body(()).unwrap()
}

/// A message with its prefix.
fn framed(message: &impl Message) -> Bytes {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], &message].concat().into()
}

fn evaluate(image: &str, bytes: usize) -> Bytes {
    let resource_list = vec![b'x'; bytes].into();
    framed(&EvaluateFunctionRequest { resource_list, image: image.into(), tag: String::new() })
}

type Answer = http::Response<RecvStream>;

/// Sends a request and waits for the head of its answer.
async fn send(client: &SendRequest<Bytes>, request: Request<()>, body: Bytes) -> Answer {
    let mut client = client.clone().ready().await.unwrap();
    let (answer, mut sending) = client.send_request(request, false).unwrap();
    sending.send_data(body, true).unwrap();
    tokio::time::timeout(PATIENCE, answer).await.unwrap().unwrap()
}

/// What the call ended with.
async fn status(answer: Answer) -> (Status, HeaderMap, usize) {
    let (head, mut body) = answer.into_parts();
    let mut received = 0;
    while let Some(piece) = tokio::time::timeout(PATIENCE, body.data()).await.unwrap() {
        let piece = piece.unwrap();
        received += piece.len();
        body.flow_control().release_capacity(piece.len()).unwrap();
    }
    let headers = body.trailers().await.unwrap().unwrap_or(head.headers);
    (Status::from_header_map(&headers).unwrap(), headers, received)
}

async fn call(client: &SendRequest<Bytes>, headers: &[(&str, &str)], body: Bytes) -> Status {
    status(send(client, request(EVALUATE, headers), body).await).await.0
}

async fn is_healthy(client: &SendRequest<Bytes>) -> bool {
    let body = framed(&HealthCheckRequest { service: String::new() });
    status(send(client, request(HEALTH, &[]), body).await).await.0.code() == Code::Ok
}

/// Begins a call whose message announces so many bytes, and sends no more.
async fn announce(
    client: &SendRequest<Bytes>,
    bytes: usize,
) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
    let mut client = client.clone().ready().await.unwrap();
    let (answer, mut sending) = client.send_request(request(EVALUATE, &[]), false).unwrap();
    let length = u32::try_from(bytes).unwrap().to_be_bytes();
    sending.send_data([&[0], &length[..]].concat().into(), false).unwrap();
    (answer, sending)
}

async fn eventually(what: &str, check: impl Fn() -> bool) {
    let waiting = async {
        while !check() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{what}");
}

#[tokio::test]
async fn only_messages_of_protocol_buffers_are_taken() {
    let (address, _) = start();
    let client = connect(address).await;
    for right in
        ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8", "Application/GRPC"]
    {
        let status = call(&client, &[("content-type", right)], evaluate("x", 10)).await;
        assert_eq!(status.code(), Code::Ok, "{right}");
    }
    for wrong in [
        "",
        "application/json",
        "application/grpc+json",
        "application/grpc-web",
        "application/grpc-web+proto",
        "text/html",
    ] {
        let answer = send(&client, request(EVALUATE, &[("content-type", wrong)]), evaluate("x", 10)).await;
        assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{wrong}");
        let text = answer.into_body().data().await.unwrap().unwrap();
        assert!(text.starts_with(b"this is a gRPC service"), "{text:?}");
    }
}

#[tokio::test]
async fn a_malformed_deadline_is_refused_and_one_that_is_over_is_answered_at_once() {
    let (address, _) = start();
    let client = connect(address).await;
    let with = |timeout: &'static str| {
        let client = client.clone();
        async move { call(&client, &[("grpc-timeout", timeout)], evaluate("wait", 10)).await }
    };
    for odd in ["1s", "", "-1S", "1", "123456789S", "S"] {
        let refused = with(odd).await;
        assert_eq!(refused.code(), Code::InvalidArgument, "{odd:?}");
        assert!(refused.message().contains(&format!("grpc-timeout is {odd:?}")), "{refused}");
    }
    for over in ["0n", "0S", "5n", "1m"] {
        assert_eq!(with(over).await.code(), Code::DeadlineExceeded, "{over}");
    }
    let refused = call(&client, &[("grpc-timeout", "5S")], evaluate("x", 10)).await;
    assert_eq!(refused.code(), Code::Ok);
}

#[tokio::test]
async fn compressed_requests_are_refused_unread() {
    let (address, memory) = start();
    let client = connect(address).await;
    for encoding in ["gzip", "deflate", "zstd", "snappy", "br"] {
        let status = call(&client, &[("grpc-encoding", encoding)], evaluate("x", 10)).await;
        assert_eq!(status.code(), Code::Unimplemented, "{encoding}: {status}");
    }
    // However it is called, the answer fits its header.
    let long = "x%".repeat(4000);
    let status = call(&client, &[("grpc-encoding", &long)], evaluate("x", 10)).await;
    assert_eq!(status.code(), Code::Unimplemented, "{status}");
    assert!(status.message().len() < 300, "{status}");
    let mut flagged = evaluate("x", 10).to_vec();
    flagged[0] = 1;
    assert_eq!(call(&client, &[], flagged.into()).await.code(), Code::Internal);
    eventually("all memory comes back", || memory.used() == 0).await;
}

#[tokio::test]
async fn a_failure_fits_the_headers_that_its_caller_reads() {
    let (address, _) = start();
    let client = connect(address).await;
    let python = "grpc-python/1.62.0 grpc-c/39.0.0 (linux; chttp2)";
    for (agent, limit) in [(python, 8 * 1024), ("grpc-go/1.71.0", 73 * 1024)] {
        let answer = send(&client, request(EVALUATE, &[("user-agent", agent)]), evaluate("fail", 10)).await;
        let (status, headers, _) = status(answer).await;
        assert_eq!(status.code(), Code::Internal);
        assert!(
            status.message().contains("bytes cut]") && status.message().ends_with("why \u{1F600} "),
            "{status}"
        );
        let list: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!((limit / 2..limit).contains(&list), "{agent}: {list}");
    }
}

#[tokio::test]
async fn a_request_of_two_messages_is_refused() {
    let (address, _) = start();
    let client = connect(address).await;
    let two = [evaluate("x", 10), evaluate("x", 10)].concat();
    assert_eq!(call(&client, &[], two.into()).await.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn requests_beyond_the_memory_are_refused_and_others_and_health_are_answered() {
    let (address, memory) = start();
    let greedy = connect(address).await;
    let (mut held, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let (answer, sending) = announce(&greedy, LIMIT).await;
        let before = memory.used() + usize::try_from(memory.refused()).unwrap();
        eventually("it is counted or refused", || {
            memory.used() + usize::try_from(memory.refused()).unwrap() > before
        })
        .await;
        if memory.refused() > refused.len() as u64 {
            refused.push(answer);
        } else {
            held.push((answer, sending));
        }
    }
    assert!(memory.used() <= MEMORY && held.len() >= 5, "{} of {memory:?}", held.len());
    for answer in refused {
        let (status, _, _) = status(answer.await.unwrap()).await;
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("raise --max-memory"), "{status}");
        assert!(status.message().contains("try again in 1 s"), "{status}");
        let retry = status.get_details_retry_info().unwrap().retry_delay;
        assert_eq!(retry, Some(Duration::from_secs(1)));
    }
    // Of its own it gets nothing more, but health.
    assert!(is_healthy(&greedy).await);
    let other = connect_from([127, 0, 0, 2], address, LIMIT.try_into().unwrap()).await;
    for _ in 0..20 {
        assert_eq!(call(&other, &[], evaluate("x", LIMIT / 4)).await.code(), Code::Ok);
    }
    drop(held);
    eventually("all memory comes back", || memory.used() == 0).await;
    assert_eq!(call(&greedy, &[], evaluate("x", LIMIT / 2)).await.code(), Code::Ok);
}

#[tokio::test]
async fn calls_that_wait_are_counted_until_they_end() {
    let (address, memory) = start();
    let client = connect(address).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut client = client.clone().ready().await.unwrap();
        let (answer, mut sending) = client.send_request(request(EVALUATE, &[]), false).unwrap();
        sending.send_data(evaluate("wait", LIMIT / 2), true).unwrap();
        waiting.push((answer, sending));
    }
    eventually("all four are counted", || memory.used() > 2 * LIMIT).await;
    // Dropped, they are cancelled.
    drop(waiting);
    eventually("all memory comes back", || memory.used() == 0).await;
}

#[tokio::test]
async fn answers_that_nobody_reads_are_counted_until_their_reader_is_gone() {
    let (address, memory) = start();
    let idle = connect_from([127, 0, 0, 1], address, 0).await;
    let mut unread = Vec::new();
    let mut codes = Vec::new();
    for _ in 0..20 {
        let answer = send(&idle, request(EVALUATE, &[]), evaluate("x", LIMIT / 2)).await;
        codes.push(Status::from_header_map(answer.headers()).map_or(Code::Ok, |status| status.code()));
        unread.push(answer);
    }
    assert!(codes.contains(&Code::Ok) && codes.contains(&Code::ResourceExhausted), "{codes:?}");
    assert!((MEMORY / 2..=MEMORY).contains(&memory.used()), "{memory:?}");
    let other = connect_from([127, 0, 0, 2], address, LIMIT.try_into().unwrap()).await;
    assert_eq!(call(&other, &[], evaluate("x", LIMIT / 4)).await.code(), Code::Ok);
    assert!(is_healthy(&other).await && memory.used() >= MEMORY / 2);
    drop((unread, idle));
    eventually("all memory comes back", || memory.used() == 0).await;
}

#[tokio::test]
async fn endless_health_checks_do_not_shut_out_those_of_others() {
    let (address, memory) = start();
    let greedy = connect(address).await;
    let mut held = Vec::new();
    for _ in 0..900 {
        let mut client = greedy.clone().ready().await.unwrap();
        held.push(client.send_request(request(HEALTH, &[]), false).unwrap());
    }
    let other = connect_from([127, 0, 0, 2], address, LIMIT.try_into().unwrap()).await;
    assert!(is_healthy(&other).await);
    assert_eq!(memory.used(), 0);
    let large = HealthCheckRequest { service: "x".repeat(100_000) };
    let (status, _, _) = status(send(&other, request(HEALTH, &[]), framed(&large)).await).await;
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
}
