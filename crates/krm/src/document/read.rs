//! Reading: kinds, fields, entries, scalars.

use std::borrow::Cow;

use super::Document;
use super::build::index;
use super::decode;
use super::keys::FEW;
use super::node::{Kind, NONE, Node, NodeId, Style, flag};
use super::value::Value;
use crate::budget::OverBudget;
use crate::tag::Tag;

/// How far a line break is looked for in the text itself: in a long line, that would be done again and again.
const NEAR: usize = 1 << 10;

/// What it takes to remember a key, and to copy a value, beside their texts.
const KEY: usize = 96;
const VALUE: usize = 80;

impl<'a> Document<'a> {
    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    /// What the value is.
    pub fn kind(&self, node: NodeId) -> Kind {
        self.node(node).map_or(Kind::Scalar, |node| node.kind)
    }

    /// Whether the value is a mapping.
    pub fn is_mapping(&self, node: NodeId) -> bool {
        self.kind(node) == Kind::Mapping
    }

    /// Whether the value is a sequence.
    pub fn is_sequence(&self, node: NodeId) -> bool {
        self.kind(node) == Kind::Sequence
    }

    /// Whether the value is null, or not there at all.
    pub fn is_null(&self, node: NodeId) -> bool {
        self.tag(node) == Some(Tag::Null)
    }

    /// Whether the value is written as `*name`: it is a copy of another one, which has the anchor `&name`.
    pub fn is_alias(&self, node: NodeId) -> bool {
        self.node(node).is_some_and(|node| node.is_alias() && !node.has(flag::CHANGED))
    }

    /// How the value is written, or will be unless it cannot be written so.
    pub fn style(&self, node: NodeId) -> Style {
        self.node(node).map_or(Style::Plain, |node| node.style)
    }

    /// The fields of a mapping or the entries of a sequence, in their order.
    pub fn children(&self, node: NodeId) -> Children<'_, 'a> {
        Children { document: self, next: self.node(node).map_or(NONE, |node| node.first) }
    }

    /// The fields of a mapping, in their order.
    pub fn fields(&self, mapping: NodeId) -> Fields<'_, 'a> {
        let children = if self.is_mapping(mapping) {
            self.children(mapping)
        } else {
            Children { document: self, next: NONE }
        };
        Fields(children)
    }

    /// The entries of a sequence, in their order.
    pub fn entries(&self, sequence: NodeId) -> Children<'_, 'a> {
        if self.is_sequence(sequence) {
            self.children(sequence)
        } else {
            Children { document: self, next: NONE }
        }
    }

    /// The value of a mapping's field.
    pub fn get(&self, mapping: NodeId, key: &str) -> Option<NodeId> {
        if !self.is_mapping(mapping) {
            return None;
        }
        if self.keys.is_remembered(mapping) {
            if !self.budget.step(1 + key.len() / 16) {
                return None;
            }
            return self.keys.find(mapping, key);
        }
        // Also passes over what was removed, which takes time, too.
        let mut passed = 0;
        let mut next = self.node(mapping)?.first;
        let found = loop {
            let Some(node) = self.nodes.get(next as usize) else { break None };
            if !self.budget.step(1 + usize::from(node.key_length) / 16) {
                return None;
            }
            if !node.has(flag::REMOVED | flag::MERGE) && self.has_key(NodeId(next), key) {
                break Some(NodeId(next));
            }
            passed += 1;
            next = node.next;
        };
        if passed > FEW && self.afford_keys(mapping).is_ok() {
            self.keys.remember(mapping, self.fields(mapping).map(|(key, field)| (key.into_owned(), field)));
        }
        found
    }

    /// Counts what it takes to remember the fields of a mapping.
    fn afford_keys(&self, mapping: NodeId) -> Result<(), OverBudget> {
        let keys = self.children(mapping).filter_map(|child| self.node(child));
        let texts = keys.map(|node| KEY + usize::from(node.key_length)).sum();
        self.budget.memory(texts)
    }

    /// The value at the end of a path of fields.
    pub fn at(&self, node: NodeId, path: &[&str]) -> Option<NodeId> {
        path.iter().try_fold(node, |node, key| self.get(node, key))
    }

    pub(super) fn has_key(&self, id: NodeId, key: &str) -> bool {
        let Some(node) = self.node(id) else { return false };
        if node.has(flag::NEW | flag::RENAMED) {
            return self.key(id).is_some_and(|name| name == key);
        }
        let raw = decode::raw_key(self.text, node);
        if raw == key {
            // A key may have quotes, and it may be an entry of a sequence.
            return node.key_length > 0 || self.key(id).is_some();
        }
        match raw.as_bytes().first() {
            Some(b'"' | b'\'' | b'|' | b'>') => decode::key(self.text, node) == key,
            _ => raw.contains('\n') && decode::key(self.text, node) == key,
        }
    }

