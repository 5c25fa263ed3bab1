//! An upgrade of the deployment while calls are made.

use std::{
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use cluster_tests::{checkout, kustomize, on_cluster, parse, push_as, until};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::Value;
use tonic::Status;

use crate::installation::{IMAGE, Installation, input, within};

/// Callers, each with one connection that it keeps, as Porch does.
const CALLERS: usize = 4;

#[test]
#[ignore = "needs the cluster: make test"]
fn an_upgrade_under_load_loses_no_call() {
    on_cluster("upgrade", async |space| {
        space.claim_fixed_names().await;
        let base = parse(&kustomize(&checkout().join("deploy/base")).await);
        let installation = Installation::install(&space, base).await;

        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let begun = Instant::now();
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (client, stop, answered) = (installation.client(), stop.clone(), answered.clone());
                tokio::spawn(async move {
                    let mut lost = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let answer = match client.evaluate(IMAGE, input(), within(30)).await {
                            Err(status) if never_left(&status) => {
                                client.evaluate(IMAGE, input(), within(30)).await
                            }
                            answer => answer,
                        };
                        match answer {
                            Ok(_) => _ = answered.fetch_add(1, Ordering::Relaxed),
                            Err(status) => {
                                lost.push(format!("caller {caller} at {:?}: {status}", begun.elapsed()));
                            }
                        }
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    lost
                })
            })
            .collect();

        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = answered.load(Ordering::Relaxed);
        let old = installation.pods().await;
        // The same content under another name: to Kubernetes, a new version.
        let mut next = installation.deployment.clone();
        let image = Value::from(push_as("function-runner-example", "next").await);
        next["spec"]["template"]["spec"]["containers"][0]["image"] = image;
        space.apply_object(&next).await;
        installation.ready().await;
        // Not before it is gone has the old one lost all it could.
        let pods: Api<Pod> = Api::namespaced(space.client(), &installation.namespace);
        for pod in old {
            until(&pods, &pod, "gone", Duration::from_mins(1), |it: Option<&Pod>| it.is_none()).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.store(true, Ordering::Relaxed);

        let mut lost = Vec::new();
        for caller in callers {
            lost.extend(caller.await.unwrap());
        }
        let during = answered.load(Ordering::Relaxed) - before;
        assert!(before > 0 && during > 0, "{before} calls before, {during} during the upgrade");
        assert!(lost.is_empty(), "{} of {} calls lost: {lost:#?}", lost.len(), before + during + lost.len());
        assert!(during > before, "{before} calls before, only {during} during the upgrade");
        installation.was_refused_nothing().await;
    });
}

/// Whether a request met a connection that was just being closed and was never
/// sent. Porch's gRPC library sends such a request again without a word; ours
/// hands it back.
fn never_left(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled) {
            return true;
        }
        cause = error.source();
    }
    false
}
