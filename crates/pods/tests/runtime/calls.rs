//! Calls in pods that answer, and what becomes of them when those die. The connections are real.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use pods::{Lease, Lost};
use registry::Reference;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};
use tonic::Code;
use wire::{Answer, client::CallOptions};

use crate::{
    cluster::Cluster,
    scene::{IMAGE, Scene, metadata},
    wrapper::{Way, Wrapper},
};

/// The name of the first pod, once it is made.
async fn first_pod(cluster: &Cluster) -> String {
    cluster.until("a pod", |cluster| !cluster.all("pods").is_empty()).await;
    cluster.all("pods")[0]["metadata"]["name"].as_str().unwrap().to_owned()
}

fn function(state: &Value) -> Value {
    json!([{
        "name": "function", "image": IMAGE, "imageID": "i", "ready": false, "restartCount": 0, "state": state,
    }])
}

fn run_at(pod: &mut Value, address: IpAddr) {
    let running = function(&json!({"running": {"startedAt": "2025-01-01T00:00:00Z"}}));
    pod["status"] = json!({"phase": "Running", "podIP": address, "containerStatuses": running});
}

fn run(lease: Lease) -> JoinHandle<Result<Answer, Lost>> {
    tokio::spawn(async move {
        let deadline = Instant::now() + Duration::from_secs(30);
        lease
            .run(IMAGE, Bytes::from_static(b"kind: ResourceList"), Some(deadline), CallOptions::default())
            .await
    })
}

