//! Functions that find and change values wherever they are: every option, what stays as it is, what is refused.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod apply_setters;
mod create_setters;
#[path = "../given/mod.rs"]
mod given;
mod hostile;
#[path = "../lines/mod.rs"]
mod lines;
mod list_setters;
mod merge_keys;
mod search_replace;
mod set_image;
mod untouched;

use functions::{Finding, Outcome};
use given::{indented, list};

/// A ConfigMap with these lines in its data.
fn config_map(data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\ndata:\n{}", indented(data))
}

fn run(function: &str, config: &str, resources: &[&str]) -> Outcome {
    functions::run(function, list(config, resources).as_bytes()).unwrap()
}

fn without_results(output: Vec<u8>) -> String {
    let text = String::from_utf8(output).unwrap();
    text.split("\nresults:\n").next().unwrap().trim_end().to_owned() + "\n"
}

/// The list after a run that succeeds, without results. A second run changes nothing.
#[track_caller]
fn output(function: &str, config: &str, resources: &[&str]) -> String {
    let first = run(function, config, resources);
    assert!(first.succeeded, "{}{:?}", first.stderr, first.results);
    let second = functions::run(function, &first.output).unwrap();
    assert!(second.succeeded, "{}", second.stderr);
    let text = without_results(first.output);
    assert_eq!(without_results(second.output), text, "the second run changes something");
    text
}

/// The resource becomes another, byte for byte.
#[track_caller]
fn becomes(function: &str, config: &str, before: &str, after: &str) {
    assert_eq!(output(function, config, &[before]), list(config, &[after]));
}

/// What a run that succeeds says.
#[track_caller]
fn results(function: &str, config: &str, resources: &[&str]) -> Vec<Finding> {
    let outcome = run(function, config, resources);
    assert!(outcome.succeeded, "{}{:?}", outcome.stderr, outcome.results);
    assert_eq!(outcome.stderr, "");
    outcome.results
}

/// The same, the messages only.
#[track_caller]
fn messages(function: &str, config: &str, resources: &[&str]) -> Vec<String> {
    results(function, config, resources).into_iter().map(|finding| finding.message).collect()
}

/// What a run that fails says: the only error among its results, and stderr.
#[track_caller]
fn failure(function: &str, config: &str, resources: &[&str]) -> (String, String) {
    let outcome = run(function, config, resources);
    assert!(!outcome.succeeded, "{}", String::from_utf8_lossy(&outcome.output));
    // Even then there is a list that can be read.
    krm::Document::parse_bytes(&outcome.output).unwrap();
    let mut errors =
        outcome.results.into_iter().filter(|finding| finding.severity == Some(functions::Severity::Error));
    let error = errors.next().unwrap();
    assert_eq!(errors.next(), None);
    (error.message, outcome.stderr)
}

#[test]
fn examples_in_the_documentation_work() {
    let deployment = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: the-deployment
spec:
  replicas: 4 # kpt-set: ${nginx-replicas}
  template:
    spec:
      containers:
      - name: nginx
        image: nginx:1.16.1
";
    for name in ["apply-setters", "create-setters", "list-setters", "search-replace", "set-image"] {
        let function = functions::find(name).unwrap();
        let outcome = run(name, function.example, &[deployment]);
        assert!(outcome.succeeded, "{name}: {}", outcome.stderr);
        let changed = without_results(outcome.output) != list(function.example, &[deployment]);
        assert_eq!(changed, name != "list-setters", "{name}");
        assert!(function.usage.lines().all(|line| line.len() <= 110), "{name}");
    }
}

/// Comments are set where a value is written, and not where an alias stands for it; a value that is set in an
/// anchor is set in its aliases, so that they stay what they are.
#[test]
fn aliases_stay_aliases() {
    let before = "a: &x\n  b: old\nc: *x\nd: [*x]\n";
    for (function, data, to) in [
        ("create-setters", "n: old\n", "b: old # kpt-set: ${n}"),
        ("search-replace", "by-value: old\nput-comment: found\n", "b: old # found"),
        ("search-replace", "by-value: old\nput-value: new\n", "b: new"),
    ] {
        becomes(function, &config_map(data), before, &before.replace("b: old", to));
    }
    let before = "e: &y old # kpt-set: ${n}\nf: *y # kpt-set: ${n}\n";
    becomes("apply-setters", &config_map("n: new\n"), before, &before.replace("old", "new"));
    assert_eq!(messages("list-setters", "", &[before]).len(), 1);
    assert_eq!(messages("search-replace", &config_map("by-value: old\n"), &[before]).len(), 1);
}
