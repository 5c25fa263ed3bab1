//! Changing: scalars, fields, entries.

use std::borrow::Cow;
use std::collections::HashSet;

use super::Document;
use super::aliases::copy_content;
use super::build::{MAXIMUM_NESTING, index};
use super::node::{Kind, NONE, Node, NodeId, Style, flag, flag::IN_ALIAS};
use super::value::Value;
use crate::budget::{Exceeded, OverBudget};
use crate::tag::Tag;

/// What a node has that is not in the text.
#[derive(Debug, Clone, Default)]
pub(super) struct Fresh {
    pub(super) key: Option<String>,
    pub(super) scalar: Option<(String, Tag)>,
    /// What the node is in the text, where its content is another one.
    pub(super) was: Option<(Kind, Style)>,
}

impl Fresh {
    /// How long its texts are.
    fn texts(&self) -> usize {
        self.key.as_deref().map_or(0, str::len) + self.scalar.as_ref().map_or(0, |(text, _)| text.len())
    }
}

/// What a new node takes beside its texts, with what is kept to find it and to write it.
const NEW_NODE: usize = 240;
/// How often the texts of a new node are there at the same time: as they are, as they are written, in the output.
const TEXTS: usize = 4;
/// What at least stands around a new value in the output.
const AROUND: usize = 4;

/// Why a document was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// A value is not of the kind that is needed.
    #[error(transparent)]
    WrongKind(#[from] WrongKind),
    /// It would take more than a call may.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
}

impl From<EditError> for String {
    fn from(error: EditError) -> Self {
        error.to_string()
    }
}

/// A value is not of the kind that an edit needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct WrongKind {
    /// The line that the value is on.
    pub line: usize,
    /// What was needed, with its article.
    pub expected: &'static str,
    /// What it is, with its article.
    pub found: &'static str,
}

impl Kind {
    /// The kind with its article.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mapping => "a mapping",
            Self::Sequence => "a sequence",
            Self::Scalar => "a scalar",
        }
    }
}

