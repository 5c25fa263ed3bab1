//! What the metrics tell of pods.

use std::time::Duration;

use cluster_tests::{Signal, eventually, on_cluster, order, push, signal_pod};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::json;
use testing::Server;

use super::{Lab, PATIENCE};

/// The sum of a metric over all that have these labels; `None` where there is none.
fn metric(runner: &Server, name: &str, labels: &[&str]) -> Option<f64> {
    let page = runner.metrics();
    let values = page.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (found, rest) = series.split_once('{').unwrap_or((series, ""));
        (found == name && labels.iter().all(|label| rest.contains(label)))
            .then(|| value.parse::<f64>().unwrap())
    });
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

/// Waits until a metric has a value. What is shown is a moment old.
async fn becomes(lab: &Lab, name: &str, labels: &[&str], value: Option<f64>) {
    let what = format!("{name}{labels:?} is {value:?}");
    eventually(&what, || async { metric(&lab.runner, name, labels) == value }).await;
}

const PODS: &str = "function_runner_pods";
const WAITING: &str = "function_runner_pods_waiting";
const STARTS: &str = "function_runner_pod_start_duration_seconds_count";
const EVICTIONS: &str = "function_runner_pod_evictions_total";
const REQUESTS: &str = "function_runner_api_requests_total";
const FUNCTION: &str = "function=\"test-function\"";

#[test]
#[ignore = "needs the cluster: make test"]
fn the_metrics_tell_of_pods_their_starts_and_their_ends() {
    on_cluster("metrics", async |space| {
        let image = push("test-function").await;
        let quota = |pods: &str| {
            json!({
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": pods}},
            })
        };
        space.apply_object(&quota("0")).await;
        let flags = ["--pod-ttl=5s", "--scan-interval=500ms"];
        let lab = Lab::start_as(&space, |builder| builder.flags(flags).metrics()).await;
        assert_eq!(metric(&lab.runner, WAITING, &[]), Some(0.0), "{}", lab.runner.metrics());
        for name in [PODS, STARTS, EVICTIONS] {
            assert_eq!(metric(&lab.runner, name, &[]), None, "{name} before anything was called");
        }
        let made = ["verb=\"create\"", "resource=\"pods\"", "status=\"201\""];
        assert_eq!(metric(&lab.runner, REQUESTS, &made), None);

        // As long as no pod may be made a call waits, and the refusals are counted.
        let call = lab.spawn(&image, &order(&[]));
        becomes(&lab, WAITING, &[], Some(1.0)).await;
        let refused = ["verb=\"create\"", "resource=\"pods\"", "status=\"403\""];
        eventually("refusals are counted", || async { metric(&lab.runner, REQUESTS, &refused).is_some() })
            .await;
        space.apply_object(&quota("5")).await;
        call.await.unwrap().expect("it waits until there is room");
        becomes(&lab, WAITING, &[], Some(0.0)).await;
        becomes(&lab, PODS, &[FUNCTION, "phase=\"ready\""], Some(1.0)).await;
        assert_eq!(metric(&lab.runner, REQUESTS, &made), Some(1.0));
        for stage in ["resolve", "schedule", "start", "pull", "connect"] {
            becomes(&lab, STARTS, &[FUNCTION, &format!("stage=\"{stage}\"")], Some(1.0)).await;
        }
        assert_eq!(metric(&lab.runner, EVICTIONS, &[]), None, "none was removed so far");

        // Unused, it goes.
        lab.left_nothing().await;
        becomes(&lab, EVICTIONS, &["reason=\"idle\""], Some(1.0)).await;
        becomes(&lab, PODS, &[], None).await;
        let removed = ["verb=\"delete\"", "resource=\"pods\"", "status=\"200\""];
        assert_eq!(metric(&lab.runner, REQUESTS, &removed), Some(1.0), "{}", lab.runner.metrics());

        // One that somebody else deletes is none that we removed.
        let second = lab.pod_of_call(&image, &[]).await;
        becomes(&lab, STARTS, &[FUNCTION, "stage=\"connect\""], Some(2.0)).await;
        // By now there is all that the document lists.
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/pod-runtime.md");
        let listed = documents::metrics::listed(&std::fs::read_to_string(document).unwrap());
        let mut there = documents::metrics::exposed(&lab.runner.metrics());
        there.retain(|name, _| listed.contains_key(name));
        assert_eq!(there, listed);
        let at_once = DeleteParams::default().grace_period(0);
        space.api::<Pod>().delete(&second, &at_once).await.unwrap();
        lab.witness.until("gone", PATIENCE, |seen| seen.there.is_empty()).await;
        becomes(&lab, PODS, &[], None).await;

        // One that died is one that failed.
        lab.pod_of_call(&image, &[]).await;
        let pod = lab.witness.seen().there.into_values().next().expect("the pod that has answered");
        signal_pod(&pod, Signal::KILL);
        becomes(&lab, EVICTIONS, &["reason=\"failed\""], Some(1.0)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(metric(&lab.runner, EVICTIONS, &[]), Some(2.0), "{}", lab.runner.metrics());
    });
}
