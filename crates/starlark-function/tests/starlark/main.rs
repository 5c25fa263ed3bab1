//! The function `starlark`: what programs can do, what stays as it is, what is refused, and how hostile
//! programs end.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of tests")]

mod catalog;
mod failures;
mod go;
mod hostile;
mod language;
mod modules;
// Reads and compares packages as the tests of the other functions do.
#[path = "../../../functions/tests/catalog/package.rs"]
#[allow(dead_code, reason = "a helper of other tests")]
mod package;
#[path = "../../../functions/tests/catalog/patch.rs"]
mod patch;
mod resources;

use std::sync::Mutex;

use functions::Outcome;

/// A list with a program and resources.
fn list(source: &str, resources: &[&str]) -> String {
    let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n".to_owned();
    text.push_str("  apiVersion: fn.kpt.dev/v1alpha1\n  kind: StarlarkRun\n  metadata:\n    name: program\n");
    text.push_str("  params:\n    number: 7\n  source: |\n");
    for line in source.trim_start_matches('\n').lines() {
        text.extend(if line.is_empty() { ["", "", "\n"] } else { ["    ", line, "\n"] });
    }
    text.push_str(&items(resources));
    text
}

fn items(resources: &[&str]) -> String {
    if resources.is_empty() {
        return "items: []\n".to_owned();
    }
    let mut text = "items:\n".to_owned();
    for resource in resources {
        for (at, line) in resource.trim_start_matches('\n').lines().enumerate() {
            let before = if at == 0 { "- " } else { "  " };
            text.extend(if line.is_empty() { ["", "", "\n"] } else { [before, line, "\n"] });
        }
    }
    text
}

/// What a program does, and what it prints.
fn run(source: &str, resources: &[&str]) -> (Outcome, Vec<String>) {
    run_list(&list(source, resources))
}

fn run_list(list: &str) -> (Outcome, Vec<String>) {
    let printed = Mutex::new(Vec::new());
    let environment = [("HOME".to_owned(), "/tmp".to_owned())];
    let print = |line: &str| printed.lock().unwrap().push(line.to_owned());
    let outcome = starlark_function::run(list.as_bytes(), &environment, &print);
    (outcome, printed.into_inner().unwrap())
}

/// The resources have become these, byte for byte.
fn becomes(source: &str, before: &[&str], after: &[&str]) {
    let (outcome, _) = run(source, before);
    assert!(outcome.succeeded, "{}{:?}", outcome.stderr, outcome.results);
    assert_eq!(String::from_utf8(outcome.output).unwrap(), list(source, after));
}

/// What a program prints that changes nothing.
fn prints(source: &str) -> Vec<String> {
    let (outcome, printed) = run(source, &[]);
    assert!(outcome.succeeded, "{}{:?}", outcome.stderr, outcome.results);
    printed
}

/// The message of a program that fails.
fn failure(source: &str, resources: &[&str]) -> String {
    let (outcome, _) = run(source, resources);
    assert!(!outcome.succeeded, "{}", String::from_utf8_lossy(&outcome.output));
    assert!(
        outcome.stderr.ends_with("failed to evaluate function: error: function failure\n"),
        "{}",
        outcome.stderr
    );
    let text = String::from_utf8(outcome.output).unwrap();
    assert!(krm::inspect(text.as_bytes()).is_ok(), "{text}");
    outcome.results.into_iter().map(|result| result.message).collect()
}

#[test]
fn the_example_in_the_documentation_works() {
    let mut list = "kind: ResourceList\nfunctionConfig:\n".to_owned();
    for line in starlark_function::EXAMPLE.lines() {
        list.extend(["  ", line, "\n"]);
    }
    list.push_str("items:\n- kind: A\n  metadata:\n    name: a\n");
    let (outcome, _) = run_list(&list);
    assert!(outcome.succeeded, "{:?}", outcome.results);
    assert!(String::from_utf8(outcome.output).unwrap().ends_with("    name: a\n    namespace: prod\n"));
    assert!(starlark_function::USAGE.lines().all(|line| line.len() <= 110));
}
