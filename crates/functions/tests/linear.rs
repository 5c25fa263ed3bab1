//! Large inputs that are no attack: each test is over in seconds, and would take minutes if time grew with the
//! square of the size.
#![allow(clippy::format_collect, reason = "helpers of tests")]

use functions::{Report, run_with};

const HEAD: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n";

#[test]
fn many_results() {
    for rest in ["items: []\n", "items: []\nresults:\n- message: old\n", "items: []\nresults: []\n"] {
        let mut report = Report::new();
        for at in 0..100_000 {
            report.info(format!("result {at}"));
        }
        let outcome = run_with(format!("{HEAD}{rest}").as_bytes(), &krm::Budget::default(), |_, _| report);
        let summary = krm::inspect(&outcome.output).unwrap();
        assert!(summary.results.len() >= krm::MAXIMUM_RESULTS.min(100_000));
        let document = krm::Document::parse_bytes(&outcome.output).unwrap();
        let results = document.get(document.root(), "results").unwrap();
        assert_eq!(document.len(results), 100_000 + usize::from(rest.contains("old")));
    }
}

#[test]
fn many_resources_are_added_to_many() {
    let resource = |indent: &str, at: usize| {
        format!("{indent}- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: r{at}}}}}\n")
    };
    let new: String = (20_000..40_000).map(|at| resource("  ", at)).collect();
    let old: String = (0..20_000).map(|at| resource("", at)).collect();
    let input =
        format!("{HEAD}functionConfig:\n  apiVersion: v1\n  kind: List\n  items:\n{new}items:\n{old}");
    let outcome = functions::run("upsert-resource", input.as_bytes()).unwrap();
    assert!(outcome.succeeded, "{}", outcome.stderr);
    let document = krm::Document::parse_bytes(&outcome.output).unwrap();
    assert_eq!(document.len(document.get(document.root(), "items").unwrap()), 40_000);
}

#[test]
fn many_labels_and_annotations() {
    let data: String = (0..50_000).map(|at| format!("    key-{at}: v\n")).collect();
    let config = format!("functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  data:\n{data}");
    let items = "items:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n";
    for (function, key) in [("set-labels", "labels"), ("set-annotations", "annotations")] {
        let outcome = functions::run(function, format!("{HEAD}{config}{items}").as_bytes()).unwrap();
        assert!(outcome.succeeded, "{}", outcome.stderr);
        let document = krm::Document::parse_bytes(&outcome.output).unwrap();
        let item = document.entries(document.get(document.root(), "items").unwrap()).next().unwrap();
        assert_eq!(document.len(document.at(item, &["metadata", key]).unwrap()), 50_000);
    }
}

/// JSON in one line: places in it are not looked for from its start.
#[test]
fn many_resources_in_one_line() {
    let item = |at: usize| {
        let metadata = format!("{{\"name\":\"r{at}\",\"labels\":{{\"app\":\"x\"}}}}");
        format!("{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{metadata}}}")
    };
    let items: Vec<String> = (0..40_000).map(item).collect();
    let config = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"namespace\":\"new\"}}";
    let input = format!(
        "{{\"apiVersion\":\"config.kubernetes.io/v1\",\"kind\":\"ResourceList\",\"functionConfig\":{config},\"items\":[{}]}}",
        items.join(",")
    );
    for function in ["set-namespace", "set-labels", "set-annotations"] {
        let outcome = functions::run(function, input.as_bytes()).unwrap();
        assert!(outcome.succeeded, "{}", outcome.stderr);
        let output = String::from_utf8(outcome.output).unwrap();
        assert_eq!(output.matches("\"new\"").count(), 40_001, "{function}");
    }
}
