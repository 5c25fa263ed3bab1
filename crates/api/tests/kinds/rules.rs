//! What objects say.

use std::time::Duration;

use api::{FunctionRules, TagRule, Versions};
use proptest::prelude::*;
use registry::{Constraint, Prefix};
use serde_json::{Value, json};

use super::{DEFAULT_PREFIX, check, told};

fn rules(spec: &Value) -> FunctionRules {
    let checked = check(spec);
    assert!(checked.problems.is_empty() && checked.unknown.is_empty(), "{checked:?}");
    checked.rules.unwrap()
}

fn versions(rules: &[TagRule]) -> Vec<Versions> {
    rules.iter().map(|rule| rule.versions.clone()).collect()
}

#[test]
fn everything_that_can_be_said_is_understood() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let rules = rules(&json!({
        "image": "f",
        "prefixes": ["", "ghcr.io/org/", "owner", "localhost:5000", "ghcr.io/kptdev/set-*"],
        "podExecutor": {
            "tags": ["v1", "~0.4", "*", digest, "1.x", "v1"],
            "timeToLive": "1h30m",
            "maxParallelExecutions": 4,
            "preferredMaxQueueLength": 3,
            "minReplicas": 2,
            "timeout": "2.5s",
            "templateOverrides": {
                "serviceAccountName": "account",
                "securityContext": { "runAsUser": 1000, "supplementalGroups": [1, 2.0] },
                "initContainer": { "env": [{ "name": "A", "value": "1" }] },
                "container": {
                    "resources": { "requests": { "cpu": 1 }, "limits": { "memory": "64Mi" } },
                    "envFrom": [{ "secretRef": {} }],
                },
            },
        },
        "binaryExecutor": { "path": "sub/f", "tags": ["v1"] },
        "goExecutor": { "tags": ["v2"] },
    }));
    assert_eq!(rules.image, "f");
    let prefix = |text: &str| Some(Prefix::parse(text).unwrap());
    let places = [DEFAULT_PREFIX, "ghcr.io/org", "docker.io/owner", "localhost:5000", "ghcr.io/kptdev/set-*"];
    assert_eq!(rules.places, places.map(prefix));
    let pod = rules.pod.unwrap();
    let constraint = |text: &str| Versions::Constraint(Constraint::parse(text).unwrap());
    let tags = [
        Versions::Tag("v1".to_owned()),
        constraint("~0.4"),
        Versions::AnyTag,
        Versions::Digest(digest),
        constraint("1.x"),
    ];
    assert_eq!(versions(&pod.versions), tags);
    assert_eq!(pod.time_to_live, Some(Duration::from_mins(90)));
    assert_eq!((pod.min_pods, pod.max_pods, pod.max_queue), (Some(2), Some(4), Some(3)));
    assert_eq!(pod.timeout, Some(Duration::from_millis(2500)));
    assert_eq!(pod.overrides.service_account_name.as_deref(), Some("account"));
    let context = pod.overrides.security_context.unwrap();
    assert_eq!((context.run_as_user, context.supplemental_groups), (Some(1000), Some(vec![1, 2])));
    assert_eq!(pod.overrides.init_container.unwrap().env.unwrap()[0].name, "A");
    let container = pod.overrides.container.unwrap();
    assert_eq!(container.env, None);
    let resources = container.resources.unwrap();
    assert_eq!(
        (&*resources.requests.unwrap()["cpu"].0, &*resources.limits.unwrap()["memory"].0),
        ("1", "64Mi")
    );
    assert_eq!(container.env_from.unwrap()[0].secret_ref.as_ref().unwrap().name, "");
    assert_eq!(rules.binary.unwrap().path.to_str(), Some("sub/f"));
    assert_eq!(rules.go.unwrap().id, "f");
}

#[test]
fn what_is_not_said_is_left_to_defaults_and_flags() {
    let bare = rules(&json!({ "image": "f", "podExecutor": {} }));
    assert_eq!(bare.places, [None]);
    let pod = bare.pod.unwrap();
    assert_eq!(versions(&pod.versions), [Versions::All]);
    assert_eq!(pod.time_to_live, Some(Duration::from_mins(30)), "the default of the definition");
    assert_eq!((pod.min_pods, pod.max_pods, pod.max_queue, pod.timeout), (None, None, None, None));

    let flags = rules(&json!({ "image": "f", "prefixes": [], "podExecutor": {
        "tags": [], "timeToLive": "0s", "maxParallelExecutions": 0, "preferredMaxQueueLength": -1,
        "minReplicas": 0, "timeout": "0s",
    } }));
    assert_eq!(flags.places, [None]);
    let pod = flags.pod.unwrap();
    assert_eq!(versions(&pod.versions), [Versions::All]);
    assert_eq!(pod.time_to_live, None);
    assert_eq!((pod.min_pods, pod.max_pods, pod.max_queue, pod.timeout), (None, None, None, None));
    assert_eq!(
        rules(&json!({ "image": "f", "podExecutor": { "timeToLive": "-5m" } })).pod.unwrap().time_to_live,
        None
    );

    // Nothing is the same as null, which the API server takes away.
    let nulls = rules(&json!({ "image": "f", "prefixes": null, "goExecutor": null, "podExecutor": {
        "tags": null, "timeToLive": null, "maxParallelExecutions": null, "templateOverrides": null,
    } }));
    assert_eq!(nulls, rules(&json!({ "image": "f", "podExecutor": {} })));
}

