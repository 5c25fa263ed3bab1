//! Metrics and their labels: those that a document lists, and those that a program offers.

use std::collections::{BTreeMap, BTreeSet};

use crate::{quoted, tables};

/// The names of labels, by the names of metrics.
pub type Metrics = BTreeMap<String, BTreeSet<String>>;

/// The metrics in the tables of a document that begin with `metric` and `labels`. What stands in parentheses is about
/// the values of a label.
pub fn listed(document: &str) -> Metrics {
    let mut metrics = Metrics::new();
    for table in tables(document) {
        if !table.head.iter().map(String::as_str).take(2).eq(["metric", "labels"]) {
            continue;
        }
        for row in &table.rows {
            let labels = row.get(1).map(String::as_str).unwrap_or_default();
            let labels: String =
                labels.split('(').map(|part| part.rsplit(')').next().unwrap_or(part)).collect();
            let labels: BTreeSet<_> = labels
                .split(',')
                .map(str::trim)
                .filter(|label| !label.is_empty())
                .map(str::to_owned)
                .collect();
            for name in row.first().map(|cell| quoted(cell)).unwrap_or_default() {
                metrics.insert(name.to_owned(), labels.clone());
            }
        }
    }
    metrics
}

/// The metrics of a page for Prometheus. Bounds of buckets are no label.
pub fn exposed(page: &str) -> Metrics {
    let mut metrics = Metrics::new();
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            metrics.insert(kind.split(' ').next().unwrap_or_default().to_owned(), BTreeSet::new());
        } else if let Some((name, series)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let plain = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let Some(labels) = metrics.get_mut(plain.unwrap_or(name)) else { continue };
            // Of `a="x",b="y"} 1` what stands before each `="`.
            let names = series.split("=\"").map(|part| part.rsplit([',', '"']).next().unwrap_or_default());
            let count = series.matches("=\"").count();
            labels.extend(names.take(count).filter(|name| *name != "le").map(str::to_owned));
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(all: &[(&str, &[&str])]) -> Metrics {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        all.iter().map(|(name, labels)| ((*name).to_owned(), set(labels))).collect()
    }

    #[test]
    fn labels_are_found_in_tables_and_on_pages() {
        let document =
            "| metric | labels |\n| --- | --- |\n| `a`, `b` | x (one, two), y |\n| `c` | | none |\n";
        assert_eq!(listed(document), metrics(&[("a", &["x", "y"]), ("b", &["x", "y"]), ("c", &[])]));
        let page = "# HELP a it is\n# TYPE a histogram\na_bucket{x=\"1,2\",le=\"5\"} 1\na_sum{x=\"1\",y=\"\"} 3\n\
                    # TYPE c gauge\nc 1\n";
        assert_eq!(exposed(page), metrics(&[("a", &["x", "y"]), ("c", &[])]));
    }
}
