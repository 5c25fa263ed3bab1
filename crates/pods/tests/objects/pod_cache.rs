//! The file of functions to warm up.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use pods::{
    pod_cache::{Entry, parse},
    settings::FunctionSettings,
};
use serde_json::Value;

use crate::{hostile::yaml_bomb, porch};

fn read(text: &str) -> (Vec<Entry>, Vec<String>) {
    parse(text.as_bytes()).unwrap()
}

fn only(text: &str) -> (FunctionSettings, Vec<String>) {
    let (mut entries, warnings) = read(text);
    assert_eq!(entries.len(), 1, "{warnings:?}");
    (entries.remove(0).settings, warnings)
}

#[test]
fn a_map_gives_the_time_to_live() {
    let (entries, warnings) = read(
        "# warm\ngcr.io/kpt-fn/set-labels:v0.1.5: 30m\nexample.com/f@sha256:0000000000000000000000000000000000000000000000000000000000000000: 1h30m\n",
    );
    assert_eq!(warnings, [""; 0]);
    assert_eq!(entries[0].image, "gcr.io/kpt-fn/set-labels:v0.1.5");
    assert_eq!(entries[0].settings.time_to_live, Some(Duration::from_mins(30)));
    assert_eq!(entries[1].settings.time_to_live, Some(Duration::from_mins(90)));
    assert_eq!(entries[1].settings.max_pods, None);
}

#[test]
fn a_list_gives_everything() {
    let (settings, warnings) = only(
        "- name: example.com/f:v1\n  timeToLive: 10m\n  maxWaitlistLength: 3\n  maxParallelPodsPerFunction: 4\n  \
         resources:\n    requests: {cpu: 100m, memory: 64Mi}\n    limits: {cpu: 1, memory: 1e9, ephemeral-storage: 0.5Gi}\n",
    );
    assert_eq!(warnings, [""; 0]);
    assert_eq!(settings.time_to_live, Some(Duration::from_mins(10)));
    assert_eq!((settings.max_queue, settings.max_pods), (Some(3), Some(4)));
    let resources = settings.overrides.container.resources.unwrap();
    assert_eq!(resources.requests.unwrap()["cpu"], Quantity("100m".to_owned()));
    assert_eq!(resources.limits.as_ref().unwrap()["cpu"], Quantity("1".to_owned()));
    assert_eq!(resources.limits.unwrap()["ephemeral-storage"], Quantity("0.5Gi".to_owned()));
    assert_eq!(settings.overrides.init_container.resources, None);
}

#[test]
fn values_that_cannot_be_used_are_left_to_the_flags_with_a_warning() {
    for (field, says) in [
        ("timeToLive: 0s", "not above zero"),
        ("timeToLive: -5m", "not above zero"),
        ("timeToLive: 30", "unit is missing"),
        ("timeToLive: soon", "not a duration"),
        ("timeToLive: [30m]", "is a list"),
        ("maxWaitlistLength: 0", "not above zero"),
        ("maxWaitlistLength: -1", "not above zero"),
        ("maxWaitlistLength: many", "not a whole number"),
        ("maxWaitlistLength: 1.5", "not a whole number"),
        ("maxWaitlistLength: 99999999999999999999999", "not a whole number"),
        ("maxParallelPodsPerFunction: {}", "is a map"),
        ("resources: 5", "not a map"),
        ("resources: {requests: [cpu]}", "not a map"),
        ("resources: {requests: {cpu: lots}}", "not a quantity"),
        ("resources: {limits: {cpu: -1}}", "not a quantity"),
        ("resources: {limits: {cpu: 1..2}}", "not a quantity"),
        ("resources: {limits: {\"a\\nb\\e\": x}}", r#"limits of "a\nb\u{1b}" "x" is not a quantity"#),
        ("resources: {limit: {cpu: 1}}", "not known"),
        ("colour: blue", "not known"),
    ] {
        let (settings, warnings) = only(&format!("- name: example.com/f:v1\n  {field}\n"));
        assert_eq!(settings, FunctionSettings::default(), "{field}");
        assert_eq!(warnings.len(), 1, "{field}: {warnings:?}");
        assert!(warnings[0].contains(says), "{field}: {warnings:?}");
        assert!(warnings[0].starts_with("line 2, example.com/f:v1: "), "{field}: {warnings:?}");
    }
    let (settings, warnings) = only("example.com/f:v1: 0\n");
    assert_eq!((settings.time_to_live, warnings.len()), (None, 1));
    let (settings, warnings) = only("- name: example.com/f:v1\n  timeToLive:\n  resources:\n");
    assert_eq!((settings, warnings.len()), (FunctionSettings::default(), 0), "nothing is no mistake");
}

#[test]
fn one_bad_entry_does_not_spoil_the_others() {
    let (entries, warnings) = read(
        "- example.com/just-a-name:v1\n- {timeToLive: 30m}\n- name: [1]\n- name: UPPER CASE\n- name: ''\n\
         - name: example.com/f:v1\n  timeToLive: 1m\n- name: example.com/f:v1\n  timeToLive: 2m\n",
    );
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].settings.time_to_live, Some(Duration::from_mins(1)), "the first counts");
    assert_eq!(warnings.len(), 6, "{warnings:#?}");
    for (warning, line) in warnings.iter().zip([1, 2, 3, 4, 5, 8]) {
        assert!(warning.starts_with(&format!("line {line}, ")), "{warning}");
    }
}

#[test]
fn a_file_of_nothing_has_no_functions() {
    for text in ["", "\n", "# nothing\n", "---\n", "null", "[]", "{}"] {
        assert_eq!(read(text), (Vec::new(), Vec::new()), "{text:?}");
    }
}

#[test]
fn a_malformed_file_is_told_with_its_line() {
    for (text, line) in
        [("- name: a\n  b: [\n", 2), ("a: 1\nb: 2\na: 3\n", 3), ("- name: a\n  b: !!int x: y\n", 2)]
    {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(error.contains(&format!("line {line}")), "{text:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    assert!(parse(b"just words").unwrap_err().contains("neither a list"));
    assert!(parse(b"\xff\xfe").unwrap_err().contains("utf-8"));
    assert!(parse(&vec![b'#'; 5 << 20]).unwrap_err().contains("bytes"));
}

#[test]
fn hostile_files_end_soon() {
    let deep = "[".repeat(100_000);
    parse(deep.as_bytes()).unwrap_err();
    parse(yaml_bomb().as_bytes()).unwrap_err();
}

#[test]
fn porchs_own_files_are_read_without_a_warning() {
    for (file, functions) in [("v1.5.3/2-function-runner.yaml", 19), ("v1.5.8/2-function-runner.yaml", 19)] {
        for map in porch::objects::<Value>(file, "ConfigMap") {
            let text = map["data"]["pod-cache-config.yaml"].as_str().unwrap();
            let (entries, warnings) = read(text);
            assert_eq!((entries.len(), warnings), (functions, Vec::new()), "{file}");
            assert!(entries.iter().all(|entry| entry.settings.time_to_live == Some(Duration::from_mins(30))));
        }
    }
}
