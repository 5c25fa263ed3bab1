use super::*;

const NAME: &str = "ensure-name-substring";
const PREPEND: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  prepend: dev-\n";
const APPEND: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  append: -dev\n";

fn custom(fields: &str) -> String {
    format!("apiVersion: fn.kpt.dev/v1alpha1\nkind: EnsureNameSubstring\nmetadata:\n  name: x\n{fields}")
}

fn resource(api: &str, kind: &str, name: &str, rest: &str) -> String {
    format!("apiVersion: {api}\nkind: {kind}\nmetadata:\n  name: {name}\n{rest}")
}

#[test]
fn names_get_a_prefix_or_suffix_and_all_else_stays() {
    let prefixed = SERVICE.replace("name: web ", "name: dev-web ");
    let suffixed = SERVICE.replace("name: web ", "name: web-dev ");
    becomes(NAME, PREPEND, &[SERVICE], &[&prefixed]);
    becomes(NAME, APPEND, &[SERVICE], &[&suffixed]);
    becomes(NAME, &custom("substring: dev-\n"), &[SERVICE], &[&prefixed]);
    becomes(NAME, &custom("substring: dev-\neditMode: prepend\n"), &[SERVICE], &[&prefixed]);
    becomes(NAME, &custom("substring: -dev\neditMode: append\n"), &[SERVICE], &[&suffixed]);
}

/// As the catalog's function has it, which drops the annotations with the path, though.
#[test]
fn a_number_is_as_good_as_its_text_and_annotations_stay() {
    let resource = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/path: a.yaml\n    internal.config.kubernetes.io/index: '1'\n";
    for config in [PREPEND.replace("dev-", "0123"), custom("substring: 0123\n")] {
        becomes(NAME, &config, &[resource], &[&resource.replace("name: a", "name: 0123a")]);
    }
    becomes(
        NAME,
        &APPEND.replace("-dev", "1.50"),
        &[resource],
        &[&resource.replace("name: a", "name: a1.50")],
    );
}

#[test]
fn a_name_with_the_text_in_it_stays() {
    for name in ["dev-a", "a-dev-b", "a-dev-"] {
        let text = resource("v1", "Pod", name, "");
        becomes(NAME, PREPEND, &[&text], &[&text]);
    }
}

