use functions::Severity;

use super::*;

const NAME: &str = "list-setters";

/// A resource in a file.
fn file(path: &str, resource: &str) -> String {
    format!(
        "{resource}metadata:\n  name: x\n  annotations:\n    internal.config.kubernetes.io/path: {path}\n"
    )
}

fn kptfile(pipeline: &str) -> String {
    file("Kptfile", &format!("apiVersion: kpt.dev/v1\nkind: Kptfile\n{pipeline}"))
}

#[track_caller]
fn lists(resources: &[&str], expected: &[&str]) {
    assert_eq!(messages(NAME, "", resources), expected);
    // Nothing is changed.
    assert_eq!(output(NAME, "", resources), list("", resources));
}

#[test]
fn setters_are_found_in_comments() {
    let one = "
spec:
  name: my-app # kpt-set: ${app}
  labels:
    app: my-app-3 # kpt-set: ${app}-${replicas}
  replicas: 3 # kpt-set: ${replicas}
  ratio: 3.14 # kpt-set: ${ratio}
  paused: true # kpt-set: ${paused}
  day: 2001-01-01 # kpt-set: ${day}
  none: ~ # kpt-set: ${none}
  version: \"3\" # kpt-set: ${version}
  nothing: # kpt-set: ${nothing}
  env: # kpt-set: ${env}
  - stage
  - dev
  roles: [b, a] # kpt-set: ${roles}
";
    let two =
        "a: my-app # kpt-set: ${app}\nenv: [x] # kpt-set: ${env}\nwrong: x # kpt-set: ${image}:${tag}\n";
    lists(
        &[one, two],
        &[
            "Name: app, Value: my-app, Type: str, Count: 3",
            "Name: day, Value: 2001-01-01, Type: timestamp, Count: 1",
            "Name: env, Value: [dev, stage], Type: array, Count: 2",
            "Name: none, Value: ~, Type: null, Count: 1",
            "Name: paused, Value: true, Type: bool, Count: 1",
            "Name: ratio, Value: 3.14, Type: float, Count: 1",
            "Name: replicas, Value: 3, Type: int, Count: 2",
            "Name: roles, Value: [a, b], Type: array, Count: 1",
            "Name: version, Value: 3, Type: str, Count: 1",
        ],
    );
}

#[test]
fn the_first_value_is_told() {
    lists(
        &[
            "a: east-4 # kpt-set: ${cluster}\nb: project # kpt-set: ${id}\nc: project-east-4 # kpt-set: ${id}-${cluster}\n",
        ],
        &[
            "Name: cluster, Value: east-4, Type: str, Count: 2",
            "Name: id, Value: project, Type: str, Count: 2",
        ],
    );
}

#[test]
fn a_name_may_be_that_of_a_list_and_of_a_value() {
    lists(
        &["a: x # kpt-set: ${n}\nb: [y] # kpt-set: ${n}\n"],
        &["Name: n, Value: [y], Type: array, Count: 1", "Name: n, Value: x, Type: str, Count: 1"],
    );
}

#[test]
fn setters_are_found_in_the_pipeline() {
    let map = kptfile(
        "pipeline:
  mutators:
  - image: example/other:v1
    configMap:
      no: setter
  - image: example/apply-setters:v0.2
    configMap:
      app: old
      unused: x
  - image: apply-setters
    configMap:
      app: my-app
      env: '[\"1\", b]'
      empty: ''
",
    );
    let resource = "a: my-app # kpt-set: ${app}\nb: # kpt-set: ${env}\n- c\n";
    lists(
        &[&map, resource],
        &[
            "Name: app, Value: my-app, Type: str, Count: 1",
            "Name: empty, Value: , Type: str, Count: 0",
            "Name: env, Value: [\"1\", b], Type: array, Count: 1",
            "Name: unused, Value: x, Type: str, Count: 0",
        ],
    );
    let path =
        kptfile("pipeline:\n  mutators:\n  - image: apply-setters\n    configPath: dir/setters.yaml\n");
    let setters = file("dir/setters.yaml", "kind: ConfigMap\ndata:\n  app: my-app\n  n: '3'\n");
    lists(
        &[&path, &setters, "a: 3 # kpt-set: ${n}\n"],
        &["Name: app, Value: my-app, Type: str, Count: 0", "Name: n, Value: 3, Type: int, Count: 1"],
    );
}

#[test]
fn where_something_of_the_pipeline_is_missing_only_comments_count() {
    let resource = "a: x # kpt-set: ${n}\n";
    let expected = ["Name: n, Value: x, Type: str, Count: 1"];
    for pipeline in [
        "",
        "pipeline:\n",
        "pipeline:\n  mutators:\n",
        "pipeline:\n  mutators:\n  - image: other\n    configMap:\n      n: y\n",
        "pipeline:\n  mutators:\n  - image: apply-setters\n",
        "pipeline:\n  mutators:\n  - image: apply-setters\n    configMap:\n      m: y\n  - image: apply-setters\n    configPath: gone.yaml\n",
    ] {
        lists(&[&kptfile(pipeline), resource], &expected);
    }
    // The Kptfile of another package is not ours.
    let other = file(
        "sub/Kptfile",
        "kind: Kptfile\npipeline:\n  mutators:\n  - image: apply-setters\n    configMap:\n      m: y\n",
    );
    lists(&[&other, resource], &expected);
}

#[test]
fn no_setters_is_a_warning() {
    for resources in [&["a: b # c\n"][..], &[]] {
        let found = results(NAME, "", resources);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].message.as_str(), found[0].severity),
            ("no setters found", Some(Severity::Warning))
        );
    }
}

#[test]
fn kptfiles_that_are_none_are_refused() {
    for (wrong, cause) in [
        ("foo: bar\n", "field \"foo\" not found in Kptfile"),
        ("pipeline: x\n", "pipeline must be a mapping"),
        ("pipeline:\n  mutators: x\n", "pipeline.mutators must be a list"),
    ] {
        let (message, stderr) = failure(NAME, "", &[&kptfile(wrong)]);
        assert!(
            message.starts_with("failed to list setters: unable to read Kptfile: line ")
                && message.ends_with(cause),
            "{message}"
        );
        assert!(stderr.ends_with(&format!("{cause}\n")), "{stderr}");
    }
}
