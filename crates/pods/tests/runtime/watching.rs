//! Watches that break off, and lists that come late.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Notify, time::sleep};

use crate::{
    cluster::{Asked, Cluster, Reaction},
    scene::{ID, Scene},
};

/// Ends the watch of pods that is under way; the next meets with this.
fn disturb(scene: &Scene, mut script: impl FnMut(&Asked) -> Reaction + Send + 'static) {
    scene
        .cluster
        .script(move |asked: &Asked| if asked.kind == "pods" { script(asked) } else { Reaction::Do });
    scene.cluster.make("pods", serde_json::json!({"metadata": {"name": "another"}}));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_too_old_begins_anew() {
    let scene = Scene::new();
    let _call = scene.call(120);
    scene.cluster.until("a pod", |cluster| cluster.all("pods").len() == 1).await;
    let lists = scene.cluster.asked("list", "pods").len();
    let mut has_expired = false;
    let gap = Arc::new(Notify::new());
    let until = gap.clone();
    disturb(&scene, move |asked| match asked.verb {
        "watch" if !std::mem::replace(&mut has_expired, true) => Reaction::Expire,
        "list" => Reaction::Hold(until.clone()),
        _ => Reaction::Do,
    });
    scene.cluster.until("another list", |cluster| cluster.asked("list", "pods").len() > lists).await;
    gap.notify_one();
    assert_eq!(scene.phases().await, ["starting"], "it is in the list");
    // What happens after the list is seen by the watch that follows it.
    sleep(Duration::from_secs(1)).await;
    let name = name_of_pod(&scene.cluster);
    scene.cluster.script(|_| Reaction::Do);
    scene.cluster.remove("pods", &name);
    let is_replaced = |cluster: &Cluster| cluster.asked("create", "pods").len() == 2;
    scene.cluster.until("a pod in its place", is_replaced).await;
}

#[tokio::test(start_paused = true)]
async fn what_went_while_nobody_watched_is_noticed() {
    let scene = Scene::new();
    let _call = scene.call(120);
    scene.cluster.until("a pod", |cluster| cluster.all("pods").len() == 1).await;
    sleep(Duration::from_secs(1)).await;
    let name = name_of_pod(&scene.cluster);
    let mut has_expired = false;
    disturb(&scene, move |asked| match asked.verb {
        "watch" if !std::mem::replace(&mut has_expired, true) => Reaction::Expire,
        _ => Reaction::Do,
    });
    // After the watch that would have told of it, before the list that does not show it.
    let watches = scene.cluster.asked("watch", "pods").len();
    scene.cluster.until("a watch", |cluster| cluster.asked("watch", "pods").len() > watches).await;
    assert_eq!(scene.cluster.asked("list", "pods").len(), 1);
    scene.cluster.remove("pods", &name);
    let is_replaced = |cluster: &Cluster| cluster.asked("create", "pods").len() == 2;
    scene.cluster.until("a pod in its place", is_replaced).await;
}

/// A list shows what was there when it was read. What was made since then is not gone.
#[tokio::test(start_paused = true)]
async fn a_pod_made_while_a_list_is_on_its_way_is_not_taken_for_gone() {
    let scene = Scene::new();
    scene.phases().await;
    let lists = scene.cluster.asked("list", "pods").len();
    let arrives = Arc::new(Notify::new());
    let until = arrives.clone();
    let mut has_expired = false;
    disturb(&scene, move |asked| match asked.verb {
        "watch" if !std::mem::replace(&mut has_expired, true) => Reaction::Expire,
        "list" => Reaction::Hold(until.clone()),
        _ => Reaction::Do,
    });
    scene.cluster.until("another list", |cluster| cluster.asked("list", "pods").len() > lists).await;
    let _call = scene.call(120);
    scene.cluster.until("a pod", |cluster| cluster.asked("create", "pods").len() == 1).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.phases().await, ["starting"]);
    arrives.notify_one();
    sleep(Duration::from_secs(30)).await;
    assert_eq!(scene.phases().await, ["starting"]);
    assert!(scene.cluster.asked("delete", "services").is_empty());
    assert_eq!(scene.cluster.asked("create", "pods").len(), 1);
}

fn name_of_pod(cluster: &Cluster) -> String {
    let pods = cluster.all("pods");
    let names = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str());
    names.into_iter().find(|name| name.starts_with(ID)).expect("a pod").to_owned()
}
