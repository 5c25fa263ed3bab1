//! YAML documents whose values know their lines.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, Value};
use serde_saphyr::{Error, Spanned};

use crate::field::{FieldPath, Step};

/// A value and where it is.
#[derive(Debug)]
pub(crate) struct Document {
    line: u64,
    node: Node,
}

#[derive(Debug)]
enum Node {
    Scalar(Value),
    List(Vec<Document>),
    Map(BTreeMap<String, Document>),
}

/// Why a text is not YAML, and on which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) line: Option<u64>,
    pub(crate) cause: String,
}

impl Document {
    /// The documents of a text; empty ones are left out. Scalars are read as Kubernetes reads them.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>, Malformed> {
        let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
        let documents: Vec<Spanned<Node>> =
            serde_saphyr::from_multiple_with_options(text, options).map_err(|error| malformed(&error))?;
        Ok(documents.into_iter().map(Self::from).collect())
    }

    /// The line it begins on, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The line of the field, or of what would hold it.
    pub(crate) fn line_of(&self, path: &FieldPath) -> u64 {
        let mut place = self;
        for step in path.steps() {
            let next = match (&place.node, step) {
                (Node::Map(fields), Step::Field(name)) => fields.get(name),
                (Node::List(entries), Step::Entry(entry)) => entries.get(*entry),
                _ => None,
            };
            let Some(next) = next else { break };
            place = next;
        }
        place.line
    }

    /// A field of a map.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match &self.node {
            Node::Map(fields) => fields.get(name),
            Node::List(_) | Node::Scalar(_) => None,
        }
    }

    /// A field of a map, if it is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match &self.field(name)?.node {
            Node::Scalar(value) => value.as_str(),
            Node::Map(_) | Node::List(_) => None,
        }
    }

    /// The entries of a list.
    pub(crate) fn into_entries(self) -> Vec<Self> {
        match self.node {
            Node::List(entries) => entries,
            Node::Map(_) | Node::Scalar(_) => Vec::new(),
        }
    }

    /// A field of a map.
    pub(crate) fn into_field(self, name: &str) -> Option<Self> {
        match self.node {
            Node::Map(mut fields) => fields.remove(name),
            Node::List(_) | Node::Scalar(_) => None,
        }
    }

    /// The value without lines.
    pub(crate) fn value(&self) -> Value {
        match &self.node {
            Node::Scalar(value) => value.clone(),
            Node::List(entries) => entries.iter().map(Self::value).collect(),
            Node::Map(fields) => fields.iter().map(|(name, value)| (name.clone(), value.value())).collect(),
        }
    }
}

impl From<Spanned<Node>> for Document {
    fn from(spanned: Spanned<Node>) -> Self {
        Self { line: spanned.referenced.line(), node: spanned.value }
    }
}

fn malformed(error: &Error) -> Malformed {
    let cause = error.to_string().lines().next().unwrap_or_default().to_owned();
    Malformed { line: error.location().map(|location| location.line()), cause }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_element::<Spanned<Node>>()? {
            entries.push(entry.into());
        }
        Ok(Node::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((name, value)) = access.next_entry::<Spanned<String>, Node>()? {
            // The line of the name: the value may begin on the next.
            fields.insert(name.value, Document { line: name.referenced.line(), node: value });
        }
        Ok(Node::Map(fields))
    }
}