#[test]
fn some_kinds_keep_their_names() {
    for (api, kind) in [
        ("v1", "Namespace"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("kpt.dev/v1", "Kptfile"),
    ] {
        let text = resource(api, kind, "a", "");
        becomes(NAME, PREPEND, &[&text], &[&text]);
    }
    for (api, kind) in [("other/v1", "APIService"), ("other/v1", "Kptfile")] {
        becomes(NAME, PREPEND, &[&resource(api, kind, "a", "")], &[&resource(api, kind, "dev-a", "")]);
    }
    // Also what is for local use only gets another name.
    let local = "  annotations:\n    config.kubernetes.io/local-config: 'true'\n";
    becomes(NAME, PREPEND, &[&resource("v1", "A", "a", local)], &[&resource("v1", "A", "dev-a", local)]);
}

#[test]
fn other_fields_can_have_names_too() {
    let config = custom(
        "substring: dev-
additionalNameFields:
- kind: Mine
  group: example.com
  version: v1
  path: spec/name
- kind: Mine
  path: spec/list/name
- kind: Mine
  path: spec/made/name
  create: true
- path: spec/missing
",
    );
    let before = "spec:\n  name: foo # a comment\n  list:\n  - name: one\n  - name: dev-two\n";
    let after = "spec:\n  name: dev-foo # a comment\n  list:\n  - name: dev-one\n  - name: dev-two\n  made:\n    name: dev-\n";
    becomes(
        NAME,
        &config,
        &[&resource("example.com/v1", "Mine", "a", before)],
        &[&resource("example.com/v1", "Mine", "dev-a", after)],
    );
    let other = resource("example.com/v1", "Other", "dev-a", before);
    becomes(NAME, &config, &[&other], &[&other]);
    let old = custom("substring: dev-\nfieldSpecs:\n- path: spec/name\n");
    becomes(
        NAME,
        &old,
        &[&resource("v1", "A", "a", "spec:\n  name: b\n")],
        &[&resource("v1", "A", "dev-a", "spec:\n  name: dev-b\n")],
    );
}

#[test]
fn what_refers_to_a_renamed_resource_follows() {
    let map = |name: &str| resource("v1", "ConfigMap", name, "");
    let deployment = |name: &str, map: &str| {
        resource(
            "apps/v1",
            "Deployment",
            name,
            &format!(
                "spec:
  template:
    spec:
      volumes:
      - configMap: {{name: {map}}} # in a flow mapping
      - configMap:
          name: elsewhere
      containers:
      - name: map
        env:
        - valueFrom:
            configMapKeyRef:
              name: \"{map}\"   # quoted
              key: map
"
            ),
        )
    };
    becomes(
        NAME,
        PREPEND,
        &[&map("map"), &deployment("web", "map")],
        &[&map("dev-map"), &deployment("dev-web", "dev-map")],
    );
    // Only what got another name in this run is followed.
    becomes(
        NAME,
        PREPEND,
        &[&map("dev-map"), &deployment("web", "map")],
        &[&map("dev-map"), &deployment("dev-web", "map")],
    );
}

#[test]
fn namespaces_say_which_resource_is_meant() {
    let map = |name: &str, namespace: &str| {
        resource("v1", "ConfigMap", name, &format!("  namespace: {namespace}\n"))
    };
    let pod = |name: &str, namespace: &str, map: &str| {
        resource(
            "v1",
            "Pod",
            name,
            &format!("  namespace: {namespace}\nspec:\n  volumes:\n  - configMap:\n      name: {map}\n"),
        )
    };
    becomes(
        NAME,
        PREPEND,
        &[&map("m", "one"), &pod("p", "one", "m"), &pod("p", "two", "m")],
        &[&map("dev-m", "one"), &pod("dev-p", "one", "dev-m"), &pod("dev-p", "two", "m")],
    );
}

#[test]
fn bindings_follow_their_roles_and_accounts() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let binding = |name: &str, role: &str, account: &str| {
        resource(
            rbac,
            "RoleBinding",
            name,
            &format!(
                "  namespace: one
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {role}
subjects:
- kind: ServiceAccount
  name: {account}
  namespace: two
- kind: ServiceAccount
  name: elsewhere
  namespace: three
"
            ),
        )
    };
    let role = |name: &str| resource(rbac, "Role", name, "  namespace: one\n");
    let cluster_role = |name: &str| resource(rbac, "ClusterRole", name, "");
    let account = |name: &str| resource("v1", "ServiceAccount", name, "  namespace: two\n");
    becomes(
        NAME,
        APPEND,
        &[&binding("b", "r", "a"), &role("r"), &cluster_role("r"), &account("a")],
        &[&binding("b-dev", "r-dev", "a-dev"), &role("r-dev"), &cluster_role("r-dev"), &account("a-dev")],
    );
    // A subject without a namespace gets that of the account it means.
    let loose = |name: &str, subject: &str| {
        resource(
            rbac,
            "ClusterRoleBinding",
            name,
            &format!("subjects:\n- kind: ServiceAccount\n  {subject}\n"),
        )
    };
    becomes(
        NAME,
        PREPEND,
        &[&loose("b", "name: a"), &account("a")],
        &[&loose("dev-b", "name: dev-a\n  namespace: two"), &account("dev-a")],
    );
    let second = resource("v1", "ServiceAccount", "a", "  namespace: three\n");
    let problem = failure(NAME, PREPEND, &[&loose("b", "name: a"), &account("a"), &second]);
    assert_eq!(
        problem,
        "failed to fix name back reference: updating name reference in 'subjects' field of \
         'ClusterRoleBinding.v1.rbac.authorization.k8s.io/dev-b.[noNs]': found multiple possible referrals: \
         ServiceAccount.v1.[noGrp]/dev-a.three, ServiceAccount.v1.[noGrp]/dev-a.two"
    );
}

#[test]
fn dependencies_follow_if_they_are_in_the_package() {
    let depends = |name: &str, on: &str| {
        resource(
            "apps/v1",
            "Deployment",
            name,
            &format!("  annotations:\n    config.kubernetes.io/depends-on: {on}\n"),
        )
    };
    let set = |name: &str| resource("apps/v1", "StatefulSet", name, "  namespace: n\n");
    let role = |name: &str| resource("rbac/v1", "ClusterRole", name, "");
    for (before, after) in [
        ("apps/namespaces/n/StatefulSet/s", "apps/namespaces/n/StatefulSet/dev-s"),
        ("rbac/ClusterRole/r", "rbac/ClusterRole/dev-r"),
        ("apps/namespaces/n/StatefulSet/other", "apps/namespaces/n/StatefulSet/other"),
        ("more/apps/namespaces/n/StatefulSet/s", "more/apps/namespaces/n/StatefulSet/s"),
        ("apps/oops/n/StatefulSet/s", "apps/oops/n/StatefulSet/s"),
        ("'apps/StatefulSet/s,x/y/z'", "'apps/StatefulSet/s,x/y/z'"),
    ] {
        becomes(
            NAME,
            PREPEND,
            &[&depends("d", before), &set("s"), &role("r")],
            &[&depends("dev-d", after), &set("dev-s"), &role("dev-r")],
        );
    }
    // A resource that keeps its name keeps its dependencies.
    let kept = depends("dev-d", "apps/namespaces/n/StatefulSet/s");
    becomes(NAME, PREPEND, &[&kept, &set("s")], &[&kept, &set("dev-s")]);
}

