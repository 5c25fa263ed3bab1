//! Where metrics and traces go.

use anyhow::Context as _;
use opentelemetry::{KeyValue, metrics::MeterProvider as _, trace::TracerProvider as _};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider, trace::SdkTracerProvider};
use prometheus::TextEncoder;
use tracing::{info, warn};
use wire::PageFormat;

use super::{Metrics, openmetrics, otlp};
use crate::{
    settings::{MetricsExporter, TelemetrySettings, TracesExporter},
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
    pub async fn start(settings: &TelemetrySettings) -> anyhow::Result<Self> {
        for note in &settings.notes {
            warn!("{note}");
        }
        let mut meters = SdkMeterProvider::builder().with_resource(resource());
        let mut read = None;
        for exporter in &settings.metrics {
            meters = match exporter {
                MetricsExporter::Console => {
                    meters.with_periodic_exporter(opentelemetry_stdout::MetricExporter::default())
                }
                MetricsExporter::Otlp(collector) => meters.with_periodic_exporter(otlp::metrics(collector)?),
                MetricsExporter::Prometheus => {
                    let registry = prometheus::Registry::new();
                    let exporter = opentelemetry_prometheus::exporter()
                        .with_registry(registry.clone())
                        .scope_info_enabled(false)
                        .build();
                    read = Some(registry);
                    meters.with_reader(exporter.context("cannot offer metrics to Prometheus")?)
                }
            };
        }
        let meters = meters.build();
        let tracers = start_traces(settings)?;
        let tracer = tracers.as_ref().map(|tracers| tracers.tracer(SCOPE));
        let metrics = Metrics::new(&meters.meter(SCOPE), tracer);
        if let Some(registry) = read {
            serve(settings, registry, &metrics).await?;
        }
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
            Ok(Ok(Err(error))) => warn!("the last metrics or traces may be lost: {error}"),
            Ok(Err(_)) | Err(_) => {
                warn!("the last metrics or traces may be lost: they could not be sent in time");
            }
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
            TracesExporter::Otlp(collector) => tracers.with_batch_exporter(otlp::spans(collector)?),
        };
    }
    Ok(Some(tracers.build()))
}

/// Offers the page that Prometheus reads.
async fn serve(
    settings: &TelemetrySettings,
    registry: prometheus::Registry,
    metrics: &Metrics,
) -> anyhow::Result<()> {
    let port = settings.prometheus_port;
    let listener = match &settings.prometheus_host {
        Some(host) => wire::listen_on(host, port)
            .await
            .with_context(|| format!("cannot listen on {host}, which OTEL_EXPORTER_PROMETHEUS_HOST names")),
        None => wire::listen(None, port).map_err(anyhow::Error::from),
    };
    let listener = listener.with_context(|| {
        format!("cannot listen on port {port} for metrics; choose another with --metrics-port, 0 for none")
    })?;
    info!(address = %listener.local_addr()?, "metrics");
    let exemplars = metrics.exemplars();
    tokio::spawn(wire::serve_metrics(listener, move |format| {
        let families = registry.gather();
        let page = match format {
            PageFormat::OpenMetrics => openmetrics::render(&families, &exemplars),
            PageFormat::Text => {
                TextEncoder::new().encode_to_string(&families).unwrap_or_else(|error| format!("# {error}\n"))
            }
        };
        (format, page)
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
