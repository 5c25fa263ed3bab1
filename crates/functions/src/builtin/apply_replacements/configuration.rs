//! What replacements are to be made.

use krm::{Budget, Tag, Value};

use crate::config::FunctionConfig;
use crate::field_path::FieldPath;
use crate::field_spec::identifier;
use crate::go;
use crate::label_selector::LabelSelector;
use crate::list::Resource;
use crate::pattern::Pattern;

const DEFAULT_PATH: &str = "metadata.name";

pub(super) struct Replacement {
    pub(super) source: Source,
    pub(super) targets: Vec<Target>,
}

pub(super) enum Source {
    Value(String),
    Field(Box<SourceField>),
}

/// The field of one resource. What is empty matches all.
pub(super) struct SourceField {
    names: Names,
    pub(super) path: FieldPath,
    /// The path as it is given.
    given_path: String,
    pub(super) options: Options,
}

/// Fields of some resources.
pub(super) struct Target {
    pub(super) select: Selector,
    pub(super) reject: Vec<Selector>,
    pub(super) paths: Vec<FieldPath>,
    pub(super) options: Options,
}

/// Resources by expressions for their names, and by labels and annotations. What is missing matches all.
pub(super) struct Selector {
    names: Names,
    patterns: [Option<Pattern>; 5],
    pub(super) labels: LabelSelector,
    pub(super) annotations: LabelSelector,
    has_selectors: bool,
}

/// Group, version, kind, name and namespace.
type Names = [String; 5];

/// How the text of a field is taken apart.
#[derive(Default)]
pub(super) struct Options {
    pub(super) delimiter: String,
    pub(super) index: i64,
    pub(super) create: bool,
}

fn parts(resource: &Resource) -> [&str; 5] {
    [resource.group(), resource.version(), &resource.kind, &resource.name, &resource.namespace]
}

impl SourceField {
    /// Whether it is a field of this resource. A resource without a namespace is in the default one.
    pub(super) fn names(&self, resource: &Resource) -> bool {
        let or_default = |namespace| if str::is_empty(namespace) { "default" } else { namespace };
        let [names @ .., namespace] = &self.names;
        let [found @ .., found_namespace] = parts(resource);
        names.iter().zip(found).all(|(wanted, found)| wanted.is_empty() || wanted == found)
            && (namespace.is_empty() || or_default(namespace) == or_default(found_namespace))
    }

    /// The resource as kustomize names it.
    pub(super) fn resource(&self) -> String {
        shown(&self.names)
    }
}

impl std::fmt::Display for SourceField {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Options { delimiter, index, create } = &self.options;
        out.write_str(&self.resource())?;
        if !self.given_path.is_empty() {
            write!(out, ":{}", self.given_path)?;
        }
        if !delimiter.is_empty() || *create {
            write!(out, ":{delimiter}({index}), create={create}")?;
        }
        Ok(())
    }
}

fn shown([group, version, kind, name, namespace]: &Names) -> String {
    let api_version = format!("{group}/{version}");
    identifier(&Resource {
        api_version,
        kind: kind.clone(),
        name: name.clone(),
        namespace: namespace.clone(),
    })
}

