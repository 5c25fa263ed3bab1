//! The counts and durations of the service.

use std::{sync::Arc, time::Duration};

use ::process::FairQueue;
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Gauge, Histogram, Meter, UpDownCounter},
};
use opentelemetry_sdk::trace::SdkTracer;
use tonic::Code;
use wire::{FinishedRpc, Memory, Observer, TraceContext};

use super::{CallSpan, PodMetrics, labels::FunctionLabels, openmetrics::Exemplars, process, traces};
use crate::version;

/// Bounds in seconds: a call lasts from tens of microseconds, where the function is built in, to minutes.
pub(super) const SECONDS: [f64; 20] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 30.0, 60.0, 300.0,
];
/// The same in milliseconds, the unit of the original's metric.
pub(super) const MILLISECONDS: [f64; 20] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0,
    10000.0, 30000.0, 60000.0, 300_000.0,
];
/// From a small list to the largest message.
const BYTES: [f64; 8] = [1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 6_291_456.0];

/// Records what happens; cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics {
    inner: Arc<Instruments>,
}

#[derive(Debug)]
struct Instruments {
    meter: Meter,
    tracer: Option<SdkTracer>,
    labels: FunctionLabels,
    exemplars: Arc<Exemplars>,
    rpc_duration: Histogram<f64>,
    rpc_request_size: Histogram<u64>,
    rpc_response_size: Histogram<u64>,
    calls: Counter<u64>,
    call_duration: Histogram<f64>,
    running: UpDownCounter<i64>,
    bytes: Counter<u64>,
    reloads: Counter<u64>,
    config_valid: Gauge<u64>,
}

impl Metrics {
    /// The instruments of `meter`; calls are also traced by `tracer`.
    pub fn new(meter: &Meter, tracer: Option<SdkTracer>) -> Self {
        let build_info = meter
            .u64_gauge("function_runner.build_info")
            .with_description("Always 1; the labels tell what is running.")
            .build();
        build_info.record(
            1,
            &[
                KeyValue::new("version", version::VERSION),
                KeyValue::new("commit", version::COMMIT),
                KeyValue::new("toolchain", version::TOOLCHAIN),
            ],
        );
        let instruments = Instruments {
            tracer,
            labels: FunctionLabels::default(),
            exemplars: Arc::default(),
            rpc_duration: meter
                .f64_histogram("rpc.server.duration")
                .with_unit("ms")
                .with_description("How long gRPC calls took, health checks included.")
                .with_boundaries(MILLISECONDS.to_vec())
                .build(),
            rpc_request_size: meter
                .u64_histogram("rpc.server.request.size")
                .with_unit("By")
                .with_description("Size of gRPC requests.")
                .with_boundaries(BYTES.to_vec())
                .build(),
            rpc_response_size: meter
                .u64_histogram("rpc.server.response.size")
                .with_unit("By")
                .with_description("Size of gRPC responses.")
                .with_boundaries(BYTES.to_vec())
                .build(),
            calls: meter
                .u64_counter("function_runner.calls")
                .with_description("Function calls by function, evaluator and gRPC code.")
                .build(),
            call_duration: meter
                .f64_histogram("function_runner.call.duration")
                .with_unit("s")
                .with_description("How long function calls took, waiting included.")
                .with_boundaries(SECONDS.to_vec())
                .build(),
            running: meter
                .i64_up_down_counter("function_runner.calls.running")
                .with_description("Function calls not yet answered.")
                .build(),
            bytes: meter
                .u64_counter("function_runner.resource_list")
                .with_unit("By")
                .with_description("Bytes of ResourceLists and logs, in and out.")
                .build(),
            reloads: meter
                .u64_counter("function_runner.config.reloads")
                .with_description("Changes of the configuration file, by result.")
                .build(),
            config_valid: meter
                .u64_gauge("function_runner.config.valid")
                .with_description(
                    "1 while the configuration file as it is now is in force, 0 while it is broken.",
                )
                .build(),
            meter: meter.clone(),
        };
        instruments.running.add(0, &[]);
        instruments.config_valid.record(1, &[]);
        process::observe(meter);
        Self { inner: Arc::new(instruments) }
    }

    /// Calls to show beside their counts.
    pub(super) fn exemplars(&self) -> Arc<Exemplars> {
        self.inner.exemplars.clone()
    }

    /// The instruments of the pod runtime.
    pub(crate) fn pods(&self) -> PodMetrics {
        PodMetrics::new(&self.inner.meter)
    }

    /// Shows how many calls wait for their turn in all `queues`, which share their places to wait in.
    pub(crate) fn observe_queued(&self, queues: Vec<FairQueue>) {
        self.inner
            .meter
            .u64_observable_gauge("function_runner.executions.queued")
            .with_description("Calls waiting for other executables to end, or for a processor core.")
            .with_callback(move |gauge| {
                gauge.observe(queues.iter().map(FairQueue::waiting).sum::<usize>() as u64, &[]);
            })
            .build();
    }

    /// Shows how many executables run.
    pub(crate) fn observe_processes(&self, queue: FairQueue) {
        self.observe_running("function_runner.executions.running", "Executables running now.", vec![queue]);
    }

    /// Shows how many built-in functions compute.
    pub(crate) fn observe_builtins(&self, cores: Vec<FairQueue>) {
        self.observe_running("function_runner.builtins.running", "Built-in functions computing now.", cores);
    }

    fn observe_running(&self, name: &'static str, description: &'static str, queues: Vec<FairQueue>) {
        self.inner
            .meter
            .u64_observable_gauge(name)
            .with_description(description)
            .with_callback(move |gauge| {
                gauge.observe(queues.iter().map(FairQueue::running).sum::<usize>() as u64, &[]);
            })
            .build();
    }

