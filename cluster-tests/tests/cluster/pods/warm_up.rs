//! Pods before anybody calls.

use std::{collections::BTreeSet, fs};

use cluster_tests::{IMAGE_LABEL, Seen, digest_tag, eventually, on_cluster, push_to};
use kube::ResourceExt;
use tempfile::TempDir;

use super::{Lab, PATIENCE};

/// Images of three functions, in nothing different but their names.
async fn images() -> [String; 3] {
    let tag = digest_tag("test-function");
    let mut images = Vec::new();
    for name in ["warm-one", "warm-two", "warm-three"] {
        images.push(push_to("test-function", name, &tag).await);
    }
    images.try_into().unwrap()
}

/// The images of the pods that are ready, all of which are named exactly by their id.
fn warm(seen: &Seen) -> BTreeSet<String> {
    let exact = seen.ready().filter(|pod| pod.name_any() == pod.labels()[IMAGE_LABEL]);
    exact.filter_map(|pod| pod.spec.as_ref()?.containers[0].image.clone()).collect()
}

#[test]
#[ignore = "needs the cluster: make test"]
fn the_functions_of_a_map_are_warmed_up() {
    on_cluster("warm-map", async |space| {
        let [one, two, three] = images().await;
        let missing = "localhost:5000/no-such-function:v1";
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("pod-cache-config.yaml");
        fs::write(&file, format!("{one}: 30m\n{missing}: 10m\n{two}: 5m\n")).unwrap();
        let flag = format!("--pod-cache-config={}", file.display());
        let lab = Lab::start(&space, &[&flag]).await;
        let wanted = BTreeSet::from([one.clone(), two]);
        let seen = lab.witness.until("warm", PATIENCE, |seen| warm(seen) == wanted).await;
        assert_eq!(seen.ever.len(), 2, "{:?}", seen.ever);
        // The runner's word comes after the pod's.
        eventually("all three are told of", || async { lab.runner.log().contains("3 of 3") }).await;
        assert!(lab.runner.log().contains(missing), "{}", lab.runner.log());

        let pod = lab.pod_of_call(&one, &[]).await;
        assert!(seen.names().contains(&pod), "{pod} is not the warm one");
        // What is written down later is warmed up later.
        fs::write(&file, format!("{one}: 30m\n{three}: 30m\n")).unwrap();
        lab.witness.until("warm", PATIENCE, |seen| warm(seen).contains(&three)).await;
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn the_functions_of_a_list_are_warmed_up_as_it_says() {
    on_cluster("warm-list", async |space| {
        let [one, two, _] = images().await;
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("pod-cache-config.yaml");
        let text = format!(
            "- name: {one}\n  timeToLive: 4s\n  maxWaitlistLength: 1\n  maxParallelPodsPerFunction: 2\n  \
             resources: {{requests: {{memory: 24Mi}}, limits: {{memory: 96Mi}}}}\n\
             - name: {two}\n  timeToLive: 0s\n  maxWaitlistLength: 0\n  maxParallelPodsPerFunction: -1\n"
        );
        fs::write(&file, text).unwrap();
        let flag = format!("--pod-cache-config={}", file.display());
        let lab = Lab::start(&space, &[&flag, "--scan-interval=500ms"]).await;
        let seen = lab
            .witness
            .until("made", PATIENCE, |seen| seen.ready().count() == 2 && warm(seen).len() == 2)
            .await;
        let pod_of = |seen: &Seen, image: &str| {
            let is_it = |pod: &&k8s_openapi::api::core::v1::Pod| {
                pod.spec.as_ref().is_some_and(|spec| spec.containers[0].image.as_deref() == Some(image))
            };
            seen.there.values().find(is_it).cloned()
        };
        let resources = pod_of(&seen, &one).unwrap().spec.unwrap().containers[0].resources.clone().unwrap();
        assert_eq!(resources.limits.unwrap()["memory"].0, "96Mi");
        assert_eq!(resources.requests.unwrap()["memory"].0, "24Mi");
        // Its own limits: two calls at once make a second pod, which the flags would not.
        let pods = lab.pods_of_calls(&one, 4, &[("sleep", "2500")]).await;
        assert_eq!(BTreeSet::from_iter(pods).len(), 2);
        let pods = lab.pods_of_calls(&two, 4, &[("sleep", "500")]).await;
        assert_eq!(BTreeSet::from_iter(pods).len(), 1);
        // Its own time to live; that of the flags is half an hour.
        lab.witness.until("gone", PATIENCE, |seen| pod_of(seen, &one).is_none()).await;
        assert!(pod_of(&lab.witness.seen(), &two).is_some());
        lab.was_refused_nothing();
    });
}
