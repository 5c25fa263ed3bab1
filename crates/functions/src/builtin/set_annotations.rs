//! Sets annotations.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use krm::{Kind, NodeId, Tag, Value};

use super::Function;
use crate::config::FunctionConfig;
use crate::field_spec::{FieldSpec, Found, identifier};
use crate::list::ResourceList;
use crate::report::{Field, File, Finding, Report};
use crate::{go, json};

pub(super) const FUNCTION: Function = Function {
    name: "set-annotations",
    aliases: &[],
    summary: "Sets annotations on all resources and on the templates in them.",
    usage: "\
The functionConfig is one of
- a ConfigMap with the annotations in data,
- a SetAnnotations (fn.kpt.dev/v1alpha1) with the annotations in annotations, and more places for
  them in additionalAnnotationFields: a list of path (such as spec/selector/annotations), and which
  resources it is about: group, version, kind (all, if missing), and create (whether to make the
  field where it is missing).

Annotations are set in metadata.annotations of all resources and of the templates of pods and jobs in
Deployments, ReplicaSets, DaemonSets, StatefulSets, ReplicationControllers, Jobs and CronJobs.
",
    example: "\
apiVersion: fn.kpt.dev/v1alpha1
kind: SetAnnotations
metadata:
  name: example
annotations:
  color: orange
additionalAnnotationFields:
- kind: MyResource
  path: spec/selector/annotations
  create: true
",
    body: run,
};

struct Wanted {
    annotations: BTreeMap<String, String>,
    fields: Vec<FieldSpec>,
    /// The field of the configuration that says most about the work.
    followed: &'static str,
}

/// What it takes to remember where annotations were set.
const PLACE: usize = 128;

/// Where annotations were set: file, place in it and field.
type Places = BTreeSet<(String, i64, String)>;

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    let wanted = match read(config) {
        Ok(wanted) => wanted,
        Err(message) => return Report::fail_with(format!("failed to configure function: {message}")),
    };
    if let Err(message) = check(list) {
        return Report::fail_with(format!("failed to run function: {message}"));
    }
    let mut places = Places::new();
    for item in list.items() {
        if let Err(message) = set(list, item, &wanted, &mut places) {
            return Report::fail_with(format!(
                "failed to run function: failed to run transformer: {message}"
            ));
        }
    }
    let mut report = Report::new();
    if places.is_empty() {
        report.add(Finding { message: "no annotations applied".to_owned(), ..Finding::default() });
    }
    let message = format!("set annotations: {}", json::strings(&wanted.annotations));
    for (path, index, field) in places {
        let finding = Finding {
            message: message.clone(),
            field: Some(Field { path: field, ..Field::default() }),
            file: Some(File { path, index }),
            ..Finding::default()
        };
        // Beyond the budget, nobody will read it.
        if list.afford(&finding).is_err() {
            break;
        }
        report.add(finding);
    }
    report
}

fn read(config: &FunctionConfig) -> Result<Wanted, String> {
    let (annotations, mut fields, mut followed) = match (config.api_version(), config.kind()) {
        ("v1", "ConfigMap") => {
            let data = config.texts(&["data"]).ok_or("all values of `data` must be texts")?;
            (data.into_iter().collect::<BTreeMap<_, _>>(), Vec::new(), "data")
        }
        ("fn.kpt.dev/v1alpha1", "SetAnnotations" | "SetAnnotationConfig") => {
            (annotations(config)?, additional_fields(config)?, "annotations")
        }
        _ => return Err("`functionConfig` must be a `ConfigMap` or `SetAnnotations`".to_owned()),
    };
    if annotations.is_empty() {
        return Err("input annotation list cannot be empty".to_owned());
    }
    if !fields.is_empty() {
        followed = "additionalAnnotationFields";
    }
    fields.extend(default_fields());
    Ok(Wanted { annotations, fields, followed })
}

