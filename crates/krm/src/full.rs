//! Reads any YAML, through a full parser: slower than [`crate::quick`], and the judge of what is valid.

use std::collections::HashSet;

use crate::inspect::Summary;
use crate::malformed::Malformed;
use crate::nodes::{Node, Nodes, Text};
use crate::results::{FunctionResult, Kept, ResourceRef, shorten};

/// More top-level fields than this are not remembered, and so not accepted.
const MAXIMUM_FIELDS: usize = 1000;

/// How much of a wrong kind or field name is shown.
const MAXIMUM_SHOWN: usize = 80;

/// Reads a whole output.
pub(crate) fn read(text: &str) -> Result<Summary, Malformed> {
    let mut nodes = Nodes::new(text);
    let mut root = None;
    loop {
        let node = match nodes.next() {
            Err(Malformed::Yaml { line, column, problem }) if root.is_some() => {
                return Err(Malformed::TrailingGarbage { line, column, problem });
            }
            other => other?,
        };
        match node {
            Node::Finished => break,
            // What an empty document consists of.
            Node::Scalar(scalar) if scalar.non_null().is_none() => {}
            _ if root.is_some() => return Err(Malformed::SeveralDocuments { line: nodes.line() }),
            Node::Mapping => root = Some(Root::read(&mut nodes)?),
            Node::Sequence => return Err(Malformed::NotAMapping { found: "a list" }),
            Node::Scalar(_) | Node::Alias | Node::End => {
                return Err(Malformed::NotAMapping { found: "a bare text" });
            }
        }
    }
    root.ok_or(Malformed::Empty)?.judge()
}

/// Reads the value of `results` alone. The caller knows that it stands in a valid text.
pub(crate) fn read_results(value: &str) -> Option<Kept> {
    let mut nodes = Nodes::new(value);
    let mut kept = Kept::new();
    let node = nodes.next().ok()?;
    results(&mut nodes, &node, &mut kept).ok()?;
    matches!(nodes.next(), Ok(Node::Finished)).then_some(kept)
}

/// What the top-level mapping says.
struct Root<'a> {
    kind: Kind<'a>,
    api_version: Option<Text<'a>>,
    kept: Kept,
}

