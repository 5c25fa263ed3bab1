//! Our images, from `make images` to the cluster's registry.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tokio::{process::Command, sync::Mutex};

use crate::{checkout, derived};

/// The registry as it is called from pods; on the node it is `localhost:5000`.
pub const REGISTRY_FOR_PODS: &str = "10.199.0.1:5000";

fn layout(name: &str) -> PathBuf {
    checkout().join("target/images").join(name)
}

/// Whether `make images` has made this one.
pub fn has_image(name: &str) -> bool {
    layout(name).join("index.json").exists()
}

/// A tag that changes with the content, so that no node runs an older one.
pub fn digest_tag(name: &str) -> String {
    digest(name).trim_start_matches("sha256:")[..12].to_owned()
}

/// The digest of the image `name` of `make images`.
pub fn digest(name: &str) -> String {
    let file = layout(name).join("index.json");
    let text = fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}; it is made by `make images`", file.display()));
    let index: Value = serde_json::from_str(&text).unwrap();
    index["manifests"][0]["digest"].as_str().expect("a manifest").to_owned()
}

/// Pushes the image `name` of `make images`; its reference in the cluster.
pub async fn push(name: &str) -> String {
    push_as(name, &digest_tag(name)).await
}

/// The same under another tag.
pub async fn push_as(name: &str, tag: &str) -> String {
    push_to(name, name, tag).await
}

/// The same under another name and tag.
pub async fn push_to(name: &str, repository: &str, tag: &str) -> String {
    push_layout(&layout(name), repository, tag).await
}

/// The same under another name, with a program at `place` that may be there already.
pub async fn push_with(name: &str, repository: &str, program: &Path, place: &str) -> String {
    let (layout, tag) = derived::layout(&layout(name), repository, program, place);
    push_layout(&layout, repository, &tag).await
}

async fn push_layout(layout: &Path, repository: &str, tag: &str) -> String {
    // One at a time, and each once: the registry fails when two push the same for the first time.
    static PUSHED: Mutex<BTreeSet<String>> = Mutex::const_new(BTreeSet::new());
    let reference = format!("localhost:5000/{repository}:{tag}");
    let mut pushed = PUSHED.lock().await;
    if pushed.contains(&reference) {
        return reference;
    }
    let source = format!("oci:{}", layout.display());
    let target = format!("docker://{reference}");
    // A layout with several tags wants one named.
    let tagged = fs::read_to_string(layout.join("index.json"))
        .is_ok_and(|index| index.contains("org.opencontainers.image.ref.name"));
    let source = if tagged { format!("{source}:latest") } else { source };
    let output = Command::new("skopeo")
        .args(["copy", "--insecure-policy", "--quiet", "--dest-tls-verify=false", &source, &target])
        .output()
        .await
        .expect("skopeo starts");
    assert!(output.status.success(), "pushing {repository}: {}", String::from_utf8_lossy(&output.stderr));
    pushed.insert(reference.clone());
    reference
}
