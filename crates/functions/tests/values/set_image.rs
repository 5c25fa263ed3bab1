use functions::Severity;

use super::*;

const NAME: &str = "set-image";

const POD: &str = "
apiVersion: v1
kind: Pod
metadata:
  name: app   # the one
spec:
  initContainers:
  - image: 'busybox:1' # first
    name: init
  containers:
  - name: server
    image: nginx:1.20.2   # keep
  - {name: store, image: \"postgres:14.1\"}
";

#[track_caller]
fn sets(data: &str, from: &str, to: &str) {
    becomes(NAME, &config_map(data), POD, &POD.replace(from, to));
}

#[test]
fn names_tags_and_digests_are_set() {
    sets("name: nginx\nnewName: bitnami/nginx\nnewTag: 1.21.4\n", "nginx:1.20.2", "bitnami/nginx:1.21.4");
    sets("name: nginx\nnewName: bitnami/nginx\n", "nginx:1.20.2", "bitnami/nginx:1.20.2");
    sets("name: nginx\nnewTag: 1.30\n", "nginx:1.20.2", "nginx:1.30");
    sets("name: nginx\ndigest: sha256:ab\n", "nginx:1.20.2", "nginx@sha256:ab");
    sets("name: nginx\nnewTag: '2'\ndigest: sha256:ab\n", "nginx:1.20.2", "nginx:2@sha256:ab");
    sets("name: busybox\nnewTag: '2'\n", "busybox:1", "busybox:2");
    sets("name: postgres\nnewTag: '2'\n", "postgres:14.1", "postgres:2");
}

#[test]
fn all_forms_of_an_image_are_understood() {
    let image =
        |image: &str| format!("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: {image}\n");
    for (name, data, before, after) in [
        ("nginx", "newTag: new", "nginx", "nginx:new"),
        ("nginx", "newTag: new", "nginx@sha256:ab", "nginx:new"),
        ("nginx", "newTag: new", "nginx:1@sha256:ab", "nginx:new"),
        ("nginx", "digest: sha256:cd", "nginx:1@sha256:ab", "nginx@sha256:cd"),
        ("nginx", "newName: x", "nginx:1@sha256:ab", "x:1@sha256:ab"),
        ("nginx", "newName: x", "nginx@sha256:ab", "x@sha256:ab"),
        ("host:5000/a/b", "newTag: new", "host:5000/a/b", "host:5000/a/b:new"),
        ("host:5000/a/b", "newTag: new", "host:5000/a/b:1", "host:5000/a/b:new"),
        ("nginx", "newTag: new", "\"nginx:{tag}\"", "\"nginx:new\""),
        // The name is an expression.
        ("nginx:1.*", "newTag: new", "nginx:1.2", "nginx:new"),
        ("(nginx|httpd)", "newName: web", "httpd:1", "web:1"),
    ] {
        becomes(NAME, &config_map(&format!("name: {name}\n{data}\n")), &image(before), &image(after));
    }
    for other in ["nginx/sub:1", "docker.io/nginx:1", "nginx:1/x", "nginxx", "nginx@md5:ab", "nginx:1 "] {
        let resource = image(&format!("'{other}'"));
        becomes(NAME, &config_map("name: nginx\nnewTag: new\n"), &resource, &resource);
    }
}

#[test]
fn pods_and_their_templates_are_known() {
    let config = config_map("name: nginx\nnewTag: new\n");
    let resource = |version: &str, kind: &str, image: &str| {
        format!(
            "apiVersion: {version}\nkind: {kind}\nspec:\n  template:\n    spec:\n      containers:\n      - image: {image}\n      initContainers:\n      - image: {image}\n      ephemeralContainers:\n      - image: nginx:1\n"
        )
    };
    for kind in ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"] {
        becomes(
            NAME,
            &config,
            &resource("apps/v1", kind, "nginx:1"),
            &resource("apps/v1", kind, "nginx:new"),
        );
    }
    for (version, kind) in
        [("apps/v1beta1", "Deployment"), ("v1", "Deployment"), ("batch/v1", "Job"), ("v1", "Pod")]
    {
        let resource = resource(version, kind, "nginx:1");
        becomes(NAME, &config, &resource, &resource);
    }
}

const SET_IMAGE: &str = "
apiVersion: fn.kpt.dev/v1alpha1
kind: SetImage
metadata:
  name: example
image:
  name: nginx
  newTag: '2'
additionalImageFields:
- group: dev.example.com
  version: v1
  kind: MyKind
  path: spec/manifest/images[]/image
- path: spec/image
  create: true
";

#[test]
fn more_fields_can_be_named() {
    becomes(NAME, SET_IMAGE, POD, &POD.replace("nginx:1.20.2", "nginx:2"));
    let resource = |version: &str, image: &str| {
        format!(
            "apiVersion: {version}\nkind: MyKind\nspec:\n  manifest:\n    images:\n    - image: {image} # a\n    - image: x\n"
        )
    };
    becomes(
        NAME,
        SET_IMAGE,
        &resource("dev.example.com/v1", "nginx:1"),
        &resource("dev.example.com/v1", "nginx:2"),
    );
    for version in ["dev.example.com/v2", "example.com/v1", "v1"] {
        let resource = resource(version, "nginx:1");
        becomes(NAME, SET_IMAGE, &resource, &resource);
    }
    becomes(NAME, SET_IMAGE, "kind: Any\nspec:\n  image: nginx\n", "kind: Any\nspec:\n  image: nginx:2\n");
    // Nothing is made, and what describes other resources is left alone.
    for resource in
        ["kind: Any\nspec: {}\n", "kind: Any\n", "kind: CustomResourceDefinition\nspec:\n  image: nginx\n"]
    {
        becomes(NAME, SET_IMAGE, resource, resource);
    }
}

