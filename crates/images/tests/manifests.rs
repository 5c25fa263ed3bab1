//! The manifests in `deploy/`: they hang together, and the service accepts
//! what they give it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where its set-up fails"
)]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use common::checkout;
use flags::Outcome;
use function_runner::{
    args,
    settings::{Cluster, PodSecurity, Settings, Surroundings},
};
use serde_json::{Value, json};

const OVERLAYS: [&str; 5] =
    ["exec-only", "network-policy", "private-registry", "private-registry-tls", "replicas"];

fn deploy() -> PathBuf {
    checkout().join("deploy")
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// All files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The objects of a kustomization's own files, not of what it builds on.
fn objects(folder: &str) -> Vec<Value> {
    let folder = deploy().join(folder);
    let kustomization = read(&folder.join("kustomization.yaml")).remove(0);
    let resources = texts(&kustomization["resources"]).into_iter().map(|name| folder.join(name));
    resources.filter(|path| !path.is_dir()).flat_map(|path| read(&path)).collect()
}

/// The only object of its kind and name.
fn find(objects: &[Value], kind: &str, name: &str) -> Value {
    let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let found: Vec<_> = objects.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{kind} {name}");
    found[0].clone()
}

fn deployment() -> Value {
    find(&objects("base"), "Deployment", "function-runner")
}

/// The flags of an overlay's container: those of the base and what its components add.
fn flags_of(components: &[&str]) -> Vec<String> {
    let pod = &deployment()["spec"]["template"]["spec"];
    let mut flags: Vec<_> = texts(&pod["containers"][0]["args"]).into_iter().map(str::to_owned).collect();
    for component in components {
        let kustomization =
            read(&deploy().join("components").join(component).join("kustomization.yaml")).remove(0);
        for patch in kustomization["patches"].as_array().into_iter().flatten() {
            let Some(text) = patch["patch"].as_str().filter(|text| text.contains("op: add")) else {
                continue;
            };
            for step in serde_saphyr::from_str::<Vec<Value>>(text).unwrap() {
                assert_eq!(step["path"], "/spec/template/spec/containers/0/args/-");
                flags.push(step["value"].as_str().unwrap().to_owned());
            }
        }
    }
    flags
}

/// The components of an overlay.
fn components_of(overlay: &str) -> Vec<String> {
    let kustomization = read(&deploy().join("overlays").join(overlay).join("kustomization.yaml")).remove(0);
    assert_eq!(kustomization["resources"], json!(["../../base"]));
    let paths = texts(&kustomization["components"]);
    paths.iter().map(|path| path.trim_start_matches("../../components/").to_owned()).collect()
}

#[test]
fn every_file_is_used_and_every_used_file_is_there() {
    let mut used = BTreeSet::new();
    let all: BTreeSet<_> = files_below(&deploy()).into_iter().collect();
    for path in all.iter().filter(|path| path.ends_with("kustomization.yaml")) {
        used.insert(path.clone());
        let folder = path.parent().unwrap();
        let kustomization = read(path).remove(0);
        let listed = ["resources", "components", "configurations"];
        let listed = listed.iter().flat_map(|key| texts(&kustomization[*key]));
        let patches = kustomization["patches"].as_array().into_iter().flatten();
        for name in listed.chain(patches.filter_map(|patch| patch["path"].as_str())) {
            let found = folder.join(name).canonicalize();
            let found = found.unwrap_or_else(|error| panic!("{}: {name}: {error}", path.display()));
            used.insert(if found.is_dir() { found.join("kustomization.yaml") } else { found });
        }
    }
    assert_eq!(all, used);
    for path in all {
        assert!(!read(&path).is_empty(), "{} is empty", path.display());
    }
}

#[test]
fn every_namespace_account_and_role_that_is_named_is_there() {
    let mut all = objects("base");
    for component in OVERLAYS {
        all.extend(objects(&format!("components/{component}")));
    }
    for object in &all {
        if let Some(namespace) = object["metadata"]["namespace"].as_str() {
            find(&all, "Namespace", namespace);
        } else {
            assert_eq!(object["kind"], "Namespace", "{object} is in no namespace");
        }
        if object["kind"] == "RoleBinding" {
            let role = find(&all, "Role", object["roleRef"]["name"].as_str().unwrap());
            assert_eq!(role["metadata"]["namespace"], object["metadata"]["namespace"]);
            for subject in object["subjects"].as_array().unwrap() {
                let account = find(&all, "ServiceAccount", subject["name"].as_str().unwrap());
                assert_eq!(account["metadata"]["namespace"], subject["namespace"]);
            }
        }
        assert!(!object["kind"].as_str().unwrap().starts_with("Cluster"), "{object} is cluster-wide");
    }
    let pod = &deployment()["spec"]["template"]["spec"];
    find(&all, "ServiceAccount", pod["serviceAccountName"].as_str().unwrap());
    for namespace in ["porch-system", "porch-fn-system"] {
        let labels = &find(&all, "Namespace", namespace)["metadata"]["labels"];
        assert_eq!(labels["pod-security.kubernetes.io/enforce"], "baseline");
    }
}

#[test]
fn ports_and_labels_agree() {
    let base = objects("base");
    let template = &deployment()["spec"]["template"];
    let labels = json!({ "app": "function-runner" });
    assert_eq!(template["metadata"]["labels"], labels);
    assert_eq!(deployment()["spec"]["selector"]["matchLabels"], labels);
    for spread in template["spec"]["topologySpreadConstraints"].as_array().unwrap() {
        assert_eq!(spread["labelSelector"]["matchLabels"], labels);
    }
    let service = find(&base, "Service", "function-runner");
    assert_eq!(service["spec"]["selector"], labels);
    let budget = find(&base, "PodDisruptionBudget", "function-runner");
    assert_eq!(budget["spec"]["selector"]["matchLabels"], labels);

    let container = &template["spec"]["containers"][0];
    assert!(texts(&container["args"]).contains(&"--port=9445"));
    assert_eq!(container["ports"][0]["containerPort"], 9445);
    assert_eq!(container["ports"][1]["containerPort"], 9464);
    for probe in ["readinessProbe", "livenessProbe"] {
        assert_eq!(container[probe]["grpc"]["port"], 9445);
    }
    let ports = service["spec"]["ports"].as_array().unwrap().iter();
    let ports: Vec<_> = ports.map(|port| (&port["name"], &port["port"], &port["targetPort"])).collect();
    assert_eq!(
        ports,
        [(&json!("grpc"), &json!(9445), &json!(9445)), (&json!("metrics"), &json!(9464), &json!(9464)),]
    );
}

/// What functions may reach is for whoever installs it to say.
#[test]
fn function_pods_are_cut_off_only_where_that_is_chosen() {
    let base = objects("base");
    assert!(base.iter().all(|object| object["kind"] != "NetworkPolicy"));
    let policy = find(&objects("components/network-policy"), "NetworkPolicy", "function-pods");
    assert_eq!(policy["spec"]["podSelector"], json!({}));
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    assert!(policy["spec"].get("egress").is_none(), "function pods may talk to somebody");
    let calls = &policy["spec"]["ingress"][0];
    assert_eq!(calls["ports"], json!([{"protocol": "TCP", "port": 9446}]));
    let source = &calls["from"];
    assert_eq!(source.as_array().unwrap().len(), 1, "one source: that namespace and those pods");
    assert_eq!(source[0]["podSelector"]["matchLabels"], json!({ "app": "function-runner" }));
    let metrics = &policy["spec"]["ingress"][1];
    assert_eq!(*metrics, json!({"ports": [{"protocol": "TCP", "port": 9464}]}), "scrapers may be anywhere");
    let namespace = &source[0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"];
    assert_eq!(*namespace, deployment()["metadata"]["namespace"]);
}

#[test]
fn the_pod_keeps_to_the_restricted_standard() {
    let pod = &deployment()["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["runAsUser"], 10001);
    assert_eq!(pod["securityContext"]["runAsGroup"], 10001);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let context = &pod["containers"][0]["securityContext"];
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["capabilities"], json!({ "drop": ["ALL"] }));
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/tmp");
}

#[test]
fn the_images_are_set_in_one_place() {
    let images = read(&deploy().join("components/images/kustomization.yaml")).remove(0);
    let container = &deployment()["spec"]["template"]["spec"]["containers"][0];
    let wrapper = container["env"].as_array().unwrap();
    let wrapper = wrapper.iter().find(|variable| variable["name"] == "WRAPPER_SERVER_IMAGE").unwrap();
    let names: Vec<_> = images["images"].as_array().unwrap().iter().map(|image| &image["name"]).collect();
    assert_eq!(names, [&container["image"], &wrapper["value"]]);
    for image in images["images"].as_array().unwrap() {
        assert_eq!(image["newTag"], env!("CARGO_PKG_VERSION"));
        assert!(image["newName"].as_str().unwrap().ends_with(image["name"].as_str().unwrap()));
        // Their names are replaced wherever a variable has them as its value.
        let alike = container["env"].as_array().unwrap().iter().filter(|each| each["value"] == image["name"]);
        assert!(alike.count() <= 1);
    }
}

/// What the contract allows the account, in the namespace of the function pods.
fn allowed() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([
        ("pods", "create delete patch get watch list"),
        ("services", "create delete get watch list"),
        ("endpoints", "create delete get watch list"),
        ("secrets", "create delete update get"),
        ("functionconfigs", "get list watch patch"),
        ("functionconfigs/status", "get update patch"),
        ("podtemplates", "get list watch create update patch"),
        ("servicetemplates", "get list watch create update patch"),
    ])
}

#[test]
fn no_role_gives_more_than_porch_does() {
    let mut all = objects("base");
    all.extend(objects("components/private-registry"));
    let allowed = allowed();
    for role in all.iter().filter(|object| object["kind"] == "Role") {
        assert_eq!(role["metadata"]["namespace"], "porch-fn-system");
        for rule in role["rules"].as_array().unwrap() {
            for resource in texts(&rule["resources"]) {
                let verbs: Vec<_> = allowed[resource].split(' ').collect();
                for verb in texts(&rule["verbs"]) {
                    assert!(verbs.contains(&verb), "{verb} {resource}");
                }
            }
        }
    }
}

/// Inside a cluster, with the variables of the deployment.
struct InCluster(BTreeMap<String, String>);

impl InCluster {
    fn new() -> Self {
        let container = &deployment()["spec"]["template"]["spec"]["containers"][0];
        let variables = container["env"].as_array().unwrap().iter().map(|variable| {
            let text = |key: &str| variable[key].as_str().unwrap().to_owned();
            (text("name"), text("value"))
        });
        let host = ("KUBERNETES_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned());
        Self(variables.chain([host]).collect())
    }
}

impl Surroundings for InCluster {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    fn exists(&self, _: &Path) -> bool {
        true
    }

    fn cores(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn memory(&self) -> Option<u64> {
        None
    }
}

fn settings(components: &[&str]) -> Settings {
    let flags = flags_of(components).into_iter().map(OsString::from);
    let Outcome::Flags(flags) = args::SERVER.parse(flags) else { panic!("help was asked for") };
    Settings::read(flags, &InCluster::new()).unwrap_or_else(|mistakes| panic!("{components:?}: {mistakes}"))
}

#[test]
fn the_service_accepts_the_flags_and_variables() {
    let base = settings(&[]);
    let pod = base.pod.unwrap();
    assert_eq!(pod.cluster, Cluster::InCluster);
    assert_eq!(pod.namespace, "porch-fn-system");
    assert_eq!(pod.wrapper_image.as_deref(), Some("wrapper-server"));
    assert_eq!(pod.security, PodSecurity::Restricted, "Porch's own manifests do not ask for it");
    assert_eq!(base.telemetry.prometheus_port, 9464);
    let grace = deployment()["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
    let own = base.serving.shutdown_delay + base.serving.shutdown_grace;
    assert!(grace >= own.as_secs() + 5, "killed after {grace} s, while it may take {own:?}");

    for overlay in OVERLAYS {
        let components = components_of(overlay);
        let components: Vec<_> = components.iter().map(String::as_str).collect();
        let Settings { serving, exec, pod, registries, .. } = settings(&components);
        assert!(exec.is_some(), "{overlay}");
        assert_eq!(pod.is_none(), overlay == "exec-only", "{overlay}");
        assert_eq!(serving.max_connection_age.is_some(), overlay == "replicas", "{overlay}");
        let registries = registries.private_registries;
        assert_eq!(registries.is_some(), overlay.starts_with("private-registry"), "{overlay}");
        let trust = registries.and_then(|registries| registries.tls_path);
        assert_eq!(trust.is_some(), overlay == "private-registry-tls", "{overlay}");
    }
}

#[test]
fn secrets_are_mounted_where_the_flags_look_for_them() {
    let registries = settings(&["private-registry", "private-registry-tls"]).registries.private_registries;
    let registries = registries.unwrap();
    let mount = |component: &str| {
        let patch = read(&deploy().join("components").join(component).join("mount.yaml")).remove(0);
        let pod = &patch["spec"]["template"]["spec"];
        let (mount, volume) = (&pod["containers"][0]["volumeMounts"][0], &pod["volumes"][0]);
        assert_eq!(mount["name"], volume["name"]);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (PathBuf::from(text(&mount["mountPath"])), text(&volume["secret"]["secretName"]))
    };
    let (folder, secret) = mount("private-registry");
    assert_eq!(registries.auth_path, folder.join(".dockerconfigjson"));
    assert_eq!(registries.auth_secret, secret);
    assert_eq!(registries.tls_path.unwrap(), mount("private-registry-tls").0);
    let roles = objects("components/private-registry");
    let role = find(&roles, "Role", "porch-function-pull-secret");
    assert_eq!(role["rules"][1]["resourceNames"], json!([registries.auth_secret]));
}
