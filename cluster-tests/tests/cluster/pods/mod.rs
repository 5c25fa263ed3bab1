//! The pod runtime: any function image, in pods, within Porch's rights.

mod adoption;
mod answers;
mod calls;
mod change;
mod life;
mod mesh;
mod metrics;
mod objects;
mod original_wrapper;
mod outage;
mod registries;
mod replicas;
mod templates;
mod trouble;
mod warm_up;

use std::{process::Command, sync::Arc, time::Duration};

use bytes::Bytes;
use cluster_tests::{
    ACCOUNT, HostRunner, Request, Rights, Space, Witness, checkout, client, eventually, host_of, order,
    refusals_of,
};
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use testing::{Server, ServerBuilder};
use tonic::Status;
use wire::{client::Client, proto::EvaluateFunctionResponse};

use crate::installation::within;

/// How long pods may take to be as a test wants them, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A runner on the node whose pods are in the test's own namespace.
struct Lab {
    space: Arc<Space>,
    runner: Server,
    client: Client,
    witness: Witness,
}

impl Lab {
    /// Starts it with these flags.
    async fn start(space: &Arc<Space>, flags: &[&str]) -> Self {
        Self::start_as(space, |builder| builder.flags(flags.iter().copied())).await
    }

    /// Starts it as a test wants it.
    async fn start_as(space: &Arc<Space>, prepare: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        Self::start_with(space, Rights::Files, prepare).await
    }

    /// Starts it with the rights of one or the other generation of Porch.
    async fn start_with(
        space: &Arc<Space>,
        rights: Rights,
        prepare: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let runner = prepare(HostRunner::with_pods(space, rights).await).start();
        let witness = space.witness().await;
        Self { space: space.clone(), client: connect(&runner), runner, witness }
    }

    /// Calls the test function.
    async fn call(&self, image: &str, orders: &[(&str, &str)]) -> Result<EvaluateFunctionResponse, Status> {
        self.client.evaluate(image, order(orders), within(60)).await
    }

    /// The pod that answers a call.
    async fn pod_of_call(&self, image: &str, orders: &[(&str, &str)]) -> String {
        let orders: Vec<_> = [("host", "true")].iter().chain(orders).copied().collect();
        host_of(&self.call(image, &orders).await.expect("the call is answered").resource_list)
    }

    /// The pods that answer calls made at once.
    async fn pods_of_calls(&self, image: &str, calls: usize, orders: &[(&str, &str)]) -> Vec<String> {
        let orders: Vec<_> = [("host", "true")].iter().chain(orders).copied().collect();
        let input = order(&orders);
        let calls: Vec<_> = (0..calls).map(|_| self.spawn(image, &input)).collect();
        let mut pods = Vec::new();
        for call in calls {
            pods.push(host_of(&call.await.unwrap().expect("each call is answered").resource_list));
        }
        pods
    }

    /// A call that goes on beside the test.
    fn spawn(
        &self,
        image: &str,
        input: &Bytes,
    ) -> tokio::task::JoinHandle<Result<EvaluateFunctionResponse, Status>> {
        let (client, image, input) = (self.client.clone(), image.to_owned(), input.clone());
        tokio::spawn(async move { client.evaluate(&image, input, within(60)).await })
    }

    /// What `function-runner pods` prints.
    fn table(&self) -> String {
        let output = Command::new(checkout().join("target/release/function-runner"))
            .args(["pods", &format!("--address=127.0.0.1:{}", self.runner.port())])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until there are neither pods nor Services any more.
    async fn left_nothing(&self) {
        self.witness.until("gone", PATIENCE, |seen| seen.there.is_empty()).await;
        let services = self.space.api::<Service>();
        let all = ListParams::default();
        let is_empty = || async { services.list(&all).await.expect("Services are listed").items.is_empty() };
        eventually("the Services are gone", is_empty).await;
    }

    /// Fails if it was refused anything that it cannot do without.
    fn was_refused_nothing(&self) {
        assert_eq!(needed_refusals(self.space.namespace(), ACCOUNT), []);
    }
}

fn connect(runner: &Server) -> Client {
    client(&format!("127.0.0.1:{}", runner.port()))
}

/// What an account was refused, save for what it tries and does without.
fn needed_refusals(namespace: &str, account: &str) -> Vec<Request> {
    refusals_of(namespace, account).into_iter().filter(is_needed).collect()
}

/// Whether a request is for what the runner cannot do without. The rest is tried: Porch 1.5 does not allow it.
pub(crate) fn is_needed(request: &Request) -> bool {
    let optional = ["/podtemplates", "/servicetemplates", "/functionconfigs"];
    !optional.iter().any(|kind| request.path.contains(kind))
}
