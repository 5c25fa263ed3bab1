//! The original's wrapper server in the pod, as a stand-in of it in its own language behaves.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use cluster_tests::{checkout, host_of, on_cluster, order, push, push_with};
use testing::resource_list;
use tonic::Code;

use super::{Lab, PATIENCE, calls::filled};
use crate::installation::within;

/// An image like that of our wrapper, with the stand-in where ours is.
async fn original() -> String {
    let program: PathBuf = checkout().join("target/cluster-tests/original-wrapper-server");
    assert!(program.exists(), "{} is made by cluster-tests/original/build", program.display());
    push_with("wrapper-server", "original-wrapper", &program, "home/nonroot/wrapper-server/wrapper-server")
        .await
}

#[test]
#[ignore = "needs the cluster: make test"]
fn functions_run_with_the_originals_wrapper_in_their_pods() {
    on_cluster("original-wrapper", async |space| {
        let (image, wrapper) = (push("test-function").await, original().await);
        let lab = Lab::start_as(&space, |builder| builder.variable("WRAPPER_SERVER_IMAGE", &wrapper)).await;
        let input = resource_list(&["one", "two"]);
        let answer = lab.client.evaluate(&image, input.clone(), within(60)).await.expect("it is answered");
        assert_eq!(answer.resource_list, input, "not byte for byte what the function wrote");
        let pod = lab.witness.seen().there.values().next().unwrap().clone();
        let containers = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_ref()).unwrap();
        assert_eq!(containers[0].image.as_deref(), Some(wrapper.as_str()));
        let answer = lab.call(&image, &[("log", "what I have done")]).await.unwrap();
        assert_eq!(answer.log, "what I have done\n");

        // Its words reach the caller, behind ours, with its code.
        let orders = [("exit", "3"), ("message", "the name is too long"), ("log", "looked at all names")];
        let failed = lab.call(&image, &orders).await.unwrap_err();
        let start =
            format!("unable to evaluate {image} with pod evaluator: failed to evaluate function {image:?}");
        assert_eq!(failed.code(), Code::Internal, "{failed}");
        assert!(failed.message().starts_with(&start), "{failed}");
        let words = "with structured results: [error]: the name is too long and stderr: looked at all names";
        assert!(failed.message().contains(words), "{failed}");

        // More than its library takes of itself: it has understood the flag we give it.
        let large = filled(6 * 1024 * 1024 - 200);
        let answer = lab.client.evaluate(&image, large.clone(), within(60)).await.expect("it fits");
        assert!(answer.resource_list == large, "not what was sent");
        let refused = lab.call(&image, &[("grow", "7000000")]).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");

        // It knows no deadline, so it is ours to keep.
        let begun = Instant::now();
        let late = lab.client.evaluate(&image, order(&[("sleep", "9000")]), within(2)).await;
        let late = late.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(6), "only after {:?}: {late}", begun.elapsed());
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        assert!(late.message().contains(&image), "{late}");
        lab.pod_of_call(&image, &[]).await;
        assert_eq!(lab.witness.seen().ever.len(), 1, "no pod is lost over any of it");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_with_the_originals_wrapper_that_dies_is_replaced() {
    on_cluster("original-dies", async |space| {
        let (image, wrapper) = (push("test-function").await, original().await);
        let lab = Lab::start_as(&space, |builder| builder.variable("WRAPPER_SERVER_IMAGE", &wrapper)).await;
        let first = lab.pod_of_call(&image, &[]).await;
        let call = lab.spawn(&image, &order(&[("host", "true"), ("sleep", "3000")]));
        tokio::time::sleep(Duration::from_secs(1)).await;
        space.kill_pod(&first).await;
        let answer = call.await.unwrap().expect("it is tried once more");
        let second = host_of(&answer.resource_list);
        assert_ne!(second, first);
        lab.witness.until("the new one alone", PATIENCE, |seen| seen.names() == [second.clone()]).await;
        lab.was_refused_nothing();
    });
}
