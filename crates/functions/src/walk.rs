//! A walk over all values of a resource, whatever its kind, in the order of the catalog's functions.

use std::fmt::Write as _;

use krm::{Kind, NodeId};

use crate::list::ResourceList;

/// How long a path may be, in bytes. Those of real resources are a few hundred.
const LONGEST: usize = 4096;

/// What is done on a walk. Paths are as in `spec.containers[0].image`.
pub(crate) trait Visitor {
    /// Whether aliases are visited. The catalog's functions pass them by, and they follow their anchor; here
    /// they are values of their own, and stay aliases if what is set in the anchor is set in them, too. So
    /// whoever sets values visits them, and whoever sets comments, or only looks, does not.
    fn visits_aliases(&self) -> bool {
        false
    }

    /// A list that is the value of a field. The lists of a mapping come before all else in it.
    fn sequence(&mut self, list: &mut ResourceList<'_>, node: NodeId, path: &str) -> Result<(), String>;

    /// A value that is neither a mapping nor a list.
    fn scalar(&mut self, list: &mut ResourceList<'_>, node: NodeId, path: &str) -> Result<(), String>;
}

/// Takes a visitor to all values of a resource; its first error ends the walk.
pub(crate) fn walk(
    visitor: &mut impl Visitor,
    list: &mut ResourceList<'_>,
    item: NodeId,
) -> Result<(), String> {
    visit(visitor, list, item, &mut String::new())
}

fn visit(
    visitor: &mut impl Visitor,
    list: &mut ResourceList<'_>,
    node: NodeId,
    path: &mut String,
) -> Result<(), String> {
    let visits_aliases = visitor.visits_aliases();
    let passes_by = |list: &ResourceList<'_>, node: NodeId| list.is_alias(node) && !visits_aliases;
    if passes_by(list, node) {
        return Ok(());
    }
    let length = path.len();
    match list.kind(node) {
        Kind::Scalar => visitor.scalar(list, node, path)?,
        Kind::Sequence => {
            let entries: Vec<NodeId> = list.entries(node).collect();
            for (index, entry) in entries.into_iter().enumerate() {
                // Writing to a String cannot fail.
                let _ = write!(path, "[{index}]");
                check_length(list, entry, path)?;
                visit(visitor, list, entry, path)?;
                path.truncate(length);
            }
        }
        Kind::Mapping => {
            let fields: Vec<NodeId> = list.children(node).collect();
            for &field in &fields {
                if list.is_sequence(field) && !passes_by(list, field) {
                    push_key(list, field, path);
                    visitor.sequence(list, field, path)?;
                    path.truncate(length);
                }
            }
            for field in fields {
                push_key(list, field, path);
                check_length(list, field, path)?;
                visit(visitor, list, field, path)?;
                path.truncate(length);
            }
        }
    }
    Ok(())
}

fn push_key(list: &ResourceList<'_>, field: NodeId, path: &mut String) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(&list.key(field).unwrap_or_default());
}

fn check_length(list: &ResourceList<'_>, node: NodeId, path: &str) -> Result<(), String> {
    if path.len() <= LONGEST {
        return Ok(());
    }
    Err(format!("line {}: the path to this field is longer than {LONGEST} bytes", list.line(node)))
}
