//! Templates as operators write them.

use std::collections::BTreeMap;

use api::ServiceTemplate;
use k8s_openapi::api::core::v1::{ConfigMap, PodTemplate};
use pods::{
    render,
    template::{PodSecurity, Problem, Template},
};
use serde_json::{Value, json};

use crate::{
    hostile::yaml_bomb,
    porch,
    rendering::{WRAPPER, pod, service},
};

const POD: &str = "spec: {containers: [{name: function, command: [/wrapper-server]}]}";
const SERVICE: &str = "spec: {ports: [{port: 9446}]}";

pub(crate) fn config_map(pod: &str, service: Option<&str>) -> ConfigMap {
    let mut data = BTreeMap::from([("template".to_owned(), pod.to_owned())]);
    data.extend(service.map(|service| ("serviceTemplate".to_owned(), service.to_owned())));
    let metadata = serde_json::from_value(json!({
        "namespace": "porch-system", "name": "templates", "resourceVersion": "42",
    }));
    ConfigMap { metadata: metadata.unwrap(), data: Some(data), ..ConfigMap::default() }
}

fn read(pod: &str) -> Result<Template, Problem> {
    Template::from_config_map(&config_map(pod, Some(SERVICE))).map_err(|error| error.problem)
}

fn read_service(service: &str) -> Result<Template, Problem> {
    Template::from_config_map(&config_map(POD, Some(service))).map_err(|error| error.problem)
}

/// The objects of a head cluster.
pub(crate) fn objects(pod: &Value, service: &Value) -> (PodTemplate, ServiceTemplate) {
    let pod = json!({
        "metadata": {"namespace": "porch-fn-system", "name": "base-pod-template", "resourceVersion": "7"},
        "template": pod,
    });
    let service = json!({
        "metadata": {"namespace": "porch-fn-system", "name": "base-service-template", "resourceVersion": "9"},
        "template": service,
    });
    (serde_json::from_value(pod).unwrap(), serde_json::from_value(service).unwrap())
}

fn function_pod() -> Value {
    json!({"spec": {
        "initContainers": [
            {"name": "certificates", "image": "example.com/certificates:v1"},
            {"name": "copy-wrapper-server", "image": "example.com/old-wrapper:v1"},
        ],
        "containers": [
            {"name": "sidecar", "image": "example.com/sidecar:v1"},
            {"name": "function", "image": "replaced", "command": ["/wrapper-server"], "args": ["--verbosity", "1"]},
        ],
    }})
}

#[test]
fn porchs_example_of_a_config_map_is_taken_as_it_is() {
    for map in porch::objects::<ConfigMap>("head/function-pods-deployment.yaml", "ConfigMap") {
        let template = Template::from_config_map(&map).unwrap();
        // Its annotations are in the wrong place, which must not keep it from being used.
        assert_eq!(template.warnings.len(), 1, "{:?}", template.warnings);
        assert!(
            template.warnings[0].starts_with("annotations under \"template\""),
            "{:?}",
            template.warnings
        );
        let pod = pod(&template);
        assert_eq!(pod["spec"]["initContainers"][0]["image"], "docker.io/nephio/porch-wrapper-server:latest");
        assert_eq!(pod["spec"]["containers"][0]["command"], json!(["/wrapper-server-tools/wrapper-server"]));
        assert_eq!(service(&template)["spec"]["ports"][0]["targetPort"], 9446);
    }
}

#[test]
fn porchs_template_objects_are_taken_as_they_are() {
    let file = "head/22-function-templates.yaml";
    let pods = porch::objects::<PodTemplate>(file, "PodTemplate");
    let services = porch::objects::<ServiceTemplate>(file, "ServiceTemplate");
    for (pod_template, service_template) in pods.iter().zip(&services) {
        let template = Template::from_objects(pod_template, service_template, WRAPPER).unwrap();
        assert_eq!(template.warnings, [""; 0]);
        let pod = pod(&template);
        assert_eq!(pod["spec"]["initContainers"][0]["image"], WRAPPER);
        assert_eq!(pod["spec"]["containers"][0]["readinessProbe"]["exec"]["command"][2], "localhost:9446");
        assert_eq!(service(&template)["spec"]["selector"], json!({"fn.kpt.dev/image": "f-v1-1-01234567"}));
    }
}

