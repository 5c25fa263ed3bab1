//! Makes a project of Google Cloud that of a package.

use std::collections::HashMap;

use krm::{EditError, NodeId, OverBudget, Tag, Value};

use super::Function;
use crate::config::FunctionConfig;
use crate::framework;
use crate::identity::text_at;
use crate::list::ResourceList;
use crate::report::Report;

pub(super) const FUNCTION: Function = Function {
    name: "set-project-id",
    aliases: &[],
    summary: "Sets the setter project-id and the annotation cnrm.cloud.google.com/project-id where they are missing.",
    usage: "\
The functionConfig is a ConfigMap with the project in data.project-id.

In each Kptfile, the first mutator that is an apply-setters gets the setter project-id, in its configMap or
in the file of its configPath, unless it has one that is not empty. A Kptfile without such a mutator gets
one. It is an error if there is no Kptfile in the list: kpt fn eval needs --include-meta-resources.

Resources of Config Connector (of a group below cnrm.cloud.google.com, except core) that do not have the
annotation cnrm.cloud.google.com/project-id get it.
",
    example: "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: example
data:
  project-id: my-project
",
    body: run,
};

const SETTER: &str = "project-id";
const ANNOTATION: &str = "cnrm.cloud.google.com/project-id";
/// What it takes to remember a file beside its path.
const FILE: usize = 96;
/// What a Kptfile gets that has none.
const APPLY_SETTERS: &str = "gcr.io/kpt-fn/apply-setters:v0.2";

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    list.budget().follow("data");
    let outcome = project(config).and_then(|project| {
        set_setters(list, &project).map_err(|cause| format!("failed to set project-id setter: {cause}"))?;
        set_annotations(list, &project)
            .map_err(|cause| format!("failed to set project-id annotation: {cause}"))
    });
    match outcome {
        Ok(()) => Report::new(),
        Err(cause) => Report { failed: true, stderr: format!("{cause}\n"), ..Report::new() },
    }
}

fn project(config: &FunctionConfig) -> Result<String, String> {
    let data = framework::data(config)?;
    let project = data.into_iter().find(|(key, _)| key == SETTER).map(|(_, value)| value);
    project
        .filter(|project| !project.is_empty())
        .ok_or_else(|| "`data.project-id` of the functionConfig must not be empty".to_owned())
}

fn set_setters(list: &mut ResourceList<'_>, project: &str) -> Result<(), String> {
    let is_kptfile =
        |list: &ResourceList<'_>, item| list.string_at(item, &["kind"]).as_deref() == Some("Kptfile");
    let kptfiles: Vec<NodeId> = list.items().into_iter().filter(|&item| is_kptfile(list, item)).collect();
    if kptfiles.is_empty() {
        return Err(
            "failed to find Kptfile: unable to find Kptfile, please include --include-meta-resources \
                    flag if a Kptfile is present"
                .to_owned(),
        );
    }
    let files = files(list)?;
    for kptfile in kptfiles {
        set_setter(list, kptfile, &files, project)
            .map_err(|cause| format!("error updating Kptfile: {cause}"))?;
    }
    Ok(())
}

/// Sets the setter where one Kptfile has its setters.
fn set_setter(
    list: &mut ResourceList<'_>,
    kptfile: NodeId,
    files: &HashMap<String, NodeId>,
    project: &str,
) -> Result<(), String> {
    let mutators = list.at(kptfile, &["pipeline", "mutators"]);
    let mutator = mutators.into_iter().flat_map(|mutators| list.entries(mutators)).find(|&mutator| {
        text_at(list, mutator, &["image"]).is_some_and(|image| image.contains("apply-setters"))
    });
    let Some(mutator) = mutator else { return Ok(add_mutator(list, kptfile, project)?) };
    if let Some(setters) = list.get(mutator, "configMap").filter(|&setters| !list.is_null(setters)) {
        return Ok(set_missing(list, setters, project)?);
    }
    let path = text_at(list, mutator, &["configPath"])
        .filter(|path| !path.is_empty())
        .ok_or("unable to find `ConfigMap` or `configPath` as the `functionConfig` for apply-setters")?;
    let file = find_file(list, kptfile, files, &path).ok_or_else(|| {
        format!(
            "failed to find setter file: file {path} doesn't exist, please ensure the file specified in \
             \"configPath\" exists and retry"
        )
    })?;
    let data = list.ensure_mapping(file, "data")?;
    Ok(set_missing(list, data, project)?)
}

fn add_mutator(list: &mut ResourceList<'_>, kptfile: NodeId, project: &str) -> Result<(), EditError> {
    let pipeline = list.ensure_mapping(kptfile, "pipeline")?;
    let mutators = match list.get(pipeline, "mutators") {
        Some(mutators) => mutators,
        None => list.set_field(pipeline, "mutators", Value::Sequence(Vec::new()))?,
    };
    let setters = Value::strings([(SETTER, project)]);
    let mutator = Value::Mapping(vec![
        ("image".to_owned(), Value::string(APPLY_SETTERS)),
        ("configMap".to_owned(), setters),
    ]);
    list.push(mutators, mutator).map(|_| ())
}

/// Sets the setter, unless there is one that is not empty.
fn set_missing(list: &mut ResourceList<'_>, setters: NodeId, project: &str) -> Result<(), EditError> {
    let present = list.get(setters, SETTER);
    let is_empty =
        |node| list.tag(node) == Some(Tag::Null) || list.text(node).is_some_and(|text| text.is_empty());
    if present.is_none_or(is_empty) {
        list.set_field(setters, SETTER, project)?;
    }
    Ok(())
}

/// The first resource of each file.
fn files(list: &ResourceList<'_>) -> Result<HashMap<String, NodeId>, OverBudget> {
    let mut files = HashMap::new();
    for item in list.items() {
        if let Some(path) = list.file(item).0 {
            list.budget().memory(FILE + path.len())?;
            files.entry(path).or_insert(item);
        }
    }
    Ok(files)
}

/// The resource in the file that a Kptfile names: beside it, or, as the catalog's function has it, anywhere.
fn find_file(
    list: &ResourceList<'_>,
    kptfile: NodeId,
    files: &HashMap<String, NodeId>,
    path: &str,
) -> Option<NodeId> {
    let own = list.file(kptfile).0.unwrap_or_default();
    let beside = own.rsplit_once('/').and_then(|(folder, _)| files.get(&format!("{folder}/{path}")));
    beside.or_else(|| files.get(path)).copied()
}

fn set_annotations(list: &mut ResourceList<'_>, project: &str) -> Result<(), String> {
    for item in list.items() {
        let api_version = text_at(list, item, &["apiVersion"]).unwrap_or_default();
        if is_config_connector(&api_version)
            && list.at(item, &["metadata", "annotations", ANNOTATION]).is_none()
        {
            let annotations = list.ensure_path(item, &["metadata", "annotations"])?;
            list.set_field(annotations, ANNOTATION, project)?;
        }
    }
    list.budget().check().map_err(|over| over.to_string())
}

/// Whether it is something in Google Cloud, and not a part of Config Connector itself.
fn is_config_connector(api_version: &str) -> bool {
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let Some((group, version)) = api_version.split_once(".cnrm.cloud.google.com/") else { return false };
    is_word(group) && is_word(version) && group != "core"
}
