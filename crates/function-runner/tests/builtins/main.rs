//! The built-in functions: through gRPC, as processes, and in the commands for people.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where its set-up fails"
)]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod commands;
mod documents;
mod linked;
mod modes;
mod porch;
mod starlark;

use std::{path::Path, process::Stdio};

use bytes::Bytes;
use common::{PROGRAM, within_patience};
use tempfile::TempDir;
use testing::{Server, ServerBuilder};
use tonic::Status;
use wire::{
    client::{CallOptions, Client},
    proto::EvaluateFunctionResponse,
};

/// A folder where nothing is configured.
fn nowhere() -> TempDir {
    TempDir::new().unwrap()
}

/// A service that is started with nothing at all.
fn bare(folder: &Path) -> ServerBuilder {
    Server::of(PROGRAM).folder(folder).flags(["--pod-cache-config=/nonexistent"])
}

/// Calls an image.
async fn call(
    client: &Client,
    image: &str,
    input: impl Into<Bytes>,
) -> Result<EvaluateFunctionResponse, Status> {
    within_patience(client.evaluate(image, input.into(), CallOptions::default())).await
}

fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["  ", line, "\n"]).collect()
}

/// A ResourceList with this functionConfig and one ConfigMap.
fn list(config: &str) -> String {
    format!(
        "# the list\napiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n{}items:\n\
         - apiVersion: v1   # kept\n  kind: ConfigMap\n  metadata: {{name: \"a\"}} # so is this\n",
        indented(config)
    )
}

/// A ResourceList with this functionConfig in which the example of every function finds something to do.
fn package(config: &str) -> String {
    list(config)
        + "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: settings\n    annotations:\n      \
           config.kubernetes.io/local-config: \"true\"\n  data: {image: httpd}\n\
           - apiVersion: apps/v1\n  kind: Deployment\n  metadata:\n    name: the-deployment\n  spec:\n    \
           replicas: 4 # kpt-set: ${nginx-replicas}\n    template:\n      spec:\n        containers:\n        \
           - name: web\n          image: nginx:1.16.1\n\
           - apiVersion: kpt.dev/v1\n  kind: Kptfile\n  metadata:\n    name: package\n"
}

/// A functionConfig of set-namespace and of others that take data.
fn data(key: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config}}\ndata: {{{key}: {value}}}")
}

/// A functionConfig of starlark.
fn program(source: &str) -> String {
    let source = indented(source);
    format!(
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata: {{name: program}}\nsource: |\n{source}"
    )
}

/// Runs a program to its end.
fn run(command: &mut std::process::Command, input: &str) -> std::process::Output {
    let mut child = command
        .env_remove("KUBECONFIG")
        .env_remove("WRAPPER_SERVER_IMAGE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read everything.
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