#[test]
fn a_suffix_is_added_to_the_tag() {
    let config = SET_IMAGE.replace("  newTag: '2'\n", "  newName: web\n  tagSuffix: -old\n");
    let outcome = run(NAME, &config, &[POD]);
    assert!(outcome.succeeded, "{}", outcome.stderr);
    assert_eq!(
        without_results(outcome.output),
        list(&config, &[&POD.replace("nginx:1.20.2", "web:1.20.2-old")])
    );
}

#[test]
fn resources_for_local_use_are_set_too() {
    let local = POD
        .replace("metadata:\n", "metadata:\n  annotations:\n    config.kubernetes.io/local-config: 'true'\n");
    becomes(
        NAME,
        &config_map("name: nginx\nnewTag: '2'\n"),
        &local,
        &local.replace("nginx:1.20.2", "nginx:2"),
    );
}

#[test]
fn the_result_counts_fields_that_have_the_image() {
    let two = POD.replace("postgres:14.1", "nginx:1.20.2");
    for (data, count) in [("newTag: '2'", 2), ("newTag: 1.20.2", 2), ("newName: nginx", 2)] {
        let found = results(NAME, &config_map(&format!("name: nginx\n{data}\n")), &[&two]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].message, format!("summary: updated a total of {count} image(s)"));
        assert_eq!(found[0].severity, Some(Severity::Info));
    }
    assert_eq!(
        messages(NAME, &config_map("name: other\nnewTag: '2'\n"), &[&two]),
        ["summary: updated a total of 0 image(s)"]
    );
}

/// All that a run that fails says.
#[track_caller]
fn says(config: &str, resource: &str) -> Vec<String> {
    let outcome = run(NAME, config, &[resource]);
    assert!(!outcome.succeeded);
    assert_eq!(outcome.stderr, "failed to evaluate function: error: function failure\n");
    outcome
        .results
        .into_iter()
        .map(|finding| format!("{}: {}", finding.severity.unwrap().name(), finding.message))
        .collect()
}

#[test]
fn configurations_that_are_none_are_refused() {
    let none = "info: summary: updated a total of 0 image(s)";
    let name = "error: invalid FunctionConfig: must specify `name`";
    let change = "error: invalid FunctionConfig: must specify one of `newName`, `newTag`, or `digest`";
    assert_eq!(says("", POD), ["info: `FunctionConfig` is not given", name, none]);
    let placeholder = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\ndata: {}\n";
    assert_eq!(says(placeholder, POD), ["info: `FunctionConfig` is not given", name, none]);
    assert_eq!(says("apiVersion: v1\nkind: ConfigMap\n", POD), [name, none]);
    assert_eq!(says(&config_map("newName: bar\nnewTag: v1.0\n"), POD), [name, none]);
    assert_eq!(says(&config_map("name: foo\n"), POD), [change, none]);
    assert_eq!(says("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\nimage: ~\n", POD), [name, none]);
    for key in ["tag", "tagSuffix"] {
        let config = config_map(&format!("name: nginx\nnewTag: '2'\n{key}: x\n"));
        assert_eq!(
            says(&config, POD),
            [format!("error: ConfigMap has wrong field name {key}"), none.to_owned()]
        );
    }
    let said = says(&config_map("name: a(\nnewTag: '2'\n"), POD);
    assert!(said[0].starts_with("error: invalid FunctionConfig: `name`: error parsing regexp: "), "{said:?}");
}

#[test]
fn objects_that_are_no_configuration_are_refused() {
    let expected = "expect `SetImage.fn.kpt.dev` or `ConfigMap.v1`";
    assert_eq!(
        says("apiVersion: v1\nkind: Secret\n", POD),
        [format!("error: unknown FunctionConfig `Secret`, {expected}")]
    );
    assert_eq!(
        says("apiVersion: fn.kpt.dev/v1\nkind: SetLabels\n", POD),
        [format!("error: unknown FunctionConfig `SetLabels.fn.kpt.dev`, {expected}")]
    );
    assert_eq!(
        says(&config_map("name: [a]\n"), POD),
        ["error: failed to parse FunctionConfig as ConfigMap: all values of `data` must be texts"]
    );
    for (wrong, cause) in [
        ("image: nginx\n", "`image` must be a mapping"),
        ("image:\n  newTag: [a]\n", "`image.newTag` must be a text"),
        ("additionalImageFields: x\n", "additionalImageFields: must be a list"),
        ("additionalImageFields: [x]\n", "additionalImageFields: each entry must be a mapping"),
    ] {
        let said = says(&format!("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\n{wrong}"), POD);
        assert_eq!(said, [format!("error: failed to parse FunctionConfig as SetImage: {cause}")]);
    }
}

#[test]
fn resources_that_are_odd_are_told() {
    let config = config_map("name: nginx\nnewTag: '2'\n");
    let odd = |spec: &str| format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n{spec}");
    for spec in ["spec: x\n", "spec:\n  containers:\n  - image: [a]\n", "spec:\n  containers:\n  - x\n"] {
        let said = says(&config, &odd(spec));
        assert!(
            said[0].starts_with(
                "error: considering field 'spec/containers[]/image' of object Pod.v1.[noGrp]/a.[noNs]: "
            ),
            "{said:?}"
        );
    }
    for spec in [
        "",
        "spec: ~\n",
        "spec: {}\n",
        "spec:\n  containers: []\n",
        "spec:\n  containers:\n  - image: ~\n",
        "spec:\n  containers:\n  - name: x\n",
    ] {
        becomes(NAME, &config, &odd(spec), &odd(spec));
    }
}
