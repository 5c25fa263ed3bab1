//! Several runners with one namespace of pods.

use std::{collections::BTreeSet, time::Duration};

use cluster_tests::{HostRunner, Space, host_of, on_cluster, order, push};
use k8s_openapi::api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Service};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use testing::Signal;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use super::{Lab, connect};
use crate::installation::within;

#[test]
#[ignore = "needs the cluster: make test"]
fn two_replicas_share_their_pods_and_delete_none_of_each_other() {
    on_cluster("two-replicas", async |space| {
        let flags = [
            "--max-parallel-pods-per-function=2",
            "--max-waitlist-length=1",
            "--scan-interval=500ms",
            "--pod-ttl=8s",
        ];
        let image = push("test-function").await;
        let one = Lab::start(&space, &flags).await;
        let other = HostRunner::another(&space).await.flags(flags).start();
        let clients = [one.client.clone(), connect(&other)];
        // Both are asked for the same at the same time.
        let calls: Vec<_> = (0..16)
            .map(|number| {
                let (client, image) = (clients[number % 2].clone(), image.clone());
                let input = order(&[("host", "true"), ("sleep", "1500")]);
                tokio::spawn(async move { client.evaluate(&image, input, within(60)).await })
            })
            .collect();
        let mut pods = BTreeSet::new();
        for call in calls {
            pods.insert(host_of(&call.await.unwrap().expect("each call is answered").resource_list));
        }
        assert!(!pods.is_empty());
        let seen = one.witness.seen();
        assert_eq!(seen.ever.len(), 2, "together they keep to the limit: {:?}", seen.ever);

        // Only one of them has calls; the other must not take its pods for unused, scan after scan.
        for _ in 0..12 {
            let calls = (0..4).map(|_| clients[0].evaluate(&image, order(&[("host", "true")]), within(60)));
            for answer in futures::future::join_all(calls).await {
                let pod = host_of(&answer.expect("each call is answered").resource_list);
                assert!(pods.contains(&pod) || seen.ever.values().any(|name| *name == pod), "{pod} is new");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let seen = one.witness.seen();
        assert_eq!((seen.there.len(), seen.ever.len()), (2, 2), "{:?}\n{}", seen.ever, other.log());
        one.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_replica_that_dies_between_its_claim_and_its_pod_is_followed_by_the_other() {
    on_cluster("dead-claim", async |space| {
        let image = push("test-function").await;
        // Whoever makes a pod waits for an answer that does not come.
        let hold = HeldPods::begin(&space).await;
        let mut one = Lab::start(&space, &[]).await;
        let other = HostRunner::another(&space).await.start();
        let call = one.spawn(&image, &order(&[]));
        hold.asked().await;
        let services = space.api::<Service>();
        let claims = services.list(&ListParams::default()).await.unwrap();
        assert_eq!(claims.items.len(), 1, "the slot is claimed: {claims:?}");
        one.runner.signal(Signal::KILL);
        one.runner.wait(Duration::from_secs(10));
        call.await.unwrap().expect_err("nobody is there to answer it");
        hold.end(&space).await;
        assert_eq!(one.witness.seen().ever.len(), 0, "no pod was made");

        let input = order(&[("host", "true")]);
        let answer = connect(&other).evaluate(&image, input, within(60)).await;
        let pod = host_of(&answer.unwrap_or_else(|status| panic!("{status}\n{}", other.log())).resource_list);
        let seen = one.witness.seen();
        assert_eq!((seen.names(), seen.ever.len()), (vec![pod], 1), "{:?}", seen.ever);
        let now = services.list(&ListParams::default()).await.unwrap();
        assert_eq!(now.items.len(), 1, "it goes by the claim that is there: {now:?}");
        one.was_refused_nothing();
    });
}

/// Holds the creation of pods up: a webhook is asked about each, and does not answer.
struct HeldPods {
    name: String,
    asked: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl HeldPods {
    async fn begin(space: &Space) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let (sender, asked) = watch::channel(0);
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                held.push(connection);
                sender.send_modify(|count| *count += 1);
            }
        });
        let name = format!("hold-{}", space.namespace());
        space
            .apply_object(&json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": name},
                "webhooks": [{
                    "name": "hold.example.com", "clientConfig": {"url": url}, "timeoutSeconds": 30,
                    "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.namespace()}},
                    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
                }],
            }))
            .await;
        let mut held = Self { name, asked, task };
        // In force a moment after it was taken.
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        });
        while *held.asked.borrow_and_update() == 0 {
            let _ = tokio::time::timeout(Duration::from_millis(500), space.check(&pod)).await;
        }
        held
    }

    /// Waits until a pod is about to be made.
    async fn asked(&self) {
        let mut asked = self.asked.clone();
        let changed = tokio::time::timeout(super::PATIENCE, asked.changed()).await;
        changed.expect("a pod is to be made").unwrap();
    }

    /// Lets pods be made again.
    async fn end(self, space: &Space) {
        let all: Api<ValidatingWebhookConfiguration> = Api::all(space.client());
        all.delete(&self.name, &DeleteParams::default()).await.unwrap();
        self.task.abort();
    }
}
