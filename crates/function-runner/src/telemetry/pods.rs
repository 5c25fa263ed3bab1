//! What is counted of the pod runtime.

use std::{collections::HashMap, sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};
use pods::{ApiRequest, Reason, Runtime};
use registry::Reference;

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
