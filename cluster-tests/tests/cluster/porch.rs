//! Porch's own manifests, of each generation, changed in nothing but image
//! names. They are read where they lie beside the checkout, and not part of it.

use std::{collections::BTreeSet, fs, io::Write as _, path::PathBuf, sync::Arc, time::Duration};

use cluster_tests::{
    REGISTRY_FOR_PODS, Rights, Seen, Space, Witness, checkout, eventually, host_of, on_cluster, order, page,
    parse, push, push_to,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodTemplate, Service};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tonic::Code;

use crate::{
    installation::{Installation, within},
    load::Load,
};

/// Where Porch has function pods.
const PODS: &str = "porch-fn-system";
const PATIENCE: Duration = Duration::from_mins(2);

fn folder(generation: &str) -> PathBuf {
    checkout().join("../shared/porch").join(generation)
}

/// Whether Porch's manifests are beside the checkout. What was not tested must be seen, so past the capture.
fn is_there(test: &str, generation: &str) -> bool {
    let is_there = folder(generation).is_dir();
    if !is_there {
        let _ = writeln!(std::io::stderr(), "skipped {test}: {} is not there", folder(generation).display());
    }
    is_there
}

/// The deployment, the roles, and what they refer to.
fn manifests(generation: &str) -> Vec<Value> {
    let mut files: Vec<_> = fs::read_dir(folder(generation)).unwrap().flatten().map(|it| it.path()).collect();
    files.sort();
    // Not manifests, and an example for those who want another template.
    let is_no_manifest =
        |path: &PathBuf| path.ends_with("config.yaml") || path.ends_with("function-pods-deployment.yaml");
    let texts =
        files.into_iter().filter(|path| !is_no_manifest(path)).map(|path| fs::read_to_string(path).unwrap());
    let mut objects: Vec<_> = texts.flat_map(|text| parse(&text)).collect();
    for name in ["porch-system", PODS] {
        let is_there = |it: &Value| it["kind"] == "Namespace" && it["metadata"]["name"] == name;
        if !objects.iter().any(is_there) {
            objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        }
    }
    objects
}

/// Gives the functions of the pod cache file names that the cluster can pull, and pushes them.
async fn reachable_functions(objects: &mut [Value]) -> BTreeSet<String> {
    const ORIGINS: [&str; 2] = ["gcr.io/kpt-fn/", "ghcr.io/kptdev/krm-functions-catalog/"];
    let here = format!("{REGISTRY_FOR_PODS}/porch/");
    let mut images = BTreeSet::new();
    for object in objects {
        let Some(Value::String(text)) = object.pointer_mut("/data/pod-cache-config.yaml") else { continue };
        // An entry's image is the key of a map or the name in a list.
        for origin in ORIGINS {
            *text = text.replace(origin, &here);
        }
        let words = text.split_whitespace().map(|word| word.trim_end_matches(':'));
        images.extend(words.filter(|word| word.starts_with(&here)).map(str::to_owned));
    }
    for image in &images {
        let (repository, tag) = image.strip_prefix(REGISTRY_FOR_PODS).unwrap().rsplit_once(':').unwrap();
        push_to("test-function", repository.trim_start_matches('/'), tag).await;
    }
    images
}

/// An installation of a generation, and who sees its pods.
struct Porch {
    space: Arc<Space>,
    installation: Installation,
    witness: Witness,
    /// The functions it is to have pods for before anybody calls.
    warm: BTreeSet<String>,
    /// A function that nobody has named to it.
    image: String,
}

