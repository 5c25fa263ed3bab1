//! Pods in a service mesh: a sidecar takes all connections, holds the first
//! ones back, and must not be passed by.

use std::{fs, net::IpAddr};

use cluster_tests::{
    REGISTRY_FOR_PODS, Rights, RunnerDeployment, Seen, client_of, host_of, kubectl, on_cluster, order,
    processes_of, push,
};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;

use super::{Lab, templates::Template};
use crate::installation::within;

/// The addresses a process has connections to, at the port of wrappers.
fn connections_of(process: u32) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    let table = fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap();
    for line in table.lines().skip(1) {
        // Written as the machine keeps it in memory, the address as one number.
        let remote = line.split_whitespace().nth(2).unwrap();
        let (address, port) = remote.split_once(':').unwrap();
        if u16::from_str_radix(port, 16) == Ok(9446) {
            addresses.push(IpAddr::from(u32::from_str_radix(address, 16).unwrap().to_ne_bytes()));
        }
    }
    addresses
}

async fn addresses(space: &cluster_tests::Space, pod: &Pod) -> (IpAddr, IpAddr) {
    let id = &pod.labels()[cluster_tests::IMAGE_LABEL];
    let service = space.api::<Service>().get(id).await.unwrap();
    let service = service.spec.and_then(|spec| spec.cluster_ip).unwrap().parse().unwrap();
    let own = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()).unwrap().parse().unwrap();
    (own, service)
}

fn only(seen: &Seen) -> &Pod {
    assert_eq!(seen.there.len(), 1, "{:?}", seen.names());
    seen.there.values().next().unwrap()
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_pod_is_called_by_its_service_alone_where_that_is_asked_for() {
    on_cluster("by-service", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &["--pod-address=service"]).await;
        let name = lab.pod_of_call(&image, &[]).await;
        let seen = lab.witness.seen();
        assert_eq!(only(&seen).name_any(), name);
        let (own, service) = addresses(&space, only(&seen)).await;
        let connections = connections_of(lab.runner.process());
        assert!(connections.contains(&service) && !connections.contains(&own), "{connections:?}");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_sidecar_that_delays_connections_is_waited_for_and_never_passed_by() {
    on_cluster("sidecar", async |space| {
        let function = push("test-function").await;
        // The Service leads to the sidecar, as a mesh's rules would; it holds connections back at first.
        let sidecar = format!(
            "- {{name: istio-proxy, image: {function}, command: [/test-function, relay, '15006', '9446', '4000']}}"
        );
        let template = Template { sidecar: &sidecar, target_port: 15006, ..Template::default() };
        template.apply(&space, "mesh").await;
        let runner = RunnerDeployment::with_pods(&space, "runner", Rights::Files).await;
        let client = space.deploy(&runner.flags(["--function-pod-template=mesh"])).await;
        let witness = space.witness().await;
        let image = function.replace("localhost:5000", REGISTRY_FOR_PODS);
        let answer =
            client.evaluate(&image, order(&[("host", "true")]), within(60)).await.expect("it is answered");
        let seen = witness.seen();
        let pod = only(&seen);
        assert_eq!(host_of(&answer.resource_list), pod.name_any());

        let (own, service) = addresses(&space, pod).await;
        let runner = space.pods_with(space.namespace(), "app=runner").await.remove(0);
        let process = processes_of(&space.pod_ready(&runner).await)[0];
        let connections = connections_of(process);
        assert!(connections.contains(&service) && !connections.contains(&own), "{connections:?}");
        let place = format!("--namespace={}", space.namespace());
        let log = kubectl(&["logs", &place, &pod.name_any(), "--container=istio-proxy"], b"").await.unwrap();
        assert!(log.contains("accepted a connection"), "{log}");
        let more = client_of(space.namespace(), "runner").evaluate(&image, order(&[]), within(60)).await;
        more.expect("and all goes on");
    });
}
