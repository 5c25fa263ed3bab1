use super::{config_map, items_of, messages, run};

const UNTOUCHED: &str = "[info]: all `depends-on` annotations are up-to-date. no `namespace` changed";

fn config() -> String {
    config_map(&[("namespace", "new")])
}

/// What becomes of the items, and the first result.
fn check(config: &str, items: &str, expected: &str, message: &str) {
    let outcome = run("set-namespace", config, items);
    assert_eq!(items_of(&outcome), expected, "{}", outcome.stderr);
    assert_eq!(messages(&outcome)[0], message);
    assert!(outcome.succeeded);
}

#[test]
fn in_every_kind_of_configuration() {
    let items = "- apiVersion: v1\n  kind: Service\n  metadata:\n    name: a\n    namespace: old # note\n";
    for config in [
        config(),
        config_map(&[("namespace", "new"), ("name", "other")]),
        config_map(&[("name", "new")]).replace("my-config", "kptfile.kpt.dev"),
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetNamespace\nmetadata:\n  name: a\nnamespace: new\n"
            .to_owned(),
        // Version and kind may be missing.
        "data:\n  namespace: new\n".to_owned(),
    ] {
        check(
            &config,
            items,
            &items.replace("old", "new"),
            "[info]: namespace [old] updated to \"new\", 1 value(s) changed",
        );
    }
}

#[test]
fn what_cannot_be_configured() {
    let items = "- apiVersion: v1\n  kind: Service\n  metadata:\n    name: a\n";
    let missing =
        "[error]: FunctionConfig is missing. Expect `ConfigMap.v1` or `SetNamespace.v1alpha1.fn.kpt.dev`";
    let expect = "expect `ConfigMap.v1` or `SetNamespace.v1alpha1.fn.kpt.dev`";
    for (config, message) in [
        ("", missing.to_owned()),
        ("{}", missing.to_owned()),
        (&config_map(&[("a", "b")]), "[error] v1/ConfigMap/my-config: `data.namespace` should not be empty".to_owned()),
        (&config_map(&[("name", "b")]), "[error] v1/ConfigMap/my-config: `data.namespace` should not be empty".to_owned()),
        (&config_map(&[("namespace", "\"\"")]), "[error] v1/ConfigMap/my-config: `data.namespace` should not be empty".to_owned()),
        (&config_map(&[("namespace", "1")]), "[error] v1/ConfigMap/my-config: failed to parse FunctionConfig as ConfigMap".to_owned()),
        ("apiVersion: v1\nkind: ConfigMap\ndata: []\n", "[error] v1/ConfigMap: failed to parse FunctionConfig as ConfigMap".to_owned()),
        ("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetNamespace\n", "[error] fn.kpt.dev/v1alpha1/SetNamespace: `namespace` should not be empty".to_owned()),
        ("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetNamespace\nnamespace: []\n", "[error] fn.kpt.dev/v1alpha1/SetNamespace: failed to parse FunctionConfig as fn.kpt.dev.v1alpha1.SetNamespace".to_owned()),
        ("apiVersion: a/v1\nkind: B\n", format!("[error] a/v1/B: unknown functionConfig Kind=B ApiVersion=a/v1, {expect}")),
    ] {
        let outcome = run("set-namespace", config, items);
        assert_eq!(messages(&outcome), [message]);
        assert!(!outcome.succeeded);
        assert_eq!(outcome.stderr, "failed to evaluate function: error: function failure\n");
        assert_eq!(items_of(&outcome), items, "nothing may change");
        let output = String::from_utf8(outcome.output).unwrap();
        assert!(output.contains("severity: error\n") && output.ends_with("index: -1\n"), "{output}");
    }
}

#[test]
fn of_resources_that_belong_to_one() {
    check(
        &config(),
        "- apiVersion: apps/v1\n  kind: Deployment\n  metadata:\n    name: a\n    labels: {}\n\
         - apiVersion: example.com/v1\n  kind: Custom\n  metadata:\n    name: b\n\
         - apiVersion: example.com/v1\n  kind: Custom\n  metadata:\n    name: c\n    namespace: \"c\"\n\
         - apiVersion: rbac.authorization.k8s.io/v1\n  kind: ClusterRole\n  metadata: {name: d}\n\
         - apiVersion: v1\n  kind: Pod\n  metadata: {name: e}\n\
         - apiVersion: v1\n  kind: Pod\n  metadata:\n    name: f\n    annotations:\n      config.kubernetes.io/local-config: 'true'\n",
        "- apiVersion: apps/v1\n  kind: Deployment\n  metadata:\n    name: a\n    namespace: new\n    labels: {}\n\
         - apiVersion: example.com/v1\n  kind: Custom\n  metadata:\n    name: b\n\
         - apiVersion: example.com/v1\n  kind: Custom\n  metadata:\n    name: c\n    namespace: \"new\"\n\
         - apiVersion: rbac.authorization.k8s.io/v1\n  kind: ClusterRole\n  metadata: {name: d}\n\
         - apiVersion: v1\n  kind: Pod\n  metadata: {name: e, namespace: new}\n\
         - apiVersion: v1\n  kind: Pod\n  metadata:\n    name: f\n    annotations:\n      config.kubernetes.io/local-config: 'true'\n",
        "[info]: namespace [c default] updated to \"new\", 3 value(s) changed",
    );
}

