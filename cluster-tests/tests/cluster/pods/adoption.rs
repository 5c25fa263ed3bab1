//! Pods that Porch's own runner has made, named and marked as the contract says and not as ours are.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use cluster_tests::{IMAGE_LABEL, Seen, Space, digest, digest_tag, eventually, on_cluster, push};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};

use super::{Lab, PATIENCE};

/// What the original's template is called, and ours where no other is asked for.
const INLINE: &str = "inline-v1";
const AS_PORCH: &str = "--pod-security=porch";

/// The first digits of the image's digest, which end every id.
fn hash() -> String {
    digest("test-function").trim_start_matches("sha256:")[..8].to_owned()
}

/// The id of a slot, as releases from 1.5.7 on form it.
fn id(slot: usize) -> String {
    format!("test-function-{}-{slot}-{}", digest_tag("test-function"), hash())
}

/// The id as older releases form it.
fn old_id() -> String {
    format!("test-function-{}", hash())
}

/// Makes a pod and its Service as the original would, and waits until it is ready. With `exact` it is named as those
/// that are made before anybody calls.
async fn made_by_porch(space: &Space, id: &str, exact: bool, version: &str) -> String {
    let (image, wrapper) = (push("test-function").await, push("wrapper-server").await);
    let mut metadata = json!({
        "labels": {IMAGE_LABEL: id},
        "annotations": {
            "fn.kpt.dev/template-version": version, "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
        },
    });
    let (key, value) = if exact { ("name", id.to_owned()) } else { ("generateName", format!("{id}-")) };
    metadata[key] = value.into();
    if id == old_id() {
        let in_an_hour = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() + 3600;
        metadata["annotations"]["fn.kpt.dev/reclaim-after"] = in_an_hour.to_string().into();
    }
    let tools = json!([{"name": "wrapper-server-tools", "mountPath": "/wrapper-server-tools"}]);
    let pod = json!({
        "metadata": metadata,
        "spec": {
            "initContainers": [{
                "name": "copy-wrapper-server", "image": wrapper, "volumeMounts": tools,
                "command": ["cp", "-a", "/home/nonroot/wrapper-server/.", "/wrapper-server-tools"],
            }],
            "containers": [{
                "name": "function", "image": image, "volumeMounts": tools,
                "command": ["/wrapper-server-tools/wrapper-server"],
                "args": ["--port", "9446", "--max-request-body-size", "6291456", "--", "/test-function"],
                "readinessProbe": {"grpc": {"port": 9446}, "periodSeconds": 1},
            }],
            "volumes": [{"name": "wrapper-server-tools", "emptyDir": {}}],
            "terminationGracePeriodSeconds": 5,
        },
    });
    let pod = create::<Pod>(space, pod).await.unwrap();
    let service = json!({
        "metadata": {"name": id},
        "spec": {"selector": {IMAGE_LABEL: id}, "ports": [{"port": 9446, "protocol": "TCP", "targetPort": 9446}]},
    });
    if let Err(error) = create::<Service>(space, service).await {
        assert!(error.to_string().contains("already exists"), "{error}");
    }
    space.pod_ready(&pod).await;
    pod
}

/// Makes an object as the original would; its name.
async fn create<K: Resource<DynamicType = ()>>(space: &Space, object: Value) -> kube::Result<String> {
    let post = PostParams { field_manager: Some("krm-function-runner".to_owned()), ..PostParams::default() };
    let (client, place, kind) = (space.client(), space.namespace(), ApiResource::erase::<K>(&()));
    let objects: Api<DynamicObject> = Api::namespaced_with(client, place, &kind);
    let object = serde_json::from_value(object).unwrap();
    Ok(objects.create(&post, &object).await?.name_any())
}

#[test]
#[ignore = "needs the cluster: make test"]
fn pods_that_porchs_runner_made_are_used() {
    on_cluster("adopted", async |space| {
        let image = push("test-function").await;
        let warm = made_by_porch(&space, &id(1), true, INLINE).await;
        let second = made_by_porch(&space, &id(2), false, INLINE).await;
        let flags = ["--max-parallel-pods-per-function=2", "--max-waitlist-length=1", AS_PORCH];
        let lab = Lab::start(&space, &flags).await;
        let mut pods = lab.pods_of_calls(&image, 8, &[("sleep", "500")]).await;
        pods.sort();
        pods.dedup();
        let mut wanted = vec![warm, second];
        wanted.sort();
        assert_eq!(pods, wanted, "both are used");
        assert_eq!(lab.witness.seen().ever.len(), 2, "and no others made: {:?}", lab.witness.seen().ever);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_that_porchs_runner_made_of_another_template_is_used_until_it_is_replaced() {
    on_cluster("adopted-stale", async |space| {
        is_replaced(&space, &id(1), "123456").await;
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_of_an_older_porch_is_used_until_it_is_replaced() {
    on_cluster("adopted-old", async |space| {
        is_replaced(&space, &old_id(), INLINE).await;
    });
}

/// A pod that is not as it should be answers calls, with none lost, until one that is has come up; then there is that
/// one alone, with its Service.
async fn is_replaced(space: &Arc<Space>, id: &str, version: &str) {
    let image = push("test-function").await;
    let theirs = made_by_porch(space, id, true, version).await;
    let lab = Lab::start(space, &["--scan-interval=1s", AS_PORCH]).await;
    let call = lab.pod_of_call(&image, &[("sleep", "6000")]);
    let (busy, first) = tokio::join!(call, lab.pod_of_call(&image, &[]));
    assert_eq!([&busy, &first], [&theirs, &theirs], "it is there, so nobody waits for another");
    let replaced = |seen: &Seen| seen.there.len() == 1 && !seen.names().contains(&theirs);
    let seen = lab.witness.until("replaced", PATIENCE, replaced).await;
    let ours = seen.names().remove(0);
    assert_eq!(lab.pod_of_call(&image, &[]).await, ours);
    assert_eq!(seen.ever.len(), 2, "one for one: {:?}", seen.ever);
    let services = || async {
        let list = space.api::<Service>().list(&ListParams::default()).await.unwrap();
        list.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    let wanted = seen.there.values().next().unwrap().labels()[IMAGE_LABEL].clone();
    eventually("its Service alone", || async { services().await == [wanted.clone()] }).await;
    lab.was_refused_nothing();
}

#[test]
#[ignore = "needs the cluster: make test"]
fn of_two_pods_for_one_that_porchs_replicas_made_one_stays() {
    on_cluster("adopted-twice", async |space| {
        let image = push("test-function").await;
        let first = made_by_porch(&space, &id(1), false, INLINE).await;
        // Times of the cluster are whole seconds: the older of the two is to be the first.
        tokio::time::sleep(Duration::from_secs(1)).await;
        made_by_porch(&space, &id(1), false, INLINE).await;
        let lab =
            Lab::start(&space, &["--max-parallel-pods-per-function=2", "--scan-interval=1s", AS_PORCH]).await;
        lab.pod_of_call(&image, &[]).await;
        lab.witness.until("one", PATIENCE, |seen| seen.names() == [first.clone()]).await;
        assert_eq!(lab.pod_of_call(&image, &[]).await, first);
        assert_eq!(lab.witness.seen().ever.len(), 2, "{:?}", lab.witness.seen().ever);
        lab.was_refused_nothing();
    });
}
