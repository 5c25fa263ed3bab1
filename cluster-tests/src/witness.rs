//! Who sees every function pod of a namespace come and go.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    runtime::{watcher, watcher::Event},
};
use tokio::{sync::watch, task::JoinHandle};

use crate::{Space, is_ready};

/// The label of function pods.
pub const IMAGE_LABEL: &str = "fn.kpt.dev/image";

/// What was seen of the function pods of a namespace.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Those that are there, by their unique names.
    pub there: BTreeMap<String, Pod>,
    /// The names of all that ever were, by their unique names.
    pub ever: BTreeMap<String, String>,
    /// How many were there at once, at most.
    pub most: usize,
    is_listed: bool,
}

impl Seen {
    fn add(&mut self, pod: Pod) {
        let uid = pod.uid().expect("it comes from the cluster");
        self.ever.insert(uid.clone(), pod.name_any());
        self.there.insert(uid, pod);
        self.most = self.most.max(self.there.len());
    }

    /// The names of those that are there.
    pub fn names(&self) -> Vec<String> {
        self.there.values().map(ResourceExt::name_any).collect()
    }

    /// Those that are ready and stay.
    pub fn ready(&self) -> impl Iterator<Item = &Pod> {
        let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
        self.there.values().filter(|pod| is_ready(Some(pod))).filter(stays)
    }
}

/// Sees every function pod of a namespace come and go, as long as it lives.
#[derive(Debug)]
pub struct Witness {
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Space {
    /// Sees the function pods of the test's own namespace.
    pub async fn witness(&self) -> Witness {
        Witness::new(&self.client(), self.namespace()).await
    }
}

impl Witness {
    /// Sees the function pods of a namespace.
    pub async fn new(client: &Client, namespace: &str) -> Self {
        let (sender, seen) = watch::channel(Seen::default());
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let task = tokio::spawn(async move {
            let mut events = watcher(pods, watcher::Config::default().labels(IMAGE_LABEL)).boxed();
            while let Some(event) = events.next().await {
                sender.send_modify(|seen| match event {
                    Ok(Event::Apply(pod) | Event::InitApply(pod)) => seen.add(pod),
                    Ok(Event::Delete(pod)) => _ = seen.there.remove(&pod.uid().unwrap_or_default()),
                    Ok(Event::Init) => seen.there.clear(),
                    Ok(Event::InitDone) => seen.is_listed = true,
                    // It begins anew by itself.
                    Err(_) => {}
                });
            }
        });
        let witness = Self { seen, task };
        witness.until("seen at all", Duration::from_secs(20), |seen| seen.is_listed).await;
        witness
    }

    /// What was seen so far.
    pub fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits until the pods are as wanted; fails the test after `limit`.
    pub async fn until(&self, what: &str, limit: Duration, is_so: impl Fn(&Seen) -> bool) -> Seen {
        let begun = Instant::now();
        let mut seen = self.seen.clone();
        if let Ok(seen) = tokio::time::timeout(limit, seen.wait_for(|seen| is_so(seen))).await {
            return seen.expect("the witness watches").clone();
        }
        panic!("pods are not {what} after {:?}; there are:\n{}", begun.elapsed(), list(&self.seen()));
    }
}

fn list(seen: &Seen) -> String {
    let mut text = String::new();
    for pod in seen.there.values() {
        let status = pod.status.clone().unwrap_or_default();
        let _ = writeln!(text, "{} {:?} {:?}", pod.name_any(), status.phase, pod.annotations());
    }
    text
}
