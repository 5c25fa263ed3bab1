//! A cluster without nodes: an API server that keeps pods and Services, and answers badly where a test says so.
//! Watches are answered when there is something to tell, and end with that.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tower::{BoxError, Service};

/// Longer than anything takes. Most tests do not really wait.
const FOR_EVER: Duration = Duration::from_secs(30);

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// As roles name it.
    pub(crate) verb: &'static str,
    /// As roles name it.
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) body: Value,
    query: String,
}

impl Asked {
    pub(crate) fn is(&self, verb: &str, kind: &str) -> bool {
        (self.verb, self.kind.as_str()) == (verb, kind)
    }
}

/// What a request meets with.
#[derive(Debug, Clone)]
pub(crate) enum Reaction {
    /// It is done and answered.
    Do,
    /// It is not done; code, reason and message.
    Refuse(u16, &'static str, &'static str),
    /// Nothing is done nor answered.
    Ignore,
    /// It is done, and the answer is lost.
    Lose,
    /// It is done, and the answer comes late.
    Hold(Arc<Notify>),
    /// There is no connection.
    Break,
    /// What a watch wants to know is too long ago.
    Expire,
}

type Script = Box<dyn FnMut(&Asked) -> Reaction + Send>;

/// The cluster. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Cluster {
    state: Arc<Mutex<State>>,
    version: watch::Sender<u64>,
}