#[test]
fn in_resources_of_the_cluster() {
    let items = "\
- apiVersion: v1
  kind: Namespace
  metadata:
    name: old
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata:
    name: with-webhook
  spec:
    conversion:
      strategy: Webhook
      webhook:
        clientConfig:
          service:
            name: hook
            namespace: old
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata:
    name: without-namespace
  spec:
    conversion:
      strategy: Webhook
      webhook:
        clientConfig:
          service:
            name: hook
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata:
    name: without-webhook
  spec:
    conversion:
      strategy: None
- apiVersion: apiregistration.k8s.io/v1
  kind: APIService
  metadata:
    name: local
  spec:
    group: a
- apiVersion: apiregistration.k8s.io/v1
  kind: APIService
  metadata:
    name: remote
  spec:
    service:
      namespace: old
      name: api
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata:
    name: a
  subjects:
  - kind: ServiceAccount
    name: b
    namespace: old
  - kind: Group
    name: c
";
    let expected = items
        .replace("namespace: old", "namespace: new")
        .replace("    name: old", "    name: new")
        .replacen("            name: hook\n- ", "            name: hook\n            namespace: new\n- ", 1);
    check(
        &config(),
        items,
        &expected,
        "[info]: namespace [default old] updated to \"new\", 5 value(s) changed",
    );
}

#[test]
fn only_where_it_matches() {
    let config = config_map(&[("namespace", "new"), ("namespaceMatcher", "old")]);
    let item = |name: &str, namespace: &str, origin: &str| {
        format!(
            "- apiVersion: v1\n  kind: Service\n  metadata:\n    name: {name}\n    namespace: {namespace}\n    annotations:\n      internal.kpt.dev/upstream-identifier: '{origin}'\n"
        )
    };
    let items = item("a", "old", "")
        + &item("b", "other", "")
        + &item("c", "mine", "|Service|old|c")
        + &item("d", "old", "nonsense");
    let outcome = run("set-namespace", &config, &items);
    let expected = item("a", "new", "")
        + &item("b", "other", "")
        + &item("c", "new", "|Service|old|c")
        + &item("d", "old", "nonsense");
    assert_eq!(items_of(&outcome), expected);
    assert_eq!(
        messages(&outcome),
        [
            "[info]: [Resource(apiVersion=v1, kind=Service, namespace=old, name=a)] has matching origin old",
            "[info]: [Resource(apiVersion=v1, kind=Service, namespace=mine, name=c)] has matching origin old",
            "[info]: namespace [mine old] updated to \"new\", 2 value(s) changed",
            UNTOUCHED,
        ]
    );
}

#[test]
fn in_dependencies() {
    let items = "\
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: a
    namespace: old
    annotations:
      config.kubernetes.io/depends-on: apps/namespaces/old/StatefulSet/b # b
- apiVersion: apps/v1
  kind: StatefulSet
  metadata:
    name: b
    namespace: old
    annotations:
      config.kubernetes.io/depends-on: /namespaces/old/Service/elsewhere
- apiVersion: v1
  kind: Pod
  metadata:
    name: c
    namespace: new
    annotations:
      config.kubernetes.io/depends-on: apps/namespaces/old/Deployment/a, apps/namespaces/old/StatefulSet/b
";
    let outcome = run("set-namespace", &config(), items);
    let expected = items
        .replace("    namespace: old", "    namespace: new")
        .replace("apps/namespaces/old/StatefulSet/b # b", "apps/namespaces/new/StatefulSet/b # b");
    assert_eq!(items_of(&outcome), expected);
    assert_eq!(
        messages(&outcome),
        [
            "[info]: namespace [old] updated to \"new\", 2 value(s) changed",
            "[info]: `depends-on` annotation namespace [old] updated to \"new\", 1 value(s) changed",
        ]
    );
    let again = run("set-namespace", &config(), &expected);
    assert_eq!(
        messages(&again),
        ["[info]: all matching namespaces are already \"new\". no value changed", UNTOUCHED]
    );
}

#[test]
fn whose_name_needs_quotes() {
    for (name, written) in
        [("\"yes\"", "\"yes\""), ("\"014\"", "\"014\""), ("'a: b'", "'a: b'"), ("a-b", "a-b")]
    {
        let config = config_map(&[("namespace", name)]);
        let items = "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n    namespace: old\n";
        let outcome = run("set-namespace", &config, items);
        assert_eq!(items_of(&outcome), items.replace("old", written));
    }
}
