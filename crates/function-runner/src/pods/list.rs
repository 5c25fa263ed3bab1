//! Tells the pool of a running service over gRPC.

use pods::{PodView, Runtime};
use tonic::{Request, Response, Status};
use wire::proto::pods::{
    ListPodsRequest, ListPodsResponse, Pod,
    pods_server::{Pods, PodsServer},
};

/// Answers `functionrunner.v1.Pods`.
#[derive(Debug)]
pub(crate) struct PodList {
    /// `None` where the service has no pod runtime.
    runtime: Option<Runtime>,
}

impl PodList {
    /// The gRPC service over a runtime.
    pub(crate) fn service(runtime: Option<Runtime>) -> PodsServer<Self> {
        PodsServer::new(Self { runtime })
    }
}

#[tonic::async_trait]
impl Pods for PodList {
    async fn list(&self, _: Request<ListPodsRequest>) -> Result<Response<ListPodsResponse>, Status> {
        let Some(runtime) = &self.runtime else {
            return Err(Status::failed_precondition(
                "this function runner runs no pods: it has no cluster, or --disable-runtimes names the pod runtime",
            ));
        };
        let view = runtime.look().await;
        let mut pods: Vec<Pod> = view.pods.iter().map(pod).collect();
        pods.sort_by(|one, other| (&one.function, &one.name).cmp(&(&other.function, &other.name)));
        Ok(Response::new(ListPodsResponse { waiting: view.waiting as u64, pods }))
    }
}

fn pod(view: &PodView) -> Pod {
    Pod {
        function: view.function.to_string(),
        name: view.name.clone(),
        phase: view.phase.to_owned(),
        current: view.is_current,
        calls: view.calls as u64,
        age_seconds: view.age.as_secs(),
        keeps_seconds: view.keeps.map(|keeps| keeps.as_secs()),
        trouble: view.trouble.clone().unwrap_or_default(),
    }
}