#[test]
fn the_empty_prefix_is_the_default_prefix_or_none_at_all() {
    let spec = json!({ "image": "f", "prefixes": [""], "podExecutor": {} });
    let rules = FunctionRules::check(Some(&spec), "").rules.unwrap();
    assert_eq!(rules.places, [None]);
    assert_eq!(rules.first_name("").unwrap().full_name(), "docker.io/library/f");
    assert_eq!(rules.first_name("example.com/x").unwrap().full_name(), "example.com/x/f");
    let rules = FunctionRules::check(Some(&spec), "example.com/x/").rules.unwrap();
    assert_eq!(rules.places, [Some(Prefix::parse("example.com/x").unwrap())]);
}

#[test]
fn replicas_of_no_version_in_particular_are_told() {
    for (tags, told_of) in
        [(json!([]), true), (json!(["*"]), true), (json!(["~1"]), false), (json!(["*", "v1"]), false)]
    {
        let checked = check(&json!({ "image": "f", "podExecutor": { "tags": tags, "minReplicas": 2 } }));
        let problems = told(&checked);
        let expected = "spec.podExecutor.minReplicas: keeps no pods: without a tag";
        assert_eq!(
            problems.iter().any(|problem| problem.starts_with(expected)),
            told_of,
            "{tags} {problems:?}"
        );
    }
}

