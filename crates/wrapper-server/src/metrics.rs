//! The wrapper's metrics, under the names the original's readers know.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use wire::{FinishedRpc, Observer};

use crate::log::Log;

const MILLISECONDS: [f64; 12] =
    [1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0, 5000.0, 30000.0, 300_000.0];
const BYTES: [f64; 6] = [4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 6_291_456.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(clippy::struct_field_names, reason = "the fields are the label names")]
struct Rpc {
    rpc_system: &'static str,
    rpc_service: &'static str,
    rpc_method: &'static str,
    rpc_grpc_status_code: i32,
}

type Histograms = Family<Rpc, Histogram, fn() -> Histogram>;

/// Counts the calls.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    duration: Histograms,
    request_size: Histograms,
    response_size: Histograms,
    tasks: Gauge,
    registry: Arc<Mutex<Registry>>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let metrics = Self {
            duration: Family::new_with_constructor(|| Histogram::new(MILLISECONDS)),
            request_size: Family::new_with_constructor(|| Histogram::new(BYTES)),
            response_size: Family::new_with_constructor(|| Histogram::new(BYTES)),
            tasks: Gauge::default(),
            registry: Arc::default(),
        };
        let mut registry = metrics.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = "How long gRPC calls took, health checks included";
        registry.register("rpc_server_duration_milliseconds", calls, metrics.duration.clone());
        registry.register(
            "rpc_server_request_size_bytes",
            "Size of gRPC requests",
            metrics.request_size.clone(),
        );
        registry.register(
            "rpc_server_response_size_bytes",
            "Size of gRPC responses",
            metrics.response_size.clone(),
        );
        let tasks = "Tasks that exist now, under the name that readers of the original expect";
        registry.register("go_goroutines", tasks, metrics.tasks.clone());
        drop(registry);
        metrics
    }

    /// The page for Prometheus.
    fn page(&self) -> String {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.set(i64::try_from(runtime.metrics().num_alive_tasks()).unwrap_or(i64::MAX));
        }
        let mut page = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a String cannot fail.
        let _ = encode(&mut page, &registry);
        page
    }

    /// Offers the page, as the standard variables say. A port that cannot be
    /// had is no reason not to evaluate functions.
    pub(crate) fn offer(&self, log: Log) {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        match variable("OTEL_METRICS_EXPORTER").as_deref() {
            None | Some("prometheus") => {}
            Some("none") => return,
            Some(other) => {
                log.warn(format_args!(
                    "OTEL_METRICS_EXPORTER is {other:?}, but the wrapper has only prometheus and none"
                ));
                return;
            }
        }
        let host = variable("OTEL_EXPORTER_PROMETHEUS_HOST").map(|host| match host.as_str() {
            "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
            address => address.parse(),
        });
        let port = variable("OTEL_EXPORTER_PROMETHEUS_PORT").map_or(Ok(9464), |port| port.parse());
        let (Ok(host), Ok(port)) = (host.transpose(), port) else {
            log.warn("OTEL_EXPORTER_PROMETHEUS_HOST or _PORT is no address or port: no metrics are offered");
            return;
        };
        if port == 0 {
            return;
        }
        match wire::listen(host, port) {
            Ok(listener) => {
                let metrics = self.clone();
                tokio::spawn(wire::serve_metrics(listener, move || metrics.page()));
            }
            Err(error) => {
                log.warn(format_args!("cannot listen on port {port} for metrics: {error}; none are offered"));
            }
        }
    }
}

impl Observer for Metrics {
    fn finished(&self, rpc: &FinishedRpc) {
        let labels = Rpc {
            rpc_system: "grpc",
            rpc_service: rpc.service,
            rpc_method: rpc.method,
            rpc_grpc_status_code: rpc.code.into(),
        };
        self.duration.get_or_create(&labels).observe(rpc.elapsed.as_secs_f64() * 1e3);
        self.request_size.get_or_create(&labels).observe(size(rpc.received));
        self.response_size.get_or_create(&labels).observe(size(rpc.sent));
    }
}

#[allow(clippy::cast_precision_loss, reason = "messages are far smaller than 2^52 bytes")]
fn size(bytes: u64) -> f64 {
    bytes as f64
}
