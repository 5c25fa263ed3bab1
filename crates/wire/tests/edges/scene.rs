//! A server of a small service, and clients that say just what they are told to.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use h2::{RecvStream, SendStream, client::SendRequest};
use http::{HeaderMap, Request};
use prost::Message;
use tokio::net::TcpStream;
use tonic::{Code, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use wire::{
    Arrival, CallMemory, Failure, FinishedRpc, Front, Health, Memory, Observer, ServeOptions,
    proto::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
    },
};

pub(crate) const EVALUATE: &str = "evaluator.FunctionEvaluator/EvaluateFunction";
pub(crate) const HEALTH: &str = "grpc.health.v1.Health/Check";
pub(crate) const WATCH: &str = "grpc.health.v1.Health/Watch";
/// The largest message.
pub(crate) const LIMIT: usize = 1024 * 1024;
/// What all calls together may hold.
pub(crate) const MEMORY: usize = 8 * LIMIT;
/// Long enough for any answer on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

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
pub(crate) fn start() -> (SocketAddr, Memory) {
    start_with(ServeOptions::default())
}

pub(crate) fn start_with(options: ServeOptions) -> (SocketAddr, Memory) {
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
    tokio::spawn(wire::serve(listener, front, options, std::future::pending()));
    (address, memory)
}

/// A connection from an address of its own.
pub(crate) async fn connect_from(source: [u8; 4], to: SocketAddr, window: u32) -> SendRequest<Bytes> {
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

pub(crate) async fn connect(to: SocketAddr) -> SendRequest<Bytes> {
    connect_from([127, 0, 0, 1], to, 16 * 1024 * 1024).await
}

pub(crate) fn request(path: &str, headers: &[(&str, &str)]) -> Request<()> {
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
pub(crate) fn framed(message: &impl Message) -> Bytes {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], &message].concat().into()
}

pub(crate) fn evaluate(image: &str, bytes: usize) -> Bytes {
    let resource_list = vec![b'x'; bytes].into();
    framed(&EvaluateFunctionRequest { resource_list, image: image.into(), tag: String::new() })
}

pub(crate) type Answer = http::Response<RecvStream>;

/// Sends a request and waits for the head of its answer.
pub(crate) async fn send(client: &SendRequest<Bytes>, request: Request<()>, body: Bytes) -> Answer {
    let mut client = client.clone().ready().await.unwrap();
    let (answer, mut sending) = client.send_request(request, false).unwrap();
    sending.send_data(body, true).unwrap();
    tokio::time::timeout(PATIENCE, answer).await.unwrap().unwrap()
}

/// What the call ended with.
pub(crate) async fn status(answer: Answer) -> (Status, HeaderMap, usize) {
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

pub(crate) async fn call(client: &SendRequest<Bytes>, headers: &[(&str, &str)], body: Bytes) -> Status {
    status(send(client, request(EVALUATE, headers), body).await).await.0
}

pub(crate) async fn is_healthy(client: &SendRequest<Bytes>) -> bool {
    let body = framed(&HealthCheckRequest { service: String::new() });
    status(send(client, request(HEALTH, &[]), body).await).await.0.code() == Code::Ok
}

/// Begins a call whose message announces so many bytes, and sends no more.
pub(crate) async fn announce(
    client: &SendRequest<Bytes>,
    bytes: usize,
) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
    let mut client = client.clone().ready().await.unwrap();
    let (answer, mut sending) = client.send_request(request(EVALUATE, &[]), false).unwrap();
    let length = u32::try_from(bytes).unwrap().to_be_bytes();
    sending.send_data([&[0], &length[..]].concat().into(), false).unwrap();
    (answer, sending)
}

pub(crate) async fn eventually(what: &str, check: impl Fn() -> bool) {
    let waiting = async {
        while !check() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{what}");
}
