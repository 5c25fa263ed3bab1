//! Runners: as a deployment, and as a process of the node.

use std::env;

use serde_json::{Value, json};
use testing::{Server, ServerBuilder};
use wire::client::{Client, endpoint};

use crate::{Space, checkout, service_reachable};

/// The port of the runner's service.
const PORT: u16 = 9445;
/// The usual limit of a message, and room around it.
const LIMIT: usize = 6 * 1024 * 1024 + 1024;

/// A runner to deploy in the test's own namespace, with a Service of its name.
#[derive(Debug, Clone)]
pub struct RunnerDeployment {
    /// The name of the Deployment and the Service.
    pub name: String,
    /// Its image.
    pub image: String,
    /// How many.
    pub replicas: u32,
    /// Its flags.
    pub flags: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// The account it runs as.
    pub account: String,
}

impl RunnerDeployment {
    /// One runner without pods.
    pub fn exec_only(name: &str, image: &str) -> Self {
        Self {
            name: name.to_owned(),
            image: image.to_owned(),
            replicas: 1,
            flags: vec!["--disable-runtimes=pod".to_owned()],
            environment: Vec::new(),
            account: "default".to_owned(),
        }
    }

    /// The Deployment and the Service.
    pub fn objects(&self) -> [Value; 2] {
        let Self { name, image, replicas, flags, environment, account } = self;
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let labels = json!({"app": name});
        let container = json!({
            "name": "function-runner",
            "image": image,
            "args": flags,
            "env": environment,
            "ports": [{"containerPort": PORT, "name": "grpc"}],
            "readinessProbe": {"grpc": {"port": PORT}, "periodSeconds": 1},
        });
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"serviceAccountName": account, "containers": [container]},
                },
            },
        });
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": labels, "ports": [{"name": "grpc", "port": PORT, "targetPort": PORT}]},
        });
        [deployment, service]
    }
}

impl Space {
    /// Deploys a runner, waits until its Service takes calls and gives a client of its Service.
    pub async fn deploy(&self, runner: &RunnerDeployment) -> Client {
        for object in runner.objects() {
            self.apply_object(&object).await;
        }
        self.deployed(&runner.name).await;
        service_reachable(self.namespace(), &runner.name, PORT).await;
        client_of(self.namespace(), &runner.name)
    }
}

/// A client of a runner's Service, by its name. It connects when first used.
pub fn client_of(namespace: &str, service: &str) -> Client {
    client(&format!("{service}.{namespace}.svc.cluster.local:{PORT}"))
}

/// A client of an address, with a connection of its own.
pub fn client(address: &str) -> Client {
    Client::new(endpoint(address).expect("an address").connect_lazy(), LIMIT)
}

/// A runner that is a process of the node, with the rights of an administrator.
#[derive(Debug)]
pub struct HostRunner;

impl HostRunner {
    /// To be given flags and started.
    pub fn build() -> ServerBuilder {
        let kubeconfig = env::var("KUBECONFIG").expect("inside the cluster");
        Server::of(checkout().join("target/release/function-runner")).variable("KUBECONFIG", &kubeconfig)
    }
}
