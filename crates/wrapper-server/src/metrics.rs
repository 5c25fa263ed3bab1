//! The wrapper's metrics, under the names the original's readers know. Written
//! by hand: three histograms and a gauge need no library.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
};

use prost::Message as _;
use wire::{FinishedRpc, Observer, PageFormat};

use crate::{
    log::Log,
    otlp::{self, HistogramPoint, Metric},
};

/// A histogram's name and meaning.
struct Kind {
    name: &'static str,
    /// Name and unit for collectors.
    otlp: (&'static str, &'static str),
    help: &'static str,
    /// The upper bounds, counted in steps and as readers see them.
    bounds: &'static [(u64, &'static str)],
    /// Steps to one of the unit in the name.
    steps: u64,
}

const BYTES: &[(u64, &str)] = &[
    (4096, "4096"),
    (16_384, "16384"),
    (65_536, "65536"),
    (262_144, "262144"),
    (1_048_576, "1048576"),
    (6_291_456, "6291456"),
];

static KINDS: [Kind; 3] = [
    Kind {
        name: "rpc_server_duration_milliseconds",
        otlp: ("rpc.server.duration", "ms"),
        help: "How long gRPC calls took, health checks included.",
        bounds: &[
            (50, "0.05"),
            (100, "0.1"),
            (250, "0.25"),
            (500, "0.5"),
            (1000, "1"),
            (2500, "2.5"),
            (5000, "5"),
            (10_000, "10"),
            (25_000, "25"),
            (50_000, "50"),
            (100_000, "100"),
            (250_000, "250"),
            (1_000_000, "1000"),
            (5_000_000, "5000"),
            (30_000_000, "30000"),
            (300_000_000, "300000"),
        ],
        steps: 1000,
    },
    Kind {
        name: "rpc_server_request_size_bytes",
        otlp: ("rpc.server.request.size", "By"),
        help: "Size of gRPC requests.",
        bounds: BYTES,
        steps: 1,
    },
    Kind {
        name: "rpc_server_response_size_bytes",
        otlp: ("rpc.server.response.size", "By"),
        help: "Size of gRPC responses.",
        bounds: BYTES,
        steps: 1,
    },
];

/// Values of one kind, in steps.
#[derive(Debug, Default)]
struct Histogram {
    /// How many lie between each bound and the one before it.
    buckets: Vec<u64>,
    count: u64,
    sum: u64,
}

impl Histogram {
    fn observe(&mut self, kind: &Kind, value: u64) {
        self.buckets.resize(kind.bounds.len(), 0);
        let bucket = kind.bounds.iter().position(|(bound, _)| value <= *bound);
        if let Some(bucket) = bucket.and_then(|at| self.buckets.get_mut(at)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
    }

    fn write(&self, page: &mut String, kind: &Kind, labels: &str) -> std::fmt::Result {
        let Kind { name, bounds, steps, .. } = kind;
        let mut below = 0;
        for ((_, bound), count) in bounds.iter().zip(&self.buckets) {
            below += count;
            writeln!(page, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}")?;
        }
        writeln!(page, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", self.count)?;
        let (whole, thousandths) = (self.sum / steps, self.sum % steps * (1000 / steps));
        writeln!(page, "{name}_sum{{{labels}}} {whole}.{thousandths:03}")?;
        writeln!(page, "{name}_count{{{labels}}} {}", self.count)
    }
}

/// A number of steps in the unit of its metric; what a double cannot hold is of no account.
#[allow(clippy::cast_precision_loss, reason = "sums and bounds are measurements")]
fn in_units(steps: u64, kind: &Kind) -> f64 {
    steps as f64 / kind.steps as f64
}

/// Service, method and code of calls that are counted together: never more
/// than the services we have.
type Labels = (&'static str, &'static str, i32);

/// Counts the calls.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    /// When counting began.
    begun: u64,
    calls: Arc<Mutex<BTreeMap<Labels, [Histogram; 3]>>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { begun: otlp::now(), calls: Arc::default() }
    }
}

