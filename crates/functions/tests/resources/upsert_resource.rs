use super::*;

const NAME: &str = "upsert-resource";

const NEW: &str = "
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
spec:
  ports:
  - port: 80
    name: http
  selector:
    app: store # was web
";

#[test]
fn a_resource_takes_the_place_of_its_like_and_what_is_equal_stays_as_written() {
    let after = SERVICE.replace("    app: web\n", "    app: store # was web\n");
    becomes(NAME, NEW, &[SERVICE], &[&after]);
}

#[test]
fn what_the_new_resource_does_not_have_goes() {
    let before = "
apiVersion: v1
kind: Service
metadata:
  name: web
  labels:
    old: label
  namespace: shop
spec:
  type: ClusterIP
  ports: []
";
    let text = output(NAME, NEW, &[before]);
    assert!(!text.contains("old: label") && !text.contains("ClusterIP") && text.contains("store"), "{text}");
}

#[test]
fn group_kind_name_and_namespace_make_the_difference_and_the_version_does_not() {
    let resource = |api: &str, kind: &str, name: &str, namespace: &str| {
        format!("apiVersion: {api}\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: {namespace}\n")
    };
    let config = resource("apps/v2", "Thing", "a", "b") + "spec: new\n";
    let same = resource("apps/v1", "Thing", "a", "b");
    let others = [
        resource("v2", "Thing", "a", "b"),
        resource("apps/v2", "Other", "a", "b"),
        resource("apps/v2", "Thing", "b", "b"),
        resource("apps/v2", "Thing", "a", "default"),
        "apiVersion: apps/v2\nkind: Thing\nmetadata:\n  name: a\n".to_owned(),
    ];
    for other in &others {
        becomes(NAME, &config, &[other], &[other, &config]);
        becomes(NAME, &config, &[other, &same, other, &same], &[other, &config, other, &config]);
    }
}

#[test]
fn each_stays_in_its_file() {
    let at = |annotations: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Thing\nmetadata:\n  name: a\n  annotations:\n{annotations}spec: {spec}\n"
        )
    };
    let placed = "    internal.config.kubernetes.io/path: a.yaml\n    internal.config.kubernetes.io/index: '3'\n    config.kubernetes.io/path: a.yaml\n    config.kubernetes.io/index: '3'\n";
    let config = at(
        "    mine: \"yes\"\n    internal.config.kubernetes.io/path: config.yaml\n    config.kubernetes.io/index: '7'\n    config.kubernetes.io/function: x\n    config.k8s.io/function: x\n",
        "new",
    );
    let before = at(&format!("    theirs: 'x'\n{placed}"), "old");
    let after = at(&format!("{placed}    mine: \"yes\"\n"), "new");
    becomes(NAME, &config, &[&before], &[&after]);
}

#[test]
fn a_resource_without_its_like_is_added_with_its_comments() {
    let config = "
# Taken as it is.
apiVersion: v1
kind: Thing
metadata:
  name: new # a name
  annotations:
    config.kubernetes.io/target-path: new/thing.yaml
    keep: 'this'
    internal.config.kubernetes.io/path: config.yaml
    internal.config.kubernetes.io/index: '0'
    config.kubernetes.io/function: x
spec: # in order
  text: |
    one
    two
";
    let text = output(NAME, config, &[SERVICE]);
    let expected = "
-
  # Taken as it is.
  apiVersion: v1
  kind: Thing
  metadata:
    name: new # a name
    annotations:
      keep: 'this'
      internal.config.kubernetes.io/path: new/thing.yaml
  spec: # in order
    text: |
      one
      two
";
    assert!(text.ends_with(expected), "{text}");
    assert!(text.contains(&indented(SERVICE).replacen("  # The", "- # The", 1)), "{text}");
}

