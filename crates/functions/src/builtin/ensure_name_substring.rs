//! Gives names a common prefix or suffix.

mod fields;
mod references;

use std::collections::HashSet;

use krm::{Kind, NodeId, Tag, Value};

use super::Function;
use crate::config::FunctionConfig;
use crate::field_spec::{FieldSpec, Found, identifier};
use crate::framework;
use crate::identity::{identity, text};
use crate::list::{Resource, ResourceList};
use crate::report::Report;
use fields::is_of_cluster;

pub(super) const FUNCTION: Function = Function {
    name: "ensure-name-substring",
    aliases: &[],
    summary: "Gives the names of all resources a prefix or suffix, and changes what refers to them.",
    usage: "\
The functionConfig is one of
- a ConfigMap with one entry in data, prepend or append, whose value is the text to be in all names,
- an EnsureNameSubstring (fn.kpt.dev/v1alpha1) with the text in substring, where it goes in editMode
  (prepend or append, prepend if missing), and more fields with names in additionalNameFields: a list
  of path (such as spec/name), and which resources it is about: group, version, kind (all, if
  missing), and create (whether to make the field where it is missing).

A name that contains the text already stays as it is. CustomResourceDefinitions, Namespaces,
APIServices and Kptfiles keep their names. Where a field of a Kubernetes kind refers to a resource
that got another name (the volumes of a Pod to a ConfigMap, a RoleBinding to its Role), it is changed
too, and so is the annotation config.kubernetes.io/depends-on of a renamed resource, if what it names
is in the package. All other annotations stay, those that tell where a resource is kept, too.
",
    example: "\
apiVersion: fn.kpt.dev/v1alpha1
kind: EnsureNameSubstring
metadata:
  name: example
substring: dev-
editMode: prepend
additionalNameFields:
- kind: MyResource
  path: spec/name
",
    body: run,
};

const DEPENDS_ON: &str = "config.kubernetes.io/depends-on";
/// No name in Kubernetes is longer.
const MAXIMUM_LENGTH: usize = 253;

/// What to do.
struct Wanted {
    substring: String,
    append: bool,
    fields: Vec<FieldSpec>,
}

impl Wanted {
    /// What takes the place of a name, if it is to change.
    fn change(&self, name: &str) -> Option<String> {
        (!name.contains(&self.substring)).then(|| self.apply(name))
    }

    fn apply(&self, name: &str) -> String {
        let Self { substring, append, .. } = self;
        if *append { format!("{name}{substring}") } else { format!("{substring}{name}") }
    }
}

/// A resource as it was, and the name it got.
struct Named {
    item: NodeId,
    resource: Resource,
    /// The namespace that it is in, also if it does not say so; empty if it belongs to the whole cluster.
    namespace: String,
    new_name: Option<String>,
}

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    let outcome = read(config)
        .map_err(|problem| format!("failed to load the `functionConfig`: {problem}"))
        .and_then(|wanted| ensure(list, &wanted));
    match outcome {
        Ok(()) => Report::new(),
        Err(problem) => Report { failed: true, stderr: problem, ..Report::new() },
    }
}

fn read(config: &FunctionConfig) -> Result<Wanted, String> {
    if config.is_empty() {
        return Err("substring must not be empty".to_owned());
    }
    let (substring, append, fields) = match (config.api_version(), config.kind()) {
        ("v1", "ConfigMap") => {
            // A number or a boolean is as good as its text.
            let data = framework::data(config)?;
            let [(mode, substring)] = &*data else {
                return Err(format!("only 1 entry is allowed in the ConfigMap, but got: {}", data.len()));
            };
            (substring.clone(), is_append(mode)?, Vec::new())
        }
        ("fn.kpt.dev/v1alpha1", "EnsureNameSubstring") => {
            let mode = match string(config, "editMode")? {
                "" => "prepend",
                mode => mode,
            };
            (string(config, "substring")?.to_owned(), is_append(mode)?, additional_fields(config)?)
        }
        (api_version, kind) => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            return Err(format!(
                "function config must be either /v1, Kind=ConfigMap or \
                 fn.kpt.dev/v1alpha1, Kind=EnsureNameSubstring, but we got: {group}/{version}, Kind={kind}"
            ));
        }
    };
    if substring.is_empty() {
        return Err("substring must not be empty".to_owned());
    }
    if substring.len() > MAXIMUM_LENGTH {
        return Err(format!("substring must not be longer than a name can be, {MAXIMUM_LENGTH} characters"));
    }
    Ok(Wanted { substring, append, fields })
}

fn is_append(mode: &str) -> Result<bool, String> {
    match mode {
        "prepend" => Ok(false),
        "append" => Ok(true),
        other => Err(format!("unknown editMode: {other}, only prepend and append are allowed")),
    }
}

/// A text, or a number or boolean as it is written; nothing if it is not there.
fn string<'c>(config: &'c FunctionConfig, key: &str) -> Result<&'c str, String> {
    match config.at(&[key]) {
        None | Some(Value::Scalar(_, Tag::Null)) => Ok(""),
        Some(Value::Scalar(text, _)) => Ok(text),
        Some(_) => Err(format!("{key} must be a string")),
    }
}