enum Kind<'a> {
    Missing,
    NotText(&'static str),
    Text(Text<'a>),
}

impl<'a> Root<'a> {
    fn read(nodes: &mut Nodes<'a>) -> Result<Self, Malformed> {
        let mut root = Self { kind: Kind::Missing, api_version: None, kept: Kept::new() };
        let mut seen = HashSet::new();
        while let Some(key) = nodes.next_key()? {
            if seen.len() == MAXIMUM_FIELDS {
                return Err(Malformed::TooManyFields { limit: MAXIMUM_FIELDS });
            }
            if !seen.insert(key.to_string()) {
                let key = shorten(&key, MAXIMUM_SHOWN);
                return Err(Malformed::DuplicateField { key, line: nodes.line() });
            }
            let value = nodes.next()?;
            match &*key {
                "kind" => {
                    nodes.skip(&value)?;
                    root.kind = Kind::of(value);
                }
                "apiVersion" => {
                    nodes.skip(&value)?;
                    root.api_version = text(value);
                }
                "results" => results(nodes, &value, &mut root.kept)?,
                _ => nodes.skip(&value)?,
            }
        }
        Ok(root)
    }

    fn judge(self) -> Result<Summary, Malformed> {
        match self.kind {
            Kind::Missing => Err(Malformed::KindMissing),
            Kind::NotText(found) => Err(Malformed::KindNotText { found }),
            Kind::Text(kind) if &*kind == "ResourceList" => {
                Ok(Summary::new(self.api_version.as_deref(), self.kept))
            }
            Kind::Text(kind) => Err(Malformed::WrongKind { kind: shorten(&kind, MAXIMUM_SHOWN) }),
        }
    }
}

impl<'a> Kind<'a> {
    fn of(value: Node<'a>) -> Self {
        match value {
            Node::Mapping => Self::NotText("a mapping"),
            Node::Sequence => Self::NotText("a list"),
            Node::Alias => Self::NotText("an alias to a collection"),
            scalar => text(scalar).map_or(Self::Missing, Self::Text),
        }
    }
}

fn text(node: Node<'_>) -> Option<Text<'_>> {
    match node {
        Node::Scalar(scalar) if scalar.non_null().is_some() => Some(scalar.text),
        _ => None,
    }
}

/// Reads the value of `results`: a list, or `{items: list}`; in anything else there are none.
fn results(nodes: &mut Nodes<'_>, value: &Node<'_>, kept: &mut Kept) -> Result<(), Malformed> {
    match value {
        Node::Sequence => items(nodes, kept)?,
        Node::Mapping => {
            while let Some(key) = nodes.next_key()? {
                match (&*key, nodes.next()?) {
                    ("items", Node::Sequence) => items(nodes, kept)?,
                    (_, value) => nodes.skip(&value)?,
                }
            }
        }
        Node::Scalar(_) | Node::Alias | Node::End | Node::Finished => {}
    }
    Ok(())
}

/// Reads a list of results. A bare text is taken for a message; what else is no mapping says nothing.
fn items(nodes: &mut Nodes<'_>, kept: &mut Kept) -> Result<(), Malformed> {
    loop {
        let full_before = kept.is_full();
        match nodes.next()? {
            Node::End | Node::Finished => return Ok(()),
            Node::Mapping => {
                let result = result(nodes, kept)?;
                kept.add(result, full_before);
            }
            Node::Scalar(scalar) => {
                if let Some(text) = scalar.non_null() {
                    let message = kept.text(text);
                    kept.add(FunctionResult { message, ..FunctionResult::default() }, full_before);
                }
            }
            other => nodes.skip(&other)?,
        }
    }
}

fn result(nodes: &mut Nodes<'_>, kept: &mut Kept) -> Result<FunctionResult, Malformed> {
    let mut result = FunctionResult::default();
    while let Some(key) = nodes.next_key()? {
        match (&*key, nodes.next()?) {
            ("message", Node::Scalar(scalar)) => {
                result.message = scalar.non_null().map(|text| kept.text(text)).unwrap_or_default();
            }
            ("severity", Node::Scalar(scalar)) => {
                result.severity = scalar.non_null().map(|text| kept.severity(text));
            }
            ("resourceRef", Node::Mapping) => result.resource = Some(resource(nodes, kept)?),
            ("field", Node::Mapping) => result.field_path = field_path(nodes, kept)?,
            (_, value) => nodes.skip(&value)?,
        }
    }
    Ok(result)
}

fn resource(nodes: &mut Nodes<'_>, kept: &mut Kept) -> Result<ResourceRef, Malformed> {
    let mut resource = ResourceRef::default();
    while let Some(key) = nodes.next_key()? {
        let value = nodes.next()?;
        let part = match &*key {
            "apiVersion" => Some(&mut resource.api_version),
            "kind" => Some(&mut resource.kind),
            "namespace" => Some(&mut resource.namespace),
            "name" => Some(&mut resource.name),
            _ => None,
        };
        match (part, value) {
            (Some(part), Node::Scalar(scalar)) => {
                *part = scalar.non_null().map(|text| kept.text(text)).unwrap_or_default();
            }
            (_, value) => nodes.skip(&value)?,
        }
    }
    Ok(resource)
}

fn field_path(nodes: &mut Nodes<'_>, kept: &mut Kept) -> Result<Option<String>, Malformed> {
    let mut path = None;
    while let Some(key) = nodes.next_key()? {
        match (&*key, nodes.next()?) {
            ("path", Node::Scalar(scalar)) => path = scalar.non_null().map(|text| kept.text(text)),
            (_, value) => nodes.skip(&value)?,
        }
    }
    Ok(path)
}
