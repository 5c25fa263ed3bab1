//! The harness itself: what the other tests rely on works.

use std::time::Duration;

use cluster_tests::{
    Cut, HostRunner, RunnerDeployment, Signal, kubectl, on_cluster, processes_of, push, refusals_of,
    service_reachable, signal_pod,
};
use testing::{Functions, resource_list};
use wire::client::CallOptions;

const IMAGE: &str = "example.com/set-owner:v1";
const CLIENT: &str = "/home/nonroot/server";

fn within(seconds: u64) -> CallOptions {
    CallOptions { timeout: Some(Duration::from_secs(seconds)), trace: None }
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_runs_to_its_end_and_tells_its_log_and_code() {
    on_cluster("run-pod", async |space| {
        let image = push("function-runner").await;
        let fine = space.run_pod("fine", &image, &[CLIENT, "version"]).await;
        assert_eq!(fine.exit_code, 0, "{fine:?}");
        assert!(fine.log.contains("function-runner"), "{fine:?}");
        let wrong = space.run_pod("wrong", &image, &[CLIENT, "--no-such-flag"]).await;
        assert_eq!(wrong.exit_code, 2, "{wrong:?}");
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn unknown_fields_are_mistakes() {
    on_cluster("strict", async |space| {
        let object = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"}, "dada": {},
        });
        let complaint = space.check(&object).await.unwrap_err();
        assert!(complaint.contains("dada"), "{complaint}");
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_frozen_pod_does_not_answer_until_it_goes_on() {
    on_cluster("freeze", async |space| {
        let image = push("function-runner-example").await;
        let client = space.deploy(&RunnerDeployment::exec_only("runner", &image)).await;
        let input = resource_list(&["one"]);
        let name = space.pods_with(space.namespace(), "app=runner").await.remove(0);
        let pod = space.pod_ready(&name).await;
        assert!(!processes_of(&pod).is_empty());

        signal_pod(&pod, Signal::STOP);
        client.evaluate(IMAGE, input.clone(), within(1)).await.unwrap_err();
        signal_pod(&pod, Signal::CONT);
        // An input without an owner: an answer of the function itself.
        let answer = client.evaluate(IMAGE, input, within(10)).await.unwrap_err();
        assert!(answer.message().contains("data.owner"), "{answer:?}");
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_cut_connection_is_silent_and_can_be_mended() {
    on_cluster("cut", async |space| {
        let image = push("function-runner-example").await;
        let client = space.deploy(&RunnerDeployment::exec_only("runner", &image)).await;
        let name = space.pods_with(space.namespace(), "app=runner").await.remove(0);
        let cut = Cut::off(space.address_of(&name).await, 9445);
        let begun = std::time::Instant::now();
        client.evaluate(IMAGE, resource_list(&["one"]), within(2)).await.unwrap_err();
        assert!(begun.elapsed() > Duration::from_millis(1900), "refused, not silent: {:?}", begun.elapsed());
        drop(cut);
        // The kubelet's probe was cut off too: the pod may have been taken for dead.
        service_reachable(space.namespace(), "runner", 9445).await;
        let answer = client.evaluate(IMAGE, resource_list(&["one"]), within(20)).await.unwrap_err();
        assert!(answer.message().contains("data.owner"), "{answer:?}");
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_killed_pod_is_replaced() {
    on_cluster("kill-pod", async |space| {
        let image = push("function-runner-example").await;
        space.deploy(&RunnerDeployment::exec_only("runner", &image)).await;
        let old = space.pods_with(space.namespace(), "app=runner").await;
        space.kill_pod(&old[0]).await;
        space.deployed("runner").await;
        let new = space.pods_with(space.namespace(), "app=runner").await;
        assert_ne!(old, new);
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_runner_on_the_node_answers() {
    on_cluster("host-runner", async |_| {
        let functions =
            Functions::new().with_script("echo", "cat").with_entry("echo", &["example.com/echo:v1"]);
        let flags = ["--disable-runtimes=pod".to_owned()].into_iter().chain(functions.flags());
        let runner = HostRunner::build().flags(flags).start();
        let client = runner.client().await;
        let input = resource_list(&["one"]);
        let answer = client.evaluate("example.com/echo:v1", input.clone(), within(10)).await.unwrap();
        assert_eq!(answer.resource_list, input);
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn what_the_api_server_refuses_is_on_record() {
    on_cluster("refusals", async |space| {
        let place = format!("--namespace={}", space.namespace());
        let token = kubectl(&["create", "token", "default", &place], b"").await.expect("a token");
        let token = format!("--token={}", token.trim());
        assert_eq!(refusals_of(space.namespace(), "default"), []);
        // The token of the kubeconfig would win.
        let kubeconfig = "--kubeconfig=/dev/null";
        let server = ["--server=https://kubernetes.default.svc", "--insecure-skip-tls-verify"];
        let ask = ["get", "pods", kubeconfig, server[0], server[1], &token, &place];
        let complaint = kubectl(&ask, b"").await.unwrap_err();
        assert!(complaint.contains("forbidden"), "{complaint}");
        let refusals = refusals_of(space.namespace(), "default");
        assert!(refusals.iter().any(|it| it.verb == "list" && it.path.contains("pods")), "{refusals:?}");
    });
}
