//! Calls that go well.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use bytes::Bytes;
use cluster_tests::{
    ACCOUNT, HostRunner, IMAGE_LABEL, digest, eventually, host_of, on_cluster, order, processes_of, push,
    push_to, requests_of,
};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;
use tempfile::TempDir;
use testing::resource_list;
use tonic::Code;

use super::{Lab, PATIENCE, connect};
use crate::installation::within;

#[test]
#[ignore = "needs the cluster: make test"]
fn the_first_call_of_an_image_starts_a_pod_for_it() {
    on_cluster("first-call", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &[]).await;
        let input = resource_list(&["one", "two"]);
        let answer = lab.client.evaluate(&image, input.clone(), within(60)).await.expect("it is answered");
        assert_eq!(answer.resource_list, input, "not byte for byte what the function wrote");
        let answer = lab.call(&image, &[("log", "what I have done")]).await.unwrap();
        assert_eq!(answer.log, "what I have done\n");

        let name = lab.pod_of_call(&image, &[]).await;
        let seen = lab.witness.seen();
        assert_eq!(seen.names(), [name.as_str()], "one pod, and it is the one that answers");
        let pod = seen.there.values().next().unwrap();
        let id = &pod.labels()[IMAGE_LABEL];
        // test-function-TAG-1-HASH, and what the API server adds.
        assert!(id.starts_with("test-function-") && id.split('-').rev().nth(1) == Some("1"), "{id}");
        assert!(name.strip_prefix(&format!("{id}-")).is_some_and(|rest| !rest.is_empty()), "{id} {name}");
        assert_eq!(pod.annotations()["fn.kpt.dev/template-version"], "inline-restricted-v1");
        assert!(pod.annotations()["fn.kpt.dev/reclaim-after"].parse::<u64>().is_ok());
        assert_eq!(pod.annotations()["cluster-autoscaler.kubernetes.io/safe-to-evict"], "true");
        is_hardened(pod, &image);

        let services = space.api::<Service>().list(&ListParams::default()).await.unwrap().items;
        assert_eq!(services.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), [id.as_str()]);
        // The picture may be a moment old.
        let is_told =
            |table: &str| table.contains(&name) && table.contains(&image) && table.contains("ready");
        eventually("the pod is shown", || async { is_told(&lab.table()) }).await;
        lab.was_refused_nothing();
    });
}

fn is_hardened(pod: &Pod, image: &str) {
    let spec = pod.spec.as_ref().unwrap();
    assert_eq!(spec.automount_service_account_token, Some(false));
    assert_eq!(spec.enable_service_links, Some(false));
    let seccomp = spec.security_context.as_ref().and_then(|it| it.seccomp_profile.as_ref());
    assert_eq!(seccomp.map(|it| it.type_.as_str()), Some("RuntimeDefault"));
    let function = &spec.containers[0];
    assert_eq!((function.name.as_str(), function.image.as_deref()), ("function", Some(image)));
    let context = function.security_context.as_ref().unwrap();
    assert_eq!(context.allow_privilege_escalation, Some(false));
    let dropped = context.capabilities.as_ref().and_then(|it| it.drop.clone());
    assert_eq!(dropped, Some(vec!["ALL".to_owned()]));
    let resources = function.resources.as_ref().unwrap();
    assert!(resources.requests.is_some() && resources.limits.is_none(), "{resources:?}");
    assert!(function.volume_mounts.iter().flatten().any(|it| it.mount_path == "/tmp"));
}

