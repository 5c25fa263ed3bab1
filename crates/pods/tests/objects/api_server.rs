//! An API server that answers as the test says, and to nothing else: the test asks for each request, and
//! ends with there being no other.

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
    (Client::new(service, "default"), ApiServer { handle })
}

impl ApiServer {
    /// The next request, whenever it comes.
    pub(crate) async fn next(&mut self) -> Exchange {
        let next = timeout(FOR_EVER, self.handle.next_request()).await.expect("a request should come");
        let (request, answer) = next.expect("the client is there");
        let (head, body) = request.into_parts();
        let bytes = ApiBody::collect_bytes(body).await.unwrap();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        Exchange {
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            body,
            answer,
        }
    }

    /// The next request, which is this one.
    pub(crate) async fn expect(&mut self, method: Method, path: &str) -> Exchange {
        let exchange = self.next().await;
        assert_eq!((&exchange.method, exchange.path.as_str()), (&method, path));
        exchange
    }

    /// For this long nobody asks anything, though there is somebody who could.
    pub(crate) async fn expect_silence(&mut self, time: Duration) {
        match timeout(time, self.handle.next_request()).await {
            Err(_) => {}
            Ok(Some((request, _))) => {
                panic!("nothing should be asked, but {} {} is", request.method(), request.uri())
            }
            Ok(None) => panic!("the client is gone, and its silence means nothing"),
        }
    }
}

impl Exchange {
    pub(crate) fn answer(self, body: &Value) {
        self.send(StatusCode::OK, body.to_string());
    }

    pub(crate) fn refuse(self, code: u16, reason: &str, message: &str) {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": code, "reason": reason, "message": message,
        });
        self.send(StatusCode::from_u16(code).unwrap(), status.to_string());
    }

    /// Answers a watch with events, after which it ends, as watches do from time to time.
    pub(crate) fn tell(self, events: &[(&str, Value)]) {
        assert!(self.query.contains("watch=true"), "{}", self.query);
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
