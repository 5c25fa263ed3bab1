use super::{config_map, items_of, messages, run};

fn config() -> String {
    config_map(&[("fruit", "apple"), ("color", "\"<on>\"")])
}

const ITEMS: &str = "\
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: a
    annotations:
      internal.config.kubernetes.io/path: 'a.yaml'
      internal.config.kubernetes.io/index: '2'
      fruit: pear # what else
  spec:
    template:
      metadata: {}
- apiVersion: batch/v1
  kind: CronJob
  metadata:
    name: b
    annotations:
      config.kubernetes.io/path: 'a.yaml'
- apiVersion: example.com/v1
  kind: Custom
  metadata:
    name: c
    annotations:
      config.kubernetes.io/local-config: 'true'
  spec:
    list:
    - annotations: {}
    - other: x
    - annotations:
";

#[test]
fn in_resources_and_templates() {
    let outcome = run("set-annotations", &config(), ITEMS);
    let set = |depth: usize| {
        let pad = " ".repeat(depth);
        format!("{pad}color: <on>\n{pad}fruit: apple\n")
    };
    let expected = ITEMS
        .replace("fruit: pear # what else\n", "fruit: apple # what else\n      color: <on>\n")
        .replace("      metadata: {}\n", &format!("      metadata:\n        annotations:\n{}", set(10)))
        .replace(
            "config.kubernetes.io/path: 'a.yaml'\n- ",
            &format!(
                "config.kubernetes.io/path: 'a.yaml'\n{}  spec:\n    jobTemplate:\n      metadata:\n        annotations:\n{}      spec:\n        template:\n          metadata:\n            annotations:\n{}- ",
                set(6), set(10), set(14)
            ),
        )
        .replace("local-config: 'true'\n", &format!("local-config: 'true'\n{}", set(6)));
    assert_eq!(items_of(&outcome), expected);
    let message = r#"set annotations: {"color":"\u003con\u003e","fruit":"apple"}"#;
    let told: Vec<_> = outcome
        .results
        .iter()
        .map(|finding| {
            assert_eq!((&*finding.message, finding.severity), (message, None));
            let file = finding.file.as_ref().unwrap();
            format!("{} {} {}", file.path, file.index, finding.field.as_ref().unwrap().path)
        })
        .collect();
    assert_eq!(
        told,
        [
            " 0 metadata.annotations",
            "a.yaml 0 metadata.annotations",
            "a.yaml 0 spec.jobTemplate.metadata.annotations",
            "a.yaml 0 spec.jobTemplate.spec.template.metadata.annotations",
            "a.yaml 2 metadata.annotations",
            "a.yaml 2 spec.template.metadata.annotations",
        ]
    );
}

#[test]
fn in_fields_of_ones_own() {
    for (kind, key) in
        [("SetAnnotations", "additionalAnnotationFields"), ("SetAnnotationConfig", "fieldSpecs")]
    {
        for (fields, expected) in [
            (
                "- {path: spec/list/annotations, create: true}",
                [
                    "annotations: {a: b}",
                    "other: x\n      annotations:\n        a: b\n",
                    "annotations:\n        a: b\n",
                ],
            ),
            (
                "- {path: /spec/list/annotations, kind: Custom}",
                ["annotations:\n        a: b", "other: x\n", "annotations:\n"],
            ),
            (
                "- {path: 'spec/list[]/annotations', group: example.com, version: v1, create: yes}",
                [
                    "annotations:\n        a: b",
                    "other: x\n      annotations:\n        a: b\n",
                    "annotations:\n        a: b\n",
                ],
            ),
            (
                "- {path: spec/list/annotations, create: true, group: other}",
                ["annotations: {}", "other: x\n", "annotations:\n"],
            ),
            ("- {path: spec/missing/annotations}", ["annotations: {}", "other: x\n", "annotations:\n"]),
        ] {
            let config = format!(
                "apiVersion: fn.kpt.dev/v1alpha1\nkind: {kind}\nannotations: {{a: b}}\n{key}:\n{fields}\n"
            );
            let outcome = run(
                "set-annotations",
                &config,
                ITEMS
                    .rsplit_once("- apiVersion")
                    .map(|(_, last)| format!("- apiVersion{last}"))
                    .unwrap()
                    .as_str(),
            );
            assert!(outcome.succeeded, "{fields}: {}", outcome.stderr);
            let items = items_of(&outcome);
            let [first, second, third] = expected;
            let block = first.replace("annotations: {a: b}", "annotations:\n        a: b");
            assert!(
                items.contains(&format!("    - {block}\n    - {second}    - {third}")),
                "{fields}:\n{items}"
            );
        }
    }
}

