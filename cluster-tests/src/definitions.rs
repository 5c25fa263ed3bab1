//! Our definitions of kinds. A cluster has one of each: tests that want them as they are share them.

use std::{fs, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams},
    runtime::wait::conditions,
};
use serde_json::Value;

use crate::{Space, checkout, eventually, manifests, parse, until};

/// How long a definition may take to come or to go.
const PATIENCE: Duration = Duration::from_mins(1);

/// Our definitions, as they are installed.
pub fn our_definitions() -> String {
    let read = |name: &str| fs::read_to_string(checkout().join("deploy/crds").join(name)).unwrap();
    format!("{}---\n{}", read("functionconfigs.yaml"), read("servicetemplates.yaml"))
}

/// The kind that an object defines.
fn defined(definition: &Value) -> ApiResource {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).expect("a definition");
    let kind =
        GroupVersionKind::gvk(text("/spec/group"), text("/spec/versions/0/name"), text("/spec/names/kind"));
    ApiResource::from_gvk_with_plural(&kind, text("/spec/names/plural"))
}

impl Space {
    /// From here to the end of the test our definitions are installed, and no others. Many tests can have them
    /// at once; they stay for the next ones, until a test claims fixed names.
    pub async fn share_definitions(&self) {
        self.share_fixed_names().await;
        let all: Api<CustomResourceDefinition> = Api::all(self.client());
        for object in parse(&our_definitions()) {
            let applied = manifests::apply(&self.client(), self.namespace(), &object, false).await.unwrap();
            until(&all, &applied.name, "established", PATIENCE, conditions::is_crd_established()).await;
            let objects: Api<DynamicObject> = Api::all_with(self.client(), &defined(&object));
            let few = ListParams::default().limit(1);
            let what = format!("the API server serves {}", applied.name);
            eventually(&what, || async { objects.list(&few).await.is_ok() }).await;
        }
    }

    /// Removes the definitions that tests have shared.
    pub(crate) async fn remove_definitions(&self) {
        let all: Api<CustomResourceDefinition> = Api::all(self.client());
        let ours = parse(&our_definitions());
        let ours = ours.iter().filter_map(|object| object["metadata"]["name"].as_str());
        for name in ours {
            let Some(there) = all.get_opt(name).await.expect("definitions can be read") else { continue };
            let uid = there.uid().expect("it comes from the cluster");
            let _ = all.delete(name, &DeleteParams::background()).await;
            until(&all, name, "gone", PATIENCE, conditions::is_deleted(&uid)).await;
        }
    }
}
