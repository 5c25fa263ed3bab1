//! Builds the arena from what a scanner or the full parser tells.

use std::collections::HashSet;

use super::decode;
use super::node::{Kind, NONE, Node, Style, flag};
use super::unreadable::Unreadable;
use crate::budget::{Budget, OverBudget};
use crate::quick::Sink;

/// Mappings up to this size have their keys compared one by one.
const FEW_FIELDS: usize = 12;

/// What it takes to remember one key in order to find it again.
const SEEN: usize = 48;

/// Nested collections; real manifests have less than 100. Whoever walks a document may use recursion.
pub(super) const MAXIMUM_NESTING: usize = 500;

/// A collection that is not complete.
struct Open {
    node: u32,
    last: u32,
    children: usize,
}

pub(super) struct Builder<'a> {
    text: &'a str,
    pub(super) nodes: Vec<Node>,
    open: Vec<Open>,
    budget: Budget,
    /// For how many nodes room was counted.
    room: usize,
    /// Why a sink's answer was `None`, where that is more than "too unusual".
    pub(super) problem: Option<Unreadable>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(text: &'a str, budget: &Budget) -> Result<Self, OverBudget> {
        // Most lines hold one node, some two; too many is better than moving all of them.
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let capacity = lines + lines / 4 + 8;
        budget.memory(capacity * size_of::<Node>())?;
        let mut nodes = Vec::with_capacity(capacity);
        nodes.push(Node {
            key: 0,
            key_length: 0,
            flags: 0,
            start: 0,
            end: 0,
            parent: NONE,
            first: NONE,
            next: NONE,
            kind: Kind::Scalar,
            style: Style::Plain,
        });
        Ok(Self { text, nodes, open: Vec::new(), budget: budget.clone(), room: capacity, problem: None })
    }

    /// The node that the next value belongs to.
    pub(super) fn last(&mut self) -> Option<&mut Node> {
        self.nodes.last_mut()
    }

    pub(super) fn last_index(&self) -> u32 {
        index(self.nodes.len()) - 1
    }

    /// Adds a node without a value to the innermost collection.
    pub(super) fn child(&mut self, key: usize, key_length: u16, value: usize) -> Option<()> {
        if self.nodes.len() == self.nodes.capacity() {
            self.grow()?;
        }
        if let Err(over) = self.budget.work(1) {
            return self.refuse(over.into());
        }
        let new = index(self.nodes.len());
        let open = self.open.last_mut()?;
        if open.last == NONE {
            self.nodes.get_mut(open.node as usize)?.first = new;
        } else {
            self.nodes.get_mut(open.last as usize)?.next = new;
        }
        open.last = new;
        open.children += 1;
        self.nodes.push(Node {
            key: index(key),
            key_length,
            flags: 0,
            start: index(value),
            end: index(value),
            parent: open.node,
            first: NONE,
            next: NONE,
            kind: Kind::Scalar,
            style: Style::Plain,
        });
        Some(())
    }

    /// Makes room for more nodes: at once for all that the rest of the text can have, since both the old and the new
    /// room are there while they are moved.
    fn grow(&mut self) -> Option<()> {
        // Refused once, it is not reckoned again for each of the nodes that were still to come.
        if self.problem.is_some() {
            return None;
        }
        let at = self.nodes.last().map_or(0, |node| node.start as usize);
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        // What a value can follow on.
        let values = memchr::memchr3_iter(b',', b'[', b'{', rest).count();
        let old = self.nodes.capacity();
        let more = values + memchr::memchr_iter(b'\n', rest).count() + old / 8 + 8;
        let both = 2 * old + more;
        // What was counted for the last move is free again.
        if let Err(over) = self.budget.memory(both.saturating_sub(self.room) * size_of::<Node>()) {
            return self.refuse(over.into());
        }
        self.room = self.room.max(both);
        self.nodes.reserve_exact(more);
        Some(())
    }

    fn refuse(&mut self, problem: Unreadable) -> Option<()> {
        self.problem = Some(problem);
        None
    }

    fn line(&self, at: u32) -> usize {
        let before = self.text.as_bytes().get(..at as usize).unwrap_or_default();
        memchr::memchr_iter(b'\n', before).count() + 1
    }

    /// Refuses a mapping that has a key twice.
    fn check_keys(&mut self, mapping: u32, children: usize) -> Option<()> {
        let text = self.text;
        let first = self.nodes.get(mapping as usize)?.first;
        let siblings = |from: u32| {
            std::iter::successors(self.nodes.get(from as usize), |node| self.nodes.get(node.next as usize))
        };
        let twice = if children <= FEW_FIELDS {
            siblings(first).find(|node| siblings(node.next).any(|other| same_key(text, node, other)))
        } else {
            if let Err(over) = self.budget.memory(children * SEEN) {
                return self.refuse(over.into());
            }
            let mut seen = HashSet::with_capacity(children);
            siblings(first).find(|node| !seen.insert(decode::key(text, node)))
        };
        let Some(&first_of_two) = twice else { return Some(()) };
        let again = siblings(first_of_two.next)
            .find(|other| same_key(text, &first_of_two, other))
            .copied()
            .unwrap_or(first_of_two);
        let key = crate::results::shorten(&decode::key(text, &again), 80);
        let line = self.line(again.key);
        self.refuse(Unreadable::DuplicateField { key, line })
    }
}

