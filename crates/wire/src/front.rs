//! The front of a server: every request passes here, is measured, guarded
//! against size and lateness, and handed to the service its path names.

use std::{
    borrow::Cow,
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
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use tonic::{Code, Status, body::Body, server::NamedService};
use tower::{Service, ServiceExt, util::BoxCloneService};

use crate::{
    Failure, Memory, Reservation,
    inbound::{Arrival, BodyLimits, GuardedBody},
    outbound::{OutboundBody, Outlet},
    peer::Peer,
    shares::Shares,
};

/// What a call takes beside its messages, such as its headers and tasks.
const CALL: usize = 16 * 1024;
/// The memory of small services, beside that of all others: health is answered when nothing else is.
const SMALL: usize = 8 * 1024 * 1024;
/// The largest message of small services.
const SMALL_MESSAGE: usize = 64 * 1024;

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

/// A service as the generated code makes it.
pub trait GrpcService:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + NamedService
    + Clone
    + Send
    + 'static
{
}

impl<S> GrpcService for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
        + NamedService
        + Clone
        + Send
        + 'static
{
}

type Inner = BoxCloneService<Request<Body>, Response<Body>, Infallible>;

#[derive(Clone)]
struct Mounted {
    name: &'static str,
    methods: &'static [&'static str],
    service: Inner,
    is_small: bool,
}

/// The services of a server behind their common guards.
#[derive(Clone)]
pub struct Front {
    mounted: Vec<Mounted>,
    limit: usize,
    memory: Shares,
    small: Shares,
    /// The memory of streams of small services that last, such as those that watch health.
    lasting: Shares,
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
    /// No services yet; requests are limited to `limit` bytes a message, and all calls together to `memory`.
    pub fn new(limit: usize, memory: Memory, observer: Arc<dyn Observer>) -> Self {
        let (memory, small) = (Shares::new(memory), Shares::new(Memory::new(SMALL)));
        let lasting = Shares::new(Memory::new(SMALL));
        Self { mounted: Vec::new(), limit, memory, small, lasting, observer }
    }

    /// Adds a service whose methods take one message each; `methods` are those told apart by the observer.
    #[must_use]
    pub fn mount(self, service: impl GrpcService, methods: &'static [&'static str]) -> Self {
        self.add(service, methods, false)
    }

    /// Adds a service of small messages, which has memory of its own and is answered whatever others hold.
    #[must_use]
    pub fn mount_small(self, service: impl GrpcService, methods: &'static [&'static str]) -> Self {
        self.add(service, methods, true)
    }

    fn add<S: GrpcService>(mut self, service: S, methods: &'static [&'static str], is_small: bool) -> Self {
        self.mounted.push(Mounted { name: S::NAME, methods, service: service.boxed_clone(), is_small });
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
        let mut arrival = Arrival::of(request.headers());
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
        if !is_grpc(request.headers()) {
            measure.code = Code::Internal;
            return Box::pin(std::future::ready(Ok(not_grpc())));
        }
        let Some(mounted) = mounted else {
            let status = Status::unimplemented(format!("this server has no service {:?}", shorten(service)));
            return Box::pin(std::future::ready(Ok(measure.refuse(status))));
        };
        if let Some(encoding) = encoding(request.headers()) {
            let status = Status::unimplemented(format!(
                "messages encoded as {:?} are not taken; send them without compression",
                shorten(&encoding)
            ));
            return Box::pin(std::future::ready(Ok(measure.refuse(status))));
        }
        let (shares, limits) = if mounted.is_small {
            // Streams that last must not take the place of questions that are answered at once.
            let shares = if measure.method == "Check" { &self.small } else { &self.lasting };
            (shares, BodyLimits { message: self.limit.min(SMALL_MESSAGE), streams: true })
        } else {
            (&self.memory, BodyLimits { message: self.limit, streams: false })
        };
        let peer = request.extensions().get::<Peer>().cloned();
        let memory = shares.of(peer.as_ref().and_then(Peer::address));
        let header_bytes: usize =
            request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        let admitted = arrival.read_deadline(request.headers()).and_then(|()| {
            let reserve = |bytes| memory.try_reserve(bytes).map_err(|full| Failure::MemoryFull { full });
            Ok((reserve(CALL + 2 * header_bytes)?, Arc::new(reserve(0)?)))
        });
        let (call, message) = match admitted {
            Ok(admitted) => admitted,
            Err(failure) => {
                let refused = measure.refuse(failure.into_status(arrival.room));
                return Box::pin(std::future::ready(Ok(refused)));
            }
        };
        let mut service = mounted.service.clone();
        request.extensions_mut().insert(arrival);
        request.extensions_mut().insert(CallMemory(message.clone()));
        let received = measure.received.clone();
        let request =
            request.map(|body| Body::new(GuardedBody::new(body, limits, message, arrival, received)));
        Box::pin(async move {
            let response = service.call(request).await?;
            // A failed call may have no body: its status is then in the headers.
            if let Some(code) = code_of(response.headers()) {
                measure.code = code;
            }
            let (parts, body) = response.into_parts();
            let outlet = Outlet { memory, peer, room: arrival.room };
            Ok(match OutboundBody::new(body, outlet).await {
                Ok(inner) => {
                    Response::from_parts(parts, Body::new(MeasuredBody { inner, measure, _call: call }))
                }
                Err(status) => measure.refuse(status),
            })
        })
    }
}

/// The memory that the message of a request takes, for whoever works on the call.
#[derive(Debug, Clone)]
pub struct CallMemory(Arc<Reservation>);

impl CallMemory {
    /// The same bytes, of the request, counted for as long as they are kept.
    pub fn keep(&self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Kept { bytes, _memory: self.clone() })
    }

    /// The memory of the caller, for what more the call takes.
    pub fn memory(&self) -> &Memory {
        self.0.memory()
    }
}

struct Kept {
    bytes: Bytes,
    _memory: CallMemory,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Whether a request is one of gRPC, with messages as we read them: neither those of gRPC for browsers nor JSON.
fn is_grpc(headers: &HeaderMap) -> bool {
    let media_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim_end();
    ["application/grpc", "application/grpc+proto"].iter().any(|known| media_type.eq_ignore_ascii_case(known))
}

/// How a request's messages are encoded, if not plainly. Refused here: tonic repeats the name, however long it is, in
/// a message that then fits no header.
fn encoding(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let encoding = headers.get("grpc-encoding")?.as_bytes();
    (encoding != b"identity").then(|| String::from_utf8_lossy(encoding))
}

/// The answer to what is not a request of gRPC.
fn not_grpc() -> Response<Body> {
    let text = "this is a gRPC service: the content-type of requests is application/grpc or application/grpc+proto\n";
    let mut response = Response::new(Body::new(PlainText(Some(Bytes::from_static(text.as_bytes())))));
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A body of a few words.
struct PlainText(Option<Bytes>);

impl http_body::Body for PlainText {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|text| Ok(Frame::data(text))))
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

impl Measure {
    /// The answer to a call that ends here.
    fn refuse(mut self, status: Status) -> Response<Body> {
        self.code = status.code();
        status.into_http()
    }
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
    inner: OutboundBody,
    measure: Measure,
    /// What the call takes beside its messages.
    _call: Reservation,
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
