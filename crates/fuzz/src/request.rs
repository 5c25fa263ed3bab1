//! Requests as they come over the wire.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use http_body::{Body as _, Frame};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tonic::{Code, Request, Response, Status, body::Body};
use tower::Service;
use wire::{
    Arrival, Failure, FinishedRpc, Front, Memory, Observer, Propagators, TraceContext,
    proto::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
    },
};

/// The largest message that is taken.
const LIMIT: usize = 32 * 1024;
/// What the message of a status may take in its header, encoded.
const LONGEST_MESSAGE: usize = 28 * 1024;
/// How long a caller without a deadline waits.
const PATIENCE: Duration = Duration::from_secs(10);

thread_local! {
    /// Its time is not the machine's: what waits is over at once.
    static RUNTIME: RefCell<Runtime> =
        RefCell::new(Builder::new_current_thread().enable_time().start_paused(true).build().unwrap());
}

/// Fails as a function does that writes what it is given.
struct Failing;

#[tonic::async_trait]
impl FunctionEvaluator for Failing {
    async fn evaluate_function(
        &self,
        request: Request<EvaluateFunctionRequest>,
    ) -> Result<Response<EvaluateFunctionResponse>, Status> {
        assert!(request.extensions().get::<Arrival>().is_some(), "nobody noted when it arrived");
        let EvaluateFunctionRequest { resource_list, image, tag } = request.into_inner();
        if image.is_empty() {
            return Ok(Response::new(EvaluateFunctionResponse { resource_list, log: tag.into() }));
        }
        let stderr = String::from_utf8_lossy(&resource_list).into_owned();
        let exit = "exit status 1".into();
        Err(Failure::FunctionFailed { image, exit, results: tag, stderr, output: Box::new(resource_list) }
            .into())
    }
}

/// How calls ended, as the observer is told.
#[derive(Default)]
struct Ended(Mutex<Vec<Code>>);

impl Observer for Ended {
    fn finished(&self, rpc: &FinishedRpc) {
        self.0.lock().unwrap().push(rpc.code);
    }
}

/// A body that comes in pieces, and perhaps never ends.
struct Pieces {
    left: VecDeque<Bytes>,
    ends: bool,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.left.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// The first byte is the length of the body's pieces, and 0 one that never ends. Then lines: the path and headers,
/// up to an empty one. The rest is the body.
pub(crate) fn requests(input: &[u8]) {
    let _ = code(input);
}

/// The code that the call ended with; nothing if it is no request.
fn code(input: &[u8]) -> Option<Code> {
    let (&piece, rest) = input.split_first()?;
    let end = rest.windows(2).position(|pair| pair == b"\n\n").unwrap_or(rest.len());
    let (head, body) = (&rest[..end], rest.get(end + 2..).unwrap_or_default());
    let mut lines = head.split(|byte| *byte == b'\n');
    let path = lines.next().and_then(|path| std::str::from_utf8(path).ok()).unwrap_or_default();
    let left = body.chunks(usize::from(piece.max(1))).map(Bytes::copy_from_slice).collect();
    let mut request = http::Request::post(path).body(Body::new(Pieces { left, ends: piece > 0 })).ok()?;
    for line in lines {
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value.trim_ascii()))
        {
            request.headers_mut().append(name, value);
        }
    }
    let (propagators, _) = Propagators::read("tracecontext,baggage,b3,b3multi");
    if let Some(trace) = propagators.parent(request.headers()) {
        assert_eq!(TraceContext::parse(&trace.to_string()).unwrap().ids(), trace.ids());
        let handed_on = trace.carried_by(propagators, propagators.baggage(request.headers())).headers();
        assert!(handed_on.iter().all(|(_, value)| HeaderValue::from_str(value).is_ok()), "{handed_on:?}");
    }
    let ended = Arc::new(Ended::default());
    RUNTIME.with_borrow(|runtime| runtime.block_on(answered(request, ended.clone())));
    let codes = ended.0.lock().unwrap();
    let [code] = codes[..] else { panic!("a call is told of once, not so: {codes:?}") };
    Some(code)
}

async fn answered(request: http::Request<Body>, ended: Arc<Ended>) {
    let evaluator = FunctionEvaluatorServer::new(Failing).max_decoding_message_size(LIMIT);
    let mut front = Front::new(LIMIT, Memory::new(1 << 20), ended).mount(evaluator, &["EvaluateFunction"]);
    // A request that never ends is given up by its caller at some time.
    let Ok(answer) = timeout(PATIENCE, front.call(request)).await else { return };
    let (head, body) = answer.unwrap().into_parts();
    let encoded = head.headers.get("grpc-message").map_or(0, HeaderValue::len);
    assert!(encoded <= LONGEST_MESSAGE, "the message has {encoded} bytes once encoded");
    let mut body = pin!(body);
    let frames =
        async { while let Some(Ok(_)) = poll_fn(|context| body.as_mut().poll_frame(context)).await {} };
    let _ = timeout(PATIENCE, frames).await;
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The requests of the corpus go as they are meant to: they would find little else.
    #[test]
    fn requests_are_answered() {
        for (name, expected) in [
            ("ok", Code::Ok),
            ("usual", Code::Internal),
            ("bytewise", Code::Internal),
            ("endless", Code::DeadlineExceeded),
            ("endless-no-timeout", Code::DeadlineExceeded),
            ("too-large", Code::ResourceExhausted),
            ("compressed", Code::Unimplemented),
            ("other-service", Code::Unimplemented),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/requests").join(name);
            assert_eq!(code(&std::fs::read(path).unwrap()), Some(expected), "{name}");
        }
    }
}
