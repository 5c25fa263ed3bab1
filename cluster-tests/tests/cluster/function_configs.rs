//! FunctionConfigs on a real API server: what it takes, what it shows, and what becomes of it.

mod effect;
mod scale;

use std::{
    fs,
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use cluster_tests::{
    ACCOUNT, HostRunner, Rights, Space, checkout, client, kubectl, on_cluster, our_definitions, parse,
    refusals_of,
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use testing::{Functions, Server};
use tonic::Code;
use wire::client::Client;

use crate::installation::within;

const PATIENCE: Duration = Duration::from_mins(1);
const OURS: &str = "config.porch.kpt.dev/functionconfig-function-runner";
const THEIRS: &str = "example.com/somebody-else";
/// Where the images of the executables would be. This registry has none of them and says so at once; one that is
/// not there is waited for.
const REGISTRY: &str = "localhost:5000";
/// The smallest ResourceList.
const EMPTY: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n";

/// A file of Porch's, where they are beside the checkout. What was not tested must be seen, so past the capture.
fn porchs(test: &str, name: &str) -> Option<String> {
    let file = fs::read_to_string(checkout().join("../shared/porch/head").join(name)).ok();
    if file.is_none() {
        let _ = writeln!(std::io::stderr(), "{test}: not tried with Porch's {name}, which is not there");
    }
    file
}

fn kind() -> ApiResource {
    let kind = GroupVersionKind::gvk("config.porch.kpt.dev", "v1alpha1", "FunctionConfig");
    ApiResource::from_gvk_with_plural(&kind, "functionconfigs")
}

fn config(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "FunctionConfig",
        "metadata": { "name": name }, "spec": spec,
    })
}

/// An executable that serves tags of an image.
fn binary(image: &str, tags: &[&str]) -> Value {
    json!({
        "image": image, "prefixes": [REGISTRY],
        "binaryExecutor": { "path": "echo", "tags": tags },
    })
}

/// A runner on the node, with the rights of Porch's role, and its objects.
struct Scene {
    space: Arc<Space>,
    objects: Api<DynamicObject>,
    functions: Functions,
    runner: Server,
    client: Client,
}

impl Scene {
    /// With our definitions of kinds.
    async fn start(space: &Arc<Space>) -> Self {
        space.share_definitions().await;
        Self::begin(space).await
    }

    /// With others, and no other test meanwhile.
    async fn start_with(space: &Arc<Space>, definitions: &str) -> Self {
        space.claim_fixed_names().await;
        space.apply(definitions).await;
        Self::begin(space).await
    }

    /// With those that are there.
    async fn begin(space: &Arc<Space>) -> Self {
        space.make_account(Rights::Objects).await;
        let functions = Functions::new();
        functions.write_executable("echo", "#!/bin/sh\ncat\n");
        let runner = Self::runner(space, &functions).await;
        let objects = Api::namespaced_with(space.client(), space.namespace(), &kind());
        let client = client(&format!("127.0.0.1:{}", runner.port()));
        Self { space: space.clone(), objects, functions, runner, client }
    }

    async fn runner(space: &Space, functions: &Functions) -> Server {
        HostRunner::another(space).await.flags(functions.flags()).metrics().start()
    }

    async fn apply(&self, name: &str, spec: &Value) {
        self.space.apply_object(&config(name, spec)).await;
    }