fn additional_fields(config: &FunctionConfig) -> Result<Vec<FieldSpec>, String> {
    let present = |key: &str| config.at(&[key]).filter(|value| !matches!(value, Value::Scalar(_, Tag::Null)));
    let (new, old) = (present("additionalNameFields"), present("fieldSpecs"));
    if new.is_some() && old.is_some() {
        return Err("`fieldSpecs` has been deprecated, please rename it to `additionalNameFields`".to_owned());
    }
    match new.or(old) {
        None => Ok(Vec::new()),
        Some(value) => {
            FieldSpec::list_from(value).map_err(|problem| format!("additionalNameFields: {problem}"))
        }
    }
}

fn ensure(list: &mut ResourceList<'_>, wanted: &Wanted) -> Result<(), String> {
    let mut resources =
        resources(list).map_err(|problem| format!("failed to convert items to resource map: {problem}"))?;
    list.budget().follow("additionalNameFields");
    rename(list, &mut resources, wanted)
        .map_err(|problem| format!("failed to transform name substring: {problem}"))?;
    list.budget().follow("substring");
    references::fix(list, &resources)
        .map_err(|problem| format!("failed to fix name back reference: {problem}"))
}

/// All resources; an error if one has no name, or if there are two with the same.
fn resources(list: &ResourceList<'_>) -> Result<Vec<Named>, String> {
    let mut seen = HashSet::new();
    let mut resources = Vec::new();
    for item in list.items().into_iter().filter(|&item| !list.is_empty(item)) {
        let resource = identity(list, item);
        let shown = identifier(&resource);
        if resource.kind.is_empty() {
            return Err(format!("missing kind in object {shown}"));
        }
        if resource.name.is_empty() && !resource.kind.ends_with("List") {
            return Err(format!("missing metadata.name in object {shown}"));
        }
        let namespace = match &*resource.namespace {
            _ if is_of_cluster(&resource) => "",
            "" => "default",
            namespace => namespace,
        };
        let namespace = namespace.to_owned();
        if !seen.insert(Resource { namespace: namespace.clone(), ..resource.clone() }) {
            return Err(format!("may not add resource with an already registered id: {shown}"));
        }
        resources.push(Named { item, resource, namespace, new_name: None });
    }
    Ok(resources)
}

fn keeps_its_name(resource: &Resource) -> bool {
    match &*resource.kind {
        "CustomResourceDefinition" | "Namespace" => true,
        "APIService" => resource.group() == "apiregistration.k8s.io",
        "Kptfile" => resource.group() == "kpt.dev",
        _ => false,
    }
}

/// Changes names, other fields with names in them, and dependencies.
fn rename(list: &mut ResourceList<'_>, resources: &mut [Named], wanted: &Wanted) -> Result<(), String> {
    let known: HashSet<[String; 3]> = resources
        .iter()
        .map(|Named { resource, .. }| {
            [resource.group().to_owned(), resource.kind.clone(), resource.name.clone()]
        })
        .collect();
    for named in resources.iter_mut().filter(|named| !keeps_its_name(&named.resource)) {
        if let Some(new_name) =
            wanted.change(&named.resource.name).filter(|_| !named.resource.name.is_empty())
            && let Some(name) = list.at(named.item, &["metadata", "name"])
        {
            list.set(name, &*new_name)?;
            named.new_name = Some(new_name);
        }
        let mut changed = named.new_name.is_some();
        for field in &wanted.fields {
            list.budget().work(1)?;
            if !field.matches(&named.resource) {
                continue;
            }
            changed |= rename_field(list, named.item, field, wanted)?;
        }
        if changed {
            update_dependency(list, named.item, &known, wanted)?;
        }
    }
    Ok(())
}

fn rename_field(
    list: &mut ResourceList<'_>,
    item: NodeId,
    field: &FieldSpec,
    wanted: &Wanted,
) -> Result<bool, String> {
    let mut changed = false;
    for Found { node, .. } in field.find(list, item, Kind::Scalar)? {
        if let Err(error) = list.expect(node, Kind::Scalar) {
            let shown = identifier(&identity(list, item));
            return Err(format!("considering field '{}' of object {shown}: {error}", field.path));
        }
        if let Some(new_name) = wanted.change(&text(list, node).unwrap_or_default()) {
            list.set(node, new_name)?;
            changed = true;
        }
    }
    Ok(changed)
}

/// Changes the name in the annotation that says which resource must be there first.
fn update_dependency(
    list: &mut ResourceList<'_>,
    item: NodeId,
    known: &HashSet<[String; 3]>,
    wanted: &Wanted,
) -> Result<(), String> {
    let Some(annotation) = list.at(item, &["metadata", "annotations", DEPENDS_ON]) else { return Ok(()) };
    let Some(dependency) = text(list, annotation) else { return Ok(()) };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let parts: Vec<&str> = dependency.split('/').collect();
    let ([group, "namespaces", _, kind, name] | [group, kind, name]) = parts[..] else { return Ok(()) };
    if !parts.iter().all(|part| part.bytes().all(is_word)) {
        return Ok(());
    }
    if known.contains(&[group.to_owned(), kind.to_owned(), name.to_owned()]) {
        let before = dependency.len() - name.len();
        let new = format!("{}{}", dependency.get(..before).unwrap_or_default(), wanted.apply(name));
        list.set(annotation, new)?;
    }
    Ok(())
}
