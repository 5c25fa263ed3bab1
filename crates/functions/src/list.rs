//! A `ResourceList` and the resources in it.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use krm::{Budget, Document, EditError, Kind, NodeId, OverBudget, Unreadable, Value, WrongKind};

use crate::config::FunctionConfig;
use crate::report::{Finding, Report};

/// Why an input is not a `ResourceList`. The texts are those of the catalog's functions where they have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputError {
    /// Not one YAML document.
    Unreadable(Unreadable),
    /// Another kind of object.
    Kind(String),
    /// A part of the list is of the wrong kind.
    Part(&'static str, WrongKind),
}

impl std::error::Error for InputError {}

impl std::fmt::Display for InputError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(error) => write!(out, "failed to parse the input ResourceList: {error}"),
            Self::Kind(kind) => {
                write!(out, "input was of unexpected kind {}; expected ResourceList", crate::go::quoted(kind))
            }
            Self::Part(part, error) => write!(out, "failed when tried to get {part}: {error}"),
        }
    }
}

/// What a finding takes beside its texts.
const FINDING: usize = 512;

/// What a function works on: a [`Document`], whose methods it has, and the resources in it.
#[derive(Debug)]
pub struct ResourceList<'a> {
    document: Document<'a>,
}

impl<'a> Deref for ResourceList<'a> {
    type Target = Document<'a>;

    fn deref(&self) -> &Document<'a> {
        &self.document
    }
}

impl<'a> DerefMut for ResourceList<'a> {
    fn deref_mut(&mut self) -> &mut Document<'a> {
        &mut self.document
    }
}

impl<'a> ResourceList<'a> {
    /// Reads a `ResourceList` in YAML or JSON.
    pub fn parse(input: &'a [u8], budget: &Budget) -> Result<Self, InputError> {
        let document = match Document::parse_bytes_within(input, budget) {
            // As little as a function can be given.
            Err(Unreadable::Empty) => {
                Document::parse_within("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n", budget)
            }
            other => other,
        };
        let list = Self { document: document.map_err(InputError::Unreadable)? };
        let checked = list.check_parts();
        // Once the budget is exceeded nothing reads as what it is.
        budget.check().map_err(|over| InputError::Unreadable(Unreadable::OverBudget(over)))?;
        checked.map(|()| list)
    }

    /// An error if it is not a list, or a part of it is of the wrong kind.
    fn check_parts(&self) -> Result<(), InputError> {
        let kind = self.string_at(self.root(), &["kind"]).unwrap_or_default();
        if kind != "ResourceList" {
            return Err(InputError::Kind(kind.into_owned()));
        }
        self.check("functionConfig", Kind::Mapping)?;
        self.check("items", Kind::Sequence)?;
        if let Some(items) = self.get(self.root(), "items") {
            for item in self.entries(items) {
                self.expect(item, Kind::Mapping).map_err(|error| InputError::Part("items", error))?;
            }
        }
        Ok(())
    }

    /// An error if a field is there, is not null and is not of this kind.
    fn check(&self, key: &'static str, kind: Kind) -> Result<(), InputError> {
        match self.get(self.root(), key).filter(|&node| !self.is_null(node)) {
            Some(node) => self.expect(node, kind).map_err(|error| InputError::Part(key, error)),
            None => Ok(()),
        }
    }

    /// The resources, each a mapping.
    pub fn items(&self) -> Vec<NodeId> {
        self.get(self.root(), "items").map(|items| self.entries(items).collect()).unwrap_or_default()
    }

    /// The resources that are meant for a cluster: those without the annotation
    /// `config.kubernetes.io/local-config`.
    pub fn items_for_cluster(&self) -> Vec<NodeId> {
        self.items().into_iter().filter(|&item| !self.is_local_config(item)).collect()
    }

    /// The function's configuration; an empty one if there is none.
    pub fn function_config(&self) -> FunctionConfig {
        let node = self.get(self.root(), "functionConfig").filter(|&node| self.is_mapping(node));
        let before = self.budget().used().memory;
        let value = node.map_or_else(Value::mapping, |node| self.value(node));
        // Functions make copies of most of it, once.
        let copies = usize::try_from(self.budget().used().memory - before).unwrap_or(usize::MAX);
        let value = if self.budget().memory(copies).is_ok() { value } else { Value::mapping() };
        FunctionConfig::new(value, node)
    }

