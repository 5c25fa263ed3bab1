//! Runners: as a deployment, and as a process of the node.

use std::env;

use serde_json::{Value, json};
use testing::{Server, ServerBuilder};
use wire::client::{Client, endpoint};

use crate::{ACCOUNT, Rights, Space, checkout, push, service_reachable};

/// The port of the runner's service.
const PORT: u16 = 9445;
/// Pods as `deploy/` has them. Those of Porch's manifests are as Porch's are.
const RESTRICTED: &str = "--pod-security=restricted";
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

    /// One runner whose function pods are in the test's own namespace, with the rights Porch gives its own.
    pub async fn with_pods(space: &Space, name: &str, rights: Rights) -> Self {
        space.make_account(rights).await;
        Self {
            flags: vec![format!("--pod-namespace={}", space.namespace()), RESTRICTED.to_owned()],
            environment: vec![("WRAPPER_SERVER_IMAGE".to_owned(), push("wrapper-server").await)],
            account: ACCOUNT.to_owned(),
            ..Self::exec_only(name, &push("function-runner").await)
        }
    }

    /// The same with more flags.
    #[must_use]
    pub fn flags<T: Into<String>>(mut self, flags: impl IntoIterator<Item = T>) -> Self {
        self.flags.extend(flags.into_iter().map(Into::into));
        self
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

/// A runner that is a process of the node.
#[derive(Debug)]
pub struct HostRunner;

impl HostRunner {
    /// With the rights of an administrator; to be given flags and started.
    pub fn build() -> ServerBuilder {
        Self::of(&env::var("KUBECONFIG").expect("inside the cluster"))
    }

    /// One whose function pods are in the test's own namespace, with the rights Porch gives its own.
    pub async fn with_pods(space: &Space, rights: Rights) -> ServerBuilder {
        space.make_account(rights).await;
        Self::another(space).await
    }

    /// Another replica of it.
    pub async fn another(space: &Space) -> ServerBuilder {
        Self::of(space.kubeconfig().await.to_str().unwrap())
            .variable("WRAPPER_SERVER_IMAGE", &push("wrapper-server").await)
            .flags([format!("--pod-namespace={}", space.namespace()), RESTRICTED.to_owned()])
    }

    fn of(kubeconfig: &str) -> ServerBuilder {
        Server::of(checkout().join("target/release/function-runner")).variable("KUBECONFIG", kubeconfig)
    }
}
