//! set-namespace, set-labels and set-annotations: what each does, says and refuses.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod aliases;
mod set_annotations;
mod set_labels;
mod set_namespace;
mod untouched;

use functions::{Finding, Outcome};

/// A list with these resources and this configuration, as a function is given it.
fn list(config: &str, items: &str) -> String {
    let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n".to_owned();
    if !config.is_empty() {
        text.push_str("functionConfig:\n");
        for line in config.lines() {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str("items:\n");
    text.push_str(items);
    text
}

/// Runs a function; a second run changes nothing but the results.
fn run(function: &str, config: &str, items: &str) -> Outcome {
    let outcome = functions::run(function, list(config, items).as_bytes()).unwrap();
    if outcome.succeeded {
        let again = functions::run(function, list(config, &items_of(&outcome)).as_bytes()).unwrap();
        assert_eq!(items_of(&again), items_of(&outcome), "the second run changes something");
    }
    outcome
}

/// The text of the items of an output.
fn items_of(outcome: &Outcome) -> String {
    let text = std::str::from_utf8(&outcome.output).unwrap();
    let items = text.split_once("items:\n").map_or("", |(_, items)| items);
    items.split("results:\n").next().unwrap().to_owned()
}

fn messages(outcome: &Outcome) -> Vec<String> {
    outcome.results.iter().map(Finding::to_string).collect()
}

fn config_map(data: &[(&str, &str)]) -> String {
    let fields: Vec<String> = data.iter().map(|(key, value)| format!("  {key}: {value}\n")).collect();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: my-config\ndata:\n{}", fields.concat())
}

#[test]
fn what_is_no_list_is_refused() {
    for function in ["set-namespace", "set-labels", "set-annotations"] {
        for (input, stderr) in [
            (
                &b"kind: Pod\n"[..],
                "failed to evaluate function: input was of unexpected kind \"Pod\"; expected ResourceList\n",
            ),
            (
                b"kind: ResourceList\nkind: ResourceList\n",
                "failed to evaluate function: failed to parse the input ResourceList: line 2: the field \"kind\" is there already; keep one of them\n",
            ),
            (
                b"kind: ResourceList\nitems: 1\n",
                "failed to evaluate function: failed when tried to get items: line 2: expected a sequence, found a scalar\n",
            ),
            (
                b"kind: ResourceList\nitems:\n- a\n",
                "failed to evaluate function: failed when tried to get items: line 3: expected a mapping, found a scalar\n",
            ),
            (
                b"kind: ResourceList\nfunctionConfig: []\n",
                "failed to evaluate function: failed when tried to get functionConfig: line 2: expected a mapping, found a sequence\n",
            ),
            (
                b"\xFF",
                "failed to evaluate function: failed to parse the input ResourceList: line 1: not valid UTF-8\n",
            ),
        ] {
            let outcome = functions::run(function, input).unwrap();
            assert_eq!((&*outcome.stderr, outcome.succeeded, outcome.output.len()), (stderr, false, 0));
        }
        let outcome = functions::run(function, b" \n").unwrap();
        let output = String::from_utf8(outcome.output).unwrap();
        assert!(
            output.starts_with("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nresults:\n"),
            "{output}"
        );
        krm::inspect(output.as_bytes()).unwrap();
    }
}

#[test]
fn results_join_those_that_are_there() {
    let config = config_map(&[("namespace", "new")]);
    let with = |results: &str| list(&config, "[]\n").replace("items:\n[]", "items: []") + results;
    for (before, after) in [
        ("results:\n- message: old\n", "results:\n- message: old\n- message: all"),
        ("results:\n  - message: old # note\n", "results:\n  - message: old # note\n  - message: all"),
        ("results:\n", "results:\n- message: all"),
        ("results: []\n", "results:\n- message: all"),
        ("results: {items: []}\n", "results: {items: [{message: "),
        ("results:\n  items:\n  - message: old\n", "results:\n  items:\n  - message: old\n  - message: all"),
    ] {
        let outcome = functions::run("set-namespace", with(before).as_bytes()).unwrap();
        let output = String::from_utf8(outcome.output).unwrap();
        // Entries are as deep as others are.
        let compact = output.replace("\n  - message: all", "\n- message: all");
        assert!(output.contains(after) || compact.contains(after), "{before}{output}");
        assert!(krm::inspect(output.as_bytes()).unwrap().results.len() >= 2, "{output}");
    }
    let outcome = functions::run("set-namespace", with("results: 1\n").as_bytes()).unwrap();
    assert!(!outcome.succeeded && outcome.stderr.contains("failed to write results: line "), "{outcome:?}");
}

#[test]
fn lists_in_json_stay_json() {
    let input = r#"{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","functionConfig":{"apiVersion":"v1","kind":"ConfigMap","data":{"namespace":"new"}},"items":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}}]}"#;
    let outcome = functions::run("set-namespace", input.as_bytes()).unwrap();
    let output = String::from_utf8(outcome.output).unwrap();
    assert!(output.contains(r#""metadata":{"name":"a","namespace":"new"}"#), "{output}");
    assert!(output.ends_with(r#"no `namespace` changed", "severity": "info"}]}"#), "{output}");
}
