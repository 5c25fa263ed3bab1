use super::{config_map, items_of, messages, run};

fn config() -> String {
    config_map(&[("color", "orange"), ("app", "new")])
}

fn check(config: &str, items: &str, expected: &str, results: &[&str]) {
    let outcome = run("set-labels", config, items);
    assert_eq!(items_of(&outcome), expected, "{}", outcome.stderr);
    assert_eq!(messages(&outcome), results);
    assert!(outcome.succeeded);
}

#[test]
fn in_every_kind_of_configuration() {
    let items = "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n    labels:\n      # the app\n      app: 'old' # note\n";
    for config in [
        config(),
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\nlabels: {color: orange, app: new}\n".to_owned(),
        "apiVersion: fn.kpt.dev/v9\nkind: SetLabels\nother: ignored\nlabels:\n  app: new\n  color: orange\n"
            .to_owned(),
    ] {
        let expected = items.replace("'old' # note\n", "'new' # note\n      color: orange\n");
        check(&config, items, &expected, &["[info]: set 2 labels in total"]);
    }
    check(
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  app: 1\n",
        items,
        &items.replace("'old'", "'1'"),
        &["[info]: set 1 labels in total"],
    );
}

#[test]
fn what_cannot_be_configured() {
    let items = "- apiVersion: v1\n  kind: Service\n  metadata:\n    name: a\n";
    for (config, expected) in [
        ("", &["[info]: `FunctionConfig` is not given"][..]),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\ndata: {}\n",
            &["[info]: `FunctionConfig` is not given"],
        ),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\n", &[]),
        (
            "apiVersion: a.b/v1\nkind: B\n",
            &["[error]: unknown FunctionConfig `B.a.b`, expect `SetLabels.fn.kpt.dev` or `ConfigMap.v1`"],
        ),
        (
            "kind: B\n",
            &["[error]: unknown FunctionConfig `B`, expect `SetLabels.fn.kpt.dev` or `ConfigMap.v1`"],
        ),
        (
            "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\nlabels: {a: 1}\n",
            &["[error]: failed to parse FunctionConfig as SetLabels: all values of `labels` must be strings"],
        ),
        (
            "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\nlabels: a\n",
            &["[error]: failed to parse FunctionConfig as SetLabels: all values of `labels` must be strings"],
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\ndata: {a: []}\n",
            &["[error]: failed to parse FunctionConfig as ConfigMap: all values of `data` must be texts"],
        ),
    ] {
        let outcome = run("set-labels", config, items);
        assert_eq!(messages(&outcome), expected, "{config}");
        assert!(!outcome.succeeded, "{config}");
        assert_eq!(outcome.stderr, "failed to evaluate function: error: function failure\n");
        assert_eq!(items_of(&outcome), items);
    }
    check(
        "apiVersion: v1\nkind: ConfigMap\n",
        items,
        items,
        &["[warning]: no `labels` arguments are given in FunctionConfig"],
    );
    let outcome = run("set-labels", &config(), "");
    assert_eq!(messages(&outcome), ["[info]: no input resources"]);
    assert!(outcome.succeeded);
}

const SELECTING: &str = "\
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: a
  spec:
    template:
      spec:
        topologySpreadConstraints:
        - labelSelector:
            matchLabels:
              app: old
- apiVersion: v1
  kind: Service
  metadata:
    name: b
  spec:
    selector: {app: old}
- apiVersion: batch/v1
  kind: CronJob
  metadata:
    name: c
  spec:
    jobTemplate:
      spec:
        selector:
          matchLabels:
            app: old
        template: {}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata:
    name: d
  spec:
    podSelector:
      matchLabels:
        app: old
        other: x
    ingress:
    - from:
      - podSelector:
          matchLabels:
            app: old
      - podSelector: {}
    egress:
    - to:
      - podSelector: {matchLabels: {app: old}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata:
    name: e
  spec:
    selector:
      matchLabels: {app: old}
    volumeClaimTemplates:
    - metadata:
        name: v
- apiVersion: batch/v1
  kind: Job
  metadata:
    name: f
  spec:
    selector:
      matchLabels:
        other: x
";

/// The same afterwards; in brackets, how deep labels stand there.
const SELECTED: &str = "\
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: a
<4>  spec:
    template:
      spec:
        topologySpreadConstraints:
        - labelSelector:
            matchLabels:
              app: new
      metadata:
<8>    selector:
      matchLabels:
        app: new
        color: orange
- apiVersion: v1
  kind: Service
  metadata:
    name: b
<4>  spec:
    selector: {app: new, color: orange}
- apiVersion: batch/v1
  kind: CronJob
  metadata:
    name: c
<4>  spec:
    jobTemplate:
      spec:
        selector:
          matchLabels:
            app: new
        template:
          metadata:
<12>      metadata:
<8>- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata:
    name: d
<4>  spec:
    podSelector:
      matchLabels:
        app: new
        other: x
    ingress:
    - from:
      - podSelector:
          matchLabels:
            app: new
      - podSelector: {}
    egress:
    - to:
      - podSelector: {matchLabels: {app: new}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata:
    name: e
<4>  spec:
    selector:
      matchLabels: {app: new, color: orange}
    volumeClaimTemplates:
    - metadata:
        name: v
<8>- apiVersion: batch/v1
  kind: Job
  metadata:
    name: f
<4>  spec:
    selector:
      matchLabels:
        other: x
";

#[test]
fn in_selectors_and_templates() {
    let labels = |indentation: usize| {
        let pad = " ".repeat(indentation);
        format!("{pad}labels:\n{pad}  app: new\n{pad}  color: orange\n")
    };
    let expected = [4, 8, 12]
        .iter()
        .fold(SELECTED.to_owned(), |text, depth| text.replace(&format!("<{depth}>"), &labels(*depth)));
    check(&config(), SELECTING, &expected, &["[info]: set 42 labels in total"]);
}

#[test]
fn what_is_no_label_is_told() {
    let items = "\
- apiVersion: v1
  kind: Pod
  metadata:
    name: a
    labels:
      app: 1
- apiVersion: v1
  kind: Pod
  metadata:
    name: b
    labels: none
- apiVersion: v1
  kind: Pod
  metadata:
    name: c
    labels:
";
    let outcome = run("set-labels", &config(), items);
    let odd = "[error]: Resource(apiVersion=v1, kind=Pod) has unmatched field type \"string\" in fieldpath .metadata.labels.app";
    assert_eq!(messages(&outcome), [odd, odd, "[info]: set 2 labels in total"]);
    assert!(!outcome.succeeded);
    assert_eq!(items_of(&outcome), items.to_owned() + "      app: new\n      color: orange\n");
}