#[test]
fn a_config_map_keeps_its_init_image_and_gives_the_version() {
    let template = read(
        "metadata: {labels: {team: a}, annotations: {note: b}, name: ignored, finalizers: [never]}\n\
         spec: {initContainers: [{name: copy-wrapper-server, image: mine}], \
         containers: [{name: function, command: [/wrapper-server]}]}",
    )
    .unwrap();
    assert_eq!((&*template.version, template.warnings.len()), ("42", 0));
    let pod = pod(&template);
    assert_eq!(pod["spec"]["initContainers"][0]["image"], "mine");
    assert_eq!(pod["metadata"]["labels"]["team"], "a");
    assert_eq!(pod["metadata"]["annotations"]["note"], "b");
    assert_eq!(pod["metadata"]["name"], Value::Null);
    assert_eq!(pod["metadata"]["finalizers"], Value::Null);
}

#[test]
fn objects_get_our_wrapper_and_only_the_services_spec_counts() {
    let (pod_template, service_template) = objects(
        &function_pod(),
        &json!({"metadata": {"labels": {"not": "used"}}, "spec": {"ports": [{"port": 9446, "name": "grpc"}]}}),
    );
    let template = Template::from_objects(&pod_template, &service_template, WRAPPER).unwrap();
    assert_eq!(&*template.version, "7");
    let pod = pod(&template);
    assert_eq!(pod["spec"]["initContainers"][0]["image"], "example.com/certificates:v1");
    assert_eq!(pod["spec"]["initContainers"][1]["image"], WRAPPER);
    let service = service(&template);
    assert_eq!(service["metadata"]["labels"], json!({"app.kubernetes.io/name": "f-v1-1-01234567"}));
    assert_eq!(service["spec"]["ports"][0]["name"], "grpc");
}

#[test]
fn scalars_where_text_is_wanted_are_text() {
    let template = read(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations: {flag: true, number: 1.10, word: yes}\n  labels: {n: 007}\n\
         spec:\n  automountServiceAccountToken: no\n  volumes: [{name: v, configMap: {name: c, defaultMode: 0555}}]\n  \
         containers:\n  - name: function\n    command: [/wrapper-server]\n    env: [{name: A, value: 1}]\n    \
         resources: {limits: {cpu: 2}}\n",
    )
    .unwrap();
    assert_eq!(template.warnings, [""; 0]);
    let pod = pod(&template);
    assert_eq!(pod["metadata"]["annotations"]["flag"], "true");
    assert_eq!(pod["metadata"]["annotations"]["number"], "1.10");
    assert_eq!(pod["metadata"]["annotations"]["word"], "yes");
    assert_eq!(pod["metadata"]["labels"]["n"], "007");
    assert_eq!(pod["spec"]["volumes"][0]["configMap"]["defaultMode"], 0o555);
    assert_eq!(pod["spec"]["containers"][0]["env"][0]["value"], "1");
    assert_eq!(pod["spec"]["containers"][0]["resources"]["limits"]["cpu"], "2");
}

#[test]
fn unknown_fields_are_passed_over_with_a_warning() {
    let template = read(
        "colour: blue\nstatus: {}\nmetadata: {creationTimestamp: null}\nspec:\n  containers:\n  \
         - {name: function, command: [/wrapper-server], comand: [x], env: [], ports: [{containerPort: 1, prot: TCP}]}",
    )
    .unwrap();
    let fields: Vec<_> = template.warnings.iter().map(|warning| warning.split(' ').next().unwrap()).collect();
    assert_eq!(fields, ["colour", "spec.containers[0].comand", "spec.containers[0].ports[0].prot"]);
    let odd = read(&format!("\"a\\nb\\e\": x\n{POD}")).unwrap();
    assert!(odd.warnings[0].starts_with(r"a\nb\u{1b} under"), "{:?}", odd.warnings);
    let many: Vec<_> = (0..1000).map(|number| format!("unknown{number}: x\n")).collect();
    assert!(read(&format!("{}{POD}", many.concat())).unwrap().warnings.len() <= 10);
}

