//! An API server that answers as the test says, and to nothing else: the test asks for each request, and ends
//! with there being no other.

use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use kube::{
    Client,
    client::{Body, Body as ApiBody},
};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_test::mock::{Handle, SendResponse, pair};

/// Longer than anything waits before it asks.
const FOR_EVER: Duration = Duration::from_hours(1);

pub(crate) struct ApiServer {
    handle: Handle<Request<Body>, Response<Body>>,
    /// The watch that waits to be told something.
    watch: Option<Exchange>,
}

/// A request that waits for its answer.
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
    answer: SendResponse<Response<Body>>,
}

pub(crate) fn start() -> (Client, ApiServer) {
    let (service, handle) = pair();
    (Client::new(service, "default"), ApiServer { handle, watch: None })
}

impl ApiServer {
    /// The next request that is no watch, whenever it comes.
    pub(crate) async fn next(&mut self) -> Exchange {
        loop {
            let next = timeout(FOR_EVER, self.receive()).await.expect("a request should come");
            if let Some(exchange) = next {
                return exchange;
            }
        }
    }

    /// The next request, which is this one.
    pub(crate) async fn expect(&mut self, method: Method, path: &str) -> Exchange {
        let exchange = self.next().await;
        assert_eq!((&exchange.method, exchange.path.as_str()), (&method, path), "{}", exchange.body);
        exchange
    }

    /// The watch that there is, or comes next.
    pub(crate) async fn watch(&mut self) -> Exchange {
        while self.watch.is_none() {
            let next = timeout(FOR_EVER, self.receive()).await.expect("a watch should come");
            if let Some(exchange) = next {
                panic!("a watch should come, but {} {} does", exchange.method, exchange.path);
            }
        }
        self.watch.take().unwrap()
    }

    /// For this long nobody asks anything, but for a watch.
    pub(crate) async fn expect_silence(&mut self, time: Duration) {
        let silence = async {
            loop {
                if let Some(Exchange { method, path, body, .. }) = self.receive().await {
                    panic!("nothing should be asked, but {method} {path} is: {body}");
                }
            }
        };
        assert!(timeout(time, silence).await.is_err());
    }

    /// The next request; `None` for a watch, which is put aside. There is never more than one.
    async fn receive(&mut self) -> Option<Exchange> {
        let (request, answer) = self.handle.next_request().await.expect("the client is there");
        let (head, body) = request.into_parts();
        let bytes = ApiBody::collect_bytes(body).await.unwrap();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        let exchange = Exchange {
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            body,
            answer,
        };
        if exchange.query.contains("watch=true") {
            assert!(self.watch.replace(exchange).is_none(), "two watches at once");
            return None;
        }
        Some(exchange)
    }
}

impl Exchange {
    pub(crate) fn answer(self, body: &Value) {
        self.send(StatusCode::OK, body.to_string());
    }

    pub(crate) fn refuse(self, code: u16, reason: &str, message: &str) {
        self.send(StatusCode::from_u16(code).unwrap(), status(code, reason, message).to_string());
    }

    /// Answers a watch with events, after which it ends, as watches do from time to time.
    pub(crate) fn tell(self, events: &[(&str, Value)]) {
        let lines: Vec<_> = events
            .iter()
            .map(|(kind, object)| json!({"type": kind, "object": object}).to_string() + "\n")
            .collect();
        self.send(StatusCode::OK, lines.concat());
    }

    fn send(self, status: StatusCode, body: String) {
        let response = Response::builder().status(status).header("content-type", "application/json");
        self.answer.send_response(response.body(Body::from(body.into_bytes())).unwrap());
    }
}

pub(crate) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
}
