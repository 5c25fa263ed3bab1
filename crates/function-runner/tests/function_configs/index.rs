//! The index from plain objects.

use std::{path::Path, sync::Arc, time::Duration};

use api::File;
use function_runner::{
    builtin::Offered,
    routing::{Built, ConfigFile, Reason, Sources, Terms},
};
use pods::pod_cache;
use registry::Reference;
use serde_json::json;

use super::{PREFIX, executable, object, pod, sources, terms};

#[test]
fn executables_are_found_by_name_prefix_and_tag() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let built = sources([
        (
            "set-labels",
            object(
                1,
                &json!({
                    "image": "set-labels",
                    "prefixes": ["", "example.com/org"],
                    "binaryExecutor": { "path": "set-labels", "tags": ["v0.2.2", "~0.3", digest] },
                }),
            ),
        ),
        (
            "anywhere",
            object(
                1,
                &json!({
                    "image": "anywhere",
                    "binaryExecutor": { "path": "/opt/anywhere", "tags": ["*"] },
                }),
            ),
        ),
    ])
    .build(&terms());
    let labels = Some("/functions/set-labels".to_owned());
    for (image, path) in [
        (format!("{PREFIX}/set-labels:v0.2.2"), &labels),
        ("example.com/org/set-labels:v0.2.2".to_owned(), &labels),
        ("example.com/org/deep/set-labels:v0.3.9".to_owned(), &labels),
        (format!("example.com/org/set-labels@{digest}"), &labels),
        ("example.com/org/set-labels:v0.2.3".to_owned(), &None),
        ("example.com/organisation/set-labels:v0.2.2".to_owned(), &None),
        ("example.org/set-labels:v0.2.2".to_owned(), &None),
        ("example.com/org/set-label:v0.2.2".to_owned(), &None),
        ("anywhere".to_owned(), &Some("/opt/anywhere".to_owned())),
        ("quay.io/x/anywhere:main".to_owned(), &Some("/opt/anywhere".to_owned())),
    ] {
        assert_eq!(&executable(&built, &image), path, "{image}");
    }
    assert_eq!(built.warnings, Vec::<String>::new());
    let verdict = &built.verdicts["set-labels"];
    assert_eq!(verdict.executors[0].type_, "binary");
    let digest_tags = vec!["v0.2.2".to_owned(), "~0.3".to_owned(), digest];
    assert_eq!((&verdict.executors[0].tags, &verdict.executors[0].message), (&Some(digest_tags), &None));
}

#[test]
fn pods_are_settled_by_claims_first_and_by_the_names_of_objects_then() {
    let built = sources([
        (
            "f",
            object(
                1,
                &json!({
                    "image": "f", "prefixes": ["example.com/a"], "podExecutor": { "tags": ["v1"] },
                }),
            ),
        ),
        ("all", object(1, &json!({ "image": "f", "prefixes": ["example.com/b"], "podExecutor": {} }))),
        ("other", object(1, &json!({ "image": "g", "podExecutor": { "timeToLive": "0s" } }))),
    ])
    .build(&terms());
    let digest = format!("@sha256:{}", "b".repeat(64));
    let of = |name: &str| Some(format!("the FunctionConfig {name:?}"));
    for (image, name) in [
        ("example.com/a/f:v1".to_owned(), of("f")),
        (format!("example.com/a/f:v1{digest}"), of("f")),
        ("example.com/b/f:v7".to_owned(), of("all")),
        (format!("example.com/b/f{digest}"), of("all")),
        // By the name of the object, whatever it says.
        ("example.com/a/f:v2".to_owned(), of("f")),
        ("quay.io/f:v3".to_owned(), of("f")),
        ("quay.io/all".to_owned(), of("all")),
        ("quay.io/g".to_owned(), of("other")),
        ("quay.io/other".to_owned(), of("other")),
        ("quay.io/h".to_owned(), None),
    ] {
        assert_eq!(pod(&built, &image), name, "{image}");
    }
}

#[test]
fn everything_about_pods_reaches_the_pod_runtime() {
    let spec = json!({ "image": "f", "podExecutor": {
        "timeToLive": "5m", "maxParallelExecutions": 4, "preferredMaxQueueLength": 3, "minReplicas": 2,
        "timeout": "10s",
        "templateOverrides": {
            "serviceAccountName": "account",
            "securityContext": { "runAsUser": 7 },
            "initContainer": { "env": [{ "name": "A", "value": "1" }] },
            "container": { "envFrom": [{ "prefix": "P" }], "resources": { "limits": { "cpu": "2" } } },
        },
    } });
    let built = sources([("f", object(1, &spec))]).build(&terms());
    let settings = &built.index.pod(&Reference::parse("example.com/f").unwrap()).unwrap().settings;
    assert_eq!(settings.time_to_live, Some(Duration::from_mins(5)));
    assert_eq!((settings.min_pods, settings.max_pods, settings.max_queue), (Some(2), Some(4), Some(3)));
    assert_eq!(settings.timeout, Some(Duration::from_secs(10)));
    let overrides = &settings.overrides;
    assert_eq!(overrides.service_account.as_deref(), Some("account"));
    assert_eq!(overrides.security_context.as_ref().unwrap().run_as_user, Some(7));
    assert_eq!(overrides.init_container.env.as_ref().unwrap()[0].name, "A");
    assert_eq!(overrides.container.env_from.as_ref().unwrap()[0].prefix.as_deref(), Some("P"));
    assert_eq!(overrides.container.resources.as_ref().unwrap().limits.as_ref().unwrap()["cpu"].0, "2");
}