struct State {
    /// By kind and name.
    objects: BTreeMap<(String, String), Value>,
    /// Version, kind and line of every event.
    events: Vec<(u64, String, String)>,
    requests: Vec<Asked>,
    script: Script,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            events: Vec::new(),
            requests: Vec::new(),
            script: Box::new(|_| Reaction::Do),
        };
        Self { state: Arc::new(Mutex::new(state)), version: watch::Sender::new(1) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// From now on requests meet with what this says.
    pub(crate) fn script(&self, script: impl FnMut(&Asked) -> Reaction + Send + 'static) {
        self.lock().script = Box::new(script);
    }

    /// Those that were asked for, whatever became of it.
    pub(crate) fn asked(&self, verb: &str, kind: &str) -> Vec<Asked> {
        self.lock().requests.iter().filter(|asked| asked.is(verb, kind)).cloned().collect()
    }

    pub(crate) fn all(&self, kind: &str) -> Vec<Value> {
        let state = self.lock();
        state.objects.iter().filter(|((of, _), _)| of == kind).map(|(_, object)| object.clone()).collect()
    }

    /// Somebody else makes an object.
    pub(crate) fn make(&self, kind: &str, mut object: Value) -> Value {
        let mut state = self.lock();
        let version = *self.version.borrow() + 1;
        let metadata = &mut object["metadata"];
        if metadata["name"].is_null() {
            let prefix = metadata["generateName"].as_str().unwrap_or_default();
            metadata["name"] = json!(format!("{prefix}{version:05}"));
        }
        metadata["uid"] = json!(format!("uid-{version}"));
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = json!(Timestamp::now().to_string());
        }
        if kind == "services" && object["spec"]["clusterIP"].is_null() {
            object["spec"]["clusterIP"] = json!("10.0.0.1");
        }
        self.put(&mut state, "ADDED", kind, object)
    }

    /// Somebody else changes an object.
    pub(crate) fn change(&self, kind: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.lock();
        let mut object = state.objects[&(kind.to_owned(), name.to_owned())].clone();
        change(&mut object);
        self.put(&mut state, "MODIFIED", kind, object);
    }

    pub(crate) fn remove(&self, kind: &str, name: &str) {
        let mut state = self.lock();
        let object = state.objects[&(kind.to_owned(), name.to_owned())].clone();
        self.put(&mut state, "DELETED", kind, object);
    }

    /// Waits until it is so.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let wait = async {
            while !is_so(self) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = timeout(FOR_EVER, wait).await;
        assert!(waited.is_ok(), "{what} should be; asked was {:#?}", self.lock().requests);
    }

    fn put(&self, state: &mut State, event: &str, kind: &str, mut object: Value) -> Value {
        let version = *self.version.borrow() + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let line = json!({"type": event, "object": object}).to_string();
        state.events.push((version, kind.to_owned(), line));
        let key = (kind.to_owned(), object["metadata"]["name"].as_str().unwrap().to_owned());
        if event == "DELETED" {
            state.objects.remove(&key);
        } else {
            state.objects.insert(key, object.clone());
        }
        self.version.send_replace(version);
        object
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let asked = read(request).await;
        let reaction = {
            let mut state = self.lock();
            state.requests.push(asked.clone());
            (state.script)(&asked)
        };
        match reaction {
            Reaction::Do => Ok(self.perform(&asked).await),
            Reaction::Refuse(code, reason, message) => Ok(refusal(code, reason, message)),
            Reaction::Ignore => std::future::pending().await,
            Reaction::Lose => {
                self.perform(&asked).await;
                std::future::pending().await
            }
            Reaction::Hold(until) => {
                let answer = self.perform(&asked).await;
                until.notified().await;
                Ok(answer)
            }
            Reaction::Break => Err("connection refused".into()),
            Reaction::Expire => {
                let status = status(410, "Expired", "too old resource version");
                Ok(respond(200, json!({"type": "ERROR", "object": status}).to_string() + "\n"))
            }
        }
    }

    async fn perform(&self, asked: &Asked) -> Response<Body> {
        if !matches!(asked.kind.as_str(), "pods" | "services") {
            return refusal(404, "NotFound", "the server could not find the requested resource");
        }
        if asked.verb == "watch" {
            return self.watch(asked).await;
        }
        self.perform_now(asked)
    }

    fn perform_now(&self, asked: &Asked) -> Response<Body> {
        let key = (asked.kind.clone(), asked.name.clone());
        let known = self.lock().objects.get(&key).cloned();
        match (asked.verb, known) {
            ("list", _) => {
                let is_meant = |object: &Value| match asked.query.split_once("fn.kpt.dev%2Fimage%3D") {
                    Some((_, id)) => object["metadata"]["labels"]["fn.kpt.dev/image"] == id,
                    None => true,
                };
                let items: Vec<_> = self.all(&asked.kind).into_iter().filter(is_meant).collect();
                let version = self.version.borrow().to_string();
                let list = json!({"metadata": {"resourceVersion": version}, "items": items});
                respond(200, list.to_string())
            }
            ("create", None) => respond(201, self.make(&asked.kind, asked.body.clone()).to_string()),
            ("create", Some(_)) => refusal(409, "AlreadyExists", "it already exists"),
            ("get" | "patch", Some(object)) => respond(200, object.to_string()),
            ("delete", Some(object)) => {
                if asked.body["preconditions"]["uid"] != object["metadata"]["uid"] {
                    return refusal(409, "Conflict", "the UID in the precondition does not match");
                }
                self.remove(&asked.kind, &asked.name);
                respond(200, object.to_string())
            }
            _ => refusal(404, "NotFound", "not found"),
        }
    }

    async fn watch(&self, asked: &Asked) -> Response<Body> {
        let (_, since) = asked.query.split_once("resourceVersion=").expect("a version to watch from");
        let since: u64 = since.split('&').next().unwrap().parse().unwrap();
        let mut version = self.version.subscribe();
        loop {
            let news: String = {
                let state = self.lock();
                let news = state.events.iter().filter(|(at, kind, _)| *at > since && *kind == asked.kind);
                news.map(|(_, _, line)| line.clone() + "\n").collect()
            };
            if !news.is_empty() {
                return respond(200, news);
            }
            version.changed().await.unwrap();
        }
    }
}

async fn read(request: Request<Body>) -> Asked {
    let (head, body) = request.into_parts();
    let bytes = body.collect_bytes().await.unwrap();
    let mut parts = head.uri.path().split('/').skip_while(|part| *part != "namespaces").skip(2);
    let kind = parts.next().unwrap_or_default().to_owned();
    let query = head.uri.query().unwrap_or_default().to_owned();
    let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
    let in_path = parts.next().map(str::to_owned);
    let verb = match (&head.method, &in_path) {
        (&Method::GET, None) if query.contains("watch=true") => "watch",
        (&Method::GET, None) => "list",
        (&Method::GET, Some(_)) => "get",
        (&Method::POST, _) => "create",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, _) => "delete",
        other => panic!("nobody should ask {other:?}"),
    };
    let in_body = || body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let name = in_path.unwrap_or_else(in_body);
    Asked { verb, kind, name, body, query }
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
}

fn refusal(code: u16, reason: &str, message: &str) -> Response<Body> {
    respond(code, status(code, reason, message).to_string())
}

fn respond(code: u16, body: String) -> Response<Body> {
    let response = Response::builder().status(StatusCode::from_u16(code).unwrap());
    response.header("content-type", "application/json").body(Body::from(body.into_bytes())).unwrap()
}

impl Service<Request<Body>> for Cluster {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}
