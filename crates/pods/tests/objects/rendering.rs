//! Objects made from templates.

use std::{collections::BTreeMap, sync::LazyLock};

use pods::{
    render::{self, PodRequest},
    settings::{ContainerOverrides, Overrides},
    template::{PodSecurity, Template},
};
use serde_json::{Value, json};

use crate::templates::config_map;

pub(crate) const WRAPPER: &str = "example.com/wrapper:v2";

static ARGUMENTS: LazyLock<Vec<String>> =
    LazyLock::new(|| vec!["/usr/bin/function".to_owned(), "--flag".to_owned()]);
static NO_OVERRIDES: LazyLock<Overrides> = LazyLock::new(Overrides::default);
static ANNOTATIONS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| BTreeMap::from([(render::RECLAIM_AFTER.to_owned(), "1700000000".to_owned())]));

pub(crate) fn request() -> PodRequest<'static> {
    PodRequest {
        id: "f-v1-1-01234567",
        exact_name: false,
        namespace: "porch-fn-system",
        image: "example.com/f:v1",
        arguments: &ARGUMENTS,
        overrides: &NO_OVERRIDES,
        annotations: &ANNOTATIONS,
        max_message: 6_291_456,
        port: 9446,
        pull_secret: None,
    }
}

fn inline() -> Template {
    Template::inline(WRAPPER, PodSecurity::Porch)
}

pub(crate) fn pod(template: &Template) -> Value {
    rendered(template, &request())
}

fn rendered(template: &Template, request: &PodRequest<'_>) -> Value {
    serde_json::to_value(render::pod(template, request)).unwrap()
}

pub(crate) fn service(template: &Template) -> Value {
    serde_json::to_value(render::service(template, "f-v1-1-01234567", "porch-fn-system")).unwrap()
}

/// A template with everything that can be replaced.
fn full() -> Template {
    let pod = "
metadata: {labels: {team: a, app.kubernetes.io/name: theirs, fn.kpt.dev/image: old}, annotations: {note: b, fn.kpt.dev/template-version: old}}
spec:
  serviceAccountName: theirs
  serviceAccount: theirs
  securityContext: {runAsUser: 1, fsGroup: 2}
  imagePullSecrets: [{name: theirs}]
  initContainers:
  - {name: copy-wrapper-server, image: wrapper, env: [{name: A, value: a}], resources: {requests: {cpu: 1m}}}
  - {name: second, image: second, env: [{name: B, value: b}]}
  containers:
  - {name: sidecar, image: sidecar}
  - name: function
    image: replaced
    command: [/wrapper-server]
    args: [--verbosity, '1']
    env: [{name: C, value: c}, {name: D, value: d}]
    envFrom: [{configMapRef: {name: e}}]
    resources: {requests: {cpu: 1m, memory: 2Mi}, limits: {cpu: '3', memory: 4Mi}}
";
    let service = "
metadata: {labels: {team: a, app.kubernetes.io/name: theirs}, annotations: {note: b}, name: ignored}
spec: {type: ClusterIP, selector: {team: a, fn.kpt.dev/image: to-be-replaced}, ports: [{port: 9446, targetPort: 9446}]}
";
    Template::from_config_map(&config_map(pod, Some(service))).unwrap()
}

#[test]
fn a_pod_as_the_contract_wants_it() {
    let pod = pod(&inline());
    assert_eq!(
        pod["metadata"],
        json!({
            "namespace": "porch-fn-system",
            "generateName": "f-v1-1-01234567-",
            "labels": {"fn.kpt.dev/image": "f-v1-1-01234567"},
            "annotations": {
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
                "fn.kpt.dev/template-version": "inline-v1",
                "fn.kpt.dev/reclaim-after": "1700000000",
            },
        })
    );
    let function = &pod["spec"]["containers"][0];
    assert_eq!(function["name"], "function");
    assert_eq!(function["image"], "example.com/f:v1");
    assert_eq!(function["command"], json!(["/wrapper-server-tools/wrapper-server"]));
    assert_eq!(
        function["args"],
        json!(["--port", "9446", "--max-request-body-size", "6291456", "--", "/usr/bin/function", "--flag"])
    );
    assert_eq!(
        pod["spec"]["initContainers"][0]["command"],
        json!(["cp", "-a", "/home/nonroot/wrapper-server/.", "/wrapper-server-tools"])
    );
}