#[test]
fn the_older_object_wins_and_the_other_is_told() {
    let spec = |path: &str, tags: &[&str]| {
        json!({
            "image": "f", "prefixes": [""], "podExecutor": {},
            "binaryExecutor": { "path": path, "tags": tags },
        })
    };
    let (old, new) = (object(1, &spec("old", &["v1"])), object(2, &spec("new", &["v1", "v2"])));
    // Their names have no say.
    for (first, second) in [("a", "b"), ("b", "a")] {
        let built = sources([(first, old.clone()), (second, new.clone())]).build(&terms());
        assert_eq!(executable(&built, &format!("{PREFIX}/f:v1")).as_deref(), Some("/functions/old"));
        assert_eq!(executable(&built, &format!("{PREFIX}/f:v2")).as_deref(), Some("/functions/new"));
        assert!(built.verdicts[first].problems.is_empty());
        let told = [
            format!(
                "spec.binaryExecutor.tags: the FunctionConfig {first:?} configures {PREFIX}/f:v1 already, and was first"
            ),
            format!(
                "spec.podExecutor.tags: the FunctionConfig {first:?} configures {PREFIX}/f already, and was first"
            ),
        ];
        let problems = &built.verdicts[second].problems;
        assert_eq!(problems.clone(), told.clone().map(|text| (Reason::Conflict, text)));
        assert_eq!(built.verdicts[second].executors[0].tags, Some(vec!["v2".to_owned()]));
        assert_eq!(built.warnings, told.map(|text| format!("the FunctionConfig {second:?}: {text}")));
    }
    // Of the same age, the first by name.
    let twins = sources([("b", object(1, &spec("b", &["v1"]))), ("a", object(1, &spec("a", &["v1"])))]);
    assert_eq!(
        executable(&twins.build(&terms()), &format!("{PREFIX}/f:v1")).as_deref(),
        Some("/functions/a")
    );
}

#[test]
fn what_is_wrong_with_one_object_leaves_the_others_alone() {
    let built = sources([
        ("broken", object(1, &json!({ "image": "not/a name", "podExecutor": {} }))),
        ("newer", object(2, &json!({ "image": "newer", "wasmExecutor": {} }))),
        (
            "gone",
            object(3, &json!({ "image": "gone", "binaryExecutor": { "path": "missing", "tags": ["v1"] } })),
        ),
        (
            "fine",
            object(4, &json!({ "image": "fine", "binaryExecutor": { "path": "fine", "tags": ["v1"] } })),
        ),
    ])
    .build(&terms());
    assert!(executable(&built, "example.com/fine:v1").is_some());
    assert!(built.verdicts["fine"].problems.is_empty());
    for (name, reason, words) in [
        ("broken", Reason::Invalid, "spec.image: "),
        ("newer", Reason::Invalid, "this release knows no other executors"),
        (
            "gone",
            Reason::ExecutableMissing,
            "spec.binaryExecutor.path: the executable /functions/missing is missing",
        ),
    ] {
        let problems = &built.verdicts[name].problems;
        assert!(
            problems.len() == 1 && problems[0].0 == reason && problems[0].1.contains(words),
            "{problems:?}"
        );
    }
    assert_eq!(built.verdicts["newer"].unknown, ["spec.wasmExecutor"]);
    assert_eq!(built.warnings.len(), 3);
    // It is known all the same: the file may come, and until then calls go on.
    assert!(executable(&built, "example.com/gone:v1").is_some());
    assert_eq!(
        built.verdicts["gone"].executors[0].message.as_deref(),
        Some("the executable /functions/missing is missing")
    );
}

