//! The rights of what comes after Porch 1.5: templates are objects of the pod namespace.

use std::{sync::Arc, time::Duration};

use cluster_tests::{
    ACCOUNT, HostRunner, IMAGE_LABEL, Rights, Seen, Space, on_cluster, order, push, refusals_of,
};
use k8s_openapi::api::core::v1::{Pod, PodTemplate, Service};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::json;
use testing::Signal;

use super::{Lab, PATIENCE, connect};
use crate::load::Load;

const POD_TEMPLATE: &str = "base-pod-template";
const SERVICE_TEMPLATE: &str = "base-service-template";

async fn start(space: &Arc<Space>, flags: &[&str]) -> Lab {
    Lab::start_with(space, Rights::Objects, |builder| builder.flags(flags.iter().copied())).await
}

fn service_templates(space: &Space) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("config.porch.kpt.dev", "v1alpha1", "ServiceTemplate");
    let kind = ApiResource::from_gvk_with_plural(&kind, "servicetemplates");
    Api::namespaced_with(space.client(), space.namespace(), &kind)
}

/// Changes the template of pods; its new version.
async fn change(space: &Space, value: &str) -> String {
    let change = json!({"template": {"metadata": {"annotations": {"example.com/changed": value}}}});
    let (params, change) = (PatchParams::default(), Patch::Merge(&change));
    let changed = space.api::<PodTemplate>().patch(POD_TEMPLATE, &params, &change).await.unwrap();
    changed.resource_version().unwrap()
}

/// Whether there are pods, all of this version of the template.
fn is_of(seen: &Seen, version: &str) -> bool {
    let of = |pod: &Pod| pod.annotations().get("fn.kpt.dev/template-version").is_some_and(|it| it == version);
    seen.ready().count() > 0 && seen.there.values().all(of)
}

#[test]
#[ignore = "needs the cluster: make test"]
fn templates_that_are_missing_are_made_and_followed() {
    on_cluster("objects", async |space| {
        space.share_definitions().await;
        let image = push("test-function").await;
        let mut lab = start(&space, &["--scan-interval=1s"]).await;
        let first = lab.pod_of_call(&image, &[]).await;
        let template = space.api::<PodTemplate>().get(POD_TEMPLATE).await.expect("it is made");
        let version = template.resource_version().unwrap();
        // What the cluster shows of it may be a moment old.
        lab.witness.until("of the template that is there", PATIENCE, |seen| is_of(seen, &version)).await;
        let services = service_templates(&space);
        services.get(SERVICE_TEMPLATE).await.expect("it is made");

        // Killed without a word; the next one makes neither templates nor pods anew. That of Services has changed
        // meanwhile, which is no reason for other pods.
        lab.runner.signal(Signal::KILL);
        lab.runner.wait(Duration::from_secs(10));
        let spec = json!({"template": {"spec": {"sessionAffinity": "ClientIP"}}});
        services.patch(SERVICE_TEMPLATE, &PatchParams::default(), &Patch::Merge(&spec)).await.unwrap();
        lab.runner = HostRunner::another(&space).await.flags(["--scan-interval=1s"]).start();
        lab.client = connect(&lab.runner);
        assert_eq!(lab.pod_of_call(&image, &[]).await, first, "{}", lab.runner.log());
        let again = space.api::<PodTemplate>().get(POD_TEMPLATE).await.unwrap();
        assert_eq!(again.resource_version().unwrap(), version);

        // Pods of the changed template are made with Services of theirs.
        let version = change(&space, "yes").await;
        lab.pod_of_call(&image, &[]).await;
        let seen = lab.witness.until("of the changed template", PATIENCE, |seen| is_of(seen, &version)).await;
        let pod = seen.there.values().next().unwrap();
        assert_eq!(pod.annotations()["example.com/changed"], "yes");
        let service = space.api::<Service>().get(&pod.labels()[IMAGE_LABEL]).await.unwrap();
        assert_eq!(service.spec.unwrap().session_affinity.as_deref(), Some("ClientIP"));
        assert_ne!(lab.pod_of_call(&image, &[]).await, first);
        assert_eq!(lab.witness.seen().ever.len(), 2, "{:?}", lab.witness.seen().ever);
        assert_eq!(refusals_of(space.namespace(), ACCOUNT), []);
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn two_replicas_do_not_fight_over_a_changed_template() {
    on_cluster("objects-replicas", async |space| {
        const PODS: usize = 2;
        space.share_definitions().await;
        let image = push("test-function").await;
        let flags =
            ["--max-parallel-pods-per-function=2", "--max-waitlist-length=1", "--scan-interval=500ms"];
        let one = start(&space, &flags).await;
        let other = HostRunner::another(&space).await.flags(flags).start();
        let input = order(&[("sleep", "200")]);
        let load = Load::begin(|| connect(&one.runner), &image, &input);
        let second_load = Load::begin(|| connect(&other), &image, &input);
        load.goes_on(1).await;
        let template = space.api::<PodTemplate>().get(POD_TEMPLATE).await.expect("one of them has made it");
        let mut version = template.resource_version().unwrap();
        let are = |seen: &Seen, version: &str| seen.ready().count() == PODS && is_of(seen, version);
        one.witness.until("two of the first template", PATIENCE, |seen| are(seen, &version)).await;
        for value in ["once", "twice"] {
            let before = one.witness.seen().ever.len();
            version = change(&space, value).await;
            one.witness.until("two of the changed template", PATIENCE, |seen| are(seen, &version)).await;
            load.goes_on(20).await;
            second_load.goes_on(20).await;
            // Each replica may have begun with one of its own before it saw the other's.
            let made = one.witness.seen().ever.len() - before;
            assert!((PODS..=2 * PODS).contains(&made), "{made} pods for {PODS}: {}", other.log());
        }
        // And then there is peace.
        let settled = one.witness.seen().ever.len();
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(one.witness.seen().ever.len(), settled, "{}", other.log());
        load.lost_nothing().await;
        second_load.lost_nothing().await;
        assert_eq!(refusals_of(space.namespace(), ACCOUNT), []);
    });
}