    async fn patch(&self, name: &str, patch: &Value) {
        self.objects.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Waits until an object is as a test wants it.
    async fn becomes(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool + Send) -> Value {
        // Watches want a type; asking again will do.
        let begun = Instant::now();
        loop {
            let object = self.objects.get(name).await.unwrap();
            let object = serde_json::to_value(object).unwrap();
            if is_so(&object) {
                return object;
            }
            assert!(begun.elapsed() < PATIENCE, "{name} is not {what}: {object:#}\n{}", self.runner.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn code(&self, image: &str) -> Code {
        let image = format!("{REGISTRY}/{image}");
        let call = self.client.evaluate(&image, EMPTY.into(), within(30)).await;
        call.map_or_else(|status| status.code(), |_| Code::Ok)
    }

    /// Whether an executable serves it; else it is looked for in a registry that does not have it.
    async fn serves(&self, image: &str, expected: bool) {
        let begun = Instant::now();
        while (self.code(image).await == Code::Ok) != expected {
            assert!(begun.elapsed() < PATIENCE, "that {image} is served never becomes {expected}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn kubectl(&self, arguments: &[&str]) -> String {
        let place = format!("--namespace={}", self.space.namespace());
        let arguments: Vec<_> = [place.as_str()].into_iter().chain(arguments.iter().copied()).collect();
        kubectl(&arguments, b"").await.unwrap_or_else(|complaint| panic!("{complaint}"))
    }
}

fn is_ready(object: &Value, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let generation = &object["metadata"]["generation"];
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "Ready"
            && condition["status"] == status
            && condition["observedGeneration"] == *generation
    })
}

fn is_observed(object: &Value) -> bool {
    object["status"]["functionRunnerObservedGeneration"] == object["metadata"]["generation"]
}

#[test]
#[ignore = "needs the cluster: make test"]
fn porchs_objects_apply_to_our_definitions_and_ours_to_porchs() {
    let test = "definitions";
    on_cluster(test, async move |space| {
        space.claim_fixed_names().await;
        let porchs_namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "porch-fn-system"}});
        space.apply_object(&porchs_namespace).await;
        space.apply(&our_definitions()).await;
        for file in ["23-function-configurations.yaml", "22-function-templates.yaml"] {
            for object in porchs(test, file).iter().flat_map(|text| parse(text)) {
                space.apply_object(&object).await;
            }
        }
        let wrong = config("wrong", &json!({ "image": "f" }));
        let told = space.check(&wrong).await.unwrap_err();
        assert!(told.contains("at least one of podExecutor, binaryExecutor and goExecutor"), "{told}");
        for (field, value) in
            [("timeToLive", json!("soon")), ("minReplicas", json!(-1)), ("tags", json!([1]))]
        {
            let wrong = config("wrong", &json!({ "image": "f", "podExecutor": { field: value } }));
            let told = space.check(&wrong).await.unwrap_err();
            assert!(told.contains(field), "{told}");
        }
        let (Some(configs), Some(templates)) =
            (porchs(test, "crd-functionconfigs.yaml"), porchs(test, "crd-servicetemplates.yaml"))
        else {
            return;
        };
        space.apply(&format!("{configs}\n---\n{templates}")).await;
        let base = json!({
            "image": "f", "prefixes": [""],
            "podExecutor": {
                "tags": ["v1"], "timeToLive": "1h", "maxParallelExecutions": 1, "preferredMaxQueueLength": 1,
                "templateOverrides": { "container": { "resources": { "limits": { "cpu": 1, "memory": "1Gi" } } } },
            },
            "binaryExecutor": { "path": "f", "tags": ["v1", "~0.4", "*"] },
            "goExecutor": { "tags": ["v1"] },
        });
        // The API server begins to use a definition a moment after it has taken it.
        let begun = Instant::now();
        let additions = config("ours", &json!({ "image": "f", "podExecutor": { "minReplicas": 1 } }));
        while space.check(&additions).await.is_ok() {
            assert!(begun.elapsed() < PATIENCE, "Porch's definition does not come into force");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        space.check(&config("ours", &base)).await.unwrap();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn kubectl_shows_what_became_of_an_object() {
    on_cluster("config-status", async |space| {
        let scene = Scene::start(&space).await;
        scene.apply("echo", &binary("echo", &["v1"])).await;
        let object = scene.becomes("echo", "ready", |object| is_ready(object, "True")).await;
        assert!(is_observed(&object) && object["metadata"]["finalizers"] == json!([OURS]), "{object:#}");
        assert_eq!(object["status"]["executors"], json!([{ "type": "binary", "tags": ["v1"] }]));
        assert_eq!(object["status"].get("error"), None);
        scene.serves("echo:v1", true).await;
        let shown = scene.kubectl(&["get", "functionconfigs"]).await;
        let words: Vec<_> = shown.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(words, ["echo", "1", "True", "Applied"], "{shown}");

        // What is wrong is told, and the rest is in force.
        let edit =
            json!({ "spec": { "binaryExecutor": { "tags": ["v2", "not a tag"] }, "prefixes": [REGISTRY] } });
        scene.patch("echo", &edit).await;
        let object = scene.becomes("echo", "not ready", |object| is_ready(object, "False")).await;
        assert!(is_observed(&object));
        let error = object["status"]["error"].as_str().unwrap();
        assert!(
            error.starts_with("function-runner: spec.binaryExecutor.tags[1]: \"not a tag\": "),
            "{error}"
        );
        assert_eq!(object["status"]["executors"], json!([{ "type": "binary", "tags": ["v2"] }]));
        scene.serves("echo:v2", true).await;
        scene.serves("echo:v1", false).await;
        let shown = scene.kubectl(&["get", "functionconfigs", "--output=wide"]).await;
        assert!(shown.contains("Invalid") && shown.contains("not a tag"), "{shown}");

        // Who comes second is told, and wins when the first goes.
        scene.patch("echo", &json!({ "spec": { "binaryExecutor": { "tags": ["v2"] } } })).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        scene.apply("another", &binary("echo", &["v2"])).await;
        let object = scene.becomes("another", "not ready", |object| is_ready(object, "False")).await;
        assert_eq!(object["status"]["conditions"][0]["reason"], "Conflict");
        scene.becomes("echo", "ready", |object| is_ready(object, "True")).await;
        scene.kubectl(&["delete", "functionconfig", "echo", "--timeout=30s"]).await;
        let object = scene.becomes("another", "ready", |object| is_ready(object, "True")).await;
        assert_eq!(object["status"].get("error"), None, "{object:#}");
        assert_eq!(refusals_of(space.namespace(), ACCOUNT), []);
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn with_porchs_definition_only_its_fields_are_written() {
    let test = "config-porch";
    let Some(definition) = porchs(test, "crd-functionconfigs.yaml") else { return };
    let templates = porchs(test, "crd-servicetemplates.yaml").unwrap();
    on_cluster(test, async move |space| {
        let scene = Scene::start_with(&space, &format!("{definition}\n---\n{templates}")).await;
        scene.apply("echo", &binary("echo", &["v1"])).await;
        scene
            .apply(
                "missing",
                &json!({ "image": "missing", "binaryExecutor": { "path": "missing", "tags": ["v1"] } }),
            )
            .await;
        let object = scene.becomes("echo", "observed", is_observed).await;
        assert_eq!(object["status"], json!({ "functionRunnerObservedGeneration": 1 }));
        let object = scene.becomes("missing", "observed", is_observed).await;
        let error = object["status"]["error"].as_str().unwrap();
        assert!(
            error.contains("spec.binaryExecutor.path: the executable ") && error.contains(" is missing"),
            "{error}"
        );
        scene.serves("echo:v1", true).await;
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn what_others_wrote_survives_and_deletion_is_not_held_up() {
    on_cluster("config-others", async |space| {
        let scene = Scene::start(&space).await;
        let mut object = config("echo", &binary("echo", &["v1"]));
        object["metadata"]["finalizers"] = json!([THEIRS]);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        scene.objects.create(&PostParams::default(), &object).await.unwrap();
        let theirs = json!({ "status": {
            "apiServerObservedGeneration": 1, "controllerObservedGeneration": 7, "error": "porch-server: no such builtin",
            "conditions": [{
                "type": "Theirs", "status": "True", "reason": "Because", "message": "",
                "lastTransitionTime": "2024-01-01T00:00:00Z",
            }],
        } });
        let params = PatchParams::default();
        scene.objects.patch_status("echo", &params, &Patch::Merge(&theirs)).await.unwrap();
        scene.becomes("echo", "ready", |object| is_ready(object, "True")).await;
        scene.patch("echo", &json!({ "spec": { "binaryExecutor": { "tags": ["v2"] } } })).await;
        let object =
            scene.becomes("echo", "ready", |object| is_observed(object) && is_ready(object, "True")).await;
        let status = &object["status"];
        assert_eq!(status["error"], "porch-server: no such builtin");
        assert_eq!(
            (&status["apiServerObservedGeneration"], &status["controllerObservedGeneration"]),
            (&json!(1), &json!(7))
        );
        assert!(
            status["conditions"].as_array().unwrap().iter().any(|it| it["type"] == "Theirs"),
            "{status:#}"
        );
        assert_eq!(object["metadata"]["finalizers"], json!([THEIRS, OURS]));

        scene.objects.delete("echo", &DeleteParams::default()).await.unwrap();
        let only_theirs = |object: &Value| object["metadata"]["finalizers"] == json!([THEIRS]);
        scene.becomes("echo", "let go", only_theirs).await;
        scene.serves("echo:v2", false).await;
        scene.patch("echo", &json!({ "metadata": { "finalizers": null } })).await;
        // Nobody else holds this one.
        scene.apply("free", &binary("free", &["v1"])).await;
        scene.becomes("free", "ready", |object| is_ready(object, "True")).await;
        scene.kubectl(&["delete", "functionconfig", "free", "--timeout=30s"]).await;

        // The way out when we are gone, as docs/operations.md tells it.
        scene.apply("left", &binary("left", &["v1"])).await;
        scene.becomes("left", "ready", |object| is_ready(object, "True")).await;
        let Scene { objects, runner, .. } = scene;
        drop(runner);
        objects.delete("left", &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(objects.get_opt("left").await.unwrap().is_some(), "nobody has let go");
        let place = format!("--namespace={}", space.namespace());
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        let way_out = ["patch", &place, "functionconfig/left", "--type=merge", "-p", patch];
        kubectl(&way_out, b"").await.unwrap();
        assert!(objects.get_opt("left").await.unwrap().is_none());
    });
}