#[test]
#[ignore = "needs the cluster: make test"]
fn fifty_first_calls_at_once_stay_within_the_limit_and_all_succeed() {
    on_cluster("fifty", async |space| {
        let image = push("test-function").await;
        let flags = ["--max-parallel-pods-per-function=2", "--max-waitlist-length=2"];
        let lab = Lab::start(&space, &flags).await;
        let pods = lab.pods_of_calls(&image, 50, &[("sleep", "200")]).await;
        assert_eq!(pods.len(), 50);
        let seen = lab.witness.seen();
        assert_eq!(seen.ever.len(), 2, "pods ever made: {:?}", seen.ever);
        assert!(pods.iter().all(|pod| seen.ever.values().any(|name| name == pod)));
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn more_calls_get_more_pods_and_are_spread_fairly() {
    on_cluster("spread", async |space| {
        let image = push("test-function").await;
        let flags = ["--max-parallel-pods-per-function=3", "--max-waitlist-length=2"];
        let lab = Lab::start(&space, &flags).await;
        lab.pods_of_calls(&image, 2, &[("sleep", "100")]).await;
        assert_eq!(lab.witness.seen().ever.len(), 1, "two calls fit into one pod");

        lab.pods_of_calls(&image, 6, &[("sleep", "3000")]).await;
        lab.witness.until("three and ready", PATIENCE, |seen| seen.ready().count() == 3).await;
        let pods = lab.pods_of_calls(&image, 12, &[("sleep", "1000")]).await;
        let mut share = BTreeMap::<_, usize>::new();
        for pod in pods {
            *share.entry(pod).or_default() += 1;
        }
        assert_eq!(share.values().copied().collect::<Vec<_>>(), [4, 4, 4], "{share:?}");
        assert_eq!(lab.witness.seen().ever.len(), 3, "no more than allowed");

        // One after the other, too: nobody is always the first.
        let mut used = std::collections::BTreeSet::new();
        for _ in 0..9 {
            used.insert(lab.pod_of_call(&image, &[]).await);
        }
        assert_eq!(used.len(), 3, "{used:?}");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn warm_calls_ask_the_api_server_nothing() {
    on_cluster("warm-calls", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &[]).await;
        lab.pod_of_call(&image, &[]).await;
        // What a new pod makes the runner ask is asked.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = requests_of(space.namespace(), ACCOUNT);
        assert!(before.iter().any(|it| it.verb == "create"), "the record works: {before:?}");
        for _ in 0..100 {
            lab.pod_of_call(&image, &[]).await;
        }
        lab.pods_of_calls(&image, 20, &[]).await;
        let after = requests_of(space.namespace(), ACCOUNT);
        assert_eq!(after[before.len()..], [], "asked while warm calls were served");
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn inputs_and_outputs_of_six_megabytes_pass_and_larger_ones_are_refused() {
    on_cluster("six-megabytes", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &[]).await;
        let limit = 6 * 1024 * 1024;
        // The message holds the image's name as well.
        let input = filled(limit - 200);
        let answer = lab.client.evaluate(&image, input.clone(), within(60)).await.expect("it fits");
        assert!(answer.resource_list == input, "not what was sent");

        let larger = filled(limit + 1000);
        let patient = wire::client::Client::new(lab.runner.channel().await, 2 * limit);
        let refusal = patient.evaluate(&image, larger, within(60)).await.unwrap_err();
        assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
        assert!(refusal.message().contains("--max-request-body-size"), "{refusal}");

        let refusal = lab.call(&image, &[("grow", "7000000")]).await.unwrap_err();
        assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
        assert!(refusal.message().contains("--max-request-body-size"), "{refusal}");
        assert_eq!(lab.witness.seen().ever.len(), 1, "no pod is lost over it");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn images_of_any_name_run() {
    on_cluster("names", async |space| {
        let long = format!("a{}/with_underscores.and.dots", "-very-long-name".repeat(8));
        let long = push_to("test-function", &long, &"v1.2.3-rc.1_build".repeat(5)).await;
        let whole = push("test-function").await;
        let short = whole.replace("localhost:5000/", "");
        let pinned = format!("localhost:5000/test-function@{}", digest("test-function"));
        let lab = Lab::start(&space, &["--default-image-prefix=localhost:5000"]).await;
        for image in [&long, &pinned, &whole] {
            let pod = lab.pod_of_call(image, &[]).await;
            assert!(pod.len() <= 63, "{pod}");
        }
        assert_eq!(lab.witness.seen().ever.len(), 2, "a tag and its digest in one repository share a pod");
        lab.pod_of_call(&short, &[]).await;
        assert_eq!(lab.witness.seen().ever.len(), 2, "the short name is that of a function that has a pod");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn tags_of_one_digest_share_a_pod_and_a_restarted_runner_knows_it() {
    on_cluster("shared-pod", async |space| {
        let first = push_to("test-function", "shared", "v1").await;
        let second = push_to("test-function", "shared", "v1.0").await;
        let lab = Lab::start(&space, &[]).await;
        let pod = lab.pod_of_call(&first, &[]).await;
        assert_eq!(lab.pod_of_call(&second, &[]).await, pod);
        let other = HostRunner::another(&space).await.start();
        let answer = connect(&other).evaluate(&second, order(&[("host", "true")]), within(60)).await;
        assert_eq!(host_of(&answer.expect("it is answered").resource_list), pod);
        assert_eq!(lab.witness.seen().ever.len(), 1, "{:?}", lab.witness.seen().ever);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_call_that_is_out_of_time_ends_in_its_pod_too() {
    on_cluster("out-of-time", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &[]).await;
        lab.pod_of_call(&image, &[]).await;
        let pod = lab.witness.seen().there.values().next().unwrap().clone();
        let runs =
            || processes_of(&pod).into_iter().filter(|process| name_of(*process) == "test-function").count();
        let late = lab.client.evaluate(&image, order(&[("sleep", "60000")]), within(2)).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        assert!(late.message().contains(&image), "{late}");
        eventually("the function of the late call is gone", || async { runs() == 0 }).await;

        let call = lab.spawn(&image, &order(&[("sleep", "60000")]));
        eventually("the function runs", || async { runs() == 1 }).await;
        call.abort();
        eventually("the function of the cancelled call is gone", || async { runs() == 0 }).await;
        assert_eq!(lab.pod_of_call(&image, &[]).await, pod.name_any(), "the pod is as good as before");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_call_is_cut_at_the_time_limit_of_its_function() {
    on_cluster("time-limit", async |space| {
        let image = push("test-function").await;
        let folder = TempDir::new().unwrap();
        let write = |timeout: &str| {
            let config = json!({
                "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "FunctionConfig",
                "metadata": {"name": "test-function"},
                "spec": {"image": "test-function", "podExecutor": {"timeout": timeout}},
            });
            fs::write(folder.path().join("test-function.yaml"), config.to_string()).unwrap();
        };
        write("2s");
        let flags = [format!("--function-configs={}", folder.path().display())];
        let lab = Lab::start_as(&space, |builder| builder.flags(flags)).await;
        lab.call(&image, &[("sleep", "200")]).await.expect("in time");
        let pod = lab.witness.seen().there.values().next().unwrap().clone();
        let begun = Instant::now();
        let late = lab.call(&image, &[("sleep", "40000")]).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(20), "only after {:?}: {late}", begun.elapsed());
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        let start = format!("function evaluation timed out for {image}: ");
        assert!(late.message().starts_with(&start), "{late}");
        assert!(late.message().contains("longer than its time limit allows (2s)"), "{late}");
        let runs = || processes_of(&pod).into_iter().any(|process| name_of(process) == "test-function");
        eventually("the function is gone", || async { !runs() }).await;

        // A caller that is in more of a hurry has its own limit.
        let late = lab.client.evaluate(&image, order(&[("sleep", "40000")]), within(1)).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        assert!(!late.message().contains("time limit allows"), "{late}");
        // The file is followed.
        write("1m");
        eventually("the new limit is in force", || async {
            lab.call(&image, &[("sleep", "2500")]).await.is_ok()
        })
        .await;
        assert_eq!(lab.witness.seen().ever.len(), 1, "no pod is lost over it");
        lab.was_refused_nothing();
    });
}

/// What a process runs.
fn name_of(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default().trim().to_owned()
}

/// A ResourceList of exactly so many bytes.
pub(super) fn filled(size: usize) -> Bytes {
    let mut text = resource_list(&["one"]).to_vec();
    text.extend_from_slice(b"- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: large\n  data:\n");
    let mut number = 0;
    while text.len() + 100 < size {
        number += 1;
        text.extend_from_slice(format!("    key{number:07}: {}\n", "x".repeat(60)).as_bytes());
    }
    text.push(b'#');
    text.resize(size - 1, b'x');
    text.push(b'\n');
    text.into()
}
