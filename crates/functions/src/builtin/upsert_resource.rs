//! Puts resources in the place of those with the same name, or adds them.

use std::collections::HashMap;

use krm::{Kind, NodeId, Value};

use super::Function;
use crate::adopt::copy_comments;
use crate::config::FunctionConfig;
use crate::identity::{identity, text, text_at};
use crate::list::ResourceList;
use crate::report::Report;

pub(super) const FUNCTION: Function = Function {
    name: "upsert-resource",
    aliases: &[],
    summary: "Puts a resource in the place of the one with the same name, or adds it.",
    usage: "\
The functionConfig is the resource itself, or a List (v1) with several of them in items.

A resource is the same as another if group, kind, name and namespace are equal; all that are the same
are replaced, and each stays in its file. If there is none, the resource is added, in a new file or in
the one that its annotation config.kubernetes.io/target-path names. With that annotation, only a
resource in that file is replaced. The annotation itself is not part of the result.
",
    example: "\
apiVersion: v1
kind: Service
metadata:
  name: example
  annotations:
    config.kubernetes.io/target-path: services.yaml
spec:
  selector:
    app: example
",
    body: run,
};

const ANNOTATIONS: &[&str] = &["metadata", "annotations"];
const TARGET_PATH: &str = "config.kubernetes.io/target-path";
/// Mark a resource as the configuration of a function.
const FUNCTION_MARKS: [&str; 2] = ["config.kubernetes.io/function", "config.k8s.io/function"];
const PATHS: [&str; 2] = ["internal.config.kubernetes.io/path", "config.kubernetes.io/path"];
const INDEXES: [&str; 2] = ["internal.config.kubernetes.io/index", "config.kubernetes.io/index"];

/// Group, kind, name and namespace.
type Key = [String; 4];

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    match upsert(list, config) {
        Ok(()) => Report::new(),
        Err(problem) => Report {
            failed: true,
            stderr: format!("failed to upsert resource: {problem}\n"),
            ..Report::new()
        },
    }
}

