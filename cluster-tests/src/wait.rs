//! Waiting for the cluster, by watching it and never without a limit.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, Resource,
    runtime::wait::{Condition, await_condition},
};
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

/// Waits until `condition` holds for the object `name`; fails the test, with
/// the object as it is then, after `limit`.
pub async fn until<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    limit: Duration,
    condition: impl Condition<K>,
) -> Option<K>
where
    K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
{
    match tokio::time::timeout(limit, await_condition(api.clone(), name, condition)).await {
        Ok(outcome) => outcome.unwrap_or_else(|error| panic!("{name}, waiting until {what}: {error}")),
        Err(_) => {
            let last = api.get_opt(name).await;
            panic!("{name} not {what} within {limit:?}; it is: {last:#?}")
        }
    }
}

/// Looks until `check` holds, where there is nothing to watch; fails the test with `what` after a minute.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    let begun = Instant::now();
    while !check().await {
        assert!(begun.elapsed() < Duration::from_mins(1), "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until a deployment has rolled out: all replicas new and available, none of the old left.
pub async fn deployment_ready(client: &Client, namespace: &str, name: &str, limit: Duration) -> Deployment {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    until(&api, name, "rolled out", limit, rolled_out).await.unwrap()
}

fn rolled_out(deployment: Option<&Deployment>) -> bool {
    let Some((deployment, status)) = deployment.and_then(|it| Some((it, it.status.as_ref()?))) else {
        return false;
    };
    let wanted = deployment.spec.replicas.unwrap_or(1);
    status.observed_generation >= deployment.metadata.generation
        && status.updated_replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
}

/// Waits until a Service takes connections: kube-proxy hears of its pods a
/// little after everybody else.
pub async fn service_reachable(namespace: &str, service: &str, port: u16) {
    let address = format!("{service}.{namespace}.svc.cluster.local:{port}");
    let limit = Duration::from_secs(30);
    let connect = async {
        while TcpStream::connect(&address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(
        tokio::time::timeout(limit, connect).await.is_ok(),
        "{address} takes no connection within {limit:?}"
    );
}