#[test]
fn a_pod_made_for_warm_up_is_called_as_its_id() {
    let pod = rendered(&inline(), &PodRequest { exact_name: true, ..request() });
    assert_eq!(pod["metadata"]["name"], "f-v1-1-01234567");
    assert_eq!(pod["metadata"]["generateName"], Value::Null);
}

#[test]
fn a_service_as_the_contract_wants_it() {
    assert_eq!(
        service(&inline()),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "namespace": "porch-fn-system",
                "name": "f-v1-1-01234567",
                "labels": {"app.kubernetes.io/name": "f-v1-1-01234567"},
                "annotations": {
                    "internal.kpt.dev/upstream-identifier": "|Service|porch-system|function-runner",
                },
            },
            "spec": {
                "type": "ClusterIP",
                "publishNotReadyAddresses": true,
                "selector": {"fn.kpt.dev/image": "f-v1-1-01234567"},
                "ports": [{"port": 9446, "protocol": "TCP", "targetPort": 9446}],
            },
        })
    );
}

#[test]
fn what_the_template_has_stays_beside_what_we_add() {
    let pod = pod(&full());
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"team": "a", "app.kubernetes.io/name": "theirs", "fn.kpt.dev/image": "f-v1-1-01234567"})
    );
    assert_eq!(pod["metadata"]["annotations"]["note"], "b");
    assert_eq!(pod["metadata"]["annotations"]["fn.kpt.dev/template-version"], "42");
    let names: Vec<_> =
        pod["spec"]["containers"].as_array().unwrap().iter().map(|container| &container["name"]).collect();
    assert_eq!(names, ["function", "sidecar"], "the function's container comes first");
    let arguments = pod["spec"]["containers"][0]["args"].as_array().unwrap();
    assert_eq!(arguments[..4], [json!("--verbosity"), json!("1"), json!("--port"), json!("9446")]);
    let service = service(&full());
    assert_eq!(service["metadata"]["name"], "f-v1-1-01234567");
    assert_eq!(
        service["metadata"]["labels"],
        json!({"team": "a", "app.kubernetes.io/name": "f-v1-1-01234567"}),
        "a Service is named by its label whatever the template says, as in the original"
    );
    assert_eq!(service["metadata"]["annotations"], json!({"note": "b"}));
    assert_eq!(service["spec"]["selector"], json!({"team": "a", "fn.kpt.dev/image": "f-v1-1-01234567"}));
}

#[test]
fn a_template_may_forbid_eviction() {
    let text = "metadata: {annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: false}}\n\
                spec: {containers: [{name: function, command: [x]}]}";
    let template = Template::from_config_map(&config_map(text, None)).unwrap();
    assert_eq!(
        pod(&template)["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"],
        "false"
    );
}

#[test]
fn the_pull_secret_comes_after_the_templates_own_and_once() {
    let secrets = |template: &Template, name| {
        rendered(template, &PodRequest { pull_secret: Some(name), ..request() })["spec"]["imagePullSecrets"]
            .clone()
    };
    assert_eq!(secrets(&full(), "auth-secret"), json!([{"name": "theirs"}, {"name": "auth-secret"}]));
    assert_eq!(secrets(&full(), "theirs"), json!([{"name": "theirs"}]));
    assert_eq!(secrets(&inline(), "auth-secret"), json!([{"name": "auth-secret"}]));
    assert_eq!(pod(&full())["spec"]["imagePullSecrets"], json!([{"name": "theirs"}]));
}

