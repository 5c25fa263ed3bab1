//! Making one value what another is.

use std::borrow::Cow;

use krm::{Document, Kind, NodeId, OverBudget};

/// Gives the fields and entries of a value the comments that those of another have. Where the other has
/// none, comments stay.
pub(crate) fn copy_comments(document: &mut Document<'_>, to: NodeId, from: NodeId) -> Result<(), OverBudget> {
    let pairs: Vec<(NodeId, NodeId)> = match (document.kind(to), document.kind(from)) {
        (Kind::Mapping, Kind::Mapping) => document
            .fields(from)
            .filter_map(|(key, field)| document.get(to, &key).map(|own| (own, field)))
            .collect(),
        (Kind::Sequence, Kind::Sequence) => document.entries(to).zip(document.entries(from)).collect(),
        _ => return Ok(()),
    };
    for (own, other) in pairs {
        if let Some(comment) = document.line_comment(other).map(Cow::into_owned)
            && document.line_comment(own).as_deref() != Some(&*comment)
        {
            document.set_line_comment(own, Some(&comment));
        }
        if let Some(comment) = document.head_comment(other)
            && document.head_comment(own).as_ref() != Some(&comment)
        {
            document.set_head_comment(own, Some(&comment));
        }
        copy_comments(document, own, other)?;
    }
    document.budget().check()
}