impl Porch {
    async fn install(space: &Arc<Space>, generation: &str) -> Self {
        space.claim_fixed_names().await;
        let mut objects = manifests(generation);
        let warm = reachable_functions(&mut objects).await;
        let image = push("test-function").await.replace("localhost:5000", REGISTRY_FOR_PODS);
        let installation = Installation::install(space, objects).await;
        let witness = Witness::new(&space.client(), PODS).await;
        Self { space: space.clone(), installation, witness, warm, image }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.space.client(), PODS)
    }

    async fn pod_of_call(&self) -> String {
        let call = self.installation.client();
        let answer = call.evaluate(&self.image, order(&[("host", "true")]), within(60)).await;
        host_of(&answer.expect("the call is answered").resource_list)
    }

    /// The functions of the pod cache file have pods, named exactly as Porch names them.
    async fn is_warm(&self) {
        let warm = |seen: &Seen| -> BTreeSet<String> {
            let named = seen.ready().filter(|pod| pod.name_any() == pod.labels()[cluster_tests::IMAGE_LABEL]);
            named.filter_map(|pod| pod.spec.as_ref()?.containers[0].image.clone()).collect()
        };
        let seen = self.witness.until("warm", PATIENCE, |seen| warm(seen) == self.warm).await;
        assert_eq!(seen.ever.len(), self.warm.len(), "one each, however many replicas: {:?}", seen.ever);
    }

    /// Functions run in pods, as many as allowed, and a deleted pod is replaced under another name.
    async fn runs_pods(&self, most: usize) {
        let input = order(&[("host", "true"), ("sleep", "2500")]);
        let calls: Vec<_> = (0..4)
            .map(|_| {
                let (client, image, input) = (self.installation.client(), self.image.clone(), input.clone());
                tokio::spawn(async move { client.evaluate(&image, input, within(60)).await })
            })
            .collect();
        let mut used = BTreeSet::new();
        for call in calls {
            used.insert(host_of(
                &call.await.unwrap().expect("four calls at once are answered").resource_list,
            ));
        }
        let of_image = |seen: &Seen| -> BTreeSet<String> {
            let image = Some(self.image.as_str());
            let is_it =
                |pod: &&Pod| pod.spec.as_ref().is_some_and(|it| it.containers[0].image.as_deref() == image);
            seen.there.values().filter(is_it).map(ResourceExt::name_any).collect()
        };
        let there = of_image(&self.witness.seen());
        assert!(used.is_subset(&there) && there.len() <= most, "{used:?} of {there:?}");

        for name in &there {
            self.pods().delete(name, &DeleteParams::default()).await.unwrap();
        }
        self.witness.until("deleted", PATIENCE, |seen| of_image(seen).is_disjoint(&there)).await;
        let new = self.pod_of_call().await;
        assert!(!there.contains(&new), "{new} again");
        self.witness
            .until("the new alone", PATIENCE, |seen| of_image(seen) == BTreeSet::from([new.clone()]))
            .await;

        let missing = format!("{REGISTRY_FOR_PODS}/no-such-function:v1");
        let refusal =
            self.installation.client().evaluate(&missing, order(&[]), within(60)).await.unwrap_err();
        assert_eq!(refusal.code(), Code::FailedPrecondition, "{refusal}");
        let failed =
            self.installation.client().evaluate(&self.image, order(&[("exit", "1")]), within(60)).await;
        assert_eq!(failed.unwrap_err().code(), Code::Internal);
    }

    /// Function pods and their Services are what the original's are in the cluster's eyes.
    async fn has_pods_like_porchs(&self) {
        let pod = self.pods().get(&self.pod_of_call().await).await.unwrap();
        assert_eq!(pod.annotations()["fn.kpt.dev/template-version"], "inline-v1");
        let spec = pod.spec.as_ref().unwrap();
        assert_eq!(spec.automount_service_account_token, None, "functions may use the account's token");
        assert_eq!(spec.restart_policy.as_deref(), Some("Always"));
        assert_eq!(spec.termination_grace_period_seconds, Some(30));
        let function = &spec.containers[0];
        assert_eq!(function.security_context, None);
        assert!(function.readiness_probe.as_ref().is_some_and(|probe| probe.exec.is_some()));
        let mounts: Vec<_> =
            function.volume_mounts.iter().flatten().map(|it| it.mount_path.as_str()).collect();
        assert_eq!(
            mounts,
            ["/wrapper-server-tools", "/var/run/secrets/kubernetes.io/serviceaccount"],
            "nothing at /tmp"
        );
        let services: Api<Service> = Api::namespaced(self.space.client(), PODS);
        let id = &pod.labels()[cluster_tests::IMAGE_LABEL];
        let service = services.get(id).await.unwrap();
        assert_eq!(service.labels().get("app.kubernetes.io/name"), Some(id));
        assert_eq!(
            service.annotations()["internal.kpt.dev/upstream-identifier"],
            "|Service|porch-system|function-runner"
        );
    }

    /// As Porch's own test wants it: metrics of the runner and of a function pod.
    async fn has_metrics(&self) {
        let runner = self.installation.pods().await.remove(0);
        let runners: Api<Pod> = Api::namespaced(self.space.client(), &self.installation.namespace);
        let pod = self.pod_of_call().await;
        for pod in [runners.get(&runner).await.unwrap(), self.pods().get(&pod).await.unwrap()] {
            let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone()).expect("an address");
            let metrics = page(&format!("{address}:9464"), "/metrics").await;
            for wanted in ["rpc_server", "go"] {
                assert!(
                    metrics.contains(wanted),
                    "no {wanted} in the metrics of {}:\n{metrics}",
                    pod.name_any()
                );
            }
        }
    }
}

#[test]
#[ignore = "needs the cluster: make test"]
fn takes_the_place_of_porch_1_5_3() {
    let test = "porch-1-5-3";
    if is_there(test, "v1.5.3") {
        on_cluster(test, async |space| {
            let porch = Porch::install(&space, "v1.5.3").await;
            porch.installation.answers().await;
            porch.is_warm().await;
            porch.runs_pods(1).await;
            porch.installation.was_refused_nothing_needed();
        });
    }
}

#[test]
#[ignore = "needs the cluster: make test"]
fn takes_the_place_of_porch_1_5_8() {
    let test = "porch-1-5-8";
    if is_there(test, "v1.5.8") {
        on_cluster(test, async |space| {
            let porch = Porch::install(&space, "v1.5.8").await;
            porch.installation.answers().await;
            porch.is_warm().await;
            porch.runs_pods(2).await;
            porch.has_pods_like_porchs().await;
            porch.has_metrics().await;
            porch.installation.was_refused_nothing_needed();
        });
    }
}

