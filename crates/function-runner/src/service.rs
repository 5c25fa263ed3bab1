//! The gRPC service: from a request to a call and from its outcome to a
//! response, with one line in the log and one count in the metrics for each.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status};
use tracing::{error, info, trace, warn};
use wire::{
    Answer, Arrival, CallMemory, Failure, Memory, Propagators, TraceContext,
    proto::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
    },
};

use crate::{
    evaluate::{Asked, Call, Chain, Progress},
    policy::Policy,
    telemetry::{CallSpan, EndedCall, Metrics},
};

/// The most that the log has of what a function wrote on stderr.
const MAX_STDERR: usize = 2048;

/// Answers `evaluator.FunctionEvaluator`.
#[derive(Debug)]
pub(crate) struct Service {
    chain: Chain,
    policy: Policy,
    metrics: Metrics,
    propagators: Propagators,
    /// Cancelled when calls still running must be answered at once.
    abandon: CancellationToken,
}

impl Service {
    /// A service over `chain`; calls that still run when `abandon` is
    /// cancelled are answered with `Unavailable`.
    pub(crate) fn new(
        chain: Chain,
        policy: Policy,
        metrics: Metrics,
        propagators: Propagators,
        abandon: CancellationToken,
    ) -> Self {
        Self { chain, policy, metrics, propagators, abandon }
    }

    /// The gRPC service. Sizes are judged in front of it, in our own words.
    pub(crate) fn into_server(self) -> FunctionEvaluatorServer<Self> {
        FunctionEvaluatorServer::from_arc(Arc::new(self))
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX)
    }

    async fn answer(
        &self,
        request: EvaluateFunctionRequest,
        memory: Memory,
        record: &mut CallRecord,
    ) -> Result<Answer, Failure> {
        let asked = self.policy.admit(&request.image, &request.tag)?;
        record.asked = Some(asked.clone());
        let (trace, progress) = (record.trace.clone(), record.progress.clone());
        let call = Call::new(asked, request.resource_list, record.arrival.deadline, trace, progress);
        let call = Call { memory, ..call };
        trace!(resources = %String::from_utf8_lossy(&call.resource_list), "request");
        tokio::select! {
            result = self.chain.evaluate(&call) => result,
            () = self.abandon.cancelled() => Err(Failure::Unavailable {
                cause: format!(
                    "the function runner is shutting down and does not wait for {} any longer (--shutdown-grace); \
                     try again",
                    call.asked()
                ),
            }),
        }
    }
}

#[tonic::async_trait]
impl FunctionEvaluator for Service {
    async fn evaluate_function(
        &self,
        request: Request<EvaluateFunctionRequest>,
    ) -> Result<Response<EvaluateFunctionResponse>, Status> {
        let mut record = CallRecord::begin(&self.metrics, self.propagators, &request);
        let room = record.arrival.room;
        let memory = request.extensions().get::<CallMemory>().cloned();
        let mut request = request.into_inner();
        if let Some(memory) = &memory {
            // Whatever keeps the list, also when nobody waits for the answer any more, keeps it counted.
            request.resource_list = memory.keep(request.resource_list);
        }
        let memory = memory.map_or_else(Memory::unlimited, |memory| memory.memory().clone());
        let result = self.answer(request, memory, &mut record).await;
        record.finish(&result);
        let Answer { resource_list, log, .. } = result.map_err(|failure| failure.into_status(room))?;
        trace!(resources = %String::from_utf8_lossy(&resource_list), "response");
        Ok(Response::new(EvaluateFunctionResponse { resource_list, log }))
    }
}

/// What is told of a call when it is over, also when its client went away and
/// the future of the call was dropped.
struct CallRecord {
    metrics: Metrics,
    span: CallSpan,
    trace: TraceContext,
    arrival: Arrival,
    asked: Option<Asked>,
    progress: Progress,
    received: usize,
    sent: usize,
    code: Code,
    /// Whether it failed because of ourselves or of what is around us.
    is_ours: bool,
    message: String,
    outline: String,
}

impl CallRecord {
    fn begin(
        metrics: &Metrics,
        propagators: Propagators,
        request: &Request<EvaluateFunctionRequest>,
    ) -> Self {
        let arrival = request.extensions().get().copied().unwrap_or_else(Arrival::now);
        let headers = request.metadata().as_ref();
        let (span, trace) = metrics.begin_span(propagators.parent(headers));
        let trace = trace.carried_by(propagators, propagators.baggage(headers));
        metrics.call_started();
        Self {
            metrics: metrics.clone(),
            span,
            trace,
            arrival,
            asked: None,
            progress: Progress::default(),
            received: request.get_ref().resource_list.len(),
            sent: 0,
            code: Code::Cancelled,
            is_ours: false,
            message: "the client went away".to_owned(),
            outline: "the client went away".to_owned(),
        }
    }

    fn finish(mut self, result: &Result<Answer, Failure>) {
        match result {
            Ok(answer) => {
                self.code = Code::Ok;
                self.sent = answer.resource_list.len() + answer.log.len();
                self.message.clear();
                self.outline.clear();
                for note in &answer.notes {
                    warn!(image = self.image(), trace = self.trace.trace_id(), "{note}");
                }
                self.tell_stderr(&answer.log);
            }
            Err(failure) => {
                self.code = failure.code();
                self.is_ours = failure.is_ours();
                self.message = failure.message();
                self.outline = failure.outline();
            }
        }
    }

    /// What a function that succeeded has to say: Porch drops it.
    fn tell_stderr(&self, log: &[u8]) {
        if log.is_empty() {
            return;
        }
        let start = log.get(..log.len().min(MAX_STDERR)).unwrap_or(log);
        info!(
            function = self.image(),
            bytes = log.len(),
            trace = self.trace.trace_id(),
            text = String::from_utf8_lossy(start).trim_end(),
            "stderr"
        );
    }

    fn image(&self) -> String {
        self.asked.as_ref().map(Asked::to_string).unwrap_or_default()
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        let elapsed: Duration = self.arrival.at.elapsed();
        let evaluator = self.progress.evaluator();
        let function = self.asked.as_ref().map_or("", |asked| asked.image.name());
        self.metrics.call_ended(&EndedCall {
            function,
            evaluator,
            code: self.code,
            elapsed,
            received: self.received,
            sent: self.sent,
            trace: &self.trace,
        });
        let mut span = std::mem::take(&mut self.span);
        span.end(&self.image(), evaluator, self.code, &self.message);
        // To the microsecond: more is noise.
        let duration_ms = (elapsed.as_secs_f64() * 1e6).round() / 1e3;
        macro_rules! tell {
            ($level:ident) => {
                $level!(
                    function = self.image(),
                    evaluator,
                    code = ?self.code,
                    duration_ms,
                    bytes_in = self.received,
                    bytes_out = self.sent,
                    trace = self.trace.trace_id(),
                    error = (!self.outline.is_empty()).then(|| in_brief(&self.outline)),
                    "call"
                )
            };
        }
        match self.code {
            Code::Ok => tell!(info),
            _ if self.is_ours => tell!(error),
            _ => tell!(warn),
        }
    }
}

/// The start of a message: the whole of it, which may quote the function at
/// length, went to the caller.
fn in_brief(message: &str) -> &str {
    message.get(..message.floor_char_boundary(400)).unwrap_or_default()
}
