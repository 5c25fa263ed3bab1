//! One span per call, in the trace of its caller.

use opentelemetry::{
    Context, KeyValue,
    trace::{
        Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
        Tracer as _,
    },
};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use tonic::Code;
use wire::TraceContext;

/// The span of a call; nothing where traces are off.
#[derive(Debug, Default)]
pub struct CallSpan {
    span: Option<Span>,
}

/// Begins the span of a call, and tells the trace to log and to hand on.
pub(super) fn begin(tracer: Option<&SdkTracer>, caller: Option<TraceContext>) -> (CallSpan, TraceContext) {
    let Some(tracer) = tracer else {
        return (CallSpan::default(), caller.unwrap_or_else(TraceContext::begin));
    };
    let parent = caller.as_ref().map_or_else(Context::new, |caller| {
        let (trace, span, flags) = caller.ids();
        let state = caller.state().and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
        Context::new().with_remote_span_context(SpanContext::new(
            TraceId::from(trace),
            SpanId::from(span),
            TraceFlags::new(flags),
            true,
            state,
        ))
    });
    let span = tracer
        .span_builder("evaluator.FunctionEvaluator/EvaluateFunction")
        .with_kind(SpanKind::Server)
        .with_attributes([
            KeyValue::new("rpc.system", "grpc"),
            KeyValue::new("rpc.service", "evaluator.FunctionEvaluator"),
            KeyValue::new("rpc.method", "EvaluateFunction"),
        ])
        .start_with_context(tracer, &parent);
    let own = span.span_context();
    let trace = TraceContext::new(
        u128::from_be_bytes(own.trace_id().to_bytes()),
        u64::from_be_bytes(own.span_id().to_bytes()),
        own.trace_flags().to_u8(),
        caller.as_ref().and_then(TraceContext::state).map(str::to_owned),
    );
    (CallSpan { span: Some(span) }, trace)
}

impl CallSpan {
    /// Ends the span with what became of the call.
    pub fn end(&mut self, image: &str, evaluator: &'static str, code: Code, message: &str) {
        let Some(mut span) = self.span.take() else { return };
        span.set_attribute(KeyValue::new("function.image", image.to_owned()));
        span.set_attribute(KeyValue::new("function.evaluator", evaluator));
        span.set_attribute(KeyValue::new("rpc.grpc.status_code", i64::from(i32::from(code))));
        if code != Code::Ok {
            span.set_status(Status::error(message.to_owned()));
        }
        span.end();
    }
}
