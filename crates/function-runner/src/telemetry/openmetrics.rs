//! The page of metrics as `OpenMetrics`, with exemplars: beside a count, the trace of one call that is in it.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prometheus::proto::{Histogram, LabelPair, Metric, MetricFamily, MetricType};
use wire::TraceContext;

/// The newest call of each bucket of the durations of calls.
#[derive(Debug, Default)]
pub(crate) struct Exemplars {
    /// By the metric's labels, and by bucket.
    newest: Mutex<HashMap<String, Vec<Option<Exemplar>>>>,
}

#[derive(Debug, Clone)]
struct Exemplar {
    trace: String,
    seconds: f64,
    at: Duration,
}

impl Exemplars {
    /// The metric whose calls are kept.
    const METRIC: &str = "function_runner_call_duration_seconds";

    /// A call ended. The labels are bounded by whoever made them.
    pub(crate) fn keep(
        &self,
        function: &str,
        evaluator: &'static str,
        trace: &TraceContext,
        elapsed: Duration,
    ) {
        let seconds = elapsed.as_secs_f64();
        let bucket = super::metrics::SECONDS.partition_point(|bound| *bound < seconds);
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let buckets = newest
            .entry(key(function, evaluator))
            .or_insert_with(|| vec![None; super::metrics::SECONDS.len() + 1]);
        if let Some(place) = buckets.get_mut(bucket) {
            *place = Some(Exemplar { trace: trace.trace_id(), seconds, at });
        }
    }

    /// The exemplars of a histogram with these labels, bucket by bucket.
    fn find(&self, name: &str, labels: &[LabelPair]) -> Option<Vec<Option<Exemplar>>> {
        if name != Self::METRIC {
            return None;
        }
        let value = |name| labels.iter().find(|label| label.name() == name).map(LabelPair::value);
        let key = key(value("function")?, value("evaluator")?);
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }
}

fn key(function: &str, evaluator: &str) -> String {
    format!("{evaluator} {function}")
}

/// The page.
pub(crate) fn render(families: &[MetricFamily], exemplars: &Exemplars) -> String {
    let mut page = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut page, families, exemplars);
    page
}

fn write(page: &mut String, families: &[MetricFamily], exemplars: &Exemplars) -> fmt::Result {
    for family in families {
        let name = family.name();
        let (kind, of, suffix) = match family.get_field_type() {
            MetricType::COUNTER => ("counter", name.strip_suffix("_total").unwrap_or(name), "_total"),
            MetricType::GAUGE => match name.strip_suffix("_info") {
                Some(of) => ("info", of, "_info"),
                None => ("gauge", name, ""),
            },
            MetricType::HISTOGRAM => ("histogram", name, ""),
            // We have none.
            MetricType::SUMMARY | MetricType::UNTYPED => continue,
        };
        writeln!(page, "# TYPE {of} {kind}\n# HELP {of} {}", escaped(family.help()))?;
        for metric in family.get_metric() {
            let labels = metric.get_label();
            match family.get_field_type() {
                MetricType::HISTOGRAM => write_histogram(page, name, metric, exemplars)?,
                MetricType::COUNTER => {
                    let value = metric.get_counter().get_value();
                    writeln!(page, "{of}{suffix}{} {value}", Labels(labels, None))?;
                }
                _ => {
                    let value = metric.get_gauge().get_value();
                    writeln!(page, "{of}{suffix}{} {value}", Labels(labels, None))?;
                }
            }
        }
    }
    page.push_str("# EOF\n");
    Ok(())
}

fn write_histogram(page: &mut String, name: &str, metric: &Metric, exemplars: &Exemplars) -> fmt::Result {
    let (labels, histogram): (_, &Histogram) = (metric.get_label(), metric.get_histogram());
    let bounded = histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite());
    let buckets = bounded.map(|bucket| (number(bucket.upper_bound()), bucket.cumulative_count()));
    let last = ("+Inf".to_owned(), histogram.get_sample_count());
    let mut exemplars = exemplars.find(name, labels).unwrap_or_default().into_iter();
    for (bound, count) in buckets.chain([last]) {
        write!(page, "{name}_bucket{} {count}", Labels(labels, Some(&bound)))?;
        if let Some(Some(Exemplar { trace, seconds, at })) = exemplars.next() {
            write!(page, " # {{trace_id=\"{trace}\"}} {seconds} {}.{:03}", at.as_secs(), at.subsec_millis())?;
        }
        page.push('\n');
    }
    writeln!(page, "{name}_count{} {}", Labels(labels, None), histogram.get_sample_count())?;
    writeln!(page, "{name}_sum{} {}", Labels(labels, None), histogram.get_sample_sum())
}