#[test]
fn runtimes_that_are_turned_off_are_not_configured() {
    let spec = json!({
        "image": "f", "podExecutor": { "tags": ["v1"], "minReplicas": 1 },
        "binaryExecutor": { "path": "f", "tags": ["v1"] }, "goExecutor": { "tags": ["v1"] },
    });
    let off = Terms { builtins: Offered::Off, functions: None, pods: false, ..terms() };
    let built = sources([("f", object(1, &spec))]).build(&off);
    assert_eq!((executable(&built, "example.com/f:v1"), pod(&built, "example.com/f:v1")), (None, None));
    assert!(built.index.warm_ups.is_empty() && built.warnings.is_empty());
    let executors = &built.verdicts["f"].executors;
    let messages: Vec<_> = executors.iter().map(|executor| executor.message.as_deref().unwrap()).collect();
    assert_eq!(
        messages,
        [
            "the exec runtime is turned off",
            "the pod runtime is turned off",
            "built-in functions are turned off"
        ]
    );
}

/// The built-in function that serves an image.
fn builtin(built: &Built, image: &str) -> Option<&'static str> {
    let found = built.index.builtin(&Reference::parse(image).unwrap(), None)?;
    Some(found.value.function.name())
}

#[test]
fn built_in_functions_serve_what_objects_list() {
    let spec = |id: Option<&str>, tags: &[&str]| json!({ "image": "set-namespace", "prefixes": ["", "example.com"], "goExecutor": { "id": id, "tags": tags } });
    let digest = format!("sha256:{}", "a".repeat(64));
    let sources = sources([
        ("first", object(1, &spec(None, &["v0.4", "~0.5", &digest]))),
        ("second", object(2, &spec(Some("set-labels"), &["v0.4", "v0.6"]))),
        (
            "strange",
            object(3, &json!({ "image": "f", "goExecutor": { "id": "cluster-scanner", "tags": ["v1"] } })),
        ),
        (
            "renamed",
            object(4, &json!({ "image": "our-owner", "goExecutor": { "id": "starlark", "tags": ["*"] } })),
        ),
    ]);
    let built = sources.build(&terms());
    for (image, name) in [
        ("example.com/set-namespace:v0.4", Some("set-namespace")),
        ("ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.5.7", Some("set-namespace")),
        (&*format!("example.com/set-namespace@{digest}"), Some("set-namespace")),
        ("example.com/set-namespace:v0.6", Some("set-labels")),
        ("example.com/set-namespace:v0.7", None),
        ("example.org/set-namespace:v0.4", None),
        ("gcr.io/kpt-fn/set-namespace:v0.4", None),
        ("example.com/f:v1", None),
        ("anywhere.example/our-owner:latest", Some("starlark")),
    ] {
        assert_eq!(builtin(&built, image), name, "{image}");
    }
    // Who has no such function is told, and is not at fault.
    assert_eq!(built.verdicts["strange"].problems, []);
    assert_eq!(
        built.verdicts["strange"].executors[0].message.as_deref(),
        Some("no function \"cluster-scanner\" is built in: other executors serve it")
    );
    assert_eq!(built.verdicts["first"].executors[0].tags.as_ref().unwrap().len(), 3);
    assert_eq!(built.verdicts["second"].executors[0].tags.as_deref(), Some(&["v0.6".to_owned()][..]));
    let (reason, conflict) = &built.verdicts["second"].problems[0];
    assert_eq!(*reason, Reason::Conflict);
    assert!(
        conflict.starts_with("spec.goExecutor.tags: the FunctionConfig \"first\" configures"),
        "{conflict}"
    );

    let all = sources.build(&Terms { builtins: Offered::All, ..terms() });
    assert_eq!(builtin(&all, "example.com/set-namespace:v0.6"), Some("set-labels"), "objects win");
    assert_eq!(builtin(&all, &format!("{PREFIX}/set-namespace:v0.6")), Some("set-labels"), "objects win");
    assert_eq!(builtin(&all, "gcr.io/kpt-fn/set-namespace:v9"), Some("set-namespace"));
    let off = sources.build(&Terms { builtins: Offered::Off, ..terms() });
    assert_eq!(builtin(&off, "example.com/set-namespace:v0.4"), None);
    assert_eq!(off.warnings, Vec::<String>::new());
}

