//! An object as the API server showed it last.

use std::sync::Arc;

use api::FunctionRules;
use kube::{ResourceExt, api::DynamicObject};
use serde_json::Value;

use crate::routing::Object;

/// What is known of an object beside what it says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// Tells it from another of the same name.
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// Whether it is to be deleted.
    pub(super) is_going: bool,
    pub(super) finalizers: Vec<String>,
    /// Anything, as others write it too.
    pub(super) status: Value,
}

/// Reads an object: its name, what is known of it, and what it says.
pub(super) fn see(object: &DynamicObject, default_prefix: &str) -> (Arc<str>, Seen, Object) {
    let metadata = &object.metadata;
    let seen = Seen {
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
        is_going: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers.clone().unwrap_or_default(),
        status: object.data["status"].clone(),
    };
    let content = Object {
        created: metadata.creation_timestamp.clone(),
        generation: metadata.generation.unwrap_or_default(),
        checked: FunctionRules::check(object.data.get("spec"), default_prefix),
    };
    (object.name_any().into(), seen, content)
}
