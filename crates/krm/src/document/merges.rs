//! Merge keys: `<<: *defaults` in a mapping gives it the fields of another one that it has not itself.
//!
//! A mapping reads as if those fields were written in it, and its `<<` is not to be seen, so that every place of a
//! document can be read and changed by itself. When the document is written, `<<` stays as long as it says what the
//! fields are; what is another value then becomes a field of the mapping itself.

use std::borrow::Cow;
use std::collections::HashSet;

use super::Document;
use super::aliases::{copy_content, push};
use super::build::index;
use super::decode;
use super::node::{Kind, NONE, Node, NodeId, flag};
use super::parse::Extras;
use super::value::Value;
use crate::budget::{Budget, OverBudget};

/// What it takes to remember a key while fields are merged.
const SEEN: usize = 48;

/// The mappings with a merge key: where in the text each ends, its node and that of its merge key.
pub(super) fn find(text: &str, nodes: &[Node], extras: &Extras) -> Vec<(u32, u32, u32)> {
    if memchr::memmem::find(text.as_bytes(), b"<<").is_none() {
        return Vec::new();
    }
    let keys = nodes.iter().enumerate().filter(|(at, node)| {
        decode::raw_key(text, node) == "<<" && !is_tagged_otherwise(text, index(*at), node, extras)
    });
    let mappings = keys.filter_map(|(at, node)| {
        let mapping = nodes.get(node.parent as usize).filter(|parent| parent.kind == Kind::Mapping)?;
        Some((mapping.end, node.parent, index(at)))
    });
    mappings.collect()
}

/// Whether a key has a tag that makes it a string.
fn is_tagged_otherwise(text: &str, id: u32, node: &Node, extras: &Extras) -> bool {
    let before = extras.entries.get(&id).and_then(|&entry| text.get(entry as usize..node.key as usize));
    before.is_some_and(|before| before.contains('!') && !before.contains("!!merge"))
}

/// Gives a mapping the fields that its merge key stands for. `None` when there would be more than `limit` nodes.
///
/// What is neither a mapping nor a list of mappings cannot be merged: there, `<<` is a key like others.
pub(super) fn merge(
    text: &str,
    nodes: &mut Vec<Node>,
    extras: &mut Extras,
    (mapping, key): (u32, u32),
    limit: usize,
    budget: &Budget,
) -> Result<Option<()>, OverBudget> {
    let Some(sources) = sources(nodes, key) else { return Ok(Some(())) };
    if let Some(key) = nodes.get_mut(key as usize) {
        key.mark(flag::MERGE);
    }
    let own = children(nodes, mapping);
    budget.work(own.len())?;
    budget.memory(own.len() * SEEN)?;
    let mut last = own.last().copied().unwrap_or(key);
    let mut seen: HashSet<Cow<'_, str>> =
        own.iter().filter_map(|&child| Some(decode::key(text, nodes.get(child as usize)?))).collect();
    for source in sources {
        let fields = children(nodes, source);
        budget.work(fields.len())?;
        budget.memory(fields.len() * SEEN)?;
        for field in fields {
            let Some(&original) = nodes.get(field as usize) else { continue };
            if original.has(flag::MERGE) || !seen.insert(decode::key(text, &original)) {
                continue;
            }
            if nodes.len() >= limit {
                return Ok(None);
            }
            let copy = index(nodes.len());
            let flags = original.flags | flag::MERGED;
            push(nodes, Node { parent: mapping, first: NONE, next: NONE, flags, ..original });
            extras.inherit(field, copy);
            if let Some(last) = nodes.get_mut(last as usize) {
                last.next = copy;
            }
            last = copy;
            if copy_content(nodes, extras, field, copy, limit).is_none() {
                return Ok(None);
            }
        }
    }
    Ok(Some(()))
}