#[test]
fn a_new_file_is_named_as_the_package_names_files() {
    let item = |key: &str| {
        format!("apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    {key}: a.yaml\n")
    };
    let config = "apiVersion: v1\nkind: B\nmetadata:\n  name: b\n  annotations:\n    config.kubernetes.io/target-path: b.yaml\n";
    let text = output(NAME, config, &[&item("config.kubernetes.io/path")]);
    let added = text.split("  kind: B\n").last().unwrap();
    assert_eq!(
        added,
        "  metadata:\n    name: b\n    annotations:\n      config.kubernetes.io/path: b.yaml\n"
    );
    let without = "apiVersion: v1\nkind: B\nmetadata:\n  name: b\n  annotations:\n    internal.config.kubernetes.io/path: b.yaml\n";
    let text = output(NAME, without, &[&item("internal.config.kubernetes.io/path")]);
    let added = text.split("  kind: B\n").last().unwrap();
    assert_eq!(added, "  metadata:\n    name: b\n");
}

#[test]
fn with_a_target_path_only_the_resource_in_that_file_is_meant() {
    let at = |path: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    internal.config.kubernetes.io/path: {path}\nspec: {spec}\n"
        )
    };
    let config = |path: &str| {
        format!(
            "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/target-path: {path}\nspec: new\n"
        )
    };
    let (one, two) = (at("one.yaml", "old"), at("two.yaml", "old"));
    becomes(NAME, &config("two.yaml"), &[&one, &two], &[&one, &at("two.yaml", "new")]);
    becomes(NAME, &config("three.yaml"), &[&one, &two], &[&one, &two, &at("three.yaml", "new")]);
}

#[test]
fn a_list_has_several_resources() {
    let config = "
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: A
  metadata:
    name: a
  spec: 1
- apiVersion: v1
  kind: B
  metadata:
    name: b
  spec: 2
- apiVersion: v1
  kind: B
  metadata:
    name: b
  spec: 3
";
    let a = |spec: u8| format!("apiVersion: v1\nkind: A\nmetadata:\n  name: a\nspec: {spec}\n");
    let b = "apiVersion: v1\nkind: B\nmetadata:\n  name: b\nspec: 3\n";
    becomes(NAME, config, &[&a(0)], &[&a(1), b]);
    for empty in ["kind: List", "kind: List\nitems:", "kind: List\nitems: []", "kind: List\nitems: text"] {
        becomes(NAME, empty, &[SERVICE], &[SERVICE]);
    }
}

#[test]
fn function_configurations_are_left_alone() {
    let config = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\nspec: new\n";
    let marked = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      container: x\n";
    becomes(NAME, config, &[marked], &[marked, config]);
}

#[test]
fn bad_configurations_are_refused() {
    for (config, resources, problem) in [
        ("", [SERVICE], "functionConfig is missing: it must be the resource, or a List of resources"),
        ("{}", [SERVICE], "functionConfig is missing: it must be the resource, or a List of resources"),
        ("spec: x", [SERVICE], "line 3: missing Resource metadata"),
        ("kind: A", ["spec: x"], "line 6: missing Resource metadata"),
        ("kind: List\nitems: [text]", [SERVICE], "line 5: expected a mapping, found a scalar"),
        (
            "kind: A\nmetadata:\n  name: a\n  annotations: text",
            [SERVICE],
            "line 7: expected a mapping, found a scalar",
        ),
    ] {
        let found = failure(NAME, config, &resources);
        assert_eq!(found, format!("failed to upsert resource: {problem}\n"), "{config}");
    }
}

#[test]
fn a_large_resource_is_not_copied_without_bound() {
    let config = format!("kind: A\nmetadata:\n  name: a\nspec: {}\n", "x".repeat(1 << 20));
    let items = vec!["kind: A\nmetadata:\n  name: a\n"; 200];
    let found = failure(NAME, &config, &items);
    assert!(found.contains("bytes of output"), "{found}");
}

#[test]
fn many_resources_take_little_time() {
    use std::fmt::Write as _;
    let mut config = "kind: List\nitems:\n".to_owned();
    let mut items = Vec::new();
    for at in 0..5_000 {
        writeln!(config, "- kind: A\n  metadata:\n    name: a{at}\n  spec: new").unwrap();
        items.push(format!("kind: A\nmetadata:\n  name: a{at}\nspec: old\n"));
    }
    let items: Vec<&str> = items.iter().map(|item| &**item).collect();
    let outcome = run(NAME, &config, &items);
    assert!(outcome.succeeded);
}
