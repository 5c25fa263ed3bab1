//! Making one value what another is.

use std::borrow::Cow;

use krm::{Document, Kind, NodeId, Value};

/// As much as one call may copy, in bytes. Copies of copies grow without bound.
const MAXIMUM_COPIED: usize = 64 << 20;

/// What a value takes, even if it is empty.
const COST: usize = 128;

/// As deep as a document can be, the list and its items included.
const MAXIMUM_DEPTH: usize = 490;

/// Counts what a function copies, and refuses what is too much.
#[derive(Debug)]
pub(crate) struct Copies {
    left: usize,
}

impl Copies {
    pub(crate) fn new() -> Self {
        Self { left: MAXIMUM_COPIED }
    }

    /// Makes a value what is given. What is the same already stays as it is written.
    pub(crate) fn set(
        &mut self,
        document: &mut Document<'_>,
        node: NodeId,
        value: Value,
    ) -> Result<(), String> {
        self.count(&value, depth(document, node))?;
        document.set(node, value);
        Ok(())
    }

    /// Notes that a value is about to be copied to a place this deep.
    pub(crate) fn count(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        match value {
            Value::Scalar(text, _) => self.spend(text.len()),
            Value::Sequence(entries) => {
                self.enter(depth)?;
                entries.iter().try_for_each(|entry| self.count(entry, depth + 1))
            }
            Value::Mapping(fields) => {
                self.enter(depth)?;
                fields.iter().try_for_each(|(key, field)| {
                    self.spend(key.len())?;
                    self.count(field, depth + 1)
                })
            }
        }
    }

    /// Refuses to put anything into a value that is as deep as can be.
    pub(crate) fn check_depth(document: &Document<'_>, node: NodeId) -> Result<(), String> {
        if depth(document, node) >= MAXIMUM_DEPTH { Err(too_deep()) } else { Ok(()) }
    }

    fn enter(&mut self, depth: usize) -> Result<(), String> {
        if depth >= MAXIMUM_DEPTH {
            return Err(too_deep());
        }
        self.spend(0)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.left.checked_sub(bytes + COST);
        self.left = left.ok_or_else(|| {
            format!(
                "more than {} MiB would be copied; use smaller values or fewer places",
                MAXIMUM_COPIED >> 20
            )
        })?;
        Ok(())
    }
}

fn too_deep() -> String {
    format!("the result would be nested more than {MAXIMUM_DEPTH} levels deep")
}

/// How many collections a value is in.
fn depth(document: &Document<'_>, node: NodeId) -> usize {
    std::iter::successors(document.parent(node), |&parent| document.parent(parent)).count()
}

/// Gives the fields and entries of a value the comments that those of another have. Where the other has
/// none, comments stay.
pub(crate) fn copy_comments(document: &mut Document<'_>, to: NodeId, from: NodeId) {
    let pairs: Vec<(NodeId, NodeId)> = match (document.kind(to), document.kind(from)) {
        (Kind::Mapping, Kind::Mapping) => document
            .fields(from)
            .filter_map(|(key, field)| document.get(to, &key).map(|own| (own, field)))
            .collect(),
        (Kind::Sequence, Kind::Sequence) => document.entries(to).zip(document.entries(from)).collect(),
        _ => return,
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
        copy_comments(document, own, other);
    }
}
