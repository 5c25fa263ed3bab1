//! Aliases as values of their own.
//!
//! Each alias gets a copy of what it stands for, so that every place of a document can be read and changed by
//! itself. When the document is written, an alias whose value still is its anchor's stays an alias.

use super::build::index;
use super::node::{NONE, Node, flag};
use super::parse::Extras;
use super::unreadable::Unreadable;
use crate::budget::Budget;

/// How many aliases a document may have.
pub(super) const MAXIMUM_ALIASES: usize = 100_000;

/// How many values all aliases of a document may stand for, besides one for each eight bytes of its text.
const COPIES: usize = 20_000;

/// What a copy takes, with what is kept beside it.
const COPY: usize = 96;

/// Gives every alias its copy.
pub(super) fn expand(
    text: &str,
    nodes: &mut Vec<Node>,
    extras: &mut Extras,
    budget: &Budget,
) -> Result<(), Unreadable> {
    let mut aliases: Vec<(u32, u32)> =
        extras.aliases.iter().map(|(&alias, &target)| (alias, target)).collect();
    // In the order of the text, so that what an alias stands for is complete.
    aliases.sort_unstable();
    let copies = COPIES + text.len() / 8;
    let limit = nodes.len() + copies;
    for (alias, target) in aliases {
        let start = nodes.get(alias as usize).map_or(0, |node| node.start);
        let before_copy = nodes.len();
        let complete = copy_content(nodes, extras, target, alias, limit);
        budget.memory((nodes.len() - before_copy) * COPY)?;
        for copy in nodes.iter_mut().skip(before_copy) {
            copy.mark(flag::IN_ALIAS);
        }
        budget.work(1 + nodes.len() - before_copy)?;
        if complete.is_none() {
            let before = text.get(..start as usize).unwrap_or_default();
            let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
            return Err(Unreadable::TooManyAliases { limit: copies, line });
        }
    }
    Ok(())
}

/// Makes the content of `from` that of `to`, too, as copies, also of what was removed from it: it is in the
/// text that a copy is written from. `None` when there would be more than `limit` nodes.
pub(super) fn copy_content(
    nodes: &mut Vec<Node>,
    extras: &mut Extras,
    from: u32,
    to: u32,
    limit: usize,
) -> Option<()> {
    let (kind, style) = nodes.get(from as usize).map(|node| (node.kind, node.style))?;
    let node = nodes.get_mut(to as usize)?;
    (node.kind, node.style, node.first) = (kind, style, NONE);
    let mut due = vec![(from, to)];
    while let Some((from, to)) = due.pop() {
        let mut last = NONE;
        let mut child = nodes.get(from as usize)?.first;
        while let Some(&original) = nodes.get(child as usize) {
            let next = original.next;
            if nodes.len() >= limit {
                return None;
            }
            let copy = index(nodes.len());
            if nodes.len() == nodes.capacity() {
                // Few more at a time: while they are moved, the old room is still there.
                nodes.reserve_exact(nodes.len() / 8 + 64);
            }
            nodes.push(Node { parent: to, first: NONE, next: NONE, ..original });
            if last == NONE {
                nodes.get_mut(to as usize)?.first = copy;
            } else {
                nodes.get_mut(last as usize)?.next = copy;
            }
            last = copy;
            extras.inherit(child, copy);
            due.push((child, copy));
            child = next;
        }
    }
    Some(())
}

impl Extras {
    /// Makes what one node has that of another, too.
    fn inherit(&mut self, from: u32, to: u32) {
        if let Some(properties) = self.properties.get(&from).cloned() {
            self.properties.insert(to, properties);
        }
        if let Some(&entry) = self.entries.get(&from) {
            self.entries.insert(to, entry);
        }
        if let Some(&target) = self.aliases.get(&from) {
            self.aliases.insert(to, target);
        }
    }
}
