//! What is counted of the pod runtime.

use std::{collections::HashMap, sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};
use pods::{ApiRequest, Reason, Runtime};
use registry::Reference;
use tonic::Code;

use super::labels::FunctionLabels;

/// Bounds in seconds: a stage of a start takes from a few milliseconds to minutes.
const SECONDS: [f64; 12] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// The instruments of the pod runtime; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct PodMetrics {
    meter: Meter,
    labels: Arc<FunctionLabels>,
    cold_starts: Histogram<f64>,
    evictions: Counter<u64>,
    requests: Counter<u64>,
    rpc_duration: Histogram<f64>,
}

impl PodMetrics {
    /// The instruments of `meter`.
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            labels: Arc::default(),
            cold_starts: meter
                .f64_histogram("function_runner.pod.start.duration")
                .with_unit("s")
                .with_description("How long the stages of pod starts took, by function and stage.")
                .with_boundaries(SECONDS.to_vec())
                .build(),
            evictions: meter
                .u64_counter("function_runner.pod.evictions")
                .with_description("Pods removed by the function runner, by reason.")
                .build(),
            requests: meter
                .u64_counter("function_runner.api.requests")
                .with_description(
                    "Requests to the Kubernetes API, by verb, resource and HTTP status (0: no answer).",
                )
                .build(),
            rpc_duration: meter
                .f64_histogram("rpc.client.duration")
                .with_unit("ms")
                .with_description("How long calls of function pods took.")
                .with_boundaries(super::metrics::MILLISECONDS.to_vec())
                .build(),
            meter: meter.clone(),
        }
    }

    /// Shows the pods of `runtime` by function and phase, and the calls that wait.
    pub(crate) fn observe(&self, runtime: &Runtime) {
        let (labels, pods, waiting) = (self.labels.clone(), runtime.clone(), runtime.clone());
        self.meter
            .u64_observable_gauge("function_runner.pods")
            .with_description("Function pods by function and phase.")
            .with_callback(move |gauge| {
                let mut counts: HashMap<_, u64> = HashMap::new();
                for pod in &pods.view().pods {
                    *counts.entry((labels.label(&name(&pod.function)), pod.phase)).or_default() += 1;
                }
                for ((function, phase), count) in counts {
                    gauge.observe(
                        count,
                        &[KeyValue::new("function", function), KeyValue::new("phase", phase)],
                    );
                }
            })
            .build();
        self.meter
            .u64_observable_gauge("function_runner.pods.waiting")
            .with_description("Calls waiting for a pod.")
            .with_callback(move |gauge| gauge.observe(waiting.view().waiting as u64, &[]))
            .build();
    }

    /// A stage of a pod's start took this long.
    pub(crate) fn cold_start(&self, function: &str, stage: &'static str, took: Duration) {
        let function = KeyValue::new("function", self.labels.label(&name(function)));
        self.cold_starts.record(took.as_secs_f64(), &[function, KeyValue::new("stage", stage)]);
    }

    /// A pod was removed.
    pub(crate) fn evicted(&self, reason: Reason) {
        let reason = match reason {
            Reason::Idle => "idle",
            Reason::Failed => "failed",
            Reason::NotReady => "not_ready",
            Reason::Outdated => "outdated",
            Reason::Surplus => "surplus",
            Reason::Room => "room",
        };
        self.evictions.add(1, &[KeyValue::new("reason", reason)]);
    }

    /// A pod was called, and ended so.
    pub(crate) fn called(&self, code: Code, took: Duration) {
        let attributes = [
            KeyValue::new("rpc.system", "grpc"),
            KeyValue::new("rpc.service", "evaluator.FunctionEvaluator"),
            KeyValue::new("rpc.method", "EvaluateFunction"),
            KeyValue::new("rpc.grpc.status_code", i64::from(i32::from(code))),
        ];
        self.rpc_duration.record(took.as_secs_f64() * 1e3, &attributes);
    }

    /// The API server was asked.
    pub(crate) fn requested(&self, request: &ApiRequest) {
        let attributes = [
            KeyValue::new("verb", request.verb),
            KeyValue::new("resource", request.resource),
            KeyValue::new("status", i64::from(request.status)),
        ];
        self.requests.add(1, &attributes);
    }
}

/// The function's name, as in the metrics of calls.
fn name(image: &str) -> String {
    Reference::parse(image).map(|image| image.name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::metrics::SdkMeterProvider;

    use super::*;

    #[test]
    fn calls_of_pods_are_counted_under_the_names_of_the_original() {
        let registry = prometheus::Registry::new();
        let exporter =
            opentelemetry_prometheus::exporter().with_registry(registry.clone()).scope_info_enabled(false);
        let provider = SdkMeterProvider::builder().with_reader(exporter.build().unwrap()).build();
        let metrics = PodMetrics::new(&provider.meter("test"));
        for code in [Code::Ok, Code::Ok, Code::Unavailable] {
            metrics.called(code, Duration::from_micros(300));
        }
        let page = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for (code, bound, count) in [(0, "0.25", 0), (0, "0.5", 2), (14, "0.5", 1)] {
            let line = format!(
                r#"rpc_client_duration_milliseconds_bucket{{rpc_grpc_status_code="{code}",rpc_method="EvaluateFunction",rpc_service="evaluator.FunctionEvaluator",rpc_system="grpc",le="{bound}"}} {count}"#
            );
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }
}
