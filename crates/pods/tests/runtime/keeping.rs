//! What functions keep, and what is forgotten.

use std::time::Duration;

use pods::settings::FunctionSettings;
use tokio::time::sleep;

use crate::{
    cluster::{Cluster, Reaction},
    scene::{ID, Scene, claim_of_another, image, metadata},
};

#[tokio::test(start_paused = true)]
async fn a_function_that_keeps_no_pods_any_more_is_not_tried_again() {
    let scene = Scene::new();
    *scene.world.settings.lock().unwrap() =
        FunctionSettings { min_pods: Some(1), ..FunctionSettings::default() };
    scene.hinder("create", "pods", usize::MAX, Reaction::Refuse(403, "Forbidden", "exceeded quota: q"));
    scene.runtime.warm_up(&image(), &metadata()).await.unwrap();
    sleep(Duration::from_mins(2)).await;
    let tries = scene.cluster.asked("create", "pods").len();
    assert!(tries > 5, "it is tried again: {tries}");

    *scene.world.settings.lock().unwrap() = FunctionSettings::default();
    scene.runtime.settings_changed();
    // One that is under way comes to its end.
    sleep(Duration::from_mins(1)).await;
    let tries = scene.cluster.asked("create", "pods").len();
    sleep(Duration::from_mins(30)).await;
    assert_eq!(scene.cluster.asked("create", "pods").len(), tries);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_was_given_up_starts_nothing_when_it_becomes_free() {
    let scene = Scene::with(Cluster::new(), |settings| {
        settings.scan_interval = Some(Duration::from_hours(10));
        settings.claim_timeout = Duration::from_mins(5);
    });
    scene.phases().await;
    scene.cluster.make("services", claim_of_another(&k8s_openapi::jiff::Timestamp::now().to_string()));
    scene.complaint(5).await;
    assert_eq!(scene.phases().await, ["taken"]);
    sleep(Duration::from_mins(2)).await;
    assert_eq!(scene.phases().await, [""; 0], "nobody waits for it");
    let claims = scene.cluster.asked("create", "services").len();
    scene.cluster.remove("services", ID);
    sleep(Duration::from_mins(2)).await;
    assert_eq!(scene.cluster.asked("create", "services").len(), claims);
    assert!(scene.cluster.all("pods").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_waited_for_is_used_when_it_becomes_free() {
    let scene = Scene::with(Cluster::new(), |settings| {
        settings.claim_timeout = Duration::from_mins(5);
    });
    scene.phases().await;
    scene.cluster.make("services", claim_of_another(&k8s_openapi::jiff::Timestamp::now().to_string()));
    let _call = scene.call(60);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(scene.phases().await, ["taken"]);
    scene.cluster.remove("services", ID);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(scene.cluster.all("pods").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_scans_nothing_is_collected() {
    for (interval, left) in [(None, 1), (Some(Duration::from_mins(1)), 0)] {
        let cluster = Cluster::new();
        cluster.make("services", claim_of_another("2020-01-01T00:00:00Z"));
        let scene = Scene::with(cluster, |settings| settings.scan_interval = interval);
        sleep(Duration::from_hours(24)).await;
        assert_eq!(scene.cluster.all("services").len(), left, "{interval:?}");
    }
}
