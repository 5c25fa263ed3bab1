//! How long pods live, and what becomes of their calls when they end.

use std::time::{Duration, Instant};

use cluster_tests::{digest_tag, host_of, on_cluster, order, push, push_to, until};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use testing::Signal;

use super::{Lab, PATIENCE, connect};
use crate::installation::within;

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_lives_until_its_time_after_the_last_use_and_never_ends_with_a_call_in_it() {
    on_cluster("time-to-live", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &["--pod-ttl=4s", "--scan-interval=500ms"]).await;
        let first = lab.pod_of_call(&image, &[]).await;
        // Use extends its life, beyond what it was born with.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(8) {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(lab.pod_of_call(&image, &[]).await, first);
        }
        // A call longer than its life keeps it.
        assert_eq!(lab.pod_of_call(&image, &[("sleep", "8000")]).await, first);
        assert_eq!(lab.pod_of_call(&image, &[]).await, first);

        lab.left_nothing().await;
        assert_ne!(lab.pod_of_call(&image, &[]).await, first);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_goes_at_the_next_scan_when_somebody_brings_its_end_forward() {
    on_cluster("by-hand", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &["--scan-interval=500ms"]).await;
        let pod = lab.pod_of_call(&image, &[]).await;
        let past = json!({"metadata": {"annotations": {"fn.kpt.dev/reclaim-after": "1000000000"}}});
        space.api::<Pod>().patch(&pod, &PatchParams::default(), &Patch::Merge(&past)).await.unwrap();
        lab.left_nothing().await;
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_deleted_pod_finishes_its_calls_and_is_replaced_under_another_name() {
    on_cluster("deleted-pod", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &[]).await;
        let first = lab.pod_of_call(&image, &[]).await;
        let call = lab.spawn(&image, &order(&[("host", "true"), ("sleep", "4000")]));
        tokio::time::sleep(Duration::from_secs(1)).await;
        space.api::<Pod>().delete(&first, &DeleteParams::default()).await.unwrap();
        // By watch: nobody is sent into it any more.
        lab.witness
            .until("being deleted", PATIENCE, |seen| {
                seen.there.values().any(|pod| pod.metadata.deletion_timestamp.is_some())
            })
            .await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let second = lab.pod_of_call(&image, &[]).await;
        assert_ne!(second, first);
        let answer = call.await.unwrap().expect("the call in the deleted pod is answered");
        assert_eq!(host_of(&answer.resource_list), first, "it was finished where it was");
        lab.witness.until("the new one alone", PATIENCE, |seen| seen.names() == [second.clone()]).await;
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_call_whose_pod_vanished_is_answered_by_another() {
    on_cluster("killed-pod", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &[]).await;
        let first = lab.pod_of_call(&image, &[]).await;
        let call = lab.spawn(&image, &order(&[("host", "true"), ("sleep", "3000")]));
        tokio::time::sleep(Duration::from_secs(1)).await;
        space.kill_pod(&first).await;
        let answer = call.await.unwrap().expect("it is tried once more");
        let second = host_of(&answer.resource_list);
        assert_ne!(second, first);
        assert_eq!(lab.pod_of_call(&image, &[]).await, second);
        assert_eq!(lab.witness.seen().ever.len(), 2);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_runner_that_is_started_again_uses_the_pods_it_finds_and_replaces_stale_ones() {
    on_cluster("found-again", async |space| {
        let image = push("test-function").await;
        let mut lab =
            Lab::start(&space, &["--max-parallel-pods-per-function=2", "--max-waitlist-length=1"]).await;
        let pods = lab.pods_of_calls(&image, 4, &[("sleep", "3000")]).await;
        let ready = lab.witness.until("two and ready", PATIENCE, |seen| seen.ready().count() == 2).await;
        assert!(pods.iter().all(|pod| ready.names().contains(pod)));

        // Killed without a word, and one of its pods ends before the next one comes.
        lab.runner.signal(Signal::KILL);
        lab.runner.wait(Duration::from_secs(10));
        let dead = ready.there.values().next().unwrap().clone();
        let alive = ready.names().into_iter().find(|name| *name != dead.name_any()).unwrap();
        cluster_tests::signal_pod(&dead, Signal::KILL);
        let failed = |pod: Option<&Pod>| {
            let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
            phase.is_some_and(|phase| phase == "Failed")
        };
        until(&space.api::<Pod>(), &dead.name_any(), "failed", PATIENCE, failed).await;

        lab.runner = cluster_tests::HostRunner::another(&space)
            .await
            .flags(["--max-parallel-pods-per-function=2", "--max-waitlist-length=1"])
            .start();
        lab.client = connect(&lab.runner);
        assert_eq!(lab.pod_of_call(&image, &[]).await, alive, "{}", lab.runner.log());
        let gone = |seen: &cluster_tests::Seen| !seen.names().contains(&dead.name_any());
        lab.witness.until("without the failed one", PATIENCE, gone).await;
        // Its slot is free again.
        lab.pods_of_calls(&image, 4, &[("sleep", "3000")]).await;
        let seen = lab.witness.until("two again", PATIENCE, |seen| seen.ready().count() == 2).await;
        assert_eq!(seen.ever.len(), 3, "{:?}", seen.ever);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn services_without_pods_are_removed_and_what_is_not_ours_is_not_touched() {
    on_cluster("orphans", async |space| {
        let (services, pods) = (space.api::<Service>(), space.api::<Pod>());
        let service = |name: &str, key: &str, value: &str| -> Service {
            serde_json::from_value(json!({
                "metadata": {"name": name}, "spec": {"selector": {key: value}, "ports": [{"port": 9446}]},
            }))
            .unwrap()
        };
        let post = PostParams::default();
        let orphan = "set-owner-v1-1-0123abcd";
        services.create(&post, &service(orphan, "fn.kpt.dev/image", orphan)).await.unwrap();
        // One of ours by its label alone, one of somebody else.
        services.create(&post, &service("front", "fn.kpt.dev/image", orphan)).await.unwrap();
        services.create(&post, &service("other", "app", "other")).await.unwrap();
        let image = push("function-runner").await;
        space.start_pod("bystander", &image, &["/home/nonroot/server", "--disable-runtimes=pod"]).await;
        space.pod_ready("bystander").await;
        space
            .apply("apiVersion: v1\nkind: Secret\nmetadata: {name: auth-secret}\nstringData: {key: value}\n")
            .await;
        space.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {key: value}\n").await;
        let foreign = async || {
            let service = |name| services.get(name);
            let versions = [
                service("front").await.unwrap().resource_version(),
                service("other").await.unwrap().resource_version(),
                pods.get("bystander").await.unwrap().resource_version(),
                space.api::<Secret>().get("auth-secret").await.unwrap().resource_version(),
                space.api::<ConfigMap>().get("notes").await.unwrap().resource_version(),
            ];
            versions.map(|version| version.expect("it comes from the cluster"))
        };
        let before = foreign().await;

        let lab = Lab::start(&space, &["--scan-interval=1s", "--pod-ttl=5s"]).await;
        let image = push("test-function").await;
        lab.pod_of_call(&image, &[]).await;
        let patience = Duration::from_mins(3);
        until(&services, orphan, "removed", patience, |it: Option<&Service>| it.is_none()).await;
        lab.witness.until("gone", PATIENCE, |seen| seen.there.is_empty()).await;
        assert_eq!(foreign().await, before);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_that_takes_no_more_calls_is_noticed_by_those_in_it() {
    on_cluster("dead-wrapper", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &[]).await;
        let first = lab.pod_of_call(&image, &[]).await;
        let pod = space.api::<Pod>().get(&first).await.unwrap();
        let call = lab.spawn(&image, &order(&[("host", "true"), ("sleep", "3000")]));
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Every process of it ends at once, as if the node had run out of memory.
        cluster_tests::signal_pod(&pod, Signal::KILL);
        let answer = call.await.unwrap().expect("it is tried once more");
        assert_ne!(host_of(&answer.resource_list), first);
        let gone = |seen: &cluster_tests::Seen| !seen.names().contains(&first);
        lab.witness.until("without the dead one", PATIENCE, gone).await;
        let answer = lab.client.evaluate(&image, order(&[]), within(60)).await;
        answer.expect("and all goes on");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn where_no_more_pods_are_allowed_the_longest_idle_one_makes_room() {
    on_cluster("room", async |space| {
        let tag = digest_tag("test-function");
        let mut images = Vec::new();
        for name in ["room-one", "room-two", "room-three"] {
            images.push(push_to("test-function", name, &tag).await);
        }
        let lab = Lab::start(&space, &["--max-pods=2"]).await;
        let first = lab.pod_of_call(&images[0], &[]).await;
        let second = lab.pod_of_call(&images[1], &[]).await;
        assert_eq!(lab.pod_of_call(&images[0], &[]).await, first);
        let third = lab.pod_of_call(&images[2], &[]).await;
        let seen = lab.witness.seen();
        assert!(
            !seen.names().contains(&second),
            "the one that was idle for longest stays: {:?}",
            seen.names()
        );
        assert!(seen.names().contains(&first) && seen.names().contains(&third), "{:?}", seen.names());
        // All at once, more than there is room for: each gets its turn.
        let calls = images.iter().cycle().take(9).map(|image| lab.spawn(image, &order(&[("sleep", "300")])));
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap().expect("each call is answered");
        }
        assert_eq!(lab.witness.seen().most, 2);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_whose_service_was_deleted_is_replaced() {
    on_cluster("lost-service", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &["--scan-interval=1s"]).await;
        let pod = lab.pod_of_call(&image, &[]).await;
        let id = lab.witness.seen().there.values().next().unwrap().labels()["fn.kpt.dev/image"].clone();
        space.api::<Service>().delete(&id, &DeleteParams::default()).await.unwrap();
        // Young pods are not judged; calls are answered all the time.
        let mut answered_by = pod.clone();
        for _ in 0..90 {
            if answered_by != pod {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            answered_by = lab.pod_of_call(&image, &[]).await;
        }
        assert_ne!(answered_by, pod, "a newer pod answers");
        lab.witness.until("without the old one", PATIENCE, |seen| !seen.names().contains(&pod)).await;
        lab.was_refused_nothing();
    });
}