/// A bound as this format wants it: `1.0`, not `1`.
fn number(value: f64) -> String {
    let text = value.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

/// Labels in braces, and the bound of a bucket.
struct Labels<'a>(&'a [LabelPair], Option<&'a str>);

impl fmt::Display for Labels<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(labels, bound) = self;
        if labels.is_empty() && bound.is_none() {
            return Ok(());
        }
        let named = labels.iter().map(|label| (label.name(), label.value()));
        for (at, (name, value)) in named.chain(bound.map(|bound| ("le", bound))).enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            write!(formatter, "{before}{name}=\"{}\"", escaped(value))?;
        }
        formatter.write_char('}')
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::{KeyValue, metrics::MeterProvider as _};
    use opentelemetry_sdk::metrics::SdkMeterProvider;

    use super::*;
    use crate::telemetry::{EndedCall, Metrics};

    fn page() -> String {
        let registry = prometheus::Registry::new();
        let exporter =
            opentelemetry_prometheus::exporter().with_registry(registry.clone()).scope_info_enabled(false);
        let provider = SdkMeterProvider::builder().with_reader(exporter.build().unwrap()).build();
        let meter = provider.meter("test");
        let metrics = Metrics::new(&meter, None);
        for (elapsed, trace) in [(60, 1), (70, 2), (400_000_000_000, 3)] {
            metrics.call_started();
            metrics.call_ended(&EndedCall {
                function: "set-labels",
                evaluator: "builtin",
                code: tonic::Code::Ok,
                elapsed: Duration::from_micros(elapsed),
                received: 1,
                sent: 1,
                trace: &TraceContext::new(trace, 1, 1, None),
            });
        }
        let odd = meter.u64_gauge("odd").with_description("a \"b\"\nc\\").build();
        odd.record(7, &[KeyValue::new("label", "x\"\n\\")]);
        render(&registry.gather(), &metrics.exemplars())
    }

    #[test]
    fn the_page_keeps_the_rules_of_the_format() {
        let page = page();
        assert!(page.ends_with("\n# EOF\n") && page.matches("# EOF").count() == 1, "{page}");
        let mut family = "";
        for line in page.lines().filter(|line| *line != "# EOF") {
            if let Some(told) = line.strip_prefix("# TYPE ") {
                family = told.split(' ').next().unwrap();
                assert_eq!(page.matches(&format!("# TYPE {family} ")).count(), 1, "{family}");
            } else {
                let line = line.strip_prefix("# HELP ").unwrap_or(line);
                assert!(line.starts_with(family), "{line} is not of {family}");
            }
        }
        for line in [
            "# TYPE function_runner_calls counter",
            "# TYPE function_runner_build info",
            "# TYPE function_runner_call_duration_seconds histogram",
            r#"function_runner_calls_total{code="Ok",evaluator="builtin",function="set-labels"} 3"#,
            r#"# HELP odd a \"b\"\nc\\"#,
            r#"odd{label="x\"\n\\"} 7"#,
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }

    #[test]
    fn buckets_have_the_trace_of_their_newest_call() {
        let page = page();
        let bucket = |bound: &str| {
            let start = "function_runner_call_duration_seconds_bucket{";
            let bound = format!(r#"le="{bound}"}} "#);
            let line = page.lines().find(|line| line.starts_with(start) && line.contains(&bound));
            line.unwrap_or_else(|| panic!("{page}")).split_once(&bound).unwrap().1.to_owned()
        };
        assert_eq!(bucket("0.00005"), "0");
        let newest = bucket("0.0001");
        assert!(newest.starts_with(&format!("2 # {{trace_id=\"{:032x}\"}} 0.00007 ", 2)), "{newest}");
        assert_eq!(bucket("1.0"), "2");
        let slow = bucket("+Inf");
        assert!(slow.starts_with(&format!("3 # {{trace_id=\"{:032x}\"}} 400000 ", 3)), "{slow}");
    }
}