fn upsert(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Result<(), String> {
    let config = config.node().filter(|&node| !list.is_empty(node));
    let config =
        config.ok_or("functionConfig is missing: it must be the resource, or a List of resources")?;
    let resources = if text_at(list, config, &["kind"]).as_deref() == Some("List") {
        list.get(config, "items").map(|items| list.entries(items).collect()).unwrap_or_default()
    } else {
        vec![config]
    };
    let mut present: HashMap<Key, Vec<NodeId>> = HashMap::new();
    for item in list.items() {
        let key = key(list, item)?;
        if FUNCTION_MARKS.iter().all(|mark| annotation(list, item, mark).is_none()) {
            present.entry(key).or_default().push(item);
        }
    }
    list.budget().follow("items");
    let style = PathStyle::of(list);
    for resource in resources {
        list.expect(resource, Kind::Mapping).map_err(|error| error.to_string())?;
        let same = present.entry(key(list, resource)?).or_default();
        let target = annotation(list, resource, TARGET_PATH);
        let mut found = false;
        for &item in &*same {
            if target.is_none()
                || target == annotation(list, item, PATHS[0]).or_else(|| annotation(list, item, PATHS[1]))
            {
                replace(list, item, resource)?;
                found = true;
            }
        }
        if !found {
            same.push(add(list, resource, target, style)?);
        }
    }
    Ok(())
}

fn key(list: &ResourceList<'_>, item: NodeId) -> Result<Key, String> {
    let resource = identity(list, item);
    let annotated = list.at(item, ANNOTATIONS).or_else(|| list.at(item, &["metadata", "labels"]));
    if [&resource.api_version, &resource.kind, &resource.name, &resource.namespace]
        .iter()
        .all(|part| part.is_empty())
        && annotated.is_none_or(|fields| list.is_empty(fields))
    {
        return Err(format!("line {}: missing Resource metadata", list.line(item)));
    }
    Ok([resource.group().to_owned(), resource.kind, resource.name, resource.namespace])
}

/// The value of an annotation that is not empty.
fn annotation(list: &ResourceList<'_>, item: NodeId, key: &str) -> Option<String> {
    list.at(item, ANNOTATIONS)
        .and_then(|annotations| text_at(list, annotations, &[key]))
        .filter(|value| !value.is_empty())
}

/// Makes a resource what another is, but leaves it where it is.
fn replace(list: &mut ResourceList<'_>, item: NodeId, by: NodeId) -> Result<(), String> {
    let mut annotations = own_annotations(list, by)?;
    for key in PATHS.into_iter().chain(INDEXES) {
        annotations.extend(annotation(list, item, key).map(|value| (key.to_owned(), value)));
    }
    let mut value = list.value(by);
    set_annotations(&mut value, annotations);
    list.set(item, value)?;
    Ok(copy_comments(list, item, by)?)
}

/// The annotations of a resource but for those that say where it is and what is to be done with it.
fn own_annotations(list: &ResourceList<'_>, resource: NodeId) -> Result<Vec<(String, String)>, String> {
    let Some(annotations) = list.at(resource, ANNOTATIONS).filter(|&annotations| !list.is_null(annotations))
    else {
        return Ok(Vec::new());
    };
    list.expect(annotations, Kind::Mapping).map_err(|error| error.to_string())?;
    let ours = FUNCTION_MARKS.into_iter().chain(PATHS).chain(INDEXES).chain([TARGET_PATH]);
    let ours: Vec<&str> = ours.collect();
    Ok(list
        .fields(annotations)
        .filter(|(key, _)| !ours.contains(&&**key))
        .map(|(key, value)| (key.into_owned(), text(list, value).unwrap_or_default()))
        .collect())
}

fn set_annotations(resource: &mut Value, annotations: Vec<(String, String)>) {
    let Value::Mapping(fields) = resource else { return };
    if !annotations.is_empty() && !fields.iter().any(|(key, _)| key == "metadata") {
        fields.push(("metadata".to_owned(), Value::mapping()));
    }
    let Some((_, metadata)) = fields.iter_mut().find(|(key, _)| key == "metadata") else { return };
    if !annotations.is_empty() && !matches!(metadata, Value::Mapping(_)) {
        *metadata = Value::mapping();
    }
    let Value::Mapping(metadata) = metadata else { return };
    let place = metadata.iter().position(|(key, _)| key == "annotations").unwrap_or(metadata.len());
    metadata.retain(|(key, _)| key != "annotations");
    if !annotations.is_empty() {
        metadata.insert(place, ("annotations".to_owned(), Value::strings(annotations)));
    }
}

/// Adds a copy of a resource, to the given file.
fn add(
    list: &mut ResourceList<'_>,
    resource: NodeId,
    target: Option<String>,
    style: PathStyle,
) -> Result<NodeId, String> {
    let mut annotations = own_annotations(list, resource)?;
    if let Some(path) = target {
        annotations.extend(style.keys().map(|key| (key.to_owned(), path.clone())));
    }
    let mut value = list.value(resource);
    set_annotations(&mut value, annotations);
    let item = list.add_item_copy(resource)?;
    list.set(item, value)?;
    Ok(item)
}

/// Which of the two annotations for the file of a resource this package uses.
#[derive(Debug, Clone, Copy)]
struct PathStyle {
    used: [bool; 2],
}

impl PathStyle {
    fn of(list: &ResourceList<'_>) -> Self {
        let items = list.items();
        let uses = |key: &str| items.iter().any(|&item| annotation(list, item, key).is_some());
        let old = uses(PATHS[1]);
        Self { used: [uses(PATHS[0]) || !old, old] }
    }

    fn keys(self) -> impl Iterator<Item = &'static str> {
        PATHS.into_iter().zip(self.used).filter(|(_, used)| *used).map(|(key, _)| key)
    }
}
