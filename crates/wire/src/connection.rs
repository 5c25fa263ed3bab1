//! The life of one connection, up to an end at which no call is lost.
//!
//! A server that closes a connection races with the request its client is just
//! about to send. The library's own graceful shutdown decides the race with a
//! PING: what arrives after the answer to it is not processed. Clients made of
//! the same library answer that PING before they send what they had queued, and
//! do not send it again elsewhere. So we announce the end first, with a GOAWAY
//! that still allows every request, answer all that arrives, and give the
//! client a moment to leave by itself, which nearly all do.

use std::{
    convert::Infallible,
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use hyper::{body::Incoming, server::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    net::TcpStream,
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tonic::{Status, body::Body};
use tower::Service as _;

use crate::{Front, peer::Peer, socket::Socket};

/// Largest frame we take: fewer, larger pieces for large lists, but each connection may hold most of one
/// that never ends.
const FRAME: u32 = 64 * 1024;
/// How much of one request may be under way before we have read it.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// The same for a whole connection.
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// Calls one client may have under way: Porch holds a single connection.
const STREAMS: u32 = 1024;
/// A client that does not answer for this long is gone, and its calls with it.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// How long each step towards the end of a connection waits for its client.
const STEP_TIMEOUT: Duration = Duration::from_secs(1);
/// A client that is asked to leave and neither sends nor takes a byte for so
/// long, while no call of it runs, is not waited for.
const STALL_TIMEOUT: Duration = Duration::from_secs(3);

/// How far a connection has come.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Stage {
    Open,
    /// It is to end; its client will be told with the next request.
    Draining,
    /// Its client is told now.
    Announcing,
    /// The library ends it.
    Closing,
    /// It is closed at once.
    GivenUp,
}

/// What others know of a connection, and how they ask it to end.
pub(crate) struct Handle {
    stage: AtomicU8,
    asked: Notify,
    announced: Notify,
    /// Bytes that went either way.
    bytes: AtomicU64,
    calls: Mutex<Calls>,
}

struct Calls {
    running: usize,
    /// Whether there ever was one.
    any: bool,
    /// Since when so many are running.
    since: Instant,
}

impl Handle {
    pub(crate) fn new() -> Self {
        Self {
            stage: AtomicU8::new(Stage::Open as u8),
            asked: Notify::new(),
            announced: Notify::new(),
            bytes: AtomicU64::new(0),
            calls: Mutex::new(Calls { running: 0, any: false, since: Instant::now() }),
        }
    }

    /// Asks the connection to end as soon as nothing is lost by it.
    pub(crate) fn drain(&self) {
        self.advance(Stage::Draining);
        self.asked.notify_one();
    }

    /// Whether it is closed, or about to be.
    pub(crate) fn is_given_up(&self) -> bool {
        self.stage.load(Ordering::Acquire) >= Stage::GivenUp as u8
    }

    /// How much it is missed, unless a call is running or it is given up already: whether there ever was a call, and
    /// since when there is none. The least is missed least.
    pub(crate) fn idle(&self) -> Option<(bool, Instant)> {
        let calls = self.calls();
        (calls.running == 0 && !self.is_given_up()).then_some((calls.any, calls.since))
    }

    /// Notes that nothing more is expected of it.
    pub(crate) fn give_up(&self) {
        self.advance(Stage::GivenUp);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.stage.load(Ordering::Acquire) >= Stage::Draining as u8
    }

    pub(crate) fn is_announcing(&self) -> bool {
        self.stage.load(Ordering::Acquire) == Stage::Announcing as u8
    }

    /// Notes that bytes went over the connection.
    pub(crate) fn moved(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn advance(&self, stage: Stage) {
        self.stage.fetch_max(stage as u8, Ordering::AcqRel);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut calls = self.calls();
        *calls = Calls { running: change(calls.running), any: true, since: Instant::now() };
    }

    /// Resolves when the client is gone for all we can see.
    async fn stalled(&self) {
        loop {
            let before = self.bytes.load(Ordering::Relaxed);
            sleep(STALL_TIMEOUT).await;
            if self.calls().running == 0 && self.bytes.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

/// Serves one connection until its client leaves, or it is asked to end, or is older than `age`.
pub(crate) async fn serve(
    stream: TcpStream,
    front: Front,
    age: Option<Duration>,
    handle: Arc<Handle>,
    peer: Peer,
) {
    // Small answers should not wait for others; where that cannot be had they do.
    let _ = stream.set_nodelay(true);
    let socket = TokioIo::new(Socket::new(stream, handle.clone()));
    let calls = Counted { front, handle: handle.clone(), peer: peer.clone() };
    let mut connection = pin!(library().serve_connection(socket, calls));
    let served = async {
        let aged = async {
            match age {
                Some(age) => sleep(age).await,
                None => std::future::pending().await,
            }
        };
        let asked = async {
            tokio::select! {
                () = handle.asked.notified() => {}
                () = aged => {}
            }
        };
        unless_ended(connection.as_mut(), asked).await?;
        handle.advance(Stage::Draining);
        // A client that waits for an answer is not about to send a request: the best time to tell it.
        let _ = unless_ended(connection.as_mut(), timeout(STEP_TIMEOUT, handle.announced.notified())).await?;
        handle.advance(Stage::Announcing);
        unless_ended(connection.as_mut(), sleep(STEP_TIMEOUT)).await?;
        handle.advance(Stage::Closing);
        connection.as_mut().graceful_shutdown();
        unless_ended(connection.as_mut(), handle.stalled()).await
    };
    // An end by itself, in whatever way, is an end.
    tokio::select! {
        _ = served => {}
        () = peer.closed() => {}
    }
}

/// Goes on with the connection until `event`; nothing when it ended before.
async fn unless_ended<T>(connection: Pin<&mut impl Future>, event: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        _ = connection => None,
        event = event => Some(event),
    }
}

fn library() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_frame_size(FRAME)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(KEEPALIVE.0)
        .keep_alive_timeout(KEEPALIVE.1);
    builder
}

/// Hands the calls of one connection on, and counts them.
struct Counted {
    front: Front,
    handle: Arc<Handle>,
    peer: Peer,
}

impl hyper::service::Service<Request<Incoming>> for Counted {
    type Response = Response<CountedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let counted = Count::of(self.handle.clone());
        if self.handle.is_draining() {
            self.handle.advance(Stage::Announcing);
            self.handle.announced.notify_one();
        }
        request.extensions_mut().insert(self.peer.clone());
        let answer = self.front.clone().call(request.map(Body::new));
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|inner| CountedBody { inner, _counted: counted }))
        })
    }
}

/// One running call.
struct Count(Arc<Handle>);

impl Count {
    fn of(handle: Arc<Handle>) -> Self {
        handle.count(|running| running + 1);
        Self(handle)
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.count(|running| running.saturating_sub(1));
    }
}

/// An answer's body: its call is running until it is read.
struct CountedBody {
    inner: Body,
    _counted: Count,
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}
