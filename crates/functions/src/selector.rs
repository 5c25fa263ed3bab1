//! Choosing resources.

use krm::{NodeId, Tag, Value};

use crate::list::ResourceList;

/// Which resources are meant. What is empty matches all; what is given must be equal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// Such as `apps`.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// Labels that must all be there.
    pub labels: Vec<(String, String)>,
    /// Annotations that must all be there.
    pub annotations: Vec<(String, String)>,
}

impl Selector {
    /// A selector as configurations write it: `group`, `version`, `apiVersion`, `kind`, `name`, `namespace`,
    /// `labels`, `annotations`.
    pub fn from_value(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::text).unwrap_or_default().to_owned();
        let texts = |key: &str| match value.get(key) {
            Some(Value::Mapping(fields)) => fields
                .iter()
                .filter_map(|(key, value)| match value {
                    Value::Scalar(_, Tag::Null) => Some((key.clone(), String::new())),
                    Value::Scalar(text, _) => Some((key.clone(), text.clone())),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        Self {
            group: text("group"),
            version: text("version"),
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            namespace: text("namespace"),
            labels: texts("labels"),
            annotations: texts("annotations"),
        }
    }

    /// Whether it means this resource.
    pub fn matches(&self, list: &ResourceList<'_>, item: NodeId) -> bool {
        let resource = list.resource(item);
        let same = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        same(&self.group, resource.group())
            && same(&self.version, resource.version())
            && same(&self.api_version, &resource.api_version)
            && same(&self.kind, &resource.kind)
            && same(&self.name, &resource.name)
            && same(&self.namespace, &resource.namespace)
            && self
                .labels
                .iter()
                .all(|(key, value)| list.label(item, key).is_some_and(|label| label == *value))
            && self
                .annotations
                .iter()
                .all(|(key, value)| list.annotation(item, key).is_some_and(|annotation| annotation == *value))
    }
}