#[test]
fn what_is_wrong_is_told_and_left_out_and_the_rest_stays() {
    let checked = check(&json!({
        "image": "f",
        "prefixes": ["ghcr.io/org", "https://x", "a b"],
        "wasmExecutor": { "module": "f" },
        "podExecutor": {
            "tags": ["v1", "not a tag", ""],
            "timeToLive": "1d",
            "maxParallelExecutions": 2,
            "minReplicas": 3,
            "timeout": "-1s",
            "speed": "high",
            "templateOverrides": { "container": {
                "image": "x",
                "resources": { "limits": { "memory": "lots", "cpu": "2" } },
                "env": [{ "value": "nameless" }, { "name": "A", "value": 1 }, { "name": "B" }],
            } },
        },
        "binaryExecutor": { "path": "../f", "tags": ["v1"] },
        "goExecutor": { "tags": [] },
    }));
    let problems = told(&checked);
    let expected = [
        "spec.goExecutor.tags: must not be empty",
        "spec.podExecutor.templateOverrides.container.env[0].name: is missing",
        "spec.podExecutor.templateOverrides.container.env[1].value: must be text, not 1; put it in quotes",
        "spec.podExecutor.templateOverrides.container.resources.limits.memory: \"lots\" is not a quantity; write it as",
        "spec.prefixes[1]: \"https://x\" is no prefix of images",
        "spec.prefixes[2]: ",
        "spec.binaryExecutor.path: \"../f\" must be a path inside the functions folder",
        "spec.podExecutor.tags[1]: \"not a tag\": it is neither a tag nor a digest",
        "spec.podExecutor.tags[2]: \"\": ",
        "spec.podExecutor.timeToLive: \"1d\": the unit is not one of",
        "spec.podExecutor.timeout: must not be negative",
        "spec.podExecutor.minReplicas: is 3, more than maxParallelExecutions allows: 2 are kept",
    ];
    // In whatever order the fields of a mapping come.
    for expected in expected {
        assert!(problems.iter().any(|problem| problem.starts_with(expected)), "{expected} | {problems:#?}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    let mut unknown: Vec<_> = checked.unknown.iter().map(ToString::to_string).collect();
    unknown.sort();
    assert_eq!(
        unknown,
        ["spec.podExecutor.speed", "spec.podExecutor.templateOverrides.container.image", "spec.wasmExecutor"]
    );
    let rules = checked.rules.unwrap();
    assert_eq!(rules.places.len(), 1);
    assert_eq!((rules.binary, rules.go), (None, None));
    let pod = rules.pod.unwrap();
    assert_eq!(versions(&pod.versions), [Versions::Tag("v1".to_owned())]);
    assert_eq!((pod.time_to_live, pod.min_pods, pod.timeout), (None, Some(2), None));
    let container = pod.overrides.container.unwrap();
    let names: Vec<_> = container.env.unwrap().into_iter().map(|variable| variable.name).collect();
    assert_eq!(names, ["A", "B"]);
    assert_eq!(container.resources.unwrap().limits.unwrap().into_keys().collect::<Vec<_>>(), ["cpu"]);
}

#[test]
fn wrong_prefixes_do_not_open_the_function_to_all() {
    let rules =
        check(&json!({ "image": "f", "prefixes": ["not a prefix"], "podExecutor": {} })).rules.unwrap();
    assert_eq!(rules.places, []);
    assert_eq!(rules.first_name(DEFAULT_PREFIX), None);
}

#[test]
fn of_some_objects_nothing_can_be_made() {
    let image = |image: &str| json!({ "image": image, "podExecutor": {} });
    for (spec, expected) in [
        (
            json!({ "image": "f" }),
            "spec: at least one of podExecutor, binaryExecutor and goExecutor must be set",
        ),
        (json!({ "image": "f", "podExecutor": null }), "spec: at least one of"),
        (json!({ "podExecutor": {} }), "spec.image: is missing"),
        (image(""), "spec.image: must not be empty"),
        (image("ghcr.io/org/f"), "spec.image: \"ghcr.io/org/f\" must be the last part of the images' name"),
        (image("f:v1"), "spec.image: \"f:v1\" must be the last part"),
        (image("F"), "spec.image: \"F\" must be the last part"),
        (image("f\n"), "spec.image: \"f\\n\" must be the last part"),
        (image(&"f".repeat(100_000)), "spec.image: \"ffff"),
        (json!([]), "spec: must be a map, not a list"),
        (json!("f"), "spec: must be a map, not the text \"f\""),
        (json!({ "image": ["f"], "podExecutor": {} }), "spec.image: must be text, not a list"),
    ] {
        let checked = check(&spec);
        let problems = told(&checked);
        assert!(checked.rules.is_none() && problems.len() == 1, "{spec}: {problems:?}");
        assert!(problems[0].starts_with(expected) && problems[0].len() < 400, "{problems:?}");
    }
    let missing = FunctionRules::check(None, DEFAULT_PREFIX);
    assert_eq!((missing.rules.clone(), told(&missing)), (None, vec!["spec: is missing".to_owned()]));
}

#[test]
fn a_wrong_executor_leaves_the_others() {
    for executor in [json!("f"), json!({ "tags": ["v1"] }), json!({ "path": "", "tags": ["v1"] }), json!([1])]
    {
        let checked = check(&json!({ "image": "f", "podExecutor": {}, "binaryExecutor": executor }));
        let problems = told(&checked);
        assert!(problems.len() == 1 && problems[0].starts_with("spec.binaryExecutor"), "{problems:?}");
        let rules = checked.rules.unwrap();
        assert!(rules.binary.is_none() && rules.pod.is_some());
    }
}

#[test]
fn paths_of_executables_lead_nowhere_else_unless_they_are_absolute() {
    let path = |path: &str| {
        let checked = check(&json!({ "image": "f", "binaryExecutor": { "path": path, "tags": ["v1"] } }));
        checked.rules.unwrap().binary.map(|binary| binary.path.to_str().unwrap().to_owned())
    };
    for right in ["f", "a/b", "/home/nonroot/functions/f", "/f"] {
        assert_eq!(path(right).as_deref(), Some(right));
    }
    for wrong in ["..", "../f", "a/../../f", ".", "./f", "f\0"] {
        assert_eq!(path(wrong), None, "{wrong:?}");
    }
}

#[test]
fn huge_lists_are_bounded() {
    let many = |prefix: &str| (0..50_000).map(|number| format!("{prefix}{number}")).collect::<Vec<_>>();
    let checked = check(&json!({
        "image": "f",
        "prefixes": many("example.com/a"),
        "binaryExecutor": { "path": "f", "tags": many("v") },
        "podExecutor": { "tags": vec!["not a tag"; 50_000] },
    }));
    let problems = told(&checked);
    assert!(
        problems.contains(
            &"spec.prefixes: has 50000 entries, of which only the first 100 are used; make more objects"
                .to_owned()
        )
    );
    assert!(
        problems.iter().any(|problem| problem.starts_with("spec.binaryExecutor.tags: has 50000 entries"))
    );
    let rules = checked.rules.unwrap();
    assert_eq!((rules.places.len(), rules.binary.unwrap().versions.len()), (100, 1000));
}

/// Values of any kind, some of which have names that mean something.
fn any_value() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "image",
        "prefixes",
        "podExecutor",
        "binaryExecutor",
        "goExecutor",
        "tags",
        "path",
        "id",
        "timeToLive",
        "timeout",
        "minReplicas",
        "maxParallelExecutions",
        "templateOverrides",
        "container",
        "env",
        "resources",
        "limits",
        "securityContext",
        "other",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["f", "v1", "~1", "30m", "ghcr.io/x", "64Mi"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..8).prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_panics_and_silence_means_that_all_is_well(spec in any_value()) {
        let checked = check(&spec);
        prop_assert!(checked.rules.is_some() || !checked.problems.is_empty());
        for problem in &checked.problems {
            prop_assert!(problem.to_string().starts_with("spec") && problem.cause.len() < 1000);
        }
    }
}
