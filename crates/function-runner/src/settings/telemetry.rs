//! Where metrics and traces go, by the standard `OTEL_*` variables.

use std::net::IpAddr;

use flags::{Flags, Mistake};

use super::{Surroundings, environment};
use crate::args;

/// Metrics and traces, from the standard `OTEL_*` variables.
#[derive(Debug, Clone, Default)]
pub struct TelemetrySettings {
    /// Where metrics go.
    pub metrics: Vec<MetricsExporter>,
    /// Where traces go.
    pub traces: Vec<TracesExporter>,
    /// The interface of the Prometheus endpoint.
    pub prometheus_host: Option<IpAddr>,
    /// Its port.
    pub prometheus_port: u16,
}

/// Where metrics go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsExporter {
    /// An endpoint that Prometheus reads.
    Prometheus,
    /// A collector.
    Otlp(Protocol),
    /// Standard output.
    Console,
}

/// Where traces go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracesExporter {
    /// A collector.
    Otlp(Protocol),
    /// Standard output.
    Console,
}

/// How a collector is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC.
    Grpc,
    /// Protocol buffers over HTTP.
    HttpProtobuf,
}

/// Reads the standard variables, and the flag that wins over one of them.
pub(super) fn read(flags: &mut Flags, around: &dyn Surroundings) -> TelemetrySettings {
    if around.variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        let _ = flags.get(&args::METRICS_PORT);
        return TelemetrySettings::default();
    }
    let mut mistakes = Vec::new();
    let metrics_protocol = read_protocol(around, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", &mut mistakes);
    let traces_protocol = read_protocol(around, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", &mut mistakes);
    let mut metrics = read_exporters(
        around,
        "OTEL_METRICS_EXPORTER",
        "prometheus",
        &[
            ("prometheus", MetricsExporter::Prometheus),
            ("otlp", MetricsExporter::Otlp(metrics_protocol)),
            ("console", MetricsExporter::Console),
        ],
        &mut mistakes,
    );
    let traces = read_exporters(
        around,
        "OTEL_TRACES_EXPORTER",
        "none",
        &[("otlp", TracesExporter::Otlp(traces_protocol)), ("console", TracesExporter::Console)],
        &mut mistakes,
    );
    let (prometheus_host, prometheus_port) = read_prometheus(flags, around, &mut mistakes);
    if prometheus_port == 0 {
        metrics.retain(|exporter| *exporter != MetricsExporter::Prometheus);
    }
    // One general variable serves several signals.
    mistakes.dedup();
    for mistake in mistakes {
        flags.add(mistake);
    }
    TelemetrySettings { metrics, traces, prometheus_host, prometheus_port }
}

fn read_prometheus(
    flags: &Flags,
    around: &dyn Surroundings,
    mistakes: &mut Vec<Mistake>,
) -> (Option<IpAddr>, u16) {
    let host = around.variable("OTEL_EXPORTER_PROMETHEUS_HOST").and_then(|text| {
        let host = if text == "localhost" { Ok(IpAddr::from([127, 0, 0, 1])) } else { text.parse() };
        host.map_err(|_| {
            let reason = format!("is {text:?}; must be an address such as 0.0.0.0, or localhost");
            mistakes.push(environment("OTEL_EXPORTER_PROMETHEUS_HOST", &reason));
        })
        .ok()
    });
    let flag = flags.get(&args::METRICS_PORT);
    let variable =
        around.variable("OTEL_EXPORTER_PROMETHEUS_PORT").filter(|_| !flags.given(&args::METRICS_PORT));
    let port = variable.map_or(flag, |text| {
        text.parse().unwrap_or_else(|_| {
            let reason = format!("is {text:?}; must be a port from 0 to 65535");
            mistakes.push(environment("OTEL_EXPORTER_PROMETHEUS_PORT", &reason));
            flag
        })
    });
    (host, port)
}

fn read_exporters<T: Copy>(
    around: &dyn Surroundings,
    name: &'static str,
    default: &str,
    known: &[(&str, T)],
    mistakes: &mut Vec<Mistake>,
) -> Vec<T> {
    let given = around.variable(name).unwrap_or_else(|| default.to_owned());
    let mut exporters = Vec::new();
    for word in given.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "none") {
        match known.iter().find(|(known, _)| *known == word) {
            Some((_, exporter)) => exporters.push(*exporter),
            None => {
                let accepted: Vec<_> = known.iter().map(|(known, _)| *known).chain(["none"]).collect();
                let reason = format!("has {word:?}; must be one of {}", accepted.join(", "));
                mistakes.push(environment(name, &reason));
            }
        }
    }
    exporters
}

fn read_protocol(around: &dyn Surroundings, name: &'static str, mistakes: &mut Vec<Mistake>) -> Protocol {
    const GENERAL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
    let (name, given) = match around.variable(name) {
        Some(given) => (name, given),
        None => (GENERAL, around.variable(GENERAL).unwrap_or_else(|| "grpc".to_owned())),
    };
    match given.as_str() {
        "grpc" => Protocol::Grpc,
        "http/protobuf" => Protocol::HttpProtobuf,
        odd => {
            let reason = format!("is {odd:?}; must be grpc or http/protobuf");
            mistakes.push(environment(name, &reason));
            Protocol::Grpc
        }
    }
}
