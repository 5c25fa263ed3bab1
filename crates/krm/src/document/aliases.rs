//! Aliases as values of their own.
//!
//! Each alias gets a copy of what it stands for, so that every place of a document can be read and changed by
//! itself. When the document is written, an alias whose value still is its anchor's stays an alias.

use std::cmp::Reverse;

use super::build::index;
use super::merges;
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

/// What is copied, once all before it in the text is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Copying {
    /// What an alias stands for, into it.
    Alias { alias: u32, target: u32 },
    /// What a merge key stands for, into its mapping; of two mappings that end together, first into the inner one.
    Merge { mapping: Reverse<u32>, key: u32 },
}

/// Gives every alias its copy, and every mapping with a merge key what that stands for. Tells how many of the latter
/// there are.
pub(super) fn expand(
    text: &str,
    nodes: &mut Vec<Node>,
    extras: &mut Extras,
    budget: &Budget,
) -> Result<usize, Unreadable> {
    let start = |alias: u32| nodes.get(alias as usize).map_or(0, |node| node.start);
    let aliases = extras.aliases.iter();
    let aliases = aliases.map(|(&alias, &target)| (start(alias), Copying::Alias { alias, target }));
    let merges = merges::find(text, nodes, extras);
    let count = merges.len();
    let merges = merges
        .into_iter()
        .map(|(end, mapping, key)| (end, Copying::Merge { mapping: Reverse(mapping), key }));
    let mut due: Vec<(u32, Copying)> = aliases.chain(merges).collect();
    due.sort_unstable();
    let copies = COPIES + text.len() / 8;
    let limit = nodes.len() + copies;
    for (start, copying) in due {
        let before_copy = nodes.len();
        let complete = match copying {
            Copying::Alias { alias, target } => copy_content(nodes, extras, target, alias, limit),
            Copying::Merge { mapping: Reverse(mapping), key } => {
                merges::merge(text, nodes, extras, (mapping, key), limit, budget)?
            }
        };
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
    Ok(count)
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
            push(nodes, Node { parent: to, first: NONE, next: NONE, ..original });
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

/// Adds a node.
pub(super) fn push(nodes: &mut Vec<Node>, node: Node) {
    if nodes.len() == nodes.capacity() {
        // Few more at a time: while they are moved, the old room is still there.
        nodes.reserve_exact(nodes.len() / 8 + 64);
    }
    nodes.push(node);
}

impl Extras {
    /// Makes what one node has that of another, too.
    pub(super) fn inherit(&mut self, from: u32, to: u32) {
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
