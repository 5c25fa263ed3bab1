//! Many objects, several replicas, and kinds that come late.

use std::{
    fs,
    time::{Duration, Instant},
};

use cluster_tests::{HostRunner, client, on_cluster, until};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
};
use serde_json::json;
use testing::{Server, eventually};
use tonic::Code;

use super::{EMPTY, REGISTRY, Scene, binary, config, is_ready};
use crate::installation::within;

#[test]
#[ignore = "needs the cluster: make test"]
fn two_replicas_agree_about_the_status() {
    on_cluster("config-replicas", async |space| {
        let scene = Scene::start(&space).await;
        let other = Scene::runner(&space, &scene.functions).await;
        for round in 0..5 {
            let name = format!("echo-{round}");
            scene.apply(&name, &binary(&name, &["v1"])).await;
            scene.becomes(&name, "ready", |object| is_ready(object, "True")).await;
        }
        // Then nobody writes any more.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let versions = || async {
            let list = scene.objects.list(&ListParams::default()).await.unwrap();
            list.iter().map(|it| (it.name_any(), it.resource_version())).collect::<Vec<_>>()
        };
        let before = versions().await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(versions().await, before);
        let client = client(&format!("127.0.0.1:{}", other.port()));
        client.evaluate(&format!("{REGISTRY}/echo-4:v1"), EMPTY.into(), within(30)).await.unwrap();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn kinds_that_are_installed_later_are_picked_up() {
    on_cluster("config-later", async |space| {
        space.claim_fixed_names_for_now().await;
        let scene = Scene::begin(&space).await;
        eventually("that there are none is told", || {
            scene.runner.log().contains("there are no FunctionConfigs to read: files and flags say it all")
        });
        // From here on other tests can have them too.
        space.share_definitions().await;
        scene.apply("echo", &binary("echo", &["v1"])).await;
        let begun = Instant::now();
        while scene.code("echo:v1").await != Code::Ok {
            assert!(begun.elapsed() < Duration::from_mins(3), "it is not picked up:\n{}", scene.runner.log());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(scene.runner.log().matches("there are no FunctionConfigs").count(), 1);
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_thousand_objects_are_read_in_no_time_and_little_memory() {
    const OBJECTS: usize = 1000;
    on_cluster("config-thousand", async |space| {
        let scene = Scene::start(&space).await;
        // What any object costs it has spent before.
        scene.apply("first", &binary("first", &["v1"])).await;
        scene.becomes("first", "ready", |object| is_ready(object, "True")).await;
        scene.serves("first:v1", true).await;
        let few = resident(&scene.runner);
        scene.kubectl(&["delete", "functionconfig", "first", "--timeout=30s"]).await;
        let Scene { objects, functions, runner, .. } = scene;
        drop(runner);
        let create = |number: usize| {
            let name = format!("function-{number}");
            let spec = json!({
                "image": name, "prefixes": ["", REGISTRY],
                "podExecutor": { "tags": ["v0.1.0"], "timeToLive": "30m" },
                "binaryExecutor": { "path": "echo", "tags": ["v0.1.1", "~1"] },
            });
            let object: DynamicObject = serde_json::from_value(config(&name, &spec)).unwrap();
            let objects = objects.clone();
            async move { objects.create(&PostParams::default(), &object).await }
        };
        futures::stream::iter(0..OBJECTS)
            .map(create)
            .buffer_unordered(16)
            .try_collect::<Vec<_>>()
            .await
            .unwrap();
        let runner = HostRunner::another(&space)
            .await
            .flags(functions.flags())
            // There is no registry for so many warm pods.
            .flags(["--warm-up-pod-cache=false"])
            .start();
        let (begun, read) =
            (time_of(&runner, "INFO function-runner"), time_of(&runner, "FunctionConfigs read"));
        assert!(read - begun < 3.0, "it took {} s", read - begun);
        let client = client(&format!("127.0.0.1:{}", runner.port()));
        client.evaluate(&format!("{REGISTRY}/function-777:v1.2.3"), EMPTY.into(), within(30)).await.unwrap();
        // Until all are told; that is when it has the most to do.
        let last = format!("function-{}", OBJECTS - 1);
        let begun = Instant::now();
        let mut most = 0;
        loop {
            most = most.max(resident(&runner));
            let all = objects.list(&ListParams::default()).await.unwrap();
            let is_told = |it: &DynamicObject| it.data["status"]["functionRunnerObservedGeneration"] == 1;
            if all.items.len() == OBJECTS && all.iter().all(is_told) {
                break;
            }
            assert!(begun.elapsed() < Duration::from_mins(3), "not all are told, {last} among them");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        most = most.max(resident(&runner));
        let growth = most.saturating_sub(few) / 1024;
        println!(
            "{OBJECTS} objects: read {:.2} s after the start, {growth} MB more memory",
            read - time_of(&runner, "INFO function-runner")
        );
        assert!(growth <= 20, "{growth} MB more than with no objects");
        // Let go while it runs: a thousand finalizers are much to take away by hand.
        objects.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        let gone = |it: Option<&DynamicObject>| it.is_none();
        until(&objects, &last, "gone", Duration::from_mins(2), gone).await;
    });
}

/// The resident memory of a runner, in KiB.
fn resident(runner: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", runner.process())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// When a line was written, in seconds of the day.
fn time_of(runner: &Server, words: &str) -> f64 {
    let log = runner.log();
    let line =
        log.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words:?} in {log}"));
    let time = line.split_once('T').unwrap().1.split_once('Z').unwrap().0;
    let parts: Vec<f64> = time.split(':').map(|part| part.parse().unwrap()).collect();
    parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]
}
