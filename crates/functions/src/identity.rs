//! Who a resource is, to functions that take numbers and booleans for names, too.

use krm::{Document, NodeId, Tag};

use crate::list::Resource;

/// What identifies a resource; of scalars that are no strings, the text that they are written with.
pub(crate) fn identity(document: &Document<'_>, item: NodeId) -> Resource {
    let text = |path: &[&str]| text_at(document, item, path).unwrap_or_default();
    let resource = Resource {
        api_version: text(&["apiVersion"]),
        kind: text(&["kind"]),
        name: text(&["metadata", "name"]),
        namespace: text(&["metadata", "namespace"]),
    };
    resource.afford(document.budget());
    resource
}

/// The text of the scalar at the end of a path of fields, unless it is null.
pub(crate) fn text_at(document: &Document<'_>, node: NodeId, path: &[&str]) -> Option<String> {
    text(document, document.at(node, path)?)
}

/// The text of a scalar, unless it is null.
pub(crate) fn text(document: &Document<'_>, node: NodeId) -> Option<String> {
    match document.tag(node)? {
        Tag::Null => None,
        _ => document.text(node).map(std::borrow::Cow::into_owned),
    }
}
