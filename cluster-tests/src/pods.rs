//! Single pods: run to their end, found as processes, frozen, killed.

use std::{fs, net::IpAddr, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, LogParams},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{Space, until};

/// How long a pod may take to start, its image's pull included.
const START: Duration = Duration::from_mins(1);

/// A pod that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Everything it wrote.
    pub log: String,
    /// What it ended with.
    pub exit_code: i32,
}

impl Space {
    /// Starts a pod of one container that is not started again.
    pub async fn start_pod(&self, name: &str, image: &str, command: &[&str]) {
        self.apply_object(&json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace()},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": image, "command": command}],
            },
        }))
        .await;
    }

    /// Waits until a pod is ready.
    pub async fn pod_ready(&self, name: &str) -> Pod {
        until(&self.api::<Pod>(), name, "ready", START, is_ready).await.expect("it is there")
    }

    /// Runs a pod to its end.
    pub async fn run_pod(&self, name: &str, image: &str, command: &[&str]) -> Finished {
        self.start_pod(name, image, command).await;
        let pods = self.api::<Pod>();
        let pod = until(&pods, name, "ended", START, |pod: Option<&Pod>| exit_code(pod).is_some()).await;
        Finished { log: self.log(name).await, exit_code: exit_code(pod.as_ref()).expect("it has ended") }
    }

    /// What a pod of the test's namespace has written.
    pub async fn log(&self, pod: &str) -> String {
        self.log_in(self.namespace(), pod).await
    }

    /// What a pod of any namespace has written.
    pub async fn log_in(&self, namespace: &str, pod: &str) -> String {
        let pods: Api<Pod> = Api::namespaced(self.client(), namespace);
        pods.logs(pod, &LogParams::default())
            .await
            .unwrap_or_else(|error| panic!("the log of {pod}: {error}"))
    }

    /// Kills a pod without grace, as a node that fails would.
    pub async fn kill_pod(&self, name: &str) {
        self.api::<Pod>().delete(name, &DeleteParams::default().grace_period(0)).await.expect("it is there");
    }

    /// The address of a pod.
    pub async fn address_of(&self, pod: &str) -> IpAddr {
        let pod = self.pod_ready(pod).await;
        pod.status.and_then(|status| status.pod_ip).expect("a ready pod has an address").parse().unwrap()
    }
}

/// Whether a pod is there and ready.
pub fn is_ready(pod: Option<&Pod>) -> bool {
    let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
}

fn exit_code(pod: Option<&Pod>) -> Option<i32> {
    let states = pod?.status.as_ref()?.container_statuses.as_ref()?;
    Some(states.first()?.state.as_ref()?.terminated.as_ref()?.exit_code)
}

/// The processes of a pod's containers, found by their control group.
pub fn processes_of(pod: &Pod) -> Vec<u32> {
    let mark = format!("/pod{}/", pod.uid().expect("it comes from the cluster"));
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let read = |process: u32, file: &str| fs::read_to_string(format!("/proc/{process}/{file}"));
    numbers
        .filter(|process| read(*process, "cgroup").is_ok_and(|groups| groups.contains(&mark)))
        // Not the one that only holds the pod's namespaces.
        .filter(|process| read(*process, "cmdline").is_ok_and(|line| line != "/pause\0"))
        .collect()
}

/// Signals every process of a pod: frozen by `STOP`, it goes on with `CONT`.
pub fn signal_pod(pod: &Pod, signal: Signal) {
    let processes = processes_of(pod);
    assert!(!processes.is_empty(), "{} has no processes", pod.name_any());
    for process in processes {
        let process = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
        // One that has just ended needs no signal.
        let _ = kill_process(process, signal);
    }
}
