//! Everything under `deploy/` is what the API server thinks it is.

use std::{fs, path::PathBuf};

use cluster_tests::{checkout, kustomize, on_cluster, parse};

use crate::installation::order;

fn kustomizations() -> Vec<PathBuf> {
    let deploy = checkout().join("deploy");
    let overlays = fs::read_dir(deploy.join("overlays")).expect("deploy/overlays is there");
    let mut all = vec![deploy.join("base")];
    all.extend(overlays.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
    all
}

#[test]
#[ignore = "needs the cluster: make test"]
fn all_manifests_pass_strict_validation() {
    on_cluster("strict-manifests", async |space| {
        space.claim_fixed_names().await;
        let mut mistakes = Vec::new();
        for folder in kustomizations() {
            let mut objects = parse(&kustomize(&folder).await);
            objects.sort_by_key(order);
            assert!(!objects.is_empty(), "{} is empty", folder.display());
            for object in &objects {
                // Without these nothing else can even be judged.
                if matches!(object["kind"].as_str(), Some("Namespace" | "CustomResourceDefinition")) {
                    space.apply_object(object).await;
                } else if let Err(mistake) = space.check(object).await {
                    mistakes.push(format!("{}: {mistake}", folder.display()));
                }
            }
        }
        assert!(mistakes.is_empty(), "{mistakes:#?}");
    });
}