/// Texts are far below 4 GiB: [`super::Document::parse`] sees to that.
pub(super) fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(NONE)
}

fn same_key(text: &str, one: &Node, other: &Node) -> bool {
    let (first, second) = (decode::raw_key(text, one), decode::raw_key(text, other));
    let quoted = |raw: &str| raw.starts_with(['"', '\'']) || raw.contains('\n');
    if quoted(first) || quoted(second) {
        decode::key(text, one) == decode::key(text, other)
    } else {
        first == second
    }
}

impl Sink for Builder<'_> {
    fn key(&mut self, start: usize, end: usize, colon: usize) -> Option<()> {
        let Ok(length) = u16::try_from(end - start) else {
            let line = self.line(index(start));
            return self.refuse(Unreadable::LongKey { line });
        };
        self.child(start, length, colon + 1)
    }

    fn entry(&mut self, dash: usize, flow: bool) -> Option<()> {
        self.child(dash, 0, if flow { dash } else { dash + 1 })
    }

    fn scalar(&mut self, start: usize, end: usize, style: Style) -> Option<()> {
        let node = self.last()?;
        (node.start, node.end, node.style) = (index(start), index(end), style);
        Some(())
    }

    fn open(&mut self, mapping: bool, start: usize, flow: bool) -> Option<()> {
        if self.open.len() == MAXIMUM_NESTING {
            let line = self.line(index(start));
            return self.refuse(Unreadable::TooDeep { limit: MAXIMUM_NESTING, line });
        }
        let node = self.last()?;
        node.kind = if mapping { Kind::Mapping } else { Kind::Sequence };
        node.style = if flow { Style::Flow } else { Style::Block };
        node.start = index(start);
        node.end = index(start);
        let node = self.last_index();
        self.open.push(Open { node, last: NONE, children: 0 });
        Some(())
    }

    fn close(&mut self, end: usize, flow: bool) -> Option<()> {
        let open = self.open.pop()?;
        let end =
            if flow { index(end) } else { self.nodes.get(open.last as usize).map_or(0, |last| last.end) };
        let node = self.nodes.get_mut(open.node as usize)?;
        node.end = end.max(node.start);
        let mapping = node.kind == Kind::Mapping;
        if mapping && open.children > 1 { self.check_keys(open.node, open.children) } else { Some(()) }
    }
}

impl Node {
    /// Marks the node as having more than a key and a value.
    pub(super) fn mark(&mut self, flags: u16) {
        self.flags |= flags;
    }

    pub(super) fn is_alias(&self) -> bool {
        self.has(flag::ALIAS)
    }
}