/// The mappings that a merge key stands for, if it does.
fn sources(nodes: &[Node], key: u32) -> Option<Vec<u32>> {
    match nodes.get(key as usize)?.kind {
        Kind::Mapping => Some(vec![key]),
        Kind::Sequence => {
            let entries = children(nodes, key);
            let mappings = entries.iter().filter_map(|&entry| nodes.get(entry as usize));
            mappings.into_iter().all(|entry| entry.kind == Kind::Mapping).then_some(entries)
        }
        Kind::Scalar => None,
    }
}

fn children(nodes: &[Node], parent: u32) -> Vec<u32> {
    let first = nodes.get(parent as usize).map_or(NONE, |parent| parent.first);
    let all = std::iter::successors(Some(first), |&child| nodes.get(child as usize).map(|node| node.next));
    all.take_while(|&child| (child as usize) < nodes.len()).collect()
}

impl Document<'_> {
    /// Makes fields of their own of those that are no longer what the merge keys say.
    pub(super) fn settle_merges(&mut self) -> Result<(), OverBudget> {
        if self.merges == 0 || !self.is_changed() {
            return Ok(());
        }
        // What is not in the text itself is written without merge keys.
        for id in 0..index(self.in_text) {
            let Some(node) = self.nodes.get(id as usize) else { break };
            if node.has(flag::MERGE) && !node.has(flag::REMOVED) {
                let mapping = NodeId(node.parent);
                // It may have got another content as a whole.
                if self.all_children(mapping).contains(&NodeId(id)) {
                    self.settle_merge(mapping, NodeId(id))?;
                }
            }
        }
        self.budget.check()
    }

    fn settle_merge(&mut self, mapping: NodeId, key: NodeId) -> Result<(), OverBudget> {
        let merged: Vec<NodeId> = self
            .children(mapping)
            .filter(|&child| self.node(child).is_some_and(|node| node.has(flag::MERGED)))
            .collect();
        let entries = if self.is_sequence(key) { self.all_children(key) } else { vec![key] };
        let sources: Vec<NodeId> = entries.into_iter().map(|source| self.origin(source)).collect();
        // It can only give too much where fields were added to what it stands for, or removed here.
        let too_much = sources.iter().any(|&source| {
            !self.is_there(source)
                || !self.is_mapping(source)
                || self.fields(source).any(|(key, _)| self.get(mapping, &key).is_none())
        });
        let differ = |document: &Self, field: NodeId| {
            let key = document.key(field).unwrap_or_default();
            // Also passes over empty ones, which takes time, too.
            let mut passed = sources.iter().filter(|_| document.budget.step(1));
            let given = passed.find_map(|&source| document.get(source, &key));
            !given.is_some_and(|given| document.same(field, given) && document.commented_alike(field, given))
        };
        let explicit: Vec<NodeId> =
            merged.into_iter().filter(|&field| too_much || differ(self, field)).collect();
        if too_much {
            self.remove(key);
        }
        for field in explicit {
            let key = self.key(field).unwrap_or_default().into_owned();
            // Those of its place in what was merged.
            let (line, head) = (self.line_comment(field).map(Cow::into_owned), self.head_comment(field));
            self.remove(field);
            let copy = self.add_field(mapping, key, Value::null())?;
            self.set_copy(copy, field)?;
            self.set_line_comment(copy, line.as_deref());
            self.set_head_comment(copy, head.as_deref());
        }
        Ok(())
    }

    /// Whether no comment was set in one of two values that the other has not.
    fn commented_alike(&self, one: NodeId, other: NodeId) -> bool {
        if !self.node(one).is_some_and(|node| node.has(flag::TOUCHED)) {
            return true;
        }
        let alike = !self.node(one).is_some_and(|node| node.has(flag::COMMENTED))
            || (self.line_comment(one) == self.line_comment(other)
                && self.head_comment(one) == self.head_comment(other));
        alike
            && self
                .children(one)
                .zip(self.children(other))
                .all(|(one, other)| self.commented_alike(one, other))
    }
}