impl Metrics {
    /// The page for Prometheus.
    fn page(&self) -> String {
        let mut page = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut page);
        page
    }

    fn write(&self, page: &mut String) -> std::fmt::Result {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, kind) in KINDS.iter().enumerate() {
            let Kind { name, help, .. } = kind;
            writeln!(page, "# HELP {name} {help}\n# TYPE {name} histogram")?;
            for ((service, method, code), histograms) in calls.iter() {
                let labels = format!(
                    "rpc_system=\"grpc\",rpc_service=\"{service}\",rpc_method=\"{method}\",rpc_grpc_status_code=\"{code}\""
                );
                if let Some(histogram) = histograms.get(at) {
                    histogram.write(page, kind, &labels)?;
                }
            }
        }
        let tasks = tokio::runtime::Handle::try_current().map_or(0, |own| own.metrics().num_alive_tasks());
        writeln!(
            page,
            "# HELP go_goroutines Tasks that exist now, under the name that readers of the original expect.\n\
             # TYPE go_goroutines gauge\ngo_goroutines {tasks}"
        )
    }

    /// All histograms, for a collector.
    pub(crate) fn export(&self) -> Vec<Vec<u8>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let time = otlp::now();
        let metrics = KINDS.iter().enumerate().map(|(at, kind)| {
            let points = calls.iter().filter_map(|((service, method, code), histograms)| {
                let Histogram { buckets, count, sum } = histograms.get(at)?;
                let beyond = count - buckets.iter().sum::<u64>();
                Some(HistogramPoint {
                    start_time_unix_nano: self.begun,
                    time_unix_nano: time,
                    count: *count,
                    sum: Some(in_units(*sum, kind)),
                    bucket_counts: buckets.iter().copied().chain([beyond]).collect(),
                    explicit_bounds: kind.bounds.iter().map(|(bound, _)| in_units(*bound, kind)).collect(),
                    attributes: vec![
                        otlp::text("rpc.system", "grpc"),
                        otlp::text("rpc.service", service),
                        otlp::text("rpc.method", method),
                        otlp::int("rpc.grpc.status_code", i64::from(*code)),
                    ],
                })
            });
            let (name, unit) = kind.otlp;
            let data_points = points.collect();
            let metric = Metric {
                name: name.to_owned(),
                description: kind.help.to_owned(),
                unit: unit.to_owned(),
                histogram: Some(otlp::Histogram { data_points, aggregation_temporality: otlp::CUMULATIVE }),
            };
            metric.encode_to_vec()
        });
        metrics.collect()
    }

    /// Offers the page, as the standard variables say. A port that cannot be
    /// had is no reason not to evaluate functions.
    pub(crate) async fn offer(&self, log: Log, variable: impl Fn(&str) -> Option<String>) {
        let host = variable("OTEL_EXPORTER_PROMETHEUS_HOST");
        let Ok(port) = variable("OTEL_EXPORTER_PROMETHEUS_PORT").map_or(Ok(9464), |port| port.parse()) else {
            log.warn("OTEL_EXPORTER_PROMETHEUS_PORT is no port: no metrics are offered");
            return;
        };
        if port == 0 {
            return;
        }
        let listener = match &host {
            Some(host) => wire::listen_on(host, port).await,
            None => wire::listen(None, port),
        };
        match listener {
            Ok(listener) => {
                let metrics = self.clone();
                tokio::spawn(wire::serve_metrics(listener, move |_| (PageFormat::Text, metrics.page())));
            }
            Err(error) => {
                let on = host.map(|host| format!(" of {host}")).unwrap_or_default();
                log.warn(format_args!(
                    "cannot listen on port {port}{on} for metrics: {error}; none are offered"
                ));
            }
        }
    }
}

impl Observer for Metrics {
    fn finished(&self, rpc: &FinishedRpc) {
        let microseconds = u64::try_from(rpc.elapsed.as_micros()).unwrap_or(u64::MAX);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let histograms = calls.entry((rpc.service, rpc.method, rpc.code.into())).or_default();
        let values = [microseconds, rpc.received, rpc.sent];
        for ((histogram, kind), value) in histograms.iter_mut().zip(&KINDS).zip(values) {
            histogram.observe(kind, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic::Code;

    use super::*;

    #[test]
    fn the_page_counts_values_up_to_each_bound() {
        let metrics = Metrics::default();
        for (microseconds, received) in [(50, 0), (1000, 4096), (2_500, 4097), (400_000_007, u64::MAX)] {
            metrics.finished(&FinishedRpc {
                service: "a.Service",
                method: "Method",
                code: Code::Internal,
                elapsed: Duration::from_micros(microseconds),
                received,
                sent: 0,
            });
        }
        let page = metrics.page();
        let labels =
            "rpc_system=\"grpc\",rpc_service=\"a.Service\",rpc_method=\"Method\",rpc_grpc_status_code=\"13\"";
        for line in [
            "# TYPE rpc_server_duration_milliseconds histogram".to_owned(),
            format!("rpc_server_duration_milliseconds_bucket{{{labels},le=\"0.05\"}} 1"),
            format!("rpc_server_duration_milliseconds_bucket{{{labels},le=\"1\"}} 2"),
            format!("rpc_server_duration_milliseconds_bucket{{{labels},le=\"2.5\"}} 3"),
            format!("rpc_server_duration_milliseconds_bucket{{{labels},le=\"300000\"}} 3"),
            format!("rpc_server_duration_milliseconds_bucket{{{labels},le=\"+Inf\"}} 4"),
            format!("rpc_server_duration_milliseconds_sum{{{labels}}} 400003.557"),
            format!("rpc_server_duration_milliseconds_count{{{labels}}} 4"),
            format!("rpc_server_request_size_bytes_bucket{{{labels},le=\"4096\"}} 2"),
            format!("rpc_server_request_size_bytes_sum{{{labels}}} {}.000", u64::MAX),
            format!("rpc_server_response_size_bytes_sum{{{labels}}} 0.000"),
            "# TYPE go_goroutines gauge".to_owned(),
            "go_goroutines 0".to_owned(),
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }
}
