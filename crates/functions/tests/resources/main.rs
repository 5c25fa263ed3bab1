//! Functions that rename, copy, add and remove resources: every option, what stays as it is, what is refused.
#![allow(
    clippy::unwrap_used,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "helpers of tests"
)]

mod apply_replacements;
mod ensure_name_substring;
#[path = "../given/mod.rs"]
mod given;
#[path = "../lines/mod.rs"]
mod lines;
mod remove_local_config_resources;
mod set_project_id;
mod untouched;
mod upsert_resource;

use functions::Outcome;
use given::{indented, list};

fn run(function: &str, config: &str, resources: &[&str]) -> Outcome {
    functions::run(function, list(config, resources).as_bytes()).unwrap()
}

/// The text of the list after a run that succeeds. A second run changes nothing.
fn output(function: &str, config: &str, resources: &[&str]) -> String {
    let first = run(function, config, resources);
    assert!(first.succeeded, "{}{:?}", first.stderr, first.results);
    let second = functions::run(function, &first.output).unwrap();
    assert!(second.succeeded, "{}", second.stderr);
    let without_results = |output: Vec<u8>| {
        let text = String::from_utf8(output).unwrap();
        text.split("\nresults:\n").next().unwrap().trim_end().to_owned() + "\n"
    };
    let text = without_results(first.output);
    assert_eq!(without_results(second.output), text, "the second run changes something");
    text
}

/// The resources have become these, byte for byte.
fn becomes(function: &str, config: &str, before: &[&str], after: &[&str]) {
    assert_eq!(output(function, config, before), list(config, after));
}

/// What a function that fails says: its results and stderr.
fn failure(function: &str, config: &str, resources: &[&str]) -> String {
    let outcome = run(function, config, resources);
    assert!(!outcome.succeeded, "{}", String::from_utf8_lossy(&outcome.output));
    // Even then there is a list that can be read, unless the function was stopped.
    let text = String::from_utf8(outcome.output).unwrap();
    assert_eq!(krm::Document::parse(&text).is_ok(), outcome.over_budget.is_none());
    outcome.results.iter().map(|result| format!("{}\n", result.message)).collect::<String>() + &outcome.stderr
}

const SERVICE: &str = "
# The front door.
apiVersion: v1
kind: Service
metadata:
  name: web   # known to all
  namespace: 'shop'
spec:
  ports:
    - {port: 80, name: \"http\"}   # one line

  selector:
    app: web
";

#[test]
fn examples_in_the_documentation_work() {
    for name in
        ["apply-replacements", "ensure-name-substring", "remove-local-config-resources", "upsert-resource"]
    {
        let function = functions::find(name).unwrap();
        let resources = [
            SERVICE,
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  image: example/web\n",
            "apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  template:
    spec:
      containers:
      - name: web
        image: web:1
",
        ];
        output(name, function.example, &resources);
        assert!(function.usage.lines().all(|line| line.len() <= 110), "{name}");
    }
}
