//! Porch's own manifests, from beside the repository.

use std::{fs, path::PathBuf};

use serde_json::Value;

/// The documents of one of Porch's manifests; none, and a word about it, where they are not at hand.
pub(crate) fn documents(file: &str) -> Vec<Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/porch").join(file);
    let Ok(text) = fs::read_to_string(&path) else {
        println!("not tried, as it is not here: {}", path.display());
        return Vec::new();
    };
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Those of them that are of a kind.
pub(crate) fn objects<T: serde::de::DeserializeOwned>(file: &str, kind: &str) -> Vec<T> {
    let documents = documents(file).into_iter().filter(|document| document["kind"] == kind);
    documents.map(|document| serde_json::from_value(document).unwrap()).collect()
}