impl Document<'_> {
    /// Makes the value what is given. Whatever of it is the same already stays as it is written; a changed
    /// scalar keeps its style and its comment as far as the new text allows.
    pub fn set(&mut self, node: NodeId, value: impl Into<Value>) -> Result<(), OverBudget> {
        self.set_value(node, value.into())
    }

    fn set_value(&mut self, node: NodeId, value: Value) -> Result<(), OverBudget> {
        match (self.kind(node), value) {
            (Kind::Mapping, Value::Mapping(fields)) => self.set_fields(node, fields),
            (Kind::Sequence, Value::Sequence(entries)) => self.set_entries(node, entries),
            (Kind::Scalar, value) if self.is_value(node, &value) => self.budget.check(),
            (_, value) => {
                self.afford(node, &value)?;
                self.discard_content(node);
                self.fill(node, value)
            }
        }
    }

    fn set_fields(&mut self, mapping: NodeId, fields: Vec<(String, Value)>) -> Result<(), OverBudget> {
        let wanted: HashSet<&str> = fields.iter().map(|(key, _)| &**key).collect();
        let unwanted: Vec<NodeId> = self
            .fields(mapping)
            .filter(|(key, _)| !wanted.contains(&**key))
            .map(|(_, child)| child)
            .collect();
        for child in unwanted {
            self.remove(child);
        }
        for (key, value) in fields {
            match self.get(mapping, &key) {
                Some(child) => self.set_value(child, value)?,
                None => {
                    self.add_field(mapping, key, value)?;
                }
            }
        }
        self.budget.check()
    }

    /// Entries that stay the same at the beginning and at the end are left alone; those between are set one
    /// by one.
    fn set_entries(&mut self, sequence: NodeId, entries: Vec<Value>) -> Result<(), OverBudget> {
        let present: Vec<NodeId> = self.children(sequence).collect();
        if present.len() == entries.len() {
            // Comparing them first, on each level of nested lists, would take long.
            for (node, value) in present.into_iter().zip(entries) {
                self.set_value(node, value)?;
            }
            return self.budget.check();
        }
        let same = |document: &Self, (node, value): (&NodeId, &Value)| document.is_value(*node, value);
        let before = present.iter().zip(&entries).take_while(|&pair| same(self, pair)).count();
        let most = present.len().min(entries.len()) - before;
        let after = present
            .iter()
            .rev()
            .zip(entries.iter().rev())
            .take(most)
            .take_while(|&pair| same(self, pair))
            .count();
        let replaced = present.get(before..present.len() - after).unwrap_or_default();
        let count = entries.len() - before - after;
        let mut last = before.checked_sub(1).and_then(|at| present.get(at)).copied();
        let mut old = replaced.iter().copied();
        for value in entries.into_iter().skip(before).take(count) {
            last = Some(match old.next() {
                Some(node) => {
                    self.set_value(node, value)?;
                    node
                }
                None => self.add(sequence, last, None, value)?,
            });
        }
        for node in old {
            self.remove(node);
        }
        self.budget.check()
    }

    /// Whether the value is what is given.
    pub fn is_value(&self, node: NodeId, value: &Value) -> bool {
        match (self.kind(node), value) {
            (Kind::Scalar, Value::Scalar(text, tag)) => {
                self.tag(node) == Some(*tag)
                    && (*tag == Tag::Null || self.text(node).is_some_and(|present| present == *text))
            }
            (Kind::Sequence, Value::Sequence(entries)) => {
                let mut present = self.children(node);
                entries.iter().all(|entry| present.next().is_some_and(|node| self.is_value(node, entry)))
                    && present.next().is_none()
            }
            (Kind::Mapping, Value::Mapping(fields)) => {
                self.len(node) == fields.len()
                    && fields.iter().all(|(key, field)| {
                        self.get(node, key).is_some_and(|node| self.is_value(node, field))
                    })
            }
            _ => false,
        }
    }

    /// Sets a mapping's field, and adds it if it is not there: a `namespace` after the `name`, all else after
    /// the other fields. Null counts as a mapping without fields.
    pub fn set_field(
        &mut self,
        mapping: NodeId,
        key: &str,
        value: impl Into<Value>,
    ) -> Result<NodeId, EditError> {
        self.budget.work(4)?;
        self.make_mapping(mapping)?;
        let value = value.into();
        Ok(match self.get(mapping, key) {
            Some(child) => {
                self.set_value(child, value)?;
                child
            }
            None => self.add_field(mapping, key.to_owned(), value)?,
        })
    }

    /// The mapping in a mapping's field, which is added or made one if it is missing or null.
    pub fn ensure_mapping(&mut self, mapping: NodeId, key: &str) -> Result<NodeId, EditError> {
        match self.get(mapping, key) {
            Some(child) => {
                self.make_mapping(child)?;
                Ok(child)
            }
            None => self.set_field(mapping, key, Value::mapping()),
        }
    }

    /// The mapping at the end of a path of fields, each of which is added if it is missing.
    pub fn ensure_path(&mut self, node: NodeId, path: &[&str]) -> Result<NodeId, EditError> {
        path.iter().try_fold(node, |node, key| self.ensure_mapping(node, key))
    }

    /// Adds an entry at the end of a sequence. Null counts as a sequence without entries.
    pub fn push(&mut self, sequence: NodeId, value: impl Into<Value>) -> Result<NodeId, EditError> {
        self.make_sequence(sequence)?;
        Ok(self.append(sequence, None, value.into())?)
    }

    /// Adds a copy of a value, with its comments and style, at the end of a sequence.
    pub fn push_copy(&mut self, sequence: NodeId, from: NodeId) -> Result<NodeId, EditError> {
        let entry = self.push(sequence, Value::null())?;
        self.set_copy(entry, from)?;
        Ok(entry)
    }

    /// Makes the value a copy of another one of this document, with its comments and style.
    pub fn set_copy(&mut self, node: NodeId, from: NodeId) -> Result<(), OverBudget> {
        if node == from || self.same(node, from) || self.is_inside(node, from) || self.is_inside(from, node) {
            return self.budget.check();
        }
        if self.kind(from) == Kind::Scalar {
            let value = self.value(from);
            let style = self.style(from);
            self.set_value(node, value)?;
            if let Some(node) = self.nodes.get_mut(node.index()).filter(|node| node.has(flag::NEW)) {
                node.style = style;
            }
            return Ok(());
        }
        let count = self.afford_copy(from, node)?;
        self.make_room(count)?;
        self.check_depth(node)?;
        self.discard_content(node);
        // What it takes was counted.
        let _ = copy_content(&mut self.nodes, &mut self.extras, from.0, node.0, usize::MAX);
        self.copy_fresh(from, node);
        Ok(())
    }

    /// Counts what a copy of a collection takes, and of how many nodes it is.
    fn afford_copy(&self, from: NodeId, to: NodeId) -> Result<usize, OverBudget> {
        let mut due = vec![from];
        let mut count = 0;
        while let Some(id) = due.pop() {
            self.budget.work(1)?;
            count += 1;
            let Some(node) = self.node(id) else { continue };
            let texts = match self.fresh.get(&id.0) {
                Some(fresh) => fresh.texts(),
                None if node.kind == Kind::Scalar => {
                    (node.end - node.start) as usize + node.key_length as usize
                }
                None => node.key_length as usize,
            };
            self.afford_node(to, texts)?;
            due.extend(self.all_children(id));
        }
        Ok(count)
    }

    /// Makes room for so many nodes, and for few more: while they are moved, the old room is still there.
    fn make_room(&mut self, count: usize) -> Result<(), OverBudget> {
        let old = self.nodes.capacity();
        if old - self.nodes.len() < count {
            let more = count + old / 8;
            let both = 2 * old + more;
            // What was counted for the last move is free again.
            self.budget.memory(both.saturating_sub(self.room.max(old)) * size_of::<Node>())?;
            self.room = self.room.max(both);
            self.nodes.reserve_exact(more);
        }
        Ok(())
    }

    /// Counts what a new node with texts of this length takes at this place.
    fn afford_node(&self, place: NodeId, texts: usize) -> Result<(), OverBudget> {
        self.budget.memory(NEW_NODE + TEXTS * texts)?;
        if self.node(place).is_some_and(|node| node.has(IN_ALIAS | flag::ALIAS)) {
            // If it is written after all, it is counted then.
            return Ok(());
        }
        self.budget.write(AROUND + texts)
    }

    /// Counts what the text of a value that takes the place of another takes.
    fn afford(&self, place: NodeId, value: &Value) -> Result<(), OverBudget> {
        match value {
            Value::Scalar(text, _) => self.afford_node(place, text.len()),
            _ => self.budget.check(),
        }
    }

    /// An error if a node is so deep that it cannot be a collection.
    fn check_depth(&self, id: NodeId) -> Result<(), OverBudget> {
        let depth = std::iter::successors(Some(id), |&id| self.parent(id)).take(MAXIMUM_NESTING + 1).count();
        self.budget.work(depth)?;
        if depth > MAXIMUM_NESTING {
            return Err(self.budget.exceed(Exceeded::Depth { limit: MAXIMUM_NESTING }));
        }
        Ok(())
    }

    /// After the content of a node was copied: copies what it has beside its nodes, too.
    fn copy_fresh(&mut self, from: NodeId, to: NodeId) {
        let pairs: Vec<(NodeId, NodeId)> =
            self.all_children(from).into_iter().zip(self.all_children(to)).collect();
        for (original, copy) in pairs {
            if let Some(fresh) = self.fresh.get(&original.0).cloned() {
                self.fresh.insert(copy.0, fresh);
            }
            if let Some(comments) = self.comments.get(&original.0).cloned() {
                self.comments.insert(copy.0, comments);
            }
            self.copy_fresh(original, copy);
        }
    }

    fn is_inside(&self, node: NodeId, collection: NodeId) -> bool {
        std::iter::successors(self.parent(node), |&parent| self.parent(parent))
            .any(|parent| parent == collection)
    }

    /// Removes a field or an entry, with its lines and its own comments. The root cannot be removed.
    pub fn remove(&mut self, node: NodeId) {
        let Some(parent) = self.parent(node) else { return };
        if self.keys.is_remembered(parent)
            && let Some(key) = self.key(node).map(Cow::into_owned)
        {
            self.keys.removed(parent, &key);
        }
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.mark(flag::REMOVED);
        }
        self.touch(parent);
    }

    /// Gives a mapping's field another key.
    pub fn rename(&mut self, node: NodeId, key: &str) {
        if self.key(node).is_none_or(|present| present == key) {
            return;
        }
        if let Some(parent) = self.parent(node) {
            self.keys.forget(parent);
        }
        self.fresh.entry(node.0).or_default().key = Some(key.to_owned());
        if let Some(node) = self.nodes.get_mut(node.index()).filter(|node| !node.has(flag::NEW)) {
            node.mark(flag::RENAMED);
        }
        self.touch(node);
    }

    /// Whether anything was changed.
    pub fn is_changed(&self) -> bool {
        self.nodes.first().is_some_and(|root| root.has(flag::TOUCHED | flag::CHANGED))
    }

    fn make_mapping(&mut self, node: NodeId) -> Result<(), EditError> {
        if self.is_null(node) {
            self.set_value(node, Value::mapping())?;
        }
        Ok(self.expect(node, Kind::Mapping)?)
    }

    fn make_sequence(&mut self, node: NodeId) -> Result<(), EditError> {
        if self.is_null(node) {
            self.set_value(node, Value::Sequence(Vec::new()))?;
        }
        Ok(self.expect(node, Kind::Sequence)?)
    }

    /// An error unless the value is of this kind.
    pub fn expect(&self, node: NodeId, kind: Kind) -> Result<(), WrongKind> {
        let found = self.kind(node);
        if found == kind {
            return Ok(());
        }
        Err(WrongKind { line: self.line(node), expected: kind.name(), found: found.name() })
    }

    pub(super) fn add_field(
        &mut self,
        mapping: NodeId,
        key: String,
        value: Value,
    ) -> Result<NodeId, OverBudget> {
        let name = if key == "namespace" { self.get(mapping, "name") } else { None };
        match name {
            Some(_) => self.add(mapping, name, Some(key), value),
            None => self.append(mapping, Some(key), value),
        }
    }

    /// Adds a child behind all others.
    fn append(&mut self, parent: NodeId, key: Option<String>, value: Value) -> Result<NodeId, OverBudget> {
        let known = self.last_added.get(&parent.0).copied();
        let last = known.or_else(|| self.children(parent).last());
        let new = self.add(parent, last, key, value)?;
        self.last_added.insert(parent.0, new);
        Ok(new)
    }

    /// `{}` or `[]` in block surroundings goes on in block style when it gets content.
    fn leave_flow(&mut self, id: NodeId) {
        let around = self.parent(id).is_some_and(|parent| self.style(parent) == Style::Block);
        let Some(node) = self.nodes.get_mut(id.index()) else { return };
        if around && node.style == Style::Flow && node.first == NONE && node.in_source() && !node.is_alias() {
            self.fresh.entry(id.0).or_default().was.get_or_insert((node.kind, node.style));
            node.style = Style::Block;
            node.mark(flag::CHANGED);
        }
    }

    /// Adds a child behind another one, or as the first.
    fn add(
        &mut self,
        parent: NodeId,
        after: Option<NodeId>,
        key: Option<String>,
        value: Value,
    ) -> Result<NodeId, OverBudget> {
        self.budget.work(1)?;
        let text = if let Value::Scalar(text, _) = &value { text.len() } else { 0 };
        self.afford_node(parent, key.as_deref().map_or(0, str::len) + text)?;
        self.make_room(1)?;
        self.leave_flow(parent);
        let new = NodeId(index(self.nodes.len()));
        let next = match after {
            Some(after) => self.nodes.get(after.index()).map_or(NONE, |node| node.next),
            None => self.nodes.get(parent.index()).map_or(NONE, |node| node.first),
        };
        self.nodes.push(Node {
            key: 0,
            key_length: 0,
            flags: flag::NEW | self.node(parent).map_or(0, |parent| parent.flags & IN_ALIAS),
            start: 0,
            end: 0,
            parent: parent.0,
            first: NONE,
            next,
            kind: Kind::Scalar,
            style: Style::Plain,
        });
        match after.and_then(|after| self.nodes.get_mut(after.index())) {
            Some(after) => after.next = new.0,
            None => {
                if let Some(parent) = self.nodes.get_mut(parent.index()) {
                    parent.first = new.0;
                }
            }
        }
        if after.is_some() && self.last_added.get(&parent.0).copied() == after {
            self.last_added.insert(parent.0, new);
        }
        if let Some(key) = &key {
            self.keys.added(parent, key, new);
        }
        self.fresh.insert(new.0, Fresh { key, ..Fresh::default() });
        self.fill(new, value)?;
        self.touch(parent);
        Ok(new)
    }

    /// Gives content to a node that has none.
    fn fill(&mut self, id: NodeId, value: Value) -> Result<(), OverBudget> {
        let (kind, style) = match &value {
            Value::Scalar(..) => (Kind::Scalar, None),
            Value::Sequence(_) => (Kind::Sequence, Some(Style::Block)),
            Value::Mapping(_) => (Kind::Mapping, Some(Style::Block)),
        };
        if kind != Kind::Scalar {
            self.check_depth(id)?;
        }
        if let Some(node) = self.nodes.get_mut(id.index()) {
            node.kind = kind;
            let scalar = !matches!(node.style, Style::Block | Style::Flow);
            // A scalar keeps its style, if it was one.
            node.style = style.unwrap_or(if scalar { node.style } else { Style::Plain });
        }
        match value {
            Value::Scalar(text, tag) => self.fresh.entry(id.0).or_default().scalar = Some((text, tag)),
            Value::Sequence(entries) => {
                let mut last = None;
                for entry in entries {
                    last = Some(self.add(id, last, None, entry)?);
                }
            }
            Value::Mapping(fields) => {
                let mut last = None;
                for (key, field) in fields {
                    last = Some(self.add(id, last, Some(key), field)?);
                }
            }
        }
        Ok(())
    }

    /// Takes a node's content away, so that another can be given.
    fn discard_content(&mut self, id: NodeId) {
        let children: Vec<NodeId> = self.children(id).collect();
        for child in children {
            if let Some(child) = self.nodes.get_mut(child.index()) {
                child.mark(flag::REMOVED);
            }
        }
        self.last_added.remove(&id.0);
        self.keys.forget(id);
        let Some(node) = self.nodes.get_mut(id.index()) else { return };
        // An alias is written like a plain scalar.
        let was = if node.is_alias() { (Kind::Scalar, Style::Plain) } else { (node.kind, node.style) };
        node.first = NONE;
        let fresh = self.fresh.entry(id.0).or_default();
        fresh.scalar = None;
        if !node.has(flag::NEW | flag::CHANGED) {
            fresh.was = Some(was);
            node.mark(flag::CHANGED);
        }
        self.touch(id);
    }

    /// Marks a node and all it is in as no longer what the text says.
    pub(super) fn touch(&mut self, id: NodeId) {
        let mut next = id.0;
        while let Some(node) = self.nodes.get_mut(next as usize) {
            if node.has(flag::TOUCHED) {
                return;
            }
            node.mark(flag::TOUCHED);
            next = node.parent;
        }
    }
}