#[test]
fn objects_of_the_cluster_win_over_those_in_files_and_those_over_older_files() {
    let cluster = json!({ "image": "f", "binaryExecutor": { "path": "cluster", "tags": ["v1"] }, "podExecutor": { "tags": ["v1"] } });
    let file = |image: &str, tags: &str| {
        format!(
            "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: FunctionConfig\nmetadata: {{name: file-{image}}}\n\
             spec:\n  image: {image}\n  binaryExecutor: {{path: file, tags: {tags}}}\n  podExecutor: {{tags: {tags}}}\n---\n"
        )
    };
    let files = file("f", "[v1, v2]");
    let config = "functions: [{function: config, images: ['example.com/f:v1', 'example.com/f:v2', 'example.com/f:v3']}]";
    let cache = b"example.com/f:v1: 1m\nexample.com/f:v2: 1m\nexample.com/f:v3: 1m\n";
    let sources = Sources {
        config_file: Some((
            Path::new("config.yaml").into(),
            Arc::new(ConfigFile::parse(config.as_bytes()).unwrap()),
        )),
        pod_cache: Some((Path::new("cache.yaml").into(), pod_cache::parse(cache).unwrap().0.into())),
        files: [(Path::new("dir/f.yaml").into(), Arc::new(File::parse(files.as_bytes(), PREFIX)))].into(),
        ..sources([("cluster", object(1, &cluster))])
    };
    let built = sources.build(&terms());
    for (image, path, origin) in [
        ("example.com/f:v1", "/functions/cluster", "the FunctionConfig \"cluster\""),
        ("example.com/f:v2", "/functions/file", "the FunctionConfig \"file-f\" in dir/f.yaml"),
        ("example.com/f:v3", "/functions/config", "cache.yaml"),
    ] {
        assert_eq!(executable(&built, image).as_deref(), Some(path));
        assert_eq!(pod(&built, image).as_deref(), Some(origin));
    }
    assert_eq!(built.warnings, Vec::<String>::new());
    let warm_ups: Vec<_> = built.index.warm_ups.iter().map(|warm_up| warm_up.asked.to_string()).collect();
    assert_eq!(
        warm_ups,
        [&format!("{PREFIX}/f:v1"), "example.com/f:v1", "example.com/f:v2", "example.com/f:v3"]
            .map(str::to_owned)
    );
}

#[test]
fn two_objects_of_one_name_in_files_are_told() {
    let text = "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: FunctionConfig\nmetadata: {name: f}\nspec: {image: IMAGE, podExecutor: {}}\n---\n";
    let both = text.replace("IMAGE", "f") + &text.replace("IMAGE", "g");
    let files = [(Path::new("f.yaml").into(), Arc::new(File::parse(both.as_bytes(), PREFIX)))].into();
    let built = Sources { files, ..Sources::default() }.build(&terms());
    assert_eq!(
        built.warnings,
        [
            "the FunctionConfig \"f\" in f.yaml, line 6: metadata.name: the FunctionConfig \"f\" in f.yaml has the same name"
        ]
    );
}

#[test]
fn first_tags_are_warmed_up_and_with_replicas_all() {
    let spec = |tags: &[&str], replicas: i64| {
        json!({
            "image": "f", "prefixes": ["example.com/first", ""],
            "podExecutor": { "tags": tags, "minReplicas": replicas },
        })
    };
    let warm_ups = |tags: &[&str], replicas: i64| {
        let built = sources([("f", object(1, &spec(tags, replicas)))]).build(&terms());
        let warm_ups = built.index.warm_ups.iter();
        warm_ups.map(|warm_up| (warm_up.asked.to_string(), warm_up.is_kept)).collect::<Vec<_>>()
    };
    let f = |tag: &str, is_kept: bool| (format!("example.com/first/f{tag}"), is_kept);
    assert_eq!(warm_ups(&["v1", "v2"], 0), [f(":v1", false)]);
    let digest = format!("sha256:{}", "a".repeat(64));
    assert_eq!(
        warm_ups(&["v1", "~2", "*", &digest], 1),
        [f(":v1", true), f(":~2", true), f(&format!("@{digest}"), true)]
    );
    assert_eq!(warm_ups(&[], 3), []);
    assert_eq!(warm_ups(&["*", "v1"], 0), []);
    let bare = json!({ "image": "f", "podExecutor": { "tags": ["v1"] } });
    let built = sources([("f", object(1, &bare))]).build(&terms());
    assert_eq!(built.index.warm_ups[0].asked.to_string(), format!("{PREFIX}/f:v1"));
}

#[test]
fn a_thousand_objects_are_indexed_and_each_is_found() {
    let specs = (0..1000).map(|number| {
        let name = format!("function-{number}");
        let spec = json!({
            "image": name, "prefixes": ["", "example.com/org"],
            "podExecutor": { "tags": ["v1.0.0"], "timeToLive": "30m" },
            "binaryExecutor": { "path": name, "tags": ["v1.0.1", "~2"] },
        });
        (Arc::from(name), object(number, &spec))
    });
    let many = Sources { objects: specs.collect(), ..Sources::default() };
    let many = many.build(&terms());
    for number in 0..1000 {
        let image = Reference::parse(&format!("example.com/org/function-{number}:v2.3.4")).unwrap();
        let executable = many.index.executable(&image, None).unwrap();
        assert_eq!(executable.value.function, format!("function-{number}"));
        let image = Reference::parse(&format!("example.com/org/function-{number}:v1.0.0")).unwrap();
        assert_eq!(many.index.pod(&image).unwrap().settings.time_to_live, Some(Duration::from_mins(30)));
    }
}
