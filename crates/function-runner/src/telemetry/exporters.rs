//! Where metrics and traces go.

use anyhow::Context as _;
use opentelemetry::{KeyValue, metrics::MeterProvider as _, trace::TracerProvider as _};
use opentelemetry_otlp::{MetricExporter, SpanExporter};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider, trace::SdkTracerProvider};
use prometheus::TextEncoder;
use tracing::{info, warn};

use super::Metrics;
use crate::{
    settings::{MetricsExporter, Protocol, TelemetrySettings, TracesExporter},
    version,
};

/// The name of our instruments' scope.
const SCOPE: &str = "function-runner";

/// Everything that must be flushed at the end.
#[derive(Debug)]
pub struct Telemetry {
    meters: SdkMeterProvider,
    tracers: Option<SdkTracerProvider>,
    metrics: Metrics,
}

impl Telemetry {
    /// Starts all exporters that are asked for, within a tokio runtime.
    pub fn start(settings: &TelemetrySettings) -> anyhow::Result<Self> {
        let mut meters = SdkMeterProvider::builder().with_resource(resource());
        for exporter in &settings.metrics {
            meters = match exporter {
                MetricsExporter::Console => {
                    meters.with_periodic_exporter(opentelemetry_stdout::MetricExporter::default())
                }
                MetricsExporter::Otlp(Protocol::Grpc) => {
                    let exporter = MetricExporter::builder().with_tonic().build();
                    meters.with_periodic_exporter(
                        exporter.context("cannot send metrics by OTLP; check OTEL_EXPORTER_OTLP_*")?,
                    )
                }
                MetricsExporter::Otlp(Protocol::HttpProtobuf) => {
                    let exporter = MetricExporter::builder().with_http().build();
                    meters.with_periodic_exporter(
                        exporter.context("cannot send metrics by OTLP; check OTEL_EXPORTER_OTLP_*")?,
                    )
                }
                MetricsExporter::Prometheus => {
                    let registry = prometheus::Registry::new();
                    let exporter = opentelemetry_prometheus::exporter()
                        .with_registry(registry.clone())
                        .scope_info_enabled(false)
                        .build();
                    serve(settings, registry)?;
                    meters.with_reader(exporter.context("cannot offer metrics to Prometheus")?)
                }
            };
        }
        let meters = meters.build();
        let tracers = start_traces(settings)?;
        let tracer = tracers.as_ref().map(|tracers| tracers.tracer(SCOPE));
        let metrics = Metrics::new(&meters.meter(SCOPE), tracer);
        Ok(Self { meters, tracers, metrics })
    }

    /// The instruments.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Sends what is left; a collector that does not answer holds nobody up.
    pub async fn flush(self) {
        let flushed = tokio::task::spawn_blocking(move || {
            let meters = self.meters.shutdown();
            let tracers = self.tracers.map_or(Ok(()), |tracers| tracers.shutdown());
            meters.and(tracers)
        });
        match tokio::time::timeout(std::time::Duration::from_secs(2), flushed).await {
            Ok(Ok(Ok(()))) => {}
            outcome => warn!(?outcome, "the last metrics or traces may be lost"),
        }
    }
}

fn start_traces(settings: &TelemetrySettings) -> anyhow::Result<Option<SdkTracerProvider>> {
    if settings.traces.is_empty() {
        return Ok(None);
    }
    let mut tracers = SdkTracerProvider::builder().with_resource(resource());
    for exporter in &settings.traces {
        tracers = match exporter {
            TracesExporter::Console => {
                tracers.with_batch_exporter(opentelemetry_stdout::SpanExporter::default())
            }
            TracesExporter::Otlp(Protocol::Grpc) => {
                let exporter = SpanExporter::builder().with_tonic().build();
                tracers.with_batch_exporter(
                    exporter.context("cannot send traces by OTLP; check OTEL_EXPORTER_OTLP_*")?,
                )
            }
            TracesExporter::Otlp(Protocol::HttpProtobuf) => {
                let exporter = SpanExporter::builder().with_http().build();
                tracers.with_batch_exporter(
                    exporter.context("cannot send traces by OTLP; check OTEL_EXPORTER_OTLP_*")?,
                )
            }
        };
    }
    Ok(Some(tracers.build()))
}

fn serve(settings: &TelemetrySettings, registry: prometheus::Registry) -> anyhow::Result<()> {
    let (host, port) = (settings.prometheus_host, settings.prometheus_port);
    let listener = wire::listen(host, port).with_context(|| {
        format!("cannot listen on port {port} for metrics; choose another with --metrics-port, 0 for none")
    })?;
    info!(address = %listener.local_addr()?, "metrics");
    tokio::spawn(wire::serve_metrics(listener, move || {
        TextEncoder::new().encode_to_string(&registry.gather()).unwrap_or_else(|error| format!("# {error}\n"))
    }));
    Ok(())
}

/// Who we are: the standard variables win over our own name.
fn resource() -> Resource {
    let named = ["OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"].iter().any(|name| {
        std::env::var(name).is_ok_and(|value| {
            !value.is_empty() && (*name == "OTEL_SERVICE_NAME" || value.contains("service.name="))
        })
    });
    let builder = Resource::builder().with_attribute(KeyValue::new("service.version", version::VERSION));
    if named { builder.build() } else { builder.with_service_name(SCOPE).build() }
}