#[test]
fn what_cannot_be_configured() {
    let custom = |rest: &str| format!("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetAnnotations\n{rest}");
    for (config, message) in [
        (
            String::new(),
            "failed to configure function: `functionConfig` must be a `ConfigMap` or `SetAnnotations`",
        ),
        (
            "apiVersion: v2\nkind: ConfigMap\n".to_owned(),
            "failed to configure function: `functionConfig` must be a `ConfigMap` or `SetAnnotations`",
        ),
        (custom(""), "failed to configure function: input annotation list cannot be empty"),
        (custom("annotations:\n"), "failed to configure function: input annotation list cannot be empty"),
        (
            custom("annotations: [a]\n"),
            "failed to configure function: failed to unmarshal config: `annotations` must be a mapping of texts",
        ),
        (
            custom("annotations: {a: [b]}\n"),
            "failed to configure function: failed to unmarshal config: the annotation \"a\" must be a text",
        ),
        (
            custom("annotations: {a: b}\nfieldSpecs: []\nadditionalAnnotationFields: []\n"),
            "failed to configure function: `fieldSpecs` has been deprecated, please rename it to `additionalAnnotationFields`",
        ),
        (
            custom("annotations: {a: b}\nfieldSpecs: {}\n"),
            "failed to configure function: failed to unmarshal config: additionalAnnotationFields: must be a list",
        ),
        (
            custom("annotations: {a: b}\nfieldSpecs: [a]\n"),
            "failed to configure function: failed to unmarshal config: additionalAnnotationFields: each entry must be a mapping",
        ),
        (
            custom("annotations: {a: b}\nfieldSpecs: [{path: x, create: 1}]\n"),
            "failed to configure function: failed to unmarshal config: additionalAnnotationFields: create must be true or false",
        ),
        (
            custom("annotations: {a: b}\nfieldSpecs: [{create: true}]\n"),
            "failed to run function: failed to run transformer: considering field '' of object Deployment.v1.apps/a.[noNs]: cannot set or create an empty field name",
        ),
        (
            custom("annotations: {a: b}\nfieldSpecs: [{path: kind/x}]\n"),
            "failed to run function: failed to run transformer: considering field 'kind/x' of object Deployment.v1.apps/a.[noNs]: expected sequence or mapping node",
        ),
    ] {
        let outcome = run("set-annotations", &config, ITEMS);
        assert_eq!(messages(&outcome), [format!("[error]: {message}")], "{config}");
        assert_eq!(outcome.stderr, format!("[error]: {message}"));
        assert!(!outcome.succeeded);
    }
}

#[test]
fn what_cannot_be_told_apart_is_refused() {
    let item = "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n";
    for (items, message) in [
        (item.repeat(2), "may not add resource with an already registered id: Pod.v1.[noGrp]/a.[noNs]"),
        (
            format!("{item}{item}    namespace: default\n"),
            "may not add resource with an already registered id: Pod.v1.[noGrp]/a.default",
        ),
        (
            item.replace("    name: a\n", "    labels: {}\n"),
            "missing metadata.name in object Pod.v1.[noGrp]/[noName].[noNs]",
        ),
        (item.replace("  kind: Pod\n", ""), "missing kind in object [noKind].v1.[noGrp]/a.[noNs]"),
        (
            item.to_owned() + "    annotations: 1\n",
            "failed to run transformer: considering field 'metadata/annotations' of object Pod.v1.[noGrp]/a.[noNs]: line 16: expected a mapping, found a scalar",
        ),
    ] {
        let outcome = run("set-annotations", &config(), &items);
        assert_eq!(messages(&outcome), [format!("[error]: failed to run function: {message}")]);
        assert_eq!(items_of(&outcome), items);
    }
    let list = "- apiVersion: v1\n  kind: PodList\n";
    assert!(run("set-annotations", &config(), list).succeeded);
}
