//! Porch's own manifests, of each generation, changed in nothing but image
//! names. They are read where they lie beside the checkout, and not part of it.

use std::{fs, io::Write as _, path::PathBuf};

use cluster_tests::{checkout, on_cluster, parse};
use serde_json::{Value, json};

use crate::installation::Installation;

fn folder(generation: &str) -> PathBuf {
    checkout().join("../shared/porch").join(generation)
}

/// The deployment, the roles, and what they refer to.
fn manifests(generation: &str) -> Vec<Value> {
    let mut files: Vec<_> = fs::read_dir(folder(generation)).unwrap().flatten().map(|it| it.path()).collect();
    files.sort();
    // Not manifests, and an example for those who want another template.
    let is_no_manifest =
        |path: &PathBuf| path.ends_with("config.yaml") || path.ends_with("function-pods-deployment.yaml");
    let texts =
        files.into_iter().filter(|path| !is_no_manifest(path)).map(|path| fs::read_to_string(path).unwrap());
    let mut objects: Vec<_> = texts.flat_map(|text| parse(&text)).collect();
    for name in ["porch-system", "porch-fn-system"] {
        let is_there = |it: &Value| it["kind"] == "Namespace" && it["metadata"]["name"] == name;
        if !objects.iter().any(is_there) {
            objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        }
    }
    objects
}

fn takes_the_place(test: &str, generation: &'static str) {
    if !folder(generation).is_dir() {
        // Past the capture: what was not tested must be seen.
        let _ = writeln!(std::io::stderr(), "skipped {test}: {} is not there", folder(generation).display());
        return;
    }
    on_cluster(test, async |space| {
        space.claim_fixed_names().await;
        let installation = Installation::install(&space, manifests(generation)).await;
        installation.answers().await;
        installation.was_refused_nothing().await;
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn takes_the_place_of_porch_1_5_3() {
    takes_the_place("porch-1-5-3", "v1.5.3");
}

#[test]
#[ignore = "needs the cluster: make test"]
fn takes_the_place_of_porch_1_5_8() {
    takes_the_place("porch-1-5-8", "v1.5.8");
}

#[test]
#[ignore = "needs the cluster: make test"]
fn takes_the_place_of_porch_head() {
    takes_the_place("porch-head", "head");
}