fn annotations(config: &FunctionConfig) -> Result<BTreeMap<String, String>, String> {
    let Some(Value::Mapping(fields)) = config.at(&["annotations"]) else {
        return match config.at(&["annotations"]) {
            None | Some(Value::Scalar(_, Tag::Null)) => Ok(BTreeMap::new()),
            Some(_) => Err("failed to unmarshal config: `annotations` must be a mapping of texts".to_owned()),
        };
    };
    let text = |key: &str, value: &Value| {
        json::string_of(value).ok_or_else(|| {
            format!("failed to unmarshal config: the annotation {} must be a text", go::quoted(key))
        })
    };
    fields.iter().map(|(key, value)| Ok((key.clone(), text(key, value)?))).collect()
}

fn additional_fields(config: &FunctionConfig) -> Result<Vec<FieldSpec>, String> {
    let present = |key: &str| config.at(&[key]).filter(|value| !matches!(value, Value::Scalar(_, Tag::Null)));
    let (new, old) = (present("additionalAnnotationFields"), present("fieldSpecs"));
    if new.is_some() && old.is_some() {
        return Err(
            "`fieldSpecs` has been deprecated, please rename it to `additionalAnnotationFields`".to_owned()
        );
    }
    match new.or(old) {
        None => Ok(Vec::new()),
        Some(value) => FieldSpec::list_from(value)
            .map_err(|problem| format!("failed to unmarshal config: additionalAnnotationFields: {problem}")),
    }
}

/// Where Kubernetes' own kinds have annotations.
fn default_fields() -> impl Iterator<Item = FieldSpec> {
    const TEMPLATE: &str = "spec/template/metadata/annotations";
    [
        ("", "", "", "metadata/annotations"),
        ("", "v1", "ReplicationController", TEMPLATE),
        ("", "", "Deployment", TEMPLATE),
        ("", "", "ReplicaSet", TEMPLATE),
        ("", "", "DaemonSet", TEMPLATE),
        ("", "", "StatefulSet", TEMPLATE),
        ("batch", "", "Job", TEMPLATE),
        ("batch", "", "CronJob", "spec/jobTemplate/metadata/annotations"),
        ("batch", "", "CronJob", "spec/jobTemplate/spec/template/metadata/annotations"),
    ]
    .into_iter()
    .map(|(group, version, kind, path)| FieldSpec::new(group, version, kind, path, true))
}

/// Refuses resources that have no kind or name, or that are there twice.
fn check(list: &ResourceList<'_>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for item in list.items() {
        let mut resource = list.resource(item);
        let shown = identifier(&resource);
        if resource.kind.is_empty() {
            return Err(format!("missing kind in object {shown}"));
        }
        if resource.name.is_empty() && !resource.kind.ends_with("List") {
            return Err(format!("missing metadata.name in object {shown}"));
        }
        if resource.namespace.is_empty() {
            "default".clone_into(&mut resource.namespace);
        }
        if !seen.insert(resource) {
            return Err(format!("may not add resource with an already registered id: {shown}"));
        }
    }
    Ok(())
}

fn set(
    list: &mut ResourceList<'_>,
    item: NodeId,
    wanted: &Wanted,
    places: &mut Places,
) -> Result<(), String> {
    let resource = list.resource(item);
    let (file, index) = list.file(item);
    let (file, index) = (file.unwrap_or_default(), index.unwrap_or_default());
    list.budget().follow(wanted.followed);
    for spec in &wanted.fields {
        list.budget().work(1)?;
        if !spec.matches(&resource) {
            continue;
        }
        for Found { node, path } in spec.find(list, item, Kind::Mapping)? {
            for (key, value) in &wanted.annotations {
                list.set_field(node, key, &**value).map_err(|error| {
                    format!("considering field '{}' of object {}: {error}", spec.path, identifier(&resource))
                })?;
            }
            list.budget().memory(PLACE + file.len() + path.len())?;
            places.insert((file.clone(), index, path));
        }
    }
    Ok(())
}
