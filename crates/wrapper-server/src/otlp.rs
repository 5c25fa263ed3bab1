//! Sends spans and metrics to a collector: protocol buffers over HTTP, not encrypted. A library for all that
//! OTLP can be, and for TLS, would be more than all the rest of the wrapper.

mod messages;
mod post;
mod target;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use prost::Message;
use tokio::{
    sync::{mpsc, oneshot},
    time::{self, Instant, timeout},
};
use tonic::Code;
use wire::{Propagators, TraceContext};

use self::messages::{Envelope, Span, SpanStatus};
pub(crate) use self::{
    messages::{CUMULATIVE, Histogram, HistogramPoint, Metric, int, text},
    target::{Target, Wanted},
};
use crate::{log::Log, metrics::Metrics};

/// Spans that wait to be sent; more are lost.
const MOST_SPANS: usize = 512;
/// How long a span waits for others.
const SPANS_EVERY: Duration = Duration::from_secs(5);
/// How often metrics are sent.
const METRICS_EVERY: Duration = Duration::from_mins(1);
/// How long the last ones may take.
const LAST: Duration = Duration::from_secs(2);

/// Where spans go, and how traces arrive.
#[derive(Debug, Clone)]
pub(crate) struct Traces {
    propagators: Propagators,
    spans: Option<mpsc::Sender<Span>>,
}

/// What sends, until it is told to send the last.
pub(crate) struct Sender {
    last: Option<oneshot::Sender<()>>,
    task: Option<tokio::task::JoinHandle<()>>,
}

/// Starts what sends.
pub(crate) fn start(
    traces: Option<Target>,
    metrics: Option<(Target, Metrics)>,
    propagators: Propagators,
    log: Log,
) -> (Traces, Sender) {
    if traces.is_none() && metrics.is_none() {
        return (Traces { propagators, spans: None }, Sender { last: None, task: None });
    }
    let (sender, spans) = mpsc::channel(MOST_SPANS);
    let (last, told) = oneshot::channel();
    let is_traced = traces.is_some();
    let task = tokio::spawn(send(traces, metrics, spans, told, log));
    let spans = is_traced.then_some(sender);
    (Traces { propagators, spans }, Sender { last: Some(last), task: Some(task) })
}

impl Sender {
    /// Sends what is left. A collector that does not answer holds nobody up.
    pub(crate) async fn finish(self) {
        if let (Some(last), Some(task)) = (self.last, self.task) {
            let _ = last.send(());
            let _ = timeout(LAST, task).await;
        }
    }
}

async fn send(
    traces: Option<Target>,
    metrics: Option<(Target, Metrics)>,
    mut spans: mpsc::Receiver<Span>,
    mut told: oneshot::Receiver<()>,
    log: Log,
) {
    let mut reports = [Report::new("traces", log), Report::new("metrics", log)];
    let mut waiting = Vec::new();
    let mut next_metrics = Instant::now() + METRICS_EVERY;
    let mut is_last = false;
    while !is_last {
        let next_spans = Instant::now() + SPANS_EVERY;
        while waiting.len() < MOST_SPANS && !is_last {
            tokio::select! {
                biased;
                Some(span) = spans.recv() => waiting.push(span),
                _ = &mut told => is_last = true,
                () = time::sleep_until(next_spans.min(next_metrics)) => break,
            }
        }
        let [of_traces, of_metrics] = &mut reports;
        if let Some(target) = traces.as_ref().filter(|_| !waiting.is_empty()) {
            let items = waiting.drain(..).map(|span| span.encode_to_vec()).collect();
            of_traces.tell(target.post(Envelope::of(items)).await);
        }
        waiting.clear();
        if let Some((target, metrics)) =
            metrics.as_ref().filter(|_| is_last || Instant::now() >= next_metrics)
        {
            of_metrics.tell(target.post(Envelope::of(metrics.export())).await);
        }
        if Instant::now() >= next_metrics {
            next_metrics = Instant::now() + METRICS_EVERY;
        }
    }
}

/// Says once that a collector is away, and once that it is back.
struct Report {
    what: &'static str,
    log: Log,
    is_away: bool,
}

impl Report {
    fn new(what: &'static str, log: Log) -> Self {
        Self { what, log, is_away: false }
    }

    fn tell(&mut self, outcome: std::io::Result<()>) {
        let was_away = std::mem::replace(&mut self.is_away, outcome.is_err());
        match outcome {
            Err(error) if !was_away => self.log.warn(format_args!(
                "{} do not reach the collector: {error}. This is said once until they do",
                self.what
            )),
            Ok(()) if was_away => self.log.info(format_args!("{} reach the collector again", self.what)),
            _ => {}
        }
    }
}

/// The span of a call, sent when it is dropped, also where the client went away.
pub(crate) struct CallSpan {
    /// The caller's trace, where it has one.
    caller: Option<TraceContext>,
    sender: Option<mpsc::Sender<Span>>,
    span: Span,
    code: Code,
    image: String,
}

impl Traces {
    /// Begins the span of a call.
    pub(crate) fn begin(&self, headers: &HeaderMap, image: &str) -> CallSpan {
        let caller = self.propagators.parent(headers);
        let (trace, span, flags) = TraceContext::begin().ids();
        let (trace, parent, flags) = caller.as_ref().map_or((trace, 0, flags), TraceContext::ids);
        let span = Span {
            trace_id: trace.to_be_bytes().to_vec(),
            span_id: span.to_be_bytes().to_vec(),
            trace_state: caller.as_ref().and_then(TraceContext::state).unwrap_or_default().to_owned(),
            parent_span_id: if parent == 0 { Vec::new() } else { parent.to_be_bytes().to_vec() },
            name: "evaluator.FunctionEvaluator/EvaluateFunction".to_owned(),
            kind: messages::SERVER,
            start_time_unix_nano: now(),
            ..Span::default()
        };
        // As its caller decided.
        let sender = self.spans.clone().filter(|_| flags & 1 == 1);
        CallSpan { caller, sender, span, code: Code::Cancelled, image: image.to_owned() }
    }
}

impl CallSpan {
    /// The call ended so.
    pub(crate) fn end(&mut self, code: Code, message: &str) {
        self.code = code;
        if code != Code::Ok {
            self.span.status = Some(SpanStatus { message: message.to_owned(), code: messages::ERROR });
        }
    }

    /// The caller's trace for a line of the log.
    pub(crate) fn shown(&self) -> String {
        self.caller.as_ref().map(|trace| format!(" trace={}", trace.trace_id())).unwrap_or_default()
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        let Some(sender) = self.sender.take() else { return };
        let mut span = std::mem::take(&mut self.span);
        span.end_time_unix_nano = now();
        span.attributes = vec![
            text("rpc.system", "grpc"),
            text("rpc.service", "evaluator.FunctionEvaluator"),
            text("rpc.method", "EvaluateFunction"),
            int("rpc.grpc.status_code", i64::from(i32::from(self.code))),
            text("function.image", &self.image),
        ];
        // Where there is no room, it is lost: nobody waits for telemetry.
        let _ = sender.try_send(span);
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
