//! What a function is told to do.

use krm::{NodeId, Tag, Value};

/// A function's configuration, read only. What is missing is empty.
#[derive(Debug, Clone)]
pub struct FunctionConfig {
    value: Value,
    node: Option<NodeId>,
}

impl FunctionConfig {
    pub(crate) fn new(value: Value, node: Option<NodeId>) -> Self {
        Self { value, node }
    }

    /// Its value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Where it is in the list, to copy parts of it with their comments.
    pub fn node(&self) -> Option<NodeId> {
        self.node
    }

    /// Whether there is none, or `{}`.
    pub fn is_empty(&self) -> bool {
        matches!(&self.value, Value::Mapping(fields) if fields.is_empty())
    }

    /// The value at the end of a path of fields.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.value, |value, key| value.get(key))
    }

    /// The string at the end of a path of fields, or nothing.
    pub fn string(&self, path: &[&str]) -> &str {
        match self.at(path) {
            Some(Value::Scalar(text, Tag::String)) => text,
            _ => "",
        }
    }

    /// Its `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.string(&["apiVersion"])
    }

    /// Its `kind`.
    pub fn kind(&self) -> &str {
        self.string(&["kind"])
    }

    /// Its `metadata.name`.
    pub fn name(&self) -> &str {
        self.string(&["metadata", "name"])
    }

    /// What identifies it.
    pub fn resource(&self) -> crate::Resource {
        crate::Resource {
            api_version: self.api_version().to_owned(),
            kind: self.kind().to_owned(),
            name: self.name().to_owned(),
            namespace: self.string(&["metadata", "namespace"]).to_owned(),
        }
    }

    /// Whether it is a `ConfigMap` of version `v1`.
    pub fn is_config_map(&self) -> bool {
        self.api_version() == "v1" && self.kind() == "ConfigMap"
    }

    /// The fields of a mapping of scalars as texts, in their order; `None` if one of them is none. What is
    /// not there has no fields, and null is an empty text.
    pub fn texts(&self, path: &[&str]) -> Option<Vec<(String, String)>> {
        match self.at(path) {
            None | Some(Value::Scalar(_, Tag::Null)) => Some(Vec::new()),
            Some(Value::Mapping(fields)) => fields
                .iter()
                .map(|(key, value)| match value {
                    Value::Scalar(_, Tag::Null) => Some((key.clone(), String::new())),
                    Value::Scalar(text, _) => Some((key.clone(), text.clone())),
                    _ => None,
                })
                .collect(),
            Some(_) => None,
        }
    }

    /// The same, of strings only: what Kubernetes' own types take.
    pub fn strings(&self, path: &[&str]) -> Option<Vec<(String, String)>> {
        if let Some(Value::Mapping(fields)) = self.at(path)
            && fields.iter().any(|(_, value)| !matches!(value, Value::Scalar(_, Tag::String | Tag::Null)))
        {
            return None;
        }
        self.texts(path)
    }
}