#[test]
fn a_function_without_a_command_is_passed_as_it_is() {
    let pod = rendered(&inline(), &PodRequest { arguments: &[], ..request() });
    let arguments = pod["spec"]["containers"][0]["args"].as_array().unwrap();
    assert_eq!(arguments.last().unwrap(), "--");
}

fn container_overrides(value: &Value) -> ContainerOverrides {
    ContainerOverrides {
        resources: serde_json::from_value(value["resources"].clone()).unwrap(),
        env: serde_json::from_value(value["env"].clone()).unwrap(),
        env_from: serde_json::from_value(value["envFrom"].clone()).unwrap(),
    }
}

#[test]
fn overrides_replace_whole_parts_and_leave_the_rest() {
    let overrides = Overrides {
        service_account: Some("ours".to_owned()),
        security_context: Some(serde_json::from_value(json!({"runAsUser": 3})).unwrap()),
        init_container: container_overrides(&json!({"env": [], "resources": {"limits": {"cpu": "5"}}})),
        container: container_overrides(&json!({
            "resources": {"requests": {"cpu": "6"}},
            "env": [{"name": "E", "value": "e"}],
            "envFrom": [{"secretRef": {"name": "s"}}],
        })),
    };
    let pod = rendered(&full(), &PodRequest { overrides: &overrides, ..request() });
    let spec = &pod["spec"];
    assert_eq!(spec["serviceAccountName"], "ours");
    assert_eq!(spec["serviceAccount"], Value::Null);
    assert_eq!(spec["securityContext"], json!({"runAsUser": 3}), "nothing of the old is left");
    assert_eq!(spec["initContainers"][0]["env"], json!([]));
    assert_eq!(
        spec["initContainers"][0]["resources"],
        json!({"requests": {"cpu": "1m"}, "limits": {"cpu": "5"}})
    );
    assert_eq!(spec["initContainers"][1]["env"], json!([{"name": "B", "value": "b"}]), "only the first");
    let function = &spec["containers"][0];
    assert_eq!(function["env"], json!([{"name": "E", "value": "e"}]));
    assert_eq!(function["envFrom"], json!([{"secretRef": {"name": "s"}}]));
    assert_eq!(
        function["resources"],
        json!({"requests": {"cpu": "6"}, "limits": {"cpu": "3", "memory": "4Mi"}}),
        "requests as a whole, limits untouched"
    );
}

#[test]
fn empty_overrides_change_nothing() {
    let nothing = Overrides { service_account: Some(String::new()), ..Overrides::default() };
    let overridden = rendered(&full(), &PodRequest { overrides: &nothing, ..request() });
    assert_eq!(overridden, pod(&full()));
    assert_eq!(overridden["spec"]["serviceAccountName"], "theirs");
}

#[test]
fn naming_an_account_gives_its_token_where_no_template_forbids_it() {
    let overrides = Overrides { service_account: Some("ours".to_owned()), ..Overrides::default() };
    let automount = |template: &Template| {
        let pod = rendered(template, &PodRequest { overrides: &overrides, ..request() });
        pod["spec"]["automountServiceAccountToken"].clone()
    };
    for security in [PodSecurity::Porch, PodSecurity::Restricted] {
        assert_eq!(automount(&Template::inline(WRAPPER, security)), Value::Null);
    }
    let text = "spec: {automountServiceAccountToken: false, containers: [{name: function, command: [x]}]}";
    assert_eq!(automount(&Template::from_config_map(&config_map(text, None)).unwrap()), false);
}

#[test]
fn a_template_without_init_containers_takes_overrides_for_them_in_silence() {
    let text = "spec: {containers: [{name: function, command: [x]}]}";
    let template = Template::from_config_map(&config_map(text, None)).unwrap();
    let overrides = Overrides {
        init_container: container_overrides(&json!({"env": [{"name": "A"}]})),
        ..Overrides::default()
    };
    let pod = rendered(&template, &PodRequest { overrides: &overrides, ..request() });
    assert_eq!(pod["spec"]["initContainers"], Value::Null);
    assert_eq!(pod["spec"]["containers"][0]["env"], Value::Null);
}