    /// Adds a resource behind the others.
    pub fn add_item(&mut self, resource: Value) -> Result<NodeId, EditError> {
        let items = self.items_node()?;
        self.push(items, resource)
    }

    /// Adds a copy of a resource that is in the list, with its comments and style, behind the others.
    pub fn add_item_copy(&mut self, resource: NodeId) -> Result<NodeId, EditError> {
        let items = self.items_node()?;
        self.push_copy(items, resource)
    }

    fn items_node(&mut self) -> Result<NodeId, EditError> {
        let root = self.root();
        match self.get(root, "items") {
            Some(items) => Ok(items),
            None => self.set_field(root, "items", Value::Sequence(Vec::new())),
        }
    }

    /// Adds a report's results to those that are in the list.
    pub(crate) fn add_results(&mut self, report: &Report) -> Result<(), EditError> {
        if report.results.is_empty() {
            return Ok(());
        }
        let root = self.root();
        let mut results = match self.get(root, "results") {
            Some(results) => results,
            None => self.set_field(root, "results", Value::Sequence(Vec::new()))?,
        };
        if self.is_mapping(results) {
            // Some libraries wrap them.
            results = match self.get(results, "items") {
                Some(items) => items,
                None => self.set_field(results, "items", Value::Sequence(Vec::new()))?,
            };
        }
        for value in report.results.iter().map(Finding::to_value) {
            self.push(results, value)?;
        }
        Ok(())
    }

    /// What identifies a resource.
    pub fn resource(&self, item: NodeId) -> Resource {
        let text = |path: &[&str]| self.string_at(item, path).unwrap_or_default().into_owned();
        let resource = Resource {
            api_version: text(&["apiVersion"]),
            kind: text(&["kind"]),
            name: text(&["metadata", "name"]),
            namespace: text(&["metadata", "namespace"]),
        };
        resource.afford(self.budget());
        resource
    }

    /// Counts what it takes to tell a finding.
    pub fn afford(&self, finding: &Finding) -> Result<(), OverBudget> {
        let bytes = finding.text_length();
        self.budget().memory(FINDING + 2 * bytes)?;
        // It is counted again when it is added to the list.
        self.budget().work(1 + bytes / 16)
    }

    /// The value of an annotation that is a string.
    pub fn annotation(&self, item: NodeId, key: &str) -> Option<Cow<'_, str>> {
        self.string_at(item, &["metadata", "annotations", key])
    }

    /// The value of a label that is a string.
    pub fn label(&self, item: NodeId, key: &str) -> Option<Cow<'_, str>> {
        self.string_at(item, &["metadata", "labels", key])
    }

    /// Whether a resource is not meant for a cluster.
    pub fn is_local_config(&self, item: NodeId) -> bool {
        self.annotation(item, "config.kubernetes.io/local-config")
            .is_some_and(|local| !matches!(&*local, "" | "false"))
    }

    /// The file that a resource was read from, and its place in it.
    pub fn file(&self, item: NodeId) -> (Option<String>, Option<i64>) {
        let either = |name: &str| {
            self.annotation(item, &format!("internal.config.kubernetes.io/{name}"))
                .or_else(|| self.annotation(item, &format!("config.kubernetes.io/{name}")))
                .map(Cow::into_owned)
        };
        (either("path"), either("index").and_then(|index| index.parse().ok()))
    }
}

/// What identifies a resource. What is missing, or no string, is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: String,
}

impl Resource {
    /// Counts what it takes to keep it. Whoever goes on working on the list will notice if it is too much.
    pub(crate) fn afford(&self, budget: &Budget) {
        let Self { api_version, kind, name, namespace } = self;
        let texts = api_version.len() + kind.len() + name.len() + namespace.len();
        let _ = budget.memory(size_of::<Self>() + 2 * texts);
    }

    /// The part of the API version before the slash.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The part of the API version behind the slash.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }

    /// Whether group, version and kind are these, where what is empty on either side matches all: so the
    /// catalog's newer functions compare them.
    pub fn is_roughly(&self, group: &str, version: &str, kind: &str) -> bool {
        let same = |one: &str, other: &str| one.is_empty() || other.is_empty() || one == other;
        same(self.group(), group) && same(self.version(), version) && same(&self.kind, kind)
    }
}
