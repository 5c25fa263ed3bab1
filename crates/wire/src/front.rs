//! The front of a server: every request passes here, is measured, guarded
//! against size and lateness, and handed to the service its path names.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use tonic::{Code, Status, body::Body, server::NamedService};
use tower::{Service, ServiceExt, util::BoxCloneService};

use crate::inbound::{Arrival, GuardedBody};

/// What is known of a call once it is over.
#[derive(Debug)]
pub struct FinishedRpc {
    /// The service's full name, or `other` for one we do not have.
    pub service: &'static str,
    /// The method's name, or `other` for one we do not have.
    pub method: &'static str,
    /// The code it ended with; `Cancelled` where the client went away.
    pub code: Code,
    /// From its headers to the end of the answer.
    pub elapsed: Duration,
    /// Bytes of the request's body.
    pub received: u64,
    /// Bytes of the answer's body.
    pub sent: u64,
}

/// Told of every call that ended.
pub trait Observer: Send + Sync + 'static {
    /// A call ended.
    fn finished(&self, rpc: &FinishedRpc);
}

type Inner = BoxCloneService<Request<Body>, Response<Body>, Infallible>;

#[derive(Clone)]
struct Mounted {
    name: &'static str,
    methods: &'static [&'static str],
    service: Inner,
}

/// The services of a server behind their common guards.
#[derive(Clone)]
pub struct Front {
    mounted: Vec<Mounted>,
    limit: usize,
    observer: Arc<dyn Observer>,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.mounted.iter().map(|mounted| mounted.name).collect();
        formatter
            .debug_struct("Front")
            .field("services", &names)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Front {
    /// No services yet; requests are limited to `limit` bytes a message.
    pub fn new(limit: usize, observer: Arc<dyn Observer>) -> Self {
        Self { mounted: Vec::new(), limit, observer }
    }

    /// Adds a service; `methods` are those told apart by the observer.
    #[must_use]
    pub fn mount<S>(mut self, service: S, methods: &'static [&'static str]) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + 'static,
        S::Future: Send + 'static,
    {
        self.mounted.push(Mounted { name: S::NAME, methods, service: service.boxed_clone() });
        self
    }
}

impl Service<Request<Body>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let arrival = Arrival::of(request.headers());
        let mut path = request.uri().path().strip_prefix('/').unwrap_or_default().splitn(2, '/');
        let (service, method) = (path.next().unwrap_or_default(), path.next().unwrap_or_default());
        let mounted = self.mounted.iter().find(|mounted| mounted.name == service);
        let mut measure = Measure {
            observer: self.observer.clone(),
            arrival,
            service: mounted.map_or("other", |mounted| mounted.name),
            method: mounted
                .and_then(|mounted| mounted.methods.iter().find(|name| **name == method))
                .unwrap_or(&"other"),
            received: Arc::default(),
            sent: 0,
            code: Code::Cancelled,
        };
        let Some(mut service) = mounted.map(|mounted| mounted.service.clone()) else {
            measure.code = Code::Unimplemented;
            let status = Status::unimplemented(format!("this server has no service {:?}", shorten(service)));
            return Box::pin(std::future::ready(Ok(status.into_http())));
        };
        request.extensions_mut().insert(arrival);
        let received = measure.received.clone();
        let limit = self.limit;
        let request = request.map(|body| Body::new(GuardedBody::new(body, limit, arrival, received)));
        Box::pin(async move {
            let response = service.call(request).await?;
            // A failed call may have no body: its status is then in the headers.
            if let Some(code) = code_of(response.headers()) {
                measure.code = code;
            }
            Ok(response.map(|body| Body::new(MeasuredBody { inner: body, measure })))
        })
    }
}

fn shorten(name: &str) -> &str {
    name.get(..name.floor_char_boundary(128)).unwrap_or_default()
}

fn code_of(headers: &HeaderMap) -> Option<Code> {
    headers.get("grpc-status").map(|code| Code::from_bytes(code.as_bytes()))
}

/// Measures one call; tells the observer when it is dropped.
struct Measure {
    observer: Arc<dyn Observer>,
    arrival: Arrival,
    service: &'static str,
    method: &'static str,
    received: Arc<AtomicU64>,
    sent: u64,
    code: Code,
}

impl Drop for Measure {
    fn drop(&mut self) {
        self.observer.finished(&FinishedRpc {
            service: self.service,
            method: self.method,
            code: self.code,
            elapsed: self.arrival.at.elapsed(),
            received: self.received.load(Ordering::Relaxed),
            sent: self.sent,
        });
    }
}

/// An answer's body that tells how the call ended.
struct MeasuredBody {
    inner: Body,
    measure: Measure,
}

impl http_body::Body for MeasuredBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if let Poll::Ready(Some(frame)) = &polled {
            match frame {
                Ok(frame) => {
                    if let Some(data) = frame.data_ref() {
                        self.measure.sent += data.len() as u64;
                    }
                    if let Some(code) = frame.trailers_ref().and_then(code_of) {
                        self.measure.code = code;
                    }
                }
                Err(status) => self.measure.code = status.code(),
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}
