//! Where metrics and traces go, by the standard `OTEL_*` variables.

use std::collections::BTreeSet;

use flags::{Flags, Mistake};
use wire::Propagators;

use super::{
    Surroundings,
    collector::{Collector, Signal},
    environment,
};
use crate::args;

/// Metrics and traces, from the standard `OTEL_*` variables.
#[derive(Debug, Clone, Default)]
pub struct TelemetrySettings {
    /// Where metrics go.
    pub metrics: Vec<MetricsExporter>,
    /// Where traces go.
    pub traces: Vec<TracesExporter>,
    /// The headers that carry traces.
    pub propagators: Propagators,
    /// The interface of the Prometheus endpoint: an address, or a name for one.
    pub prometheus_host: Option<String>,
    /// Its port.
    pub prometheus_port: u16,
    /// What is odd, and done without.
    pub notes: BTreeSet<String>,
}

/// Where metrics go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsExporter {
    /// An endpoint that Prometheus reads.
    Prometheus,
    /// A collector.
    Otlp(Collector),
    /// Standard output.
    Console,
}

/// Where traces go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracesExporter {
    /// A collector.
    Otlp(Collector),
    /// Standard output.
    Console,
}

/// Reads the standard variables, and the flag that wins over one of them.
pub(super) fn read(flags: &mut Flags, around: &dyn Surroundings) -> TelemetrySettings {
    let mut notes = BTreeSet::new();
    // Traces are handed on also where none are sent from here.
    let propagators = read_propagators(around, &mut notes);
    if around.variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        let _ = flags.get(&args::METRICS_PORT);
        return TelemetrySettings { propagators, notes, ..TelemetrySettings::default() };
    }
    let mut mistakes = Vec::new();
    let signal = Signal::new("METRICS", around);
    // Who says where the collector is wants it to have something; who chooses the port, that something is there.
    let default = match (signal.has_endpoint(), flags.given(&args::METRICS_PORT)) {
        (true, true) => "otlp,prometheus",
        (true, false) => "otlp",
        (false, _) => "prometheus",
    };
    let mut metrics = read_exporters(
        around,
        ("OTEL_METRICS_EXPORTER", default),
        &["prometheus", "otlp", "console"],
        &mut mistakes,
        |word, mistakes| match word {
            "prometheus" => MetricsExporter::Prometheus,
            "otlp" => MetricsExporter::Otlp(signal.collector(mistakes, &mut notes)),
            _ => MetricsExporter::Console,
        },
    );
    let signal = Signal::new("TRACES", around);
    let default = if signal.has_endpoint() { "otlp" } else { "none" };
    let traces = read_exporters(
        around,
        ("OTEL_TRACES_EXPORTER", default),
        &["otlp", "console"],
        &mut mistakes,
        |word, mistakes| match word {
            "otlp" => TracesExporter::Otlp(signal.collector(mistakes, &mut notes)),
            _ => TracesExporter::Console,
        },
    );
    let (prometheus_host, prometheus_port) = read_prometheus(flags, around, &mut mistakes);
    if prometheus_port == 0 {
        metrics.retain(|exporter| *exporter != MetricsExporter::Prometheus);
    }
    // One general variable serves several signals.
    let mut told = Vec::new();
    for mistake in mistakes {
        if !told.contains(&mistake) {
            told.push(mistake.clone());
            flags.add(mistake);
        }
    }
    TelemetrySettings { metrics, traces, propagators, prometheus_host, prometheus_port, notes }
}

fn read_propagators(around: &dyn Surroundings, notes: &mut BTreeSet<String>) -> Propagators {
    let list = around.variable("OTEL_PROPAGATORS").unwrap_or_default();
    let (propagators, unknown) = Propagators::read(&list);
    if !unknown.is_empty() {
        notes.insert(format!(
            "OTEL_PROPAGATORS has {unknown:?}, which are passed over: tracecontext, baggage, b3, b3multi and none \
             are known"
        ));
    }
    propagators
}

fn read_prometheus(
    flags: &Flags,
    around: &dyn Surroundings,
    mistakes: &mut Vec<Mistake>,
) -> (Option<String>, u16) {
    let host = around.variable("OTEL_EXPORTER_PROMETHEUS_HOST");
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".:-_".contains(&byte);
    if let Some(text) = host.as_ref().filter(|host| !host.bytes().all(is_name)) {
        let reason = format!("is {text:?}; must be an address such as 0.0.0.0, or a name such as localhost");
        mistakes.push(environment("OTEL_EXPORTER_PROMETHEUS_HOST", &reason));
    }
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

/// The exporters that a list names, each made by `make`.
fn read_exporters<T>(
    around: &dyn Surroundings,
    (name, default): (&'static str, &str),
    known: &[&str],
    mistakes: &mut Vec<Mistake>,
    mut make: impl FnMut(&str, &mut Vec<Mistake>) -> T,
) -> Vec<T> {
    let given = around.variable(name).unwrap_or_else(|| default.to_owned());
    let mut exporters = Vec::new();
    for word in given.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "none") {
        if known.contains(&word) {
            exporters.push(make(word, mistakes));
        } else {
            let reason = format!("has {word:?}; must be one of {}, none", known.join(", "));
            mistakes.push(environment(name, &reason));
        }
    }
    exporters
}