#[test]
#[ignore = "needs the cluster: make test"]
fn takes_the_place_of_porch_head() {
    let test = "porch-head";
    if is_there(test, "head") {
        on_cluster(test, async |space| {
            let porch = Porch::install(&space, "head").await;
            porch.installation.answers().await;
            porch.runs_pods(2).await;
            porch.has_metrics().await;
            no_object_is_told_an_error(&porch).await;
            follows_the_template(&porch).await;
            takes_the_example_template(porch).await;
        });
    }
}

/// Every FunctionConfig of the stock installation is observed, and none is told an error: all executables they name
/// are in the image.
async fn no_object_is_told_an_error(porch: &Porch) {
    let kind = GroupVersionKind::gvk("config.porch.kpt.dev", "v1alpha1", "FunctionConfig");
    let kind = ApiResource::from_gvk_with_plural(&kind, "functionconfigs");
    let configs: Api<DynamicObject> = Api::namespaced_with(porch.space.client(), PODS, &kind);
    let all = || async { configs.list(&ListParams::default()).await.unwrap().items };
    let is_observed =
        |object: &DynamicObject| !object.data["status"]["functionRunnerObservedGeneration"].is_null();
    eventually("all are observed", || async { all().await.iter().all(is_observed) }).await;
    let all = all().await;
    assert!(all.len() >= 19, "{}", all.len());
    for object in all {
        let told = object.data["status"]["error"].as_str().unwrap_or_default();
        assert_eq!(told, "", "{}", object.name_any());
    }
}

/// A changed `PodTemplate` replaces the pods made from the one before, and no call is lost over it.
async fn follows_the_template(porch: &Porch) {
    let templates: Api<PodTemplate> = Api::namespaced(porch.space.client(), PODS);
    let is_of = |seen: &Seen, version: &str| {
        let versions: Vec<_> =
            seen.there.values().map(|pod| pod.annotations()["fn.kpt.dev/template-version"].clone()).collect();
        !versions.is_empty() && versions.iter().all(|it| it == version)
    };
    let load = Load::begin(|| porch.installation.client(), &porch.image, &order(&[("sleep", "100")]));
    load.goes_on(20).await;
    let version = templates.get("base-pod-template").await.unwrap().resource_version().unwrap();
    porch.witness.until("of the template there is", PATIENCE, |seen| is_of(seen, &version)).await;
    let change = json!({"template": {"metadata": {"annotations": {"example.com/changed": "yes"}}}});
    let change = templates.patch("base-pod-template", &PatchParams::default(), &Patch::Merge(&change)).await;
    let version = change.unwrap().resource_version().unwrap();
    porch.witness.until("of the changed template", PATIENCE, |seen| is_of(seen, &version)).await;
    load.goes_on(20).await;
    load.lost_nothing().await;
    let seen = porch.witness.seen();
    assert!(seen.there.values().all(|pod| pod.annotations()["example.com/changed"] == "yes"));
    porch.installation.was_refused_nothing();
}

/// Porch's example of a template in a ConfigMap, with its stray fields, for those who use the flag.
async fn takes_the_example_template(porch: Porch) {
    let example = fs::read_to_string(folder("head").join("function-pods-deployment.yaml")).unwrap();
    let wrapper = push("wrapper-server").await;
    let example = example.replace("docker.io/nephio/porch-wrapper-server:latest", &wrapper);
    porch.space.apply(&example).await;
    let mut deployment = porch.installation.deployment.clone();
    let command = deployment.pointer_mut("/spec/template/spec/containers/0/command").unwrap();
    command.as_array_mut().unwrap().push("--function-pod-template=kpt-function-eval-pod-template".into());
    let load = Load::begin(|| porch.installation.client(), &porch.image, &order(&[]));
    load.goes_on(20).await;
    porch.space.apply_object(&deployment).await;
    porch.installation.ready().await;
    let maps: Api<ConfigMap> = Api::namespaced(porch.space.client(), &porch.installation.namespace);
    let map = maps.get("kpt-function-eval-pod-template").await.unwrap();
    let version = map.resource_version().unwrap();
    let is_of = |seen: &Seen| {
        seen.ready().any(|pod| pod.annotations().get("fn.kpt.dev/template-version") == Some(&version))
    };
    porch.witness.until("of the example", PATIENCE, is_of).await;
    load.goes_on(20).await;
    load.lost_nothing().await;
    porch.installation.was_refused_nothing();
}

#[test]
#[ignore = "needs the cluster: make test"]
fn the_rights_of_the_other_tests_are_those_of_porch() {
    for (generation, rights) in
        [("v1.5.3", Rights::Files), ("v1.5.8", Rights::Files), ("head", Rights::Objects)]
    {
        if !is_there("rights", generation) {
            continue;
        }
        let roles = manifests(generation);
        let role =
            roles.iter().find(|it| it["kind"] == "Role" && it["metadata"]["namespace"] == PODS).unwrap();
        assert_eq!(rights.rules(), role["rules"], "{generation}");
    }
}
