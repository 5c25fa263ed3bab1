//! Calls that cannot go well: each caller is told why, in the cluster's own words.

use std::fs;

use cluster_tests::{Knocks, on_cluster, order, push};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tempfile::TempDir;
use tonic::{Code, Status};

use super::Lab;
use crate::installation::within;

/// Fails unless a call failed with this code, naming the image and each of these.
fn told(answer: Result<impl Sized, Status>, code: Code, words: &[&str]) -> String {
    let status = answer.err().expect("it cannot be answered");
    let message = status.message();
    assert_eq!(status.code(), code, "{message}");
    for word in words {
        assert!(message.contains(word), "no {word:?} in: {message}");
    }
    message.to_owned()
}

/// A pod cache file that gives the pods of an image these resources, and the flags to use it.
fn resources(image: &str, resources: &str) -> (TempDir, [String; 2]) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pod-cache-config.yaml");
    fs::write(&file, format!("- name: {image}\n  resources: {resources}\n")).unwrap();
    let flags = [format!("--pod-cache-config={}", file.display()), "--warm-up-pod-cache=false".to_owned()];
    (folder, flags)
}

#[test]
#[ignore = "needs the cluster: make test"]
fn an_image_that_is_not_there_is_named_with_the_registrys_words() {
    on_cluster("image-missing", async |space| {
        let lab = Lab::start(&space, &[]).await;
        let image = "localhost:5000/no-such-function:v1";
        told(lab.call(image, &[]).await, Code::FailedPrecondition, &[image, "manifest unknown"]);
        let malformed = lab.call("localhost:5000/Not An Image", &[]).await;
        told(malformed, Code::InvalidArgument, &["Not An Image"]);
        assert_eq!(lab.witness.seen().ever.len(), 0, "no pod is made for it");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_wrapper_image_that_is_not_there_ends_the_wait_early() {
    on_cluster("wrapper-missing", async |space| {
        let image = push("test-function").await;
        let wrapper = "localhost:5000/no-such-wrapper:v1";
        let lab = Lab::start_as(&space, |builder| builder.variable("WRAPPER_SERVER_IMAGE", wrapper)).await;
        // Without a deadline of the caller: it would take --pod-ready-timeout, a minute, to time out.
        let answer = lab.client.evaluate(&image, order(&[]), wire::client::CallOptions::default()).await;
        told(answer, Code::FailedPrecondition, &[&image, wrapper, "not found"]);
        lab.left_nothing().await;
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn failing_functions_are_told_with_results_and_log_and_keep_their_pod() {
    on_cluster("failing", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &[]).await;
        let orders = [("exit", "3"), ("message", "the name is too long"), ("log", "looked at all names")];
        let failed = lab.call(&image, &orders).await;
        let start = format!("unable to evaluate {image} with pod evaluator: failed to evaluate function");
        let words = ["with structured results: [error]: the name is too long", "stderr: looked at all names"];
        let message = told(failed, Code::Internal, &words);
        assert!(message.starts_with(&start), "{message}");
        let crashed = lab.call(&image, &[("crash", "true"), ("log", "last words")]).await;
        told(crashed, Code::Internal, &[&image, "last words"]);
        lab.pod_of_call(&image, &[]).await;
        assert_eq!(lab.witness.seen().ever.len(), 1, "no pod is lost over it");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn an_entrypoint_that_crashes_or_is_missing_is_told() {
    on_cluster("entrypoint", async |space| {
        let (crashing, missing) = (push("test-function-crashing").await, push("test-function-missing").await);
        let lab = Lab::start(&space, &[]).await;
        // By an argument of the image: it reached the function.
        let words = [&crashing, "crashing before anything was read", "signal"];
        told(lab.call(&crashing, &[]).await, Code::Internal, &words.map(|word| word as &str));
        let words = [&missing, "/missing", "No such file"];
        told(lab.call(&missing, &[]).await, Code::Internal, &words.map(|word| word as &str));
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_that_no_node_has_room_for_is_told_in_the_schedulers_words() {
    on_cluster("unschedulable", async |space| {
        let image = push("test-function").await;
        let (_folder, flags) = resources(&image, "{requests: {cpu: '1000'}}");
        let lab = Lab::start_as(&space, |builder| builder.flags(flags)).await;
        let answer = lab.client.evaluate(&image, order(&[]), within(4)).await;
        told(answer, Code::DeadlineExceeded, &[&image, "Insufficient cpu"]);
        let table = lab.table();
        assert!(table.contains("Insufficient cpu"), "{table}");
        let seen = lab.witness.seen();
        assert_eq!(seen.ever.len(), 1, "no creation storm: {:?}", seen.ever);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_function_that_needs_more_memory_than_it_may_have_is_told_so() {
    on_cluster("memory", async |space| {
        let image = push("test-function").await;
        let (_folder, flags) = resources(&image, "{limits: {memory: 64Mi}}");
        let lab = Lab::start_as(&space, |builder| builder.flags(flags)).await;
        lab.pod_of_call(&image, &[]).await;
        let limits = |pod: &Pod| pod.spec.as_ref()?.containers[0].resources.as_ref()?.limits.clone();
        let limit = lab.witness.seen().there.values().find_map(limits).expect("the pod has the limit");
        assert_eq!(limit["memory"].0, "64Mi");
        let knocks = Knocks::listen().await;
        let orders = [("knock", knocks.address()), ("allocate", "200")];
        let answer = lab.call(&image, &orders).await;
        // The limit, and where to raise it; whether the kernel ended the function alone or its pod with it.
        let words = [&image, "ran out of memory", "resources.limits.memory"];
        let message = told(answer, Code::ResourceExhausted, &words.map(|word| word as &str));
        assert!(message.contains("64Mi") || message.contains("64 MiB"), "no limit in: {message}");
        lab.pod_of_call(&image, &[]).await;
        assert_eq!(knocks.count(), 1, "it is not tried again: {}", lab.runner.log());
        let seen = lab.witness.seen();
        assert!(seen.ever.len() <= 2, "one pod, and perhaps another after it: {:?}", seen.ever);
        // A call that needs no more than there is, in the same pods.
        lab.call(&image, &[("knock", knocks.address()), ("allocate", "8")]).await.expect("it is answered");
        assert_eq!(knocks.count(), 2);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_quota_is_told_and_raising_it_helps() {
    on_cluster("quota", async |space| {
        let image = push("test-function").await;
        let quota = |pods: &str| {
            json!({
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": pods}},
            })
        };
        space.apply_object(&quota("0")).await;
        let lab = Lab::start(&space, &[]).await;
        let answer = lab.client.evaluate(&image, order(&[]), within(5)).await;
        told(answer, Code::DeadlineExceeded, &[&image, "exceeded quota: few"]);
        space.apply_object(&quota("5")).await;
        lab.pod_of_call(&image, &[]).await;
        assert_eq!(lab.witness.seen().ever.len(), 1);
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_refused_admission_is_told_and_ends_the_wait_early() {
    on_cluster("admission", async |space| {
        let image = push("test-function").await;
        space
            .apply_object(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": space.namespace(), "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            }}))
            .await;
        let lab = Lab::start(&space, &[]).await;
        let answer = lab.client.evaluate(&image, order(&[]), wire::client::CallOptions::default()).await;
        told(answer, Code::FailedPrecondition, &[&image, "violates PodSecurity", "runAsNonRoot"]);
        lab.left_nothing().await;
    });
}