    /// Shows how much memory calls hold.
    pub fn observe_memory(&self, memory: Memory) {
        let meter = &self.inner.meter;
        let (limit, refused) = (memory.clone(), memory.clone());
        meter
            .u64_observable_gauge("function_runner.memory.used")
            .with_unit("By")
            .with_description("Bytes that calls hold, from the request until the answer is written.")
            .with_callback(move |gauge| gauge.observe(memory.used() as u64, &[]))
            .build();
        meter
            .u64_observable_gauge("function_runner.memory.limit")
            .with_unit("By")
            .with_description("Bytes that calls may hold, see --max-memory.")
            .with_callback(move |gauge| gauge.observe(limit.limit() as u64, &[]))
            .build();
        meter
            .u64_observable_counter("function_runner.memory.refusals")
            .with_description("How often there was no memory for a call.")
            .with_callback(move |counter| counter.observe(refused.refused(), &[]))
            .build();
    }

    /// Begins the span of a call in the trace of its caller.
    pub fn begin_span(&self, caller: Option<TraceContext>) -> (CallSpan, TraceContext) {
        traces::begin(self.inner.tracer.as_ref(), caller)
    }

    /// A call began.
    pub fn call_started(&self) {
        self.inner.running.add(1, &[]);
    }

    /// A call ended.
    pub fn call_ended(&self, call: &EndedCall<'_>) {
        let instruments = &*self.inner;
        // What no evaluator ran can be any text, so it has no label of its own.
        let known = call.evaluator != "none";
        let function =
            if known { instruments.labels.label(call.function) } else { super::labels::OTHER.into() };
        instruments.exemplars.keep(&function, call.evaluator, call.trace, call.elapsed);
        let function = KeyValue::new("function", function);
        let evaluator = KeyValue::new("evaluator", call.evaluator);
        let code = KeyValue::new("code", code_name(call.code));
        instruments.call_duration.record(call.elapsed.as_secs_f64(), &[function.clone(), evaluator.clone()]);
        instruments.calls.add(1, &[function, evaluator, code]);
        instruments.bytes.add(call.received as u64, &[KeyValue::new("direction", "in")]);
        instruments.bytes.add(call.sent as u64, &[KeyValue::new("direction", "out")]);
        instruments.running.add(-1, &[]);
    }

    /// The configuration file changed; `valid` tells whether it is in force.
    pub fn config_reloaded(&self, valid: bool) {
        let result = if valid { "replaced" } else { "rejected" };
        self.inner.reloads.add(1, &[KeyValue::new("result", result)]);
        self.inner.config_valid.record(u64::from(valid), &[]);
    }
}

/// What is counted of a call.
#[derive(Debug, Clone, Copy)]
pub struct EndedCall<'a> {
    /// The function's name.
    pub function: &'a str,
    /// Who answered it.
    pub evaluator: &'static str,
    /// How it ended.
    pub code: Code,
    /// How long it took.
    pub elapsed: Duration,
    /// Bytes taken in.
    pub received: usize,
    /// Bytes given out.
    pub sent: usize,
    /// The trace it belongs to.
    pub trace: &'a TraceContext,
}

impl Observer for Metrics {
    fn finished(&self, rpc: &FinishedRpc) {
        let instruments = &*self.inner;
        let attributes = [
            KeyValue::new("rpc.system", "grpc"),
            KeyValue::new("rpc.service", rpc.service),
            KeyValue::new("rpc.method", rpc.method),
            KeyValue::new("rpc.grpc.status_code", i64::from(i32::from(rpc.code))),
        ];
        instruments.rpc_duration.record(rpc.elapsed.as_secs_f64() * 1e3, &attributes);
        instruments.rpc_request_size.record(rpc.received, &attributes);
        instruments.rpc_response_size.record(rpc.sent, &attributes);
    }
}

/// The code's name as a label: the Debug form is the usual one.
fn code_name(code: Code) -> String {
    format!("{code:?}")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::metrics::SdkMeterProvider;

    use super::*;

    #[tokio::test]
    async fn who_waits_is_counted_whatever_it_waits_for() {
        let registry = prometheus::Registry::new();
        let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build().unwrap();
        let provider = SdkMeterProvider::builder().with_reader(exporter).build();
        let metrics = Metrics::new(&provider.meter("test"), None);
        let processes = FairQueue::new(NonZeroUsize::MIN, 10);
        let cores = processes.beside(NonZeroUsize::MIN);
        metrics.observe_queued(vec![processes.clone(), cores.clone()]);
        metrics.observe_processes(processes.clone());
        metrics.observe_builtins(vec![cores.clone()]);
        let held = [processes.acquire("a", None).await.unwrap(), cores.acquire("a", None).await.unwrap()];
        let waiting: Vec<_> = [&processes, &cores, &cores]
            .map(|queue| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.acquire("b", None).await.map(drop) })
            })
            .into();
        while processes.waiting() + cores.waiting() < 3 {
            tokio::task::yield_now().await;
        }
        let value = |name: &str| {
            let families = registry.gather();
            let family = families.iter().find(|family| family.name() == name).unwrap();
            family.get_metric()[0].get_gauge().get_value()
        };
        assert_eq!(value("function_runner_executions_queued").to_string(), "3");
        assert_eq!(value("function_runner_executions_running").to_string(), "1");
        assert_eq!(value("function_runner_builtins_running").to_string(), "1");
        drop(held);
        for waiting in waiting {
            waiting.await.unwrap().unwrap();
        }
        assert_eq!(value("function_runner_executions_queued").to_string(), "0");
    }
}
