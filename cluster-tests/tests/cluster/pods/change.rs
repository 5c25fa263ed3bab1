//! Changes while calls are made: none of them is lost.

use cluster_tests::{ACCOUNT, Rights, RunnerDeployment, Seen, client_of, kubectl, on_cluster};
use kube::ResourceExt;
use serde_json::json;

use super::{
    PATIENCE, needed_refusals,
    templates::{Template, image},
};
use crate::load::Load;

/// The one pod that is there and made with this annotation.
fn made_with(seen: &Seen, more: &str) -> bool {
    let mut pods = seen.there.values();
    let is_so =
        pods.next().is_some_and(|pod| pod.annotations().get("example.com/more").is_some_and(|it| it == more));
    is_so && pods.next().is_none()
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_changed_template_replaces_pods_under_load_without_losing_calls() {
    on_cluster("template-change", async |space| {
        let template = |more| Template { more, ..Template::default() };
        template("first").apply(&space, "pods").await;
        let runner = RunnerDeployment::with_pods(&space, "runner", Rights::Files).await;
        space.deploy(&runner.flags(["--function-pod-template=pods"])).await;
        let witness = space.witness().await;
        let input = cluster_tests::order(&[("sleep", "100")]);
        let load = Load::begin(|| client_of(space.namespace(), "runner"), &image().await, &input);
        load.goes_on(20).await;
        let first = witness.until("of the first template", PATIENCE, |seen| made_with(seen, "first")).await;

        template("second").apply(&space, "pods").await;
        let second =
            witness.until("of the second template", PATIENCE, |seen| made_with(seen, "second")).await;
        load.goes_on(20).await;
        let version = |seen: &Seen| {
            seen.there.values().next().unwrap().annotations()["fn.kpt.dev/template-version"].clone()
        };
        assert_ne!(version(&first), version(&second));

        // One that is no template is told and changes nothing.
        let broken = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pods"}, "data": {"template": "spec: ["},
        });
        space.apply_object(&broken).await;
        tokio::time::sleep(std::time::Duration::from_secs(8)).await;
        load.goes_on(20).await;
        load.lost_nothing().await;
        let last = witness.seen();
        assert_eq!(last.names(), second.names());
        assert_eq!(last.ever.len(), 2, "{:?}", last.ever);
        assert_eq!(needed_refusals(space.namespace(), ACCOUNT), []);
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_runner_restarted_under_load_loses_neither_calls_nor_pods() {
    on_cluster("restart", async |space| {
        let runner = RunnerDeployment::with_pods(&space, "runner", Rights::Files).await;
        let flags = ["--max-parallel-pods-per-function=2", "--max-waitlist-length=1"];
        space.deploy(&runner.flags(flags)).await;
        let witness = space.witness().await;
        let input = cluster_tests::order(&[("sleep", "100")]);
        let load = Load::begin(|| client_of(space.namespace(), "runner"), &image().await, &input);
        let before = witness.until("two and ready", PATIENCE, |seen| seen.ready().count() == 2).await;
        load.goes_on(20).await;

        let place = format!("--namespace={}", space.namespace());
        let old = space.pods_with(space.namespace(), "app=runner").await;
        kubectl(&["rollout", "restart", "deployment/runner", &place], b"").await.unwrap();
        space.deployed("runner").await;
        for pod in old {
            let gone = |it: Option<&k8s_openapi::api::core::v1::Pod>| it.is_none();
            cluster_tests::until(&space.api(), &pod, "gone", PATIENCE, gone).await;
        }
        load.goes_on(20).await;
        load.lost_nothing().await;
        let after = witness.seen();
        assert_eq!(after.ever, before.ever, "pods were replaced");
        assert_eq!(after.names(), before.names());
        assert_eq!(needed_refusals(space.namespace(), ACCOUNT), []);
    });
}
