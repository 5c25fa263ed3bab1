//! Anchors, aliases and merge keys: every function sees the fields that they stand for, and none changes a field
//! that it does not mean.

use functions::Outcome;

fn run(function: &str, config: &str, items: &str) -> Outcome {
    let config = config.lines().fold(String::new(), |text, line| text + "  " + line + "\n");
    let list = format!(
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n{config}items:\n{items}"
    );
    functions::run(function, list.as_bytes()).unwrap()
}

const ITEMS: &str = "\
- apiVersion: apps/v1
  kind: Deployment
  metadata: &meta
    name: web
    namespace: old
    labels: {app: web}
    annotations: {a: b}
  spec:
    template:
      spec:
        containers:
        - &main
          name: a
          image: nginx:1 # kpt-set: nginx:${tag}
        - {<<: *main, name: b}
        - <<: *main
          name: c
- apiVersion: v1
  kind: Service
  metadata:
    <<: *meta
    name: front
";

/// What is in the text before and afterwards.
type Change = (&'static str, &'static str);

/// Each function, a configuration, and what it changes in the text.
const CASES: &[(&str, &str, &[Change])] = &[
    (
        "set-image",
        "apiVersion: v1\nkind: ConfigMap\ndata: {name: nginx, newTag: \"2\"}",
        &[("image: nginx:1 ", "image: nginx:2 ")],
    ),
    (
        "apply-setters",
        "apiVersion: v1\nkind: ConfigMap\ndata: {tag: \"2\"}",
        &[("image: nginx:1 ", "image: nginx:2 ")],
    ),
    (
        "set-namespace",
        "apiVersion: v1\nkind: ConfigMap\ndata: {namespace: new}",
        &[("namespace: old", "namespace: new")],
    ),
    (
        "search-replace",
        "apiVersion: v1\nkind: ConfigMap\ndata: {by-value: nginx:1, put-value: httpd:3}",
        &[("image: nginx:1 ", "image: httpd:3 ")],
    ),
    (
        "set-labels",
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\nlabels: {app: new}",
        &[
            ("labels: {app: web}", "labels: {app: new}"),
            (
                "          name: c\n",
                "          name: c\n      metadata:\n        labels:\n          app: new\n    selector:\n      matchLabels:\n        app: new\n",
            ),
            ("    name: front\n", "    name: front\n  spec:\n    selector:\n      app: new\n"),
        ],
    ),
    (
        "set-annotations",
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetAnnotations\nannotations: {a: c}",
        &[
            ("annotations: {a: b}", "annotations: {a: c}"),
            (
                "          name: c\n",
                "          name: c\n      metadata:\n        annotations:\n          a: c\n",
            ),
        ],
    ),
    (
        "ensure-name-substring",
        "apiVersion: v1\nkind: ConfigMap\ndata: {prepend: x-}",
        &[("name: web", "name: x-web"), ("name: front", "name: x-front")],
    ),
    (
        "create-setters",
        "apiVersion: v1\nkind: ConfigMap\ndata: {ns: old}",
        &[("namespace: old", "namespace: old # kpt-set: ${ns}")],
    ),
    (
        "apply-replacements",
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nreplacements:\n- source: {kind: Service, fieldPath: metadata.namespace}\n  targets:\n  - select: {kind: Deployment}\n    fieldPaths: ['spec.template.spec.containers.[name=b].image']",
        &[("{<<: *main, name: b}", "{<<: *main, name: b, image: old}")],
    ),
    (
        "upsert-resource",
        "apiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: old}",
        &[("    <<: *meta\n    name: front\n", "    name: front\n    namespace: old\n")],
    ),
    ("list-setters", "apiVersion: v1\nkind: ConfigMap", &[]),
    ("remove-local-config-resources", "apiVersion: v1\nkind: ConfigMap", &[]),
];

#[test]
fn every_function_reads_and_changes_what_is_meant() {
    for (function, config, changes) in CASES {
        let outcome = run(function, config, ITEMS);
        assert!(outcome.succeeded, "{function}: {}{:?}", outcome.stderr, outcome.results);
        let text = String::from_utf8(outcome.output).unwrap();
        let items = text.split("\nitems:\n").nth(1).unwrap().split("\nresults:\n").next().unwrap();
        let expected = changes.iter().fold(ITEMS.to_owned(), |text, (old, new)| {
            assert!(text.contains(old), "{function}: {old}");
            text.replace(old, new)
        });
        assert_eq!(items.trim_end(), expected.trim_end(), "{function}");
    }
    let tested: Vec<&str> = CASES.iter().map(|(function, ..)| *function).collect();
    for function in functions::all() {
        assert!(tested.contains(&function.name) || function.name == "set-project-id", "{}", function.name);
    }
}

#[test]
fn a_resource_of_config_connector_may_share_its_annotations() {
    let items = "\
- apiVersion: kpt.dev/v1
  kind: Kptfile
  pipeline: {mutators: [{image: apply-setters, configMap: {project-id: x}}]}
- apiVersion: storage.cnrm.cloud.google.com/v1
  kind: A
  metadata: &m {name: a, annotations: {x: y}}
- apiVersion: storage.cnrm.cloud.google.com/v1
  kind: B
  metadata: {<<: *m, name: b}
";
    let outcome = run("set-project-id", "apiVersion: v1\nkind: ConfigMap\ndata: {project-id: p}", items);
    assert!(outcome.succeeded, "{}", outcome.stderr);
    let text = String::from_utf8(outcome.output).unwrap();
    let expected = items.replace("{x: y}", "{x: y, cnrm.cloud.google.com/project-id: p}");
    assert!(text.ends_with(&expected), "{text}");
}

/// What is set in one place only is written there: what an anchor or a merge key shares stays in the others.
#[test]
fn what_differs_is_written_where_it_is() {
    let config = "apiVersion: v1\nkind: ConfigMap\ndata: {by-path: 'spec.template.spec.containers[1].image', put-value: other}";
    let outcome = run("search-replace", config, ITEMS);
    let text = String::from_utf8(outcome.output).unwrap();
    assert!(
        text.contains("image: nginx:1 #") && text.contains("{<<: *main, name: b, image: other}"),
        "{text}"
    );
}

/// A setter that a field had by being merged is not lost when the field becomes one of its own.
#[test]
fn fields_that_are_no_longer_merged_keep_their_comments() {
    let items = "\
- apiVersion: v1
  kind: A
  metadata:
    name: first
    annotations: {config.kubernetes.io/local-config: \"true\"}
  spec: &s
    # what it runs
    image: nginx # kpt-set: ${img}
    inner:
      deep: 1 # kpt-set: ${deep}
- apiVersion: v1
  kind: A
  metadata:
    name: second
  spec:
    <<: *s
    c: d
";
    let kept = ["image: nginx # kpt-set: ${img}", "deep: 1 # kpt-set: ${deep}", "# what it runs"];
    let gone = run("remove-local-config-resources", "apiVersion: v1\nkind: ConfigMap", items);
    let text = String::from_utf8(gone.output).unwrap();
    for words in kept {
        assert!(text.contains(words), "{text}");
    }
    assert!(!text.contains("<<") && !text.contains("name: first"), "{text}");
    let config = "apiVersion: v1\nkind: ConfigMap\ndata: {by-path: spec.image, put-value: httpd}";
    let all = run("search-replace", config, items);
    let text = String::from_utf8(all.output).unwrap();
    assert_eq!(text.matches("image: httpd # kpt-set: ${img}").count(), 1, "{text}");
    assert!(text.contains("<<: *s"), "{text}");
}