/// Waits until the only pod is in doubt.
async fn doubt<T>(scene: &Scene, call: &JoinHandle<T>) {
    while scene.phases().await != ["doubted"] {
        assert!(!call.is_finished(), "there is something to be found out first");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_told_what_killed_its_pod_not_what_held_up_its_start() {
    let (scene, mut wrapper) = (Scene::new(), Wrapper::start(1));
    let call = scene.call(20);
    let pod = first_pod(&scene.cluster).await;
    scene.cluster.change("pods", &pod, |pod| {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        pod["status"] = json!({"phase": "Pending", "conditions": [condition]});
    });
    let is_troubled = async {
        while scene.runtime.look().await.pods.iter().all(|pod| pod.trouble.is_none()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), is_troubled).await.unwrap();
    scene.cluster.change("pods", &pod, |pod| run_at(pod, wrapper.address));
    let call = run(call.await.unwrap().unwrap());
    scene.cluster.until("a call in the pod", |_| wrapper.begun() == 1).await;
    assert_eq!(*scene.world.stages.lock().unwrap(), ["resolve", "schedule", "start", "pull", "connect"]);

    wrapper.kill();
    scene.cluster.change("pods", &pod, |pod| {
        let ended = json!({"terminated": {
            "exitCode": 137, "reason": "OOMKilled",
            "startedAt": "2025-01-01T00:00:00Z", "finishedAt": "2025-01-01T00:10:00Z",
        }});
        pod["status"] = json!({"phase": "Running", "containerStatuses": function(&ended)});
    });
    let Err(Lost::Call(failure)) = call.await.unwrap() else { panic!("it is not to be run again") };
    assert_eq!(failure.code(), Code::ResourceExhausted);
    assert!(failure.to_string().contains("ran out of memory"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tags_of_one_digest_share_a_pod_after_a_restart_too() {
    let (scene, wrapper) = (Scene::new(), Wrapper::start(6));
    let latest = || Reference::parse("example.com/set-owner:latest").unwrap();
    let elsewhere = || Reference::parse("example.org/set-owner:v1").unwrap();
    let call = scene.call(20);
    let other = scene.call_as(latest(), 20);
    let pod = first_pod(&scene.cluster).await;
    let annotations = scene.cluster.all("pods")[0]["metadata"]["annotations"].clone();
    assert_eq!(annotations["fn.kpt.dev/function"], IMAGE);
    assert_eq!(annotations["fn.kpt.dev/digest"], metadata().digest);
    scene.cluster.change("pods", &pod, |pod| run_at(pod, wrapper.address));
    let (first, second) = (call.await.unwrap().unwrap(), other.await.unwrap().unwrap());
    assert_eq!([first.pod(), second.pod()], [&*pod, &*pod]);

    let restarted = Scene::with(scene.cluster.clone(), |_| {});
    assert_eq!(restarted.call_as(latest(), 20).await.unwrap().unwrap().pod(), &*pod);
    assert_eq!(restarted.cluster.asked("create", "pods").len(), 1);
    // The same digest in another repository is another's to keep: whoever may use one may not use the other.
    let _waits = restarted.call_as(elsewhere(), 20);
    let is_made = |cluster: &Cluster| cluster.asked("create", "services").len() > 1;
    restarted.cluster.until("another claim", is_made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_goes_when_somebody_has_brought_its_end_forward() {
    let often = |settings: &mut pods::RuntimeSettings| {
        settings.scan_interval = Some(Duration::from_millis(50));
    };
    let (scene, wrapper) = (Scene::with(Cluster::new(), often), Wrapper::start(7));
    let call = scene.call(20);
    let pod = first_pod(&scene.cluster).await;
    scene.cluster.change("pods", &pod, |pod| run_at(pod, wrapper.address));
    let lease = call.await.unwrap().unwrap();
    scene.cluster.change("pods", &pod, |pod| {
        pod["metadata"]["annotations"]["fn.kpt.dev/reclaim-after"] = json!("1000000000");
    });
    // Not with a call in it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(scene.cluster.all("pods").len(), 1);
    drop(lease);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(scene.cluster.all("pods").len(), 1, "it has been used since");
    scene.cluster.change("pods", &pod, |pod| {
        pod["metadata"]["annotations"]["fn.kpt.dev/reclaim-after"] = json!("999999999");
    });
    scene.cluster.until("the pod removed", |cluster| cluster.all("pods").is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_connection_broke_gets_no_new_calls() {
    let (scene, mut wrapper) =
        (Scene::with(Cluster::new(), |settings| settings.max_parallel = 2), Wrapper::start(2));
    let call = scene.call(20);
    let pod = first_pod(&scene.cluster).await;
    scene.cluster.change("pods", &pod, |pod| run_at(pod, wrapper.address));
    let call = run(call.await.unwrap().unwrap());
    scene.cluster.until("a call in the pod", |_| wrapper.begun() == 1).await;

    wrapper.kill();
    // The cluster has not noticed, so the call waits for its word; others do not get the pod meanwhile.
    doubt(&scene, &call).await;
    let next = scene.call(20);
    scene.cluster.until("another pod", |cluster| cluster.asked("create", "pods").len() == 2).await;
    assert!(!next.is_finished() && !call.is_finished());
    let Err(Lost::Pod(failure)) = call.await.unwrap() else { panic!("another pod may do better") };
    assert!(failure.to_string().contains(&format!("its pod {pod} died")), "{failure}");
    scene.cluster.until("the dead pod removed", |cluster| cluster.asked("delete", "pods").len() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doubt_ends_also_when_the_caller_goes_away() {
    let (scene, mut wrapper) = (Scene::new(), Wrapper::start(3));
    let call = scene.call(20);
    let pod = first_pod(&scene.cluster).await;
    scene.cluster.change("pods", &pod, |pod| run_at(pod, wrapper.address));
    let call = run(call.await.unwrap().unwrap());
    scene.cluster.until("a call in the pod", |_| wrapper.begun() == 1).await;
    wrapper.kill();
    doubt(&scene, &call).await;
    call.abort();
    scene.cluster.until("the dead pod removed", |cluster| cluster.asked("delete", "pods").len() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_answers_again_is_used_again() {
    let (scene, wrapper) = (Scene::new(), Wrapper::start(4));
    let way = Way::to(&wrapper, 5);
    let call = scene.call(20);
    let pod = first_pod(&scene.cluster).await;
    scene.cluster.change("pods", &pod, |pod| run_at(pod, way.address));
    let call = run(call.await.unwrap().unwrap());
    scene.cluster.until("a call in the pod", |_| wrapper.begun() == 1).await;
    way.cut();
    let Err(Lost::Pod(failure)) = call.await.unwrap() else { panic!("the call is lost") };
    assert!(failure.to_string().contains(&format!("the connection to the pod {pod} broke")), "{failure}");
    // The first one may still be running in the pod.
    let call = run(scene.call(20).await.unwrap().unwrap());
    scene.cluster.until("a call in the same pod", |_| wrapper.begun() == 2).await;
    while !call.is_finished() {
        wrapper.finish_one();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(call.await.unwrap().unwrap().resource_list, "kind: ResourceList");
    assert_eq!(scene.cluster.asked("create", "pods").len(), 1);
}
