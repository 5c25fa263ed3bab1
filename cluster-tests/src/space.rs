//! A test's own part of the cluster.

use std::{
    env, fmt,
    io::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Namespace, Pod, ServiceAccount},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
    runtime::wait::conditions,
};
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{
    Applied, deployment_ready,
    manifests::{self, parse},
    report, until,
};

/// How long a namespace may take to go, its pods' grace included.
const REMOVAL: Duration = Duration::from_mins(2);

/// Held alone by tests that use names only one of them can have, and together by those that share what has them.
static FIXED_NAMES: RwLock<()> = RwLock::const_new(());

/// How a test holds the fixed names.
enum Hold {
    Alone(RwLockWriteGuard<'static, ()>),
    Together(RwLockReadGuard<'static, ()>),
}

/// A namespace of a test's own, and all else it has applied; removed when the
/// test ends, unless `CLUSTER_TESTS_KEEP` is set.
pub struct Space {
    test: String,
    client: Client,
    namespace: String,
    applied: Mutex<Vec<Applied>>,
    fixed_names: Mutex<Option<Hold>>,
}

/// Runs a test on the cluster, in a namespace of its own. When it fails, it
/// tells how its pods are doing.
pub fn on_cluster<F>(test: &str, body: impl FnOnce(Arc<Space>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    assert!(
        env::var_os("CLUSTER_INSIDE").is_some(),
        "not inside the cluster's network; `make test` brings one up and runs this there, \
         and after `make cluster-up` so does `cluster-tests/run here`"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads").block_on(async {
        let space = Arc::new(Space::make(test).await);
        let outcome = tokio::spawn(body(space.clone())).await;
        if outcome.is_err() {
            report::describe(test, &space.namespaces()).await;
        }
        if env::var_os("CLUSTER_TESTS_KEEP").is_some() {
            let _ = writeln!(std::io::stderr(), "{test}: kept namespaces {}", space.namespaces().join(", "));
        } else {
            space.remove().await;
        }
        if let Err(error) = outcome {
            std::panic::resume_unwind(error.into_panic());
        }
    });
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space")
            .field("test", &self.test)
            .field("applied", &self.applied)
            .finish_non_exhaustive()
    }
}

impl Space {
    async fn make(test: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let client = Client::try_default().await.expect("KUBECONFIG names the cluster");
        let time = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() % 1_000_000;
        let namespace = format!("{test}-{time}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let (applied, fixed_names) = (Mutex::default(), Mutex::default());
        let space = Self { test: test.to_owned(), client, namespace, applied, fixed_names };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space.namespace}});
        space.apply_object(&object).await;
        space
    }

    /// The name of the test.
    pub fn test(&self) -> &str {
        &self.test
    }

    /// A client that may do everything.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The test's own namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of one kind in the test's own namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// From here to the end of the test, clean-up included, no other test uses
    /// names that are the same in every test.
    pub async fn claim_fixed_names(&self) {
        // Not in line: behind one that waits to be alone, those would wait who can share what is shared now.
        let guard = loop {
            match FIXED_NAMES.try_write() {
                Ok(guard) => break guard,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        self.hold_alone(guard).await;
    }

    /// The same, for a test that shares our definitions soon. It waits in line, as it holds nobody up for long.
    pub async fn claim_fixed_names_for_now(&self) {
        self.hold_alone(FIXED_NAMES.write().await).await;
    }

    async fn hold_alone(&self, guard: RwLockWriteGuard<'static, ()>) {
        *self.fixed_names.lock().unwrap() = Some(Hold::Alone(guard));
        self.remove_definitions().await;
    }

    /// From here to the end of the test, clean-up included, no other test claims fixed names. One that has claimed
    /// them itself shares them from here on.
    pub(crate) async fn share_fixed_names(&self) {
        let held = self.fixed_names.lock().unwrap().take();
        let guard = match held {
            Some(Hold::Alone(guard)) => guard.downgrade(),
            Some(Hold::Together(guard)) => guard,
            None => FIXED_NAMES.read().await,
        };
        *self.fixed_names.lock().unwrap() = Some(Hold::Together(guard));
    }

    /// Applies manifests. Objects that name no namespace go to the test's own.
    pub async fn apply(&self, text: &str) -> Vec<Applied> {
        let mut all = Vec::new();
        for object in parse(text) {
            all.push(self.apply_object(&object).await);
        }
        all
    }

    /// Applies one object.
    pub async fn apply_object(&self, object: &Value) -> Applied {
        let applied = manifests::apply(&self.client, &self.namespace, object, false)
            .await
            .unwrap_or_else(|complaint| panic!("{complaint}\nin {object:#}"));
        self.applied.lock().unwrap().push(applied.clone());
        if applied.kind == "Namespace" {
            self.usable(&applied.name).await;
        }
        if applied.kind == "CustomResourceDefinition" {
            let definitions = Api::all(self.client.clone());
            let limit = Duration::from_secs(30);
            until(&definitions, &applied.name, "established", limit, conditions::is_crd_established()).await;
        }
        applied
    }

    /// Asks the API server whether it would take an object, unknown fields being mistakes.
    pub async fn check(&self, object: &Value) -> Result<(), String> {
        manifests::apply(&self.client, &self.namespace, object, true).await.map(drop)
    }

    /// No pod can be made in a namespace before its service account is there.
    async fn usable(&self, namespace: &str) {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let there = |account: Option<&ServiceAccount>| account.is_some();
        until(&accounts, "default", "made", Duration::from_secs(30), there).await;
    }

    /// Waits until a deployment of the test's own namespace has rolled out.
    pub async fn deployed(&self, name: &str) {
        deployment_ready(&self.client, &self.namespace, name, Duration::from_mins(2)).await;
    }

    /// The namespaces the test has made.
    pub fn namespaces(&self) -> Vec<String> {
        let applied = self.applied.lock().unwrap();
        applied.iter().filter(|it| it.kind == "Namespace").map(|it| it.name.clone()).collect()
    }

    /// Removes everything applied so far but the test's own namespace, and waits until it is gone.
    pub async fn remove_applied(&self) {
        let all = self.applied.lock().unwrap().split_off(1);
        self.remove_all(all).await;
    }

    async fn remove(&self) {
        let all = std::mem::take(&mut *self.applied.lock().unwrap());
        self.remove_all(all).await;
    }

    async fn remove_all(&self, all: Vec<Applied>) {
        let mut namespaces: Vec<_> =
            all.iter().filter(|it| it.kind == "Namespace").map(|it| it.name.clone()).collect();
        namespaces.dedup();
        // What is in a namespace goes with it; its kind may go before, so namespaces first.
        let goes_along = |it: &Applied| {
            it.api.namespace().is_some_and(|place| namespaces.iter().any(|name| name == place))
        };
        let (spaces, rest): (Vec<_>, Vec<_>) =
            all.into_iter().filter(|it| !goes_along(it)).partition(|it| it.kind == "Namespace");
        for name in &namespaces {
            self.let_go(name).await;
        }
        for it in spaces.iter().chain(&rest) {
            self.delete(it).await;
        }
        // A kind that is still going cannot be installed anew, nor objects of it made.
        for it in rest.iter().filter(|it| it.kind == "CustomResourceDefinition") {
            let is_gone = |object: Option<&DynamicObject>| object.is_none();
            until(&it.api, &it.name, "gone", REMOVAL, is_gone).await;
        }
        for name in namespaces {
            let api: Api<Namespace> = Api::all(self.client.clone());
            until(&api, &name, "gone", REMOVAL, |it: Option<&Namespace>| it.is_none()).await;
        }
    }

    /// Ends the pods of a namespace without grace, and first who would start them
    /// again. A namespace that is deleted with pods in it is looked at again only
    /// after half their grace, minutes for a runner.
    async fn end_pods(&self, namespace: &str) {
        let (now, all) = (DeleteParams::default().grace_period(0), ListParams::default());
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let replica_sets: Api<ReplicaSet> = Api::namespaced(self.client.clone(), namespace);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        // Whatever stays goes with the namespace.
        let _ = deployments.delete_collection(&DeleteParams::background(), &all).await;
        let _ = replica_sets.delete_collection(&DeleteParams::background(), &all).await;
        let _ = pods.delete_collection(&now, &all).await;
    }

    /// Ends the pods of a namespace, and takes away what a runner that is gone holds there. Objects that are
    /// being deleted cannot be held anew, whoever still runs.
    async fn let_go(&self, namespace: &str) {
        let kind = GroupVersionKind::gvk("config.porch.kpt.dev", "v1alpha1", "FunctionConfig");
        let kind = ApiResource::from_gvk_with_plural(&kind, "functionconfigs");
        let configs: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        // The kind need not be there.
        let _ = configs.delete_collection(&DeleteParams::background(), &ListParams::default()).await;
        self.end_pods(namespace).await;
        for config in configs.list(&ListParams::default()).await.into_iter().flatten() {
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = configs.patch(&config.name_any(), &PatchParams::default(), &free).await;
        }
    }

    async fn delete(&self, it: &Applied) {
        match it.api.delete(&it.name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "removing {} {}: {error}", it.kind, it.name);
            }
        }
    }

    /// The names of the pods with a label, in any namespace.
    pub async fn pods_with(&self, namespace: &str, label: &str) -> Vec<String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let list = pods.list(&ListParams::default().labels(label)).await.expect("pods are listed");
        list.iter().map(ResourceExt::name_any).collect()
    }
}

/// What `Space::apply` returns is addressed by name only.
impl Applied {
    /// The object as the cluster has it.
    pub async fn get(&self) -> DynamicObject {
        self.api.get(&self.name).await.expect("the object is there")
    }
}
