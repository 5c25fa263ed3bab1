//! Manifests: reading them, changing what tests may change, applying them as
//! strictly as the API server can.

use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::{GroupVersionKind, TypeMeta},
    discovery::{self, Scope},
};
use serde_json::Value;

/// The name under which tests own the fields they set.
const MANAGER: &str = "cluster-tests";

/// The objects of a stream of YAML documents; empty documents are none.
pub fn parse(text: &str) -> Vec<Value> {
    let documents: Vec<Option<Value>> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\nin\n{text}"));
    documents.into_iter().flatten().collect()
}

/// The containers of a workload or pod, init containers first.
pub fn containers_of(object: &mut Value) -> Vec<&mut Value> {
    let spec = match object["kind"].as_str() {
        Some("Pod") => object.get_mut("spec"),
        Some("PodTemplate") => object.pointer_mut("/template/spec"),
        _ => object.pointer_mut("/spec/template/spec"),
    };
    let Some(Value::Object(spec)) = spec else { return Vec::new() };
    let (mut first, mut then) = (Vec::new(), Vec::new());
    for (key, value) in spec {
        let list = match key.as_str() {
            "initContainers" => &mut first,
            "containers" => &mut then,
            _ => continue,
        };
        list.extend(value.as_array_mut().into_iter().flatten());
    }
    first.append(&mut then);
    first
}

/// Replaces images by the last element of their name, whatever their registry
/// and tag, in containers and in the values of their variables.
pub fn replace_images(object: &mut Value, replacements: &[(&str, &str)]) {
    let replace = |value: &mut Value| {
        let Some(text) = value.as_str() else { return };
        let last = text.rsplit('/').next().unwrap_or_default();
        let name = last.split([':', '@']).next().unwrap_or_default();
        if let Some((_, new)) = replacements.iter().find(|(old, _)| *old == name) {
            *value = Value::from(*new);
        }
    };
    for container in containers_of(object) {
        if let Some(image) = container.get_mut("image") {
            replace(image);
        }
        for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(value) = variable.get_mut("value") {
                replace(value);
            }
        }
    }
}

/// An object that was applied.
#[derive(Debug, Clone)]
pub struct Applied {
    /// Where it is.
    pub api: Api<DynamicObject>,
    /// What it is.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Applies an object; `namespace` is for those that do not say.
pub(crate) async fn apply(
    client: &Client,
    namespace: &str,
    object: &Value,
    only_check: bool,
) -> Result<Applied, String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let types = TypeMeta {
        api_version: text("/apiVersion").ok_or("no apiVersion")?.to_owned(),
        kind: text("/kind").ok_or("no kind")?.to_owned(),
    };
    let name = text("/metadata/name").ok_or("no name")?;
    let told = format!("{} {name}", types.kind);
    let kind = GroupVersionKind::try_from(&types).map_err(|error| format!("{told}: {error}"))?;
    let (resource, capabilities) = discovery::pinned_kind(client, &kind)
        .await
        .map_err(|error| format!("{told}: the cluster does not know its kind: {error}"))?;
    let place = match capabilities.scope {
        Scope::Cluster => "",
        Scope::Namespaced => text("/metadata/namespace").unwrap_or(namespace),
    };
    let api: Api<DynamicObject> =
        Api::dynamic(client.clone(), &resource, &capabilities.scope).constrain(place);
    let params =
        PatchParams { dry_run: only_check, ..PatchParams::apply(MANAGER).force().validation_strict() };
    // The object as it was read: nothing of it may be dropped before the server has judged it.
    api.patch(name, &params, &Patch::Apply(object)).await.map_err(|error| format!("{told}: {error}"))?;
    Ok(Applied { api, kind: types.kind, name: name.to_owned() })
}
