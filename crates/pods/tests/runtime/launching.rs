//! Making pods with an API server in trouble: one pod comes of it, or a clear word.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::{
    cluster::{Cluster, Reaction},
    scene::{ID, Scene, claim_of_another, hinder, image, metadata},
};

const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// One pod is made and stays the only one.
async fn expect_one_pod(scene: &Scene) {
    let count = |cluster: &Cluster| (cluster.all("services").len(), cluster.all("pods").len());
    scene.cluster.until("a pod and its Service", |cluster| count(cluster) == (1, 1)).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(count(&scene.cluster), (1, 1));
    assert_eq!(scene.phases().await, ["starting"]);
}

#[tokio::test(start_paused = true)]
async fn trouble_that_passes_is_sat_out() {
    for kind in ["services", "pods"] {
        for reaction in [
            Reaction::Refuse(409, "Conflict", "the object has been modified"),
            Reaction::Refuse(429, "TooManyRequests", "later"),
            Reaction::Refuse(500, "InternalError", "failed calling webhook"),
            Reaction::Refuse(503, "ServiceUnavailable", "etcd is away"),
            Reaction::Break,
            Reaction::Ignore,
        ] {
            let scene = Scene::new();
            scene.hinder("create", kind, 2, reaction.clone());
            let _call = scene.call(120);
            expect_one_pod(&scene).await;
            assert_eq!(scene.cluster.asked("create", kind).len(), 3, "{kind} {reaction:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_second_pod() {
    for kind in ["services", "pods"] {
        let scene = Scene::new();
        scene.hinder("create", kind, 1, Reaction::Lose);
        let _call = scene.call(120);
        expect_one_pod(&scene).await;
        let made = scene.cluster.all("pods")[0]["metadata"]["generateName"].clone();
        assert_eq!(made, format!("{ID}-"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_second_pod_of_an_exact_name() {
    let scene = Scene::new();
    scene.hinder("create", "pods", 1, Reaction::Lose);
    scene.runtime.warm_up(&image(), &metadata()).await.unwrap();
    expect_one_pod(&scene).await;
    assert_eq!(scene.cluster.all("pods")[0]["metadata"]["name"], ID);
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_exact_name_is_evaded() {
    let cluster = Cluster::new();
    cluster.make("pods", json!({"metadata": {"name": ID}, "spec": {"containers": []}}));
    let scene = Scene::with(cluster, |_| {});
    scene.runtime.warm_up(&image(), &metadata()).await.unwrap();
    scene.cluster.until("a second pod", |cluster| cluster.all("pods").len() == 2).await;
    let asked = scene.cluster.asked("create", "pods");
    assert_eq!(asked[0].body["metadata"]["name"], ID);
    assert_eq!(asked[1].body["metadata"]["name"], json!(null));
    assert_eq!(asked[1].body["metadata"]["generateName"], format!("{ID}-"));
    assert_eq!(asked.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_service_in_the_way_is_named_and_left_alone() {
    let cluster = Cluster::new();
    let foreign =
        json!({"metadata": {"name": ID}, "spec": {"clusterIP": "10.0.0.1", "selector": {"app": "shop"}}});
    cluster.make("services", foreign);
    let scene = Scene::with(cluster, |_| {});
    let complaint = scene.complaint(30).await;
    assert!(complaint.contains(&format!("the Service {ID} in functions is not one of")), "{complaint}");
    sleep(Duration::from_mins(5)).await;
    assert_eq!(scene.cluster.all("services").len(), 1);
    assert!(scene.cluster.asked("delete", "services").is_empty());
    assert!(scene.cluster.asked("create", "pods").is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_claim_of_another_is_respected_for_its_time_and_then_taken_over() {
    let scene = Scene::new();
    scene.phases().await;
    scene.cluster.make("services", claim_of_another(&k8s_openapi::jiff::Timestamp::now().to_string()));
    let _call = scene.call(120);
    sleep(Duration::from_secs(9)).await;
    assert_eq!(scene.phases().await, ["taken"]);
    assert!(scene.cluster.all("pods").is_empty());
    sleep(Duration::from_secs(3)).await;
    expect_one_pod(&scene).await;
    let service = &scene.cluster.all("services")[0];
    assert_eq!(service["metadata"]["annotations"]["fn.kpt.dev/claimed-by"], "another", "it is used as it is");
}

#[tokio::test(start_paused = true)]
async fn an_old_claim_without_a_pod_is_taken_over_at_once() {
    let cluster = Cluster::new();
    cluster.make("services", claim_of_another(LONG_AGO));
    let scene = Scene::with(cluster, |_| {});
    let _call = scene.call(120);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(scene.cluster.all("pods").len(), 1);
}

/// The question whether an old claim has a pod must not hold the launch up for ever.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_answered_does_not_hold_a_launch_up() {
    let cluster = Cluster::new();
    cluster.make("services", claim_of_another(LONG_AGO));
    let scene = Scene::with(cluster, |_| {});
    scene.phases().await;
    scene.hinder("list", "pods", 1, Reaction::Ignore);
    let _call = scene.call(120);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(scene.phases().await, ["launching"], "it is being asked");
    sleep(Duration::from_secs(6)).await;
    assert_eq!(scene.phases().await, ["taken"], "in doubt there is a pod");
    sleep(Duration::from_secs(10)).await;
    expect_one_pod(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_leaves_nothing_behind() {
    let cluster = Cluster::new();
    hinder(
        &cluster,
        "create",
        "pods",
        usize::MAX,
        Reaction::Refuse(403, "Forbidden", "violates PodSecurity"),
    );
    let scene = Scene::with(cluster, |_| {});
    let complaint = scene.complaint(30).await;
    assert!(complaint.ends_with("cannot create a pod in functions: violates PodSecurity"), "{complaint}");
    assert_eq!(scene.cluster.asked("create", "pods").len(), 1);
    assert!(scene.cluster.all("services").is_empty());
}
