//! A runner installed from manifests, ours or Porch's.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cluster_tests::{
    Request, Space, client_of, deployment_ready, push, refusals_of, replace_images, service_reachable,
};
use serde_json::Value;
use wire::client::{CallOptions, Client};

use crate::pods::is_needed;

/// The image of the example function, which the runner of these tests offers.
pub(crate) const IMAGE: &str = "example.com/set-owner:v1";

/// What the example function is given: one resource, and who owns it.
pub(crate) fn input() -> Bytes {
    Bytes::from_static(
        b"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n\
          items:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: one\n\
          functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: settings\n  data:\n    owner: platform\n",
    )
}

/// A call with a time limit.
pub(crate) fn within(seconds: u64) -> CallOptions {
    CallOptions { timeout: Some(Duration::from_secs(seconds)), trace: None }
}

/// An installed runner.
pub(crate) struct Installation {
    space: Arc<Space>,
    /// Where its deployment is.
    pub(crate) namespace: String,
    /// The deployment.
    pub(crate) deployment: Value,
    /// The Service in front of it.
    pub(crate) service: String,
    /// How often its account was refused something before: by installations before it, which had the same.
    refused_before: usize,
}

impl Installation {
    /// Applies the manifests, changed in nothing but image names, and waits until the runner is ready.
    pub(crate) async fn install(space: &Arc<Space>, mut objects: Vec<Value>) -> Self {
        let runner = push("function-runner-example").await;
        let wrapper = push("wrapper-server").await;
        let names = [
            ("function-runner", runner.as_str()),
            ("porch-function-runner", &runner),
            ("wrapper-server", &wrapper),
            ("porch-wrapper-server", &wrapper),
        ];
        objects.sort_by_key(order);
        for object in &mut objects {
            replace_images(object, &names);
        }
        let find = |kind: &str, name: &str| {
            let found = objects.iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
            found.unwrap_or_else(|| panic!("no {kind} {name} in the manifests")).clone()
        };
        let deployment = find("Deployment", "function-runner");
        let service = find("Service", "function-runner");
        let namespace = deployment["metadata"]["namespace"].as_str().expect("a namespace").to_owned();
        let installation = Self {
            space: space.clone(),
            refused_before: refusals_of(&namespace, account(&deployment)).len(),
            namespace,
            service: service["metadata"]["name"].as_str().unwrap().to_owned(),
            deployment,
        };
        for object in &objects {
            space.apply_object(object).await;
        }
        installation.ready().await;
        service_reachable(&installation.namespace, &installation.service, 9445).await;
        installation
    }

    /// Waits until it has rolled out.
    pub(crate) async fn ready(&self) {
        let name = self.deployment["metadata"]["name"].as_str().unwrap();
        deployment_ready(&self.space.client(), &self.namespace, name, Duration::from_mins(2)).await;
    }

    /// A client of its Service.
    pub(crate) fn client(&self) -> Client {
        client_of(&self.namespace, &self.service)
    }

    /// The names of its pods.
    pub(crate) async fn pods(&self) -> Vec<String> {
        let labels = self.deployment["spec"]["selector"]["matchLabels"].as_object().expect("labels");
        let labels: Vec<_> =
            labels.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
        self.space.pods_with(&self.namespace, &labels.join(",")).await
    }

    /// Asserts that a call through the Service is answered.
    pub(crate) async fn answers(&self) {
        let answer = self.client().evaluate(IMAGE, input(), within(30)).await.expect("the call is answered");
        let text = String::from_utf8_lossy(&answer.resource_list).into_owned();
        assert!(text.contains("example.com/owner: platform"), "{text}");
    }

    /// Asserts that the API server has refused it nothing.
    pub(crate) fn was_refused_nothing(&self) {
        assert_eq!(self.refusals(), []);
    }

    /// Asserts that it was refused nothing save what it tries and does without.
    pub(crate) fn was_refused_nothing_needed(&self) {
        let needed: Vec<_> = self.refusals().into_iter().filter(is_needed).collect();
        assert_eq!(needed, []);
    }

    fn refusals(&self) -> Vec<Request> {
        refusals_of(&self.namespace, account(&self.deployment)).split_off(self.refused_before)
    }
}

/// The account of a deployment.
fn account(deployment: &Value) -> &str {
    deployment["spec"]["template"]["spec"]["serviceAccountName"].as_str().unwrap_or("default")
}

/// What others need goes first: namespaces, then kinds.
pub(crate) fn order(object: &Value) -> usize {
    match object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("CustomResourceDefinition") => 1,
        Some("ServiceAccount" | "ConfigMap" | "Secret") => 2,
        Some("Deployment") => 4,
        _ => 3,
    }
}