#[test]
fn a_missing_service_is_made_as_without_a_template() {
    for map in [config_map(POD, None), config_map(POD, Some("kind: Service"))] {
        let template = Template::from_config_map(&map).unwrap();
        assert_eq!(template.warnings.len(), 1, "{:?}", template.warnings);
        let inline = service(&Template::inline(WRAPPER, PodSecurity::Porch));
        assert_eq!(service(&template)["spec"], inline["spec"]);
    }
    let template = Template::from_config_map(&config_map(POD, None)).unwrap();
    assert_eq!(service(&template), service(&Template::inline(WRAPPER, PodSecurity::Porch)));
}

#[test]
fn a_template_that_cannot_work_is_refused_with_the_reason() {
    let no_function = |others: &str| Problem::NoFunction(others.to_owned());
    for (text, problem) in [
        ("", Problem::NoPod),
        ("kind: Pod", Problem::NoPod),
        ("spec: {}", no_function("no container at all")),
        ("spec: {containers: []}", no_function("no container at all")),
        ("spec: {containers:}", no_function("no container at all")),
        ("spec: {containers: [{name: fn, command: [x]}]}", no_function("\"fn\"")),
        ("spec: {containers: [{name: function, command: [x]}, {name: function}]}", Problem::ManyFunctions(2)),
        ("spec: {containers: [{name: function}]}", Problem::NoCommand),
        ("spec: {containers: [{name: function, command: []}]}", Problem::NoCommand),
        ("spec: {containers: [{name: function, command: [x], args: [--, y]}]}", Problem::Separator),
    ] {
        assert_eq!(read(text), Err(problem), "{text}");
    }
    assert_eq!(read_service("spec: {ports: [{port: 80}]}"), Err(Problem::NoPort));
    assert_eq!(read_service("spec: {}"), Err(Problem::NoPort));
    assert_eq!(
        read_service("spec: {type: ExternalName, ports: [{port: 9446}]}"),
        Err(Problem::ServiceType("ExternalName".to_owned()))
    );
    let empty = ConfigMap { data: None, ..config_map("", None) };
    assert_eq!(Template::from_config_map(&empty).unwrap_err().problem, Problem::NoKey("template"));
    let (pod_template, service_template) = objects(&Value::Null, &json!({}));
    let error = Template::from_objects(&pod_template, &service_template, WRAPPER).unwrap_err();
    assert_eq!(error.problem, Problem::NoPod);
    assert!(error.to_string().contains("PodTemplate porch-fn-system/base-pod-template"), "{error}");
}