#[test]
fn names_that_look_like_numbers_are_names() {
    becomes(NAME, APPEND, &[&resource("v1", "A", "12", "")], &[&resource("v1", "A", "12-dev", "")]);
    let digits = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  append: '7'\n";
    becomes(NAME, digits, &[&resource("v1", "A", "1", "")], &[&resource("v1", "A", "\"17\"", "")]);
}

#[test]
fn bad_configurations_are_refused() {
    let load = "failed to load the `functionConfig`: ";
    for (config, problem) in [
        (String::new(), "substring must not be empty".to_owned()),
        (custom(""), "substring must not be empty".to_owned()),
        (custom("substring: ''\n"), "substring must not be empty".to_owned()),
        (custom("substring: [a]\n"), "substring must be a string".to_owned()),
        (custom("substring: [5]\n"), "substring must be a string".to_owned()),
        (
            custom("substring: a\neditMode: insert\n"),
            "unknown editMode: insert, only prepend and append are allowed".to_owned(),
        ),
        (
            custom("substring: a\nfieldSpecs: []\nadditionalNameFields: []\n"),
            "`fieldSpecs` has been deprecated, please rename it to `additionalNameFields`".to_owned(),
        ),
        (
            custom("substring: a\nadditionalNameFields: x\n"),
            "additionalNameFields: must be a list".to_owned(),
        ),
        (
            custom("substring: a\nadditionalNameFields: [x]\n"),
            "additionalNameFields: each entry must be a mapping".to_owned(),
        ),
        (
            custom(&format!("substring: {}\n", "x".repeat(254))),
            "substring must not be longer than a name can be, 253 characters".to_owned(),
        ),
        (
            PREPEND.replace("  prepend: dev-\n", "  prepend: a\n  append: b\n"),
            "only 1 entry is allowed in the ConfigMap, but got: 2".to_owned(),
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n".to_owned(),
            "only 1 entry is allowed in the ConfigMap, but got: 0".to_owned(),
        ),
        (
            PREPEND.replace("prepend", "before"),
            "unknown editMode: before, only prepend and append are allowed".to_owned(),
        ),
        (
            PREPEND.replace("dev-", "[a]"),
            "\"prepend\" in `data` of the functionConfig must be a text; write a list or mapping as one, after `|`"
                .to_owned(),
        ),
        (
            custom("substring: a\n").replace("v1alpha1", "v2"),
            "function config must be either /v1, Kind=ConfigMap or fn.kpt.dev/v1alpha1, \
             Kind=EnsureNameSubstring, but we got: fn.kpt.dev/v2, Kind=EnsureNameSubstring"
                .to_owned(),
        ),
    ] {
        assert_eq!(failure(NAME, &config, &[SERVICE]), format!("{load}{problem}"), "{config}");
    }
}

#[test]
fn bad_resources_are_refused() {
    let one = resource("v1", "A", "a", "");
    let two = resource("v1", "A", "a", "  namespace: default\n");
    for (items, problem) in [
        (
            vec![&*one, &*two],
            "failed to convert items to resource map: may not add resource with an already registered id: \
             A.v1.[noGrp]/a.default",
        ),
        (
            vec!["kind: A\nmetadata: {}"],
            "failed to convert items to resource map: missing metadata.name in object A.[noVer].[noGrp]/[noName].[noNs]",
        ),
        (
            vec!["metadata: {name: a}"],
            "failed to convert items to resource map: missing kind in object [noKind].[noVer].[noGrp]/a.[noNs]",
        ),
    ] {
        assert_eq!(failure(NAME, PREPEND, &items), problem);
    }
    let config = custom("substring: dev-\nadditionalNameFields:\n- path: spec\n");
    let problem = failure(NAME, &config, &[&resource("v1", "A", "a", "spec:\n  b: c\n")]);
    assert!(
        problem.starts_with("failed to transform name substring: considering field 'spec' of object"),
        "{problem}"
    );
    let pod = resource("v1", "Pod", "a", "spec:\n  volumes: text\n");
    let problem = failure(NAME, PREPEND, &[&pod]);
    assert!(problem.contains("expected sequence or mapping node"), "{problem}");
}

#[test]
fn many_resources_take_little_time() {
    let items: Vec<String> = (0..4_000)
        .map(|at| {
            let rest = format!("  namespace: n{at}\nspec:\n  volumes:\n  - configMap:\n      name: same\n");
            let kind = if at % 2 == 0 { "Pod" } else { "ConfigMap" };
            resource("v1", kind, "same", &rest)
        })
        .collect();
    let items: Vec<&str> = items.iter().map(|item| &**item).collect();
    let outcome = run(NAME, PREPEND, &items);
    assert!(outcome.succeeded, "{}", outcome.stderr);
}
