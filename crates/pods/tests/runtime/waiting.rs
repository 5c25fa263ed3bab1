//! Calls whose time ends while the API server is away hear of that.

use crate::{
    cluster::{Asked, Cluster, Reaction},
    scene::{Scene, hinder},
};

#[tokio::test(start_paused = true)]
async fn requests_that_fail_are_named() {
    for (kind, what) in [
        ("services", "cannot create the Service of a function pod"),
        ("pods", "cannot create a pod in functions"),
    ] {
        for (reaction, words) in [
            (Reaction::Refuse(503, "", "etcd is away"), "etcd is away; trying again"),
            (Reaction::Break, "the API server cannot be asked: connection refused; trying again"),
            (Reaction::Ignore, "the API server has not answered yet"),
        ] {
            let scene = Scene::new();
            scene.hinder("create", kind, usize::MAX, reaction);
            let complaint = scene.complaint(2).await;
            assert!(complaint.ends_with(&format!("waited 2.00s for a pod: {what}: {words}")), "{complaint}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_that_passed_is_not_named() {
    let scene = Scene::new();
    scene.hinder("create", "pods", 1, Reaction::Break);
    let complaint = scene.complaint(5).await;
    assert!(complaint.ends_with("waited 5.00s for a pod, which was still starting"), "{complaint}");
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_not_known_yet_is_named() {
    let cluster = Cluster::new();
    cluster.script(|asked: &Asked| match asked.kind.as_str() {
        "servicetemplates" => Reaction::Ignore,
        _ => Reaction::Do,
    });
    let scene = Scene::with(cluster, |_| {});
    let complaint = scene.complaint(2).await;
    assert!(complaint.contains("waited 2.00s for a pod: the pod template is not known yet"), "{complaint}");
}

#[tokio::test(start_paused = true)]
async fn a_first_look_that_is_not_over_is_named() {
    for kind in ["pods", "services"] {
        let cluster = Cluster::new();
        hinder(&cluster, "list", kind, usize::MAX, Reaction::Ignore);
        let scene = Scene::with(cluster, |_| {});
        let patient = scene.call(60);
        let complaint = scene.complaint(2).await;
        let expected = "waited 2.00s for a pod: it is not known yet what pods there are";
        assert!(complaint.contains(expected), "{complaint}");
        assert!(scene.cluster.asked("create", "services").is_empty(), "it is looked for pods first");
        scene.cluster.until("a pod, all the same", |cluster| cluster.all("pods").len() == 1).await;
        patient.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_down_is_named() {
    for kind in ["pods", "services"] {
        let scene = Scene::new();
        scene.phases().await;
        scene.hinder("watch", kind, usize::MAX, Reaction::Refuse(403, "Forbidden", "no watching"));
        // The watches that are under way end with the first that happens.
        for name in ["pods", "services"] {
            scene.cluster.make(name, serde_json::json!({"metadata": {"name": "another"}}));
        }
        let complaint = scene.complaint(20).await;
        let what = if kind == "pods" { "pods" } else { "Services" };
        let expected = format!("waited 20.00s for a pod: cannot watch {what}: no watching; trying again");
        assert!(complaint.ends_with(&expected), "{complaint}");
    }
}
