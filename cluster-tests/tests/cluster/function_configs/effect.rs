//! What objects say about running functions, changed while they run.

use std::{collections::BTreeSet, time::Duration};

use cluster_tests::{ACCOUNT, Seen, Witness, client, digest_tag, on_cluster, order, push_to, refusals_of};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use testing::resource_list;

use super::{PATIENCE, REGISTRY, Scene, binary};
use crate::load::Load;

#[test]
#[ignore = "needs the cluster: make test"]
fn changes_under_load_lose_no_call() {
    on_cluster("config-load", async |space| {
        let scene = Scene::start(&space).await;
        let function = push_to("test-function", "configured", &digest_tag("test-function")).await;
        let (name, tag) = function.rsplit_once(':').unwrap();
        scene.apply("echo", &binary("echo", &["v1"])).await;
        let pods = |value: &str| {
            json!({
                "image": "configured", "prefixes": [name.strip_suffix("/configured").unwrap()],
                "podExecutor": {
                    "tags": [tag], "timeToLive": "10m",
                    "templateOverrides": { "container": { "env": [{ "name": "CHANGED", "value": value }] } },
                },
            })
        };
        scene.apply("configured", &pods("no")).await;
        let witness = space.witness().await;
        let is_of = |seen: &Seen, value: &str| {
            let of = |pod: &Pod| {
                let variables = pod.spec.as_ref().unwrap().containers[0].env.iter().flatten();
                variables.map(|it| (it.name.clone(), it.value.clone().unwrap())).collect::<Vec<_>>()
            };
            let wanted = vec![("CHANGED".to_owned(), value.to_owned())];
            seen.ready().count() > 0 && seen.there.values().all(|pod| of(pod) == wanted)
        };
        witness.until("warm, as the object says", PATIENCE, |seen| is_of(seen, "no")).await;
        scene.serves("echo:v1", true).await;

        let connect = || client(&format!("127.0.0.1:{}", scene.runner.port()));
        let executables = Load::begin(connect, &format!("{REGISTRY}/echo:v1"), &resource_list(&["one"]));
        let in_pods = Load::begin(connect, &function, &order(&[("sleep", "50")]));
        in_pods.goes_on(10).await;
        for round in 0..10 {
            let more = format!("v{}", round + 2);
            scene.patch("echo", &json!({ "spec": { "binaryExecutor": { "tags": ["v1", more] } } })).await;
            scene.serves(&format!("echo:{more}"), true).await;
            let other = format!("other-{round}");
            scene.apply(&other, &binary(&other, &["v1"])).await;
        }
        scene.apply("configured", &pods("yes")).await;
        witness.until("of the changed object", PATIENCE, |seen| is_of(seen, "yes")).await;
        // Without the object pods are as everybody's.
        scene.kubectl(&["delete", "functionconfig", "configured", "--timeout=30s"]).await;
        let is_usual = |seen: &Seen| seen.ready().count() > 0 && !is_of(seen, "yes");
        witness.until("as usual", PATIENCE, is_usual).await;
        executables.goes_on(20).await;
        in_pods.goes_on(20).await;
        executables.lost_nothing().await;
        in_pods.lost_nothing().await;
        assert_eq!(refusals_of(space.namespace(), ACCOUNT), []);
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn pods_are_warmed_up_and_kept_as_objects_say() {
    on_cluster("config-pods", async |space| {
        let scene = Scene::start(&space).await;
        let tag = digest_tag("test-function");
        let first = push_to("test-function", "kept", &tag).await;
        let second = push_to("test-function", "kept", "second").await;
        let witness: Witness = space.witness().await;
        let images = |seen: &Seen| -> Vec<String> {
            let mut images: Vec<_> =
                seen.ready().filter_map(|pod| pod.spec.as_ref()?.containers[0].image.clone()).collect();
            images.sort();
            images
        };
        let prefix = first.rsplit_once('/').unwrap().0;
        let spec = |replicas: i64| {
            json!({
                "image": "kept", "prefixes": [prefix],
                "podExecutor": {
                    "tags": [tag, "second"], "timeToLive": "2s", "maxParallelExecutions": 2, "minReplicas": replicas,
                },
            })
        };
        // Configured while the service runs: the first tag, for as long as it lives.
        scene.apply("kept", &spec(0)).await;
        witness.until("warm", PATIENCE, |seen| images(seen) == [first.clone()]).await;
        scene.patch("kept", &json!({ "spec": spec(2) })).await;
        let mut wanted = vec![first.clone(), first.clone(), second.clone(), second];
        wanted.sort();
        witness.until("kept", PATIENCE, |seen| images(seen) == wanted).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(images(&witness.seen()), wanted, "they live longer than unused ones");
        let uids: BTreeSet<_> = witness.seen().there.into_keys().collect();
        assert_eq!(uids.len(), 4);
        assert_eq!(refusals_of(space.namespace(), ACCOUNT), []);
    });
}
