//! What several subjects need: the service under test, and calls of it.
#![allow(dead_code, reason = "each subject uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

use std::{future::Future, time::Duration};

use bytes::Bytes;
use testing::{Functions, Server, ServerBuilder};
use tonic::Status;
use wire::{
    client::{CallOptions, Client},
    proto::EvaluateFunctionResponse,
};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_function-runner");

/// Hangs are told from slowness by this.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A service that offers `functions`.
pub(crate) fn runner(functions: &Functions) -> ServerBuilder {
    Server::of(PROGRAM).flags(functions.flags())
}

/// The image under which the function `name` is offered.
pub(crate) fn image(name: &str) -> String {
    format!("example.com/{name}:v1")
}

/// Calls the function `name`; a hang fails the test.
pub(crate) async fn call(
    client: &Client,
    name: &str,
    input: Bytes,
) -> Result<EvaluateFunctionResponse, Status> {
    within_patience(client.evaluate(&image(name), input, CallOptions::default())).await
}

/// Calls the function `name` with a deadline.
pub(crate) async fn call_within(
    client: &Client,
    name: &str,
    input: Bytes,
    timeout: Duration,
) -> Result<EvaluateFunctionResponse, Status> {
    let options = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
    within_patience(client.evaluate(&image(name), input, options)).await
}

/// Waits, but not for ever.
pub(crate) async fn within_patience<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.unwrap()
}

/// The smallest ResourceList.
pub(crate) const EMPTY: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n";