    /// The key of a value that is a mapping's field.
    pub fn key(&self, id: NodeId) -> Option<Cow<'_, str>> {
        let node = self.node(id)?;
        if !self.parent(id).is_some_and(|parent| self.is_mapping(parent)) {
            return None;
        }
        if node.has(flag::NEW | flag::RENAMED) {
            return self.fresh.get(&id.0).and_then(|fresh| fresh.key.as_deref()).map(Cow::Borrowed);
        }
        Some(decode::key(self.text, node))
    }

    /// The collection that a value is in.
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        self.node(id).filter(|node| node.parent != NONE).map(|node| NodeId(node.parent))
    }

    /// How many fields or entries a collection has.
    pub fn len(&self, collection: NodeId) -> usize {
        self.children(collection).count()
    }

    /// Whether a collection has neither fields nor entries; a scalar has none.
    pub fn is_empty(&self, collection: NodeId) -> bool {
        self.children(collection).next().is_none()
    }

    /// The text of a scalar of whatever type, without quotes and indentation. Null has the text it is
    /// written with.
    pub fn text(&self, id: NodeId) -> Option<Cow<'_, str>> {
        let node = self.node(id).filter(|node| node.kind == Kind::Scalar)?;
        if node.has(flag::NEW | flag::CHANGED) {
            let (text, _) = self.fresh.get(&id.0)?.scalar.as_ref()?;
            if !self.budget.step(1 + text.len() / 16) {
                return None;
            }
            return Some(Cow::Borrowed(text));
        }
        let (start, end) = self.source(id)?;
        if !self.budget.step(1 + (end - start) / 16) {
            return None;
        }
        let raw = self.text.get(start..end)?;
        let parent = match node.style {
            Style::Literal | Style::Folded => self.column(self.entry_start(self.origin(id))),
            _ => 0,
        };
        Some(decode::scalar(raw, node.style, parent, end == self.text.len()))
    }

    /// The text of a scalar that is a string.
    pub fn string(&self, node: NodeId) -> Option<Cow<'_, str>> {
        if self.tag(node) == Some(Tag::String) { self.text(node) } else { None }
    }

    /// The string at the end of a path of fields.
    pub fn string_at(&self, node: NodeId, path: &[&str]) -> Option<Cow<'_, str>> {
        self.string(self.at(node, path)?)
    }

    /// The type of a scalar.
    pub fn tag(&self, id: NodeId) -> Option<Tag> {
        let node = self.node(id).filter(|node| node.kind == Kind::Scalar)?;
        if node.has(flag::NEW | flag::CHANGED) {
            return self.fresh.get(&id.0)?.scalar.as_ref().map(|(_, tag)| *tag);
        }
        if let Some(tag) =
            self.extras.properties.get(&self.origin(id).0).and_then(|properties| properties.tag.as_deref())
        {
            let text = self.text(id).unwrap_or_default();
            return Some(Tag::of_name(tag).for_text(&text));
        }
        if node.style != Style::Plain {
            return Some(Tag::String);
        }
        let (start, end) = self.source(id)?;
        let raw = self.text.get(start..end)?;
        Some(if raw.contains('\n') { Tag::String } else { Tag::of_plain(raw) })
    }

    /// The node whose spans say what this one is: for an alias, what it stands for.
    pub(super) fn origin(&self, id: NodeId) -> NodeId {
        self.extras.aliases.get(&id.0).map_or(id, |&target| NodeId(target))
    }

    /// Where in the text a value is written.
    fn source(&self, id: NodeId) -> Option<(usize, usize)> {
        let node = self.node(self.origin(id))?;
        Some((node.start as usize, node.end as usize))
    }

    /// The line that a value, or its key, starts on, counted from 1; of what is new, the line of the
    /// collection it was added to.
    pub fn line(&self, id: NodeId) -> usize {
        let mut id = id;
        while let (Some(node), Some(parent)) = (self.node(id), self.parent(id)) {
            if !node.has(flag::NEW) {
                break;
            }
            id = parent;
        }
        self.line_breaks_before(self.entry_start(id)) + 1
    }

    /// A copy of the value and of all that is in it, without its comments and style.
    pub fn value(&self, node: NodeId) -> Value {
        let key = self.node(node).map_or(0, |node| usize::from(node.key_length));
        let mut cost = VALUE + key;
        match self.kind(node) {
            Kind::Scalar => {
                let text = self.text(node).unwrap_or_default();
                cost += text.len();
                // A budget that is exceeded is noticed by whoever makes a change of it.
                if self.budget.memory(cost).is_err() {
                    return Value::null();
                }
                Value::Scalar(text.into_owned(), self.tag(node).unwrap_or(Tag::Null))
            }
            _ if self.budget.memory(cost).is_err() => Value::null(),
            // With room for all of them at once, there is no room left over.
            Kind::Sequence => {
                let mut entries = Vec::with_capacity(self.len(node));
                entries.extend(self.children(node).map(|child| self.value(child)));
                Value::Sequence(entries)
            }
            Kind::Mapping => {
                let mut fields = Vec::with_capacity(self.len(node));
                fields.extend(self.fields(node).map(|(key, child)| (key.into_owned(), self.value(child))));
                Value::Mapping(fields)
            }
        }
    }

    /// Whether two values are the same, whatever they look like and whatever the order of fields.
    pub fn same(&self, one: NodeId, other: NodeId) -> bool {
        match (self.kind(one), self.kind(other)) {
            (Kind::Scalar, Kind::Scalar) if self.is_written_once(one, other) => true,
            (Kind::Scalar, Kind::Scalar) => {
                let tag = self.tag(one);
                tag == self.tag(other) && (tag == Some(Tag::Null) || self.text(one) == self.text(other))
            }
            (Kind::Sequence, Kind::Sequence) => {
                let mut others = self.children(other);
                self.children(one).all(|child| others.next().is_some_and(|other| self.same(child, other)))
                    && others.next().is_none()
            }
            (Kind::Mapping, Kind::Mapping) => {
                self.len(one) == self.len(other)
                    && self.fields(one).all(|(key, child)| {
                        self.get(other, &key).is_some_and(|other| self.same(child, other))
                    })
            }
            _ => false,
        }
    }

    /// Whether two values are the same place in the text: an alias and its anchor, or two aliases.
    fn is_written_once(&self, one: NodeId, other: NodeId) -> bool {
        let place =
            |id| self.node(id).filter(|node| !node.has(flag::NEW | flag::CHANGED)).and(self.source(id));
        place(one).is_some_and(|one| one.0 < one.1 && Some(one) == place(other))
    }

    /// Where the field or entry that a value is in starts: at its key or dash.
    pub(super) fn entry_start(&self, id: NodeId) -> usize {
        let Some(node) = self.node(id) else { return 0 };
        if node.parent == NONE {
            return node.start as usize;
        }
        self.extras.entries.get(&id.0).copied().unwrap_or(node.key) as usize
    }

    /// Where the line that this position is on starts.
    pub(super) fn line_start(&self, at: usize) -> usize {
        let near = at.saturating_sub(NEAR);
        let before = self.text.as_bytes().get(near..at).unwrap_or_default();
        match memchr::memrchr(b'\n', before) {
            Some(newline) => near + newline + 1,
            None if near == 0 => 0,
            None => {
                let last = self.line_breaks_before(at).checked_sub(1);
                last.and_then(|last| self.line_breaks().get(last)).map_or(0, |&newline| newline as usize + 1)
            }
        }
    }

    /// Where the line that this position is on ends, before its line break.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let end = self.line_break_after(at).unwrap_or(self.text.len().max(at));
        let carriage_return = end > at && self.text.as_bytes().get(end - 1) == Some(&b'\r');
        end - usize::from(carriage_return)
    }

    /// Where the first line feed at or behind this position is.
    pub(super) fn line_break_after(&self, at: usize) -> Option<usize> {
        let rest = self.text.as_bytes().get(at..)?;
        let near = rest.get(..NEAR).unwrap_or(rest);
        match memchr::memchr(b'\n', near) {
            Some(newline) => Some(at + newline),
            None if near.len() == rest.len() => None,
            None => self.line_breaks().get(self.line_breaks_before(at)).map(|&newline| newline as usize),
        }
    }

    fn line_breaks(&self) -> &[u32] {
        self.line_breaks.get_or_init(|| memchr::memchr_iter(b'\n', self.text.as_bytes()).map(index).collect())
    }

    fn line_breaks_before(&self, at: usize) -> usize {
        self.line_breaks().partition_point(|&newline| (newline as usize) < at)
    }

    pub(super) fn column(&self, at: usize) -> usize {
        at - self.line_start(at)
    }
}

/// The fields or entries of a collection, in their order.
#[derive(Debug, Clone)]
pub struct Children<'d, 'a> {
    document: &'d Document<'a>,
    next: u32,
}

impl Iterator for Children<'_, '_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        loop {
            let id = self.next;
            let node = self.document.nodes.get(id as usize)?;
            if !self.document.budget.step(1) {
                return None;
            }
            self.next = node.next;
            if !node.has(flag::REMOVED | flag::MERGE) {
                return Some(NodeId(id));
            }
        }
    }
}

/// The fields of a mapping with their keys, in their order.
#[derive(Debug, Clone)]
pub struct Fields<'d, 'a>(Children<'d, 'a>);

impl<'d> Iterator for Fields<'d, '_> {
    type Item = (Cow<'d, str>, NodeId);

    fn next(&mut self) -> Option<Self::Item> {
        let child = self.0.next()?;
        Some((self.0.document.key(child).unwrap_or_default(), child))
    }
}
