//! FunctionConfigs: the index made from them, the objects of a cluster, files, and `validate`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where its set-up fails"
)]

#[path = "../common/mod.rs"]
mod common;

mod api_server;
mod index;
mod order;
mod reconcile;
mod running;
mod validate;

use std::{path::PathBuf, sync::Arc};

use api::FunctionRules;
use function_runner::{
    builtin::Offered,
    routing::{Built, Object, Sources, Terms},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use registry::Reference;
use serde_json::Value;

const PREFIX: &str = "ghcr.io/kptdev/krm-functions-catalog";

/// Executables are in /functions; those that are called "missing" are missing.
fn terms() -> Terms {
    Terms {
        builtins: Offered::Configured,
        functions: Some(PathBuf::from("/functions")),
        pods: true,
        default_prefix: PREFIX.to_owned(),
        check: |path| if path.ends_with("missing") { Err("is missing".to_owned()) } else { Ok(()) },
    }
}

/// An object of the cluster, made in this second of time.
fn object(second: i64, spec: &Value) -> Arc<Object> {
    Arc::new(Object {
        created: Some(Time(Timestamp::from_second(second).unwrap())),
        generation: 1,
        checked: FunctionRules::check(Some(spec), PREFIX),
    })
}

fn sources(objects: impl IntoIterator<Item = (&'static str, Arc<Object>)>) -> Sources {
    let objects = objects.into_iter().map(|(name, object)| (name.into(), object)).collect();
    Sources { objects, ..Sources::default() }
}

/// The file that serves an image.
fn executable(built: &Built, image: &str) -> Option<String> {
    let found = built.index.executable(&Reference::parse(image).unwrap(), None)?;
    Some(found.value.path.to_str().unwrap().to_owned())
}

/// Who says something about the pods of an image.
fn pod(built: &Built, image: &str) -> Option<String> {
    built.index.pod(&Reference::parse(image).unwrap()).map(|function| function.origin.to_string())
}