#[test]
fn text_that_is_no_pod_is_refused_with_key_and_line() {
    for (text, says) in [
        ("- a\n", "line 1"),
        ("spec:\n  containers: 5\n", "line 2"),
        ("spec:\n  containers:\n  - name: [x]\n", "line 3"),
        ("spec:\n  containers: [\n", "line 2"),
        ("kind: Deployment\n", "Deployment"),
        ("spec: {priority: high}\n", "line 1"),
        ("spec: {}\n---\nspec: {}\n", "document"),
        ("spec: *nowhere\n", "line 1"),
    ] {
        let error = Template::from_config_map(&config_map(text, Some(SERVICE))).unwrap_err().to_string();
        assert!(error.contains(says), "{text:?}: {error}");
        assert!(error.contains("ConfigMap porch-system/templates"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let error = Template::from_config_map(&config_map(POD, Some("spec: 5"))).unwrap_err().to_string();
    assert!(error.contains("key \"serviceTemplate\" is not a valid Service"), "{error}");
}

#[test]
fn hostile_texts_are_refused_soon() {
    let huge = format!("{POD}\n# {}", "x".repeat(1 << 20));
    assert!(matches!(read(&huge), Err(Problem::TooLarge { key: "template", .. })));
    assert!(matches!(read(&format!("{}{POD}", yaml_bomb())), Err(Problem::Invalid { .. })));
    let deep = format!("spec: {}", "[".repeat(200_000));
    assert!(matches!(read(&deep), Err(Problem::Invalid { .. })));
    let deep = format!("x: {}{}\n{POD}", "{a: ".repeat(3000), "}".repeat(3000));
    assert!(matches!(read(&deep), Err(Problem::Invalid { .. })));
}

#[test]
fn a_fixed_address_is_left_out_of_the_service() {
    let template =
        read_service("spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 9446}]}").unwrap();
    assert_eq!(template.warnings.len(), 1);
    let service = service(&template);
    assert_eq!((&service["spec"]["clusterIP"], &service["spec"]["clusterIPs"]), (&Value::Null, &Value::Null));
}

/// As the original of v1.5.8 makes them: what it leaves alone, its cluster decides.
#[test]
fn pods_of_the_originals_version_are_the_originals() {
    let template = Template::inline(WRAPPER, PodSecurity::Porch);
    assert_eq!(&*template.version, "inline-v1");
    assert_eq!(template.warnings, [""; 0]);
    let tools = json!([{"name": "wrapper-server-tools", "mountPath": "/wrapper-server-tools"}]);
    assert_eq!(
        pod(&template)["spec"],
        json!({
            "initContainers": [{
                "name": "copy-wrapper-server",
                "image": WRAPPER,
                "command": ["cp", "-a", "/home/nonroot/wrapper-server/.", "/wrapper-server-tools"],
                "volumeMounts": tools,
            }],
            "containers": [{
                "name": "function",
                "image": "example.com/f:v1",
                "command": ["/wrapper-server-tools/wrapper-server"],
                "args": [
                    "--port", "9446", "--max-request-body-size", "6291456", "--", "/usr/bin/function", "--flag",
                ],
                "env": [
                    {"name": "OTEL_METRICS_EXPORTER", "value": "prometheus"},
                    {"name": "OTEL_TRACES_EXPORTER", "value": "none"},
                    {"name": "OTEL_EXPORTER_PROMETHEUS_HOST", "value": "0.0.0.0"},
                ],
                "readinessProbe": {"exec": {"command": [
                    "/wrapper-server-tools/grpc-health-probe", "-addr", "localhost:9446",
                ]}},
                "volumeMounts": tools,
            }],
            "volumes": [{"name": "wrapper-server-tools", "emptyDir": {}}],
        }),
        "neither a security context nor a token taken away, nor anything at /tmp, nor another restart policy"
    );
}

#[test]
fn restricted_pods_are_of_a_version_of_their_own() {
    let template = Template::inline(WRAPPER, PodSecurity::Restricted);
    assert_eq!(&*template.version, "inline-restricted-v1");
    let pod = pod(&template);
    let spec = &pod["spec"];
    assert_eq!(spec["automountServiceAccountToken"], false);
    assert_eq!(spec["enableServiceLinks"], false);
    assert_eq!(spec["restartPolicy"], "Never");
    assert_eq!(spec["securityContext"], json!({"seccompProfile": {"type": "RuntimeDefault"}}));
    assert!(spec["terminationGracePeriodSeconds"].as_i64().unwrap() >= 291);
    for container in [&spec["initContainers"][0], &spec["containers"][0]] {
        assert_eq!(
            container["securityContext"],
            json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}})
        );
        assert_eq!(container["resources"], json!({"requests": {"cpu": "10m", "memory": "16Mi"}}));
        assert_eq!(container["volumeMounts"][0]["mountPath"], "/wrapper-server-tools");
    }
    let function = &spec["containers"][0];
    assert_eq!(function["volumeMounts"][1], json!({"name": "tmp", "mountPath": "/tmp"}));
    assert_eq!(spec["volumes"][1], json!({"name": "tmp", "emptyDir": {}}));
    assert_eq!(function["env"][0], json!({"name": "OTEL_METRICS_EXPORTER", "value": "prometheus"}));
    assert_eq!(spec["initContainers"][0]["image"], WRAPPER);
    assert_eq!(spec["initContainers"][0]["name"], "copy-wrapper-server");
}

/// What an operator finds and edits is what we would have used ourselves.
#[test]
fn a_config_map_of_the_inline_template_makes_the_same_pods() {
    for security in [PodSecurity::Porch, PodSecurity::Restricted] {
        let inline = Template::inline(WRAPPER, security);
        let request = crate::rendering::request();
        let rendered = render::pod(&inline, &request);
        let mut bare = pod(&inline);
        bare["spec"]["containers"][0]["args"] = Value::Null;
        let text = serde_json::to_string(&bare).unwrap();
        let service_text = serde_json::to_string(&service(&inline)).unwrap();
        let again = Template::from_config_map(&config_map(&text, Some(&service_text))).unwrap();
        assert_eq!(again.warnings, [""; 0]);
        assert_eq!(render::pod(&again, &request).spec, rendered.spec);
        assert_eq!(service(&again), service(&inline));
    }
}
