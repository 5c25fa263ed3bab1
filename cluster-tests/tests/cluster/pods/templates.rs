//! Templates of function pods in a ConfigMap, good and bad.

use cluster_tests::{
    ACCOUNT, REGISTRY_FOR_PODS, Rights, RunnerDeployment, Space, eventually, on_cluster, order, push,
};
use serde_json::json;
use tonic::Code;
use wire::client::Client;

use super::{PATIENCE, needed_refusals};
use crate::installation::within;

/// The test function, as a runner in a pod has to call it.
pub(super) async fn image() -> String {
    push("test-function").await.replace("localhost:5000", REGISTRY_FOR_PODS)
}

/// A template such as Porch's example.
pub(super) struct Template<'a> {
    /// The value of an annotation.
    pub(super) more: &'a str,
    /// The name of the container that the function is to run in.
    pub(super) container: &'a str,
    /// What that container runs.
    pub(super) command: &'a str,
    /// How the wrapper gets there.
    pub(super) copy: &'a str,
    /// Another container, as a line of YAML.
    pub(super) sidecar: &'a str,
    /// Where the Service leads.
    pub(super) target_port: u16,
}

impl Default for Template<'_> {
    fn default() -> Self {
        let command = "[/wrapper-server-tools/wrapper-server]";
        let copy = "[cp, -a, /home/nonroot/wrapper-server/., /wrapper-server-tools]";
        Self { more: "", container: "function", command, copy, sidecar: "", target_port: 9446 }
    }
}

impl Template<'_> {
    /// Puts it into a ConfigMap of the test's own namespace.
    pub(super) async fn apply(&self, space: &Space, name: &str) {
        let Self { more, container, command, copy, sidecar, target_port } = self;
        let wrapper = push("wrapper-server").await;
        let pod = format!(
            "apiVersion: v1
kind: Pod
metadata:
  annotations:
    example.com/more: {more:?}
spec:
  terminationGracePeriodSeconds: 30
  initContainers:
  - name: copy-wrapper-server
    image: {wrapper}
    command: {copy}
    volumeMounts:
    - {{name: wrapper-server-tools, mountPath: /wrapper-server-tools}}
  containers:
  - name: {container}
    image: image-replaced-by-kpt-func-image
    command: {command}
    volumeMounts:
    - {{name: wrapper-server-tools, mountPath: /wrapper-server-tools}}
  {sidecar}
  volumes:
  - {{name: wrapper-server-tools, emptyDir: {{}}}}
"
        );
        let service = format!(
            "apiVersion: v1
kind: Service
spec:
  ports:
  - {{port: 9446, protocol: TCP, targetPort: {target_port}}}
  selector:
    fn.kpt.dev/image: to-be-replaced
  type: ClusterIP
"
        );
        space
            .apply_object(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                "data": {"template": pod, "serviceTemplate": service},
            }))
            .await;
    }
}

/// Calls until the answer is an error with these words: the runner looks at the template now and then.
async fn comes_to_tell(client: &Client, image: &str, words: &[&str]) {
    eventually(&format!("{words:?} are told"), || async {
        let told = client.evaluate(image, order(&[]), within(30)).await.unwrap_err();
        let is_so = words.iter().all(|word| told.message().contains(word));
        assert!(!is_so || told.code() == Code::FailedPrecondition, "{told}");
        is_so
    })
    .await;
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_template_that_is_missing_wrong_or_crashes_is_told_until_it_is_right() {
    on_cluster("templates", async |space| {
        let runner = RunnerDeployment::with_pods(&space, "runner", Rights::Files).await;
        let client = space.deploy(&runner.flags(["--function-pod-template=pods"])).await;
        let (image, witness) = (image().await, space.witness().await);
        comes_to_tell(&client, &image, &[&image, "ConfigMap", "pods"]).await;
        Template { container: "main", ..Template::default() }.apply(&space, "pods").await;
        comes_to_tell(&client, &image, &[&image, "pods", "container", "function"]).await;
        assert_eq!(witness.seen().ever.len(), 0, "no pod is made without a template");

        Template { command: "[/test-function, crash]", ..Template::default() }.apply(&space, "pods").await;
        comes_to_tell(&client, &image, &[&image, "\"function\" ended with exit code 139"]).await;
        let crashed = witness.seen().ever.len();
        assert!((1..=5).contains(&crashed), "{crashed} pods: no creation storm");

        Template::default().apply(&space, "pods").await;
        let call = || async { client.evaluate(&image, order(&[]), within(30)).await.is_ok() };
        eventually("the right one works", call).await;
        witness.until("the good one alone", PATIENCE, |seen| seen.there.len() == 1).await;
        assert_eq!(needed_refusals(space.namespace(), ACCOUNT), []);
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_template_may_copy_the_wrapper_by_a_shell() {
    on_cluster("shell-template", async |space| {
        let copy = r#"[sh, -c, "cp -a /wrapper-server/. /wrapper-server-tools && cp /wrapper-server/* /wrapper-server-tools"]"#;
        Template { copy, ..Template::default() }.apply(&space, "pods").await;
        let runner = RunnerDeployment::with_pods(&space, "runner", Rights::Files).await;
        let client = space.deploy(&runner.flags(["--function-pod-template=pods"])).await;
        client.evaluate(&image().await, order(&[]), within(60)).await.expect("it is answered");
        assert_eq!(needed_refusals(space.namespace(), ACCOUNT), []);
    });
}