impl Selector {
    /// Whether group, version, kind, name and namespace are what it asks for.
    pub(super) fn names(&self, resource: &Resource) -> Result<bool, String> {
        let [.., namespace] = &self.names;
        for (at, (pattern, found)) in self.patterns.iter().zip(parts(resource)).enumerate() {
            let Some(pattern) = pattern else { continue };
            let is_default = at == 4 && found.is_empty() && namespace == "default";
            if !is_default && !pattern.matches(found)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn has_names(&self) -> bool {
        self.names.iter().any(|name| !name.is_empty())
    }

    pub(super) fn has_selectors(&self) -> bool {
        self.has_selectors
    }
}

pub(super) fn read(config: &FunctionConfig, budget: &Budget) -> Result<Vec<Replacement>, String> {
    const KIND: &str = "ApplyReplacements";
    const API_VERSION: &str = "fn.kpt.dev/v1alpha1";
    if config.is_empty() {
        return Err(format!("FunctionConfig is missing. Expect `{KIND}`"));
    }
    let (kind, api_version) = (config.kind(), config.api_version());
    if kind != KIND || api_version != API_VERSION {
        return Err(format!(
            "received functionConfig of kind {kind} and apiVersion {api_version}, \
             only functionConfig of kind {KIND} and apiVersion {API_VERSION} is supported"
        ));
    }
    let Some(replacements) = present(config.value(), "replacements") else { return Ok(Vec::new()) };
    entries(replacements, "replacements")?.iter().map(|value| replacement(value, budget)).collect()
}

fn replacement(value: &Value, budget: &Budget) -> Result<Replacement, String> {
    mapping(value, "each of the replacements")?;
    let (source, source_value) = (present(value, "source"), present(value, "sourceValue"));
    let Some(targets) = present(value, "targets").filter(|_| source.is_some() || source_value.is_some())
    else {
        return Err("replacements must specify a source and at least one target".to_owned());
    };
    let source = match (source, source_value) {
        (Some(_), Some(_)) => return Err("value and resource selectors are mutually exclusive".to_owned()),
        (Some(source), None) => Source::Field(Box::new(source_field(source, budget)?)),
        (None, _) => Source::Value(text(value, "sourceValue")?),
    };
    let targets =
        entries(targets, "targets")?.iter().map(|value| target(value, budget)).collect::<Result<_, _>>()?;
    Ok(Replacement { source, targets })
}

fn source_field(value: &Value, budget: &Budget) -> Result<SourceField, String> {
    mapping(value, "source")?;
    let given_path = text(value, "fieldPath")?;
    let path = FieldPath::parse(if given_path.is_empty() { DEFAULT_PATH } else { &given_path }, budget)
        .map_err(|problem| format!("error looking up replacement source: {problem}"))?;
    Ok(SourceField { names: names(value)?, path, given_path, options: options(value)? })
}

fn target(value: &Value, budget: &Budget) -> Result<Target, String> {
    mapping(value, "each of the targets")?;
    let select = present(value, "select").ok_or("target must specify resources to select")?;
    let reject = match present(value, "reject") {
        Some(reject) => entries(reject, "reject")?
            .iter()
            .map(|value| selector(value, budget))
            .collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let mut paths = match present(value, "fieldPaths") {
        Some(paths) => {
            entries(paths, "fieldPaths")?.iter().map(|value| path(value, budget)).collect::<Result<_, _>>()?
        }
        None => Vec::new(),
    };
    if paths.is_empty() {
        paths.push(FieldPath::parse(DEFAULT_PATH, budget)?);
    }
    Ok(Target { select: selector(select, budget)?, reject, paths, options: options(value)? })
}

fn path(value: &Value, budget: &Budget) -> Result<FieldPath, String> {
    let Some(path) = value.text() else { return Err(mismatch("each of the fieldPaths", "a text")) };
    FieldPath::parse(path, budget).map_err(|problem| {
        format!("unable to find field {} in replacement target: {problem}", go::quoted(path))
    })
}

fn selector(value: &Value, budget: &Budget) -> Result<Selector, String> {
    mapping(value, "a selector")?;
    let names = names(value)?;
    let pattern = |name: &String| match &**name {
        "" => Ok(None),
        name => Pattern::whole(name, budget)
            .map(Some)
            .map_err(|problem| format!("error creating target selector: {problem}")),
    };
    let [group, version, kind, name, namespace] = &names;
    let patterns = [pattern(group)?, pattern(version)?, pattern(kind)?, pattern(name)?, pattern(namespace)?];
    let (labels, annotations) = (text(value, "labelSelector")?, text(value, "annotationSelector")?);
    Ok(Selector {
        patterns,
        has_selectors: !labels.is_empty() || !annotations.is_empty(),
        labels: LabelSelector::parse(&labels)?,
        annotations: LabelSelector::parse(&annotations)?,
        names,
    })
}

fn names(value: &Value) -> Result<Names, String> {
    let text = |key: &str| text(value, key);
    Ok([text("group")?, text("version")?, text("kind")?, text("name")?, text("namespace")?])
}

fn options(value: &Value) -> Result<Options, String> {
    let Some(options) = present(value, "options") else { return Ok(Options::default()) };
    mapping(options, "options")?;
    let index = match present(options, "index") {
        None => 0,
        Some(Value::Scalar(index, Tag::Integer)) => {
            index.parse().map_err(|_| mismatch("options.index", "a decimal number"))?
        }
        Some(_) => return Err(mismatch("options.index", "a number")),
    };
    let create = match present(options, "create") {
        None => false,
        Some(Value::Scalar(create, Tag::Boolean)) => create.eq_ignore_ascii_case("true"),
        Some(_) => return Err(mismatch("options.create", "true or false")),
    };
    Ok(Options { delimiter: text(options, "delimiter")?, index, create })
}

/// A field that is there and not null.
fn present<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|value| !matches!(value, Value::Scalar(_, Tag::Null)))
}

/// The text of a scalar of whatever type; nothing if it is not there.
fn text(value: &Value, key: &str) -> Result<String, String> {
    match present(value, key) {
        None => Ok(String::new()),
        Some(Value::Scalar(text, _)) => Ok(text.clone()),
        Some(_) => Err(mismatch(key, "a text")),
    }
}

fn entries<'v>(value: &'v Value, what: &str) -> Result<&'v [Value], String> {
    match value {
        Value::Sequence(entries) => Ok(entries),
        _ => Err(mismatch(what, "a list")),
    }
}

fn mapping(value: &Value, what: &str) -> Result<(), String> {
    match value {
        Value::Mapping(_) => Ok(()),
        _ => Err(mismatch(what, "a mapping")),
    }
}

fn mismatch(what: &str, expected: &str) -> String {
    format!("unable to convert functionConfig to replacements:\n{what} must be {expected}")
}
