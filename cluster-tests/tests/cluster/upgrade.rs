//! An upgrade of the deployment while calls are made.

use std::time::Duration;

use cluster_tests::{checkout, kustomize, on_cluster, parse, push_as, until};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::Value;

use crate::{
    installation::{IMAGE, Installation, input},
    load::Load,
};

#[test]
#[ignore = "needs the cluster: make test"]
fn an_upgrade_under_load_loses_no_call() {
    on_cluster("upgrade", async |space| {
        space.claim_fixed_names().await;
        let base = parse(&kustomize(&checkout().join("deploy/base")).await);
        let installation = Installation::install(&space, base).await;
        let load = Load::begin(|| installation.client(), IMAGE, &input());
        load.goes_on(20).await;

        let old = installation.pods().await;
        // The same content under another name: to Kubernetes, a new version.
        let mut next = installation.deployment.clone();
        let image = Value::from(push_as("function-runner-example", "next").await);
        next["spec"]["template"]["spec"]["containers"][0]["image"] = image;
        space.apply_object(&next).await;
        installation.ready().await;
        // Not before it is gone has the old one lost all it could.
        let pods: Api<Pod> = Api::namespaced(space.client(), &installation.namespace);
        for pod in old {
            until(&pods, &pod, "gone", Duration::from_mins(1), |it: Option<&Pod>| it.is_none()).await;
        }
        load.goes_on(20).await;
        load.lost_nothing().await;
        installation.was_refused_nothing_needed();
    });
}
