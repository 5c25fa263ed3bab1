//! Comments: found in the text where they are asked for, and kept beside the nodes once changed.

use std::borrow::Cow;
use std::ops::Range;

use super::Document;
use super::build::index;
use super::decode::Header;
use super::node::{Kind, NONE, Node, NodeId, Style, flag};
use crate::budget::OverBudget;

/// What a new comment takes beside its text.
const COMMENT: usize = 224;

/// The comments of a node that are not those in the text. An empty one: there is none.
#[derive(Debug, Clone, Default)]
pub(super) struct Comments {
    pub(super) line: Option<String>,
    pub(super) head: Option<String>,
}

impl Document<'_> {
    /// The comment at the end of the line of a value, from its `#` on. That of a block collection or a block
    /// scalar is on the line of its key or dash.
    pub fn line_comment(&self, id: NodeId) -> Option<Cow<'_, str>> {
        if let Some(comment) = self.comments.get(&id.0).and_then(|comments| comments.line.as_ref()) {
            return Some(Cow::Borrowed(&**comment)).filter(|comment| !comment.is_empty());
        }
        self.text.get(self.line_comment_span(id)?).map(Cow::Borrowed)
    }

    /// The comment in the lines right above a field or entry, in its column: each line from its `#` on.
    pub fn head_comment(&self, id: NodeId) -> Option<String> {
        if let Some(comment) = self.comments.get(&id.0).and_then(|comments| comments.head.as_ref()) {
            return Some(comment.clone()).filter(|comment| !comment.is_empty());
        }
        self.joined(self.head_comment_span(id)?)
    }

    /// The comment in the lines right below a field or entry, in its column, if a blank line or the end of the
    /// collection follows: each line from its `#` on.
    pub fn foot_comment(&self, id: NodeId) -> Option<String> {
        self.joined(self.foot_comment_span(id)?)
    }

    /// Sets or removes the comment at the end of a value's line. A missing `#` is added. In a flow collection, and
    /// for a mapping that starts on the line of its dash, there is no place for one, and nothing happens.
    pub fn set_line_comment(&mut self, id: NodeId, comment: Option<&str>) {
        let comment = comment.map(|comment| with_hash(&comment.replace(['\n', '\r'], " ")));
        if self.line_comment(id).as_deref() == comment.as_deref() || !self.has_place_for_comments(id) {
            return;
        }
        let written = self.node(id).is_some_and(|node| !node.has(flag::NEW | flag::CHANGED));
        if written && self.before_line_comment(id).is_none() {
            return;
        }
        let comment = comment.unwrap_or_default();
        if self.afford_comment(&comment).is_ok() {
            self.comments.entry(id.0).or_default().line = Some(comment);
            self.commented(id);
        }
    }

    /// Sets or removes the comment in the lines above a field or entry. A missing `#` is added to each line. In a
    /// flow collection there is no place for one, and nothing happens.
    pub fn set_head_comment(&mut self, id: NodeId, comment: Option<&str>) {
        let comment = comment.map(|comment| comment.lines().map(with_hash).collect::<Vec<_>>().join("\n"));
        if self.head_comment(id) == comment || !self.has_place_for_comments(id) {
            return;
        }
        let comment = comment.unwrap_or_default();
        if self.afford_comment(&comment).is_ok() {
            self.comments.entry(id.0).or_default().head = Some(comment);
            self.commented(id);
        }
    }

    /// Counts what a new comment takes.
    fn afford_comment(&self, comment: &str) -> Result<(), OverBudget> {
        self.budget.memory(COMMENT + 4 * comment.len())?;
        self.budget.write(1 + comment.len())
    }

    fn has_place_for_comments(&self, id: NodeId) -> bool {
        self.parent(id).is_some_and(|parent| self.style(parent) != Style::Flow)
    }

    fn commented(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.index()) {
            node.mark(flag::COMMENTED);
        }
        self.touch(id);
    }

    fn joined(&self, span: Range<usize>) -> Option<String> {
        let lines: Vec<&str> = self.text.get(span)?.lines().map(str::trim).collect();
        Some(lines.join("\n"))
    }

    /// Where the comment at the end of a value's line is in the text.
    pub(super) fn line_comment_span(&self, id: NodeId) -> Option<Range<usize>> {
        let at = self.before_line_comment(id)?;
        let rest = self.text.get(at..self.line_end(at))?;
        let comment = rest.trim_start_matches([' ', '\t']);
        if !comment.starts_with('#') || comment.len() == rest.len() {
            return None;
        }
        // What else is white space in Unicode is part of a comment.
        let end = at + rest.trim_end_matches([' ', '\t', '\r']).len();
        Some(at + rest.len() - comment.len()..end)
    }

    /// Where on the line of its comment a value, or its header, ends; `None` where there is no place for a
    /// comment of its own.
    pub(super) fn before_line_comment(&self, id: NodeId) -> Option<usize> {
        let node = self.node(id).filter(|node| node.in_source())?;
        let was = self.fresh.get(&id.0).and_then(|fresh| fresh.was);
        let (kind, style) = was.unwrap_or((node.kind, node.style));
        let (start, end) = (node.start as usize, node.end as usize);
        if node.is_alias() {
            return Some(self.after_comma(id, end));
        }
        match style {
            Style::Block => {
                let header = self.header_end(id);
                let below = kind != Kind::Scalar && self.line_end(header) < start;
                below.then_some(header)
            }
            Style::Literal | Style::Folded => {
                Some(start + Header::of(self.text.get(start..end).unwrap_or_default()).length)
            }
            _ => Some(self.after_comma(id, end)),
        }
    }

    /// Behind the comma that follows a value in a flow collection.
    fn after_comma(&self, id: NodeId, end: usize) -> usize {
        let flow = self.parent(id).is_some_and(|parent| self.style(parent) == Style::Flow);
        let rest = self.text.get(end..).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if flow && self.text.as_bytes().get(end + blanks) == Some(&b',') { end + blanks + 1 } else { end }
    }

    /// Behind the colon or dash of a value, and behind its anchor and tag.
    pub(super) fn header_end(&self, id: NodeId) -> usize {
        match self.extras.properties.get(&id.0) {
            Some(properties) => properties.end as usize,
            None => self.after_colon(id),
        }
    }

    /// Behind the colon or dash of a value.
    pub(super) fn after_colon(&self, id: NodeId) -> usize {
        let Some(node) = self.node(id) else { return 0 };
        let (key, after_key) = (node.key as usize, node.key as usize + usize::from(node.key_length));
        if node.parent == NONE || (node.key_length == 0 && node.start == node.key) {
            // The root, or an entry of a flow sequence.
            return node.start as usize;
        }
        if node.key_length == 0 && matches!(self.text.as_bytes().get(key), Some(b'-' | b':')) {
            return key + 1;
        }
        if node.has(flag::NO_COLON) {
            return after_key;
        }
        // Between a key and its colon are blanks, and after a question mark also lines and comments.
        let mut at = after_key;
        while let Some(&byte) = self.text.as_bytes().get(at) {
            match byte {
                b':' => return at + 1,
                b'#' => at = self.line_end(at),
                _ => at += 1,
            }
        }
        after_key
    }

    /// Where the whole lines of the comment above a field or entry are in the text.
    pub(super) fn head_comment_span(&self, id: NodeId) -> Option<Range<usize>> {
        let start = self.first_on_line(id)?;
        let column = self.entry_start(id) - start;
        let limit = self.end_before(id);
        let mut first = start;
        while first > limit && self.budget.step(1) {
            let above = self.line_start(first - 1);
            if above < limit || self.comment_column(above) != Some(column) {
                break;
            }
            first = above;
        }
        (first < start).then_some(first..start)
    }

    /// Where the whole lines of the comment below a field or entry are in the text.
    fn foot_comment_span(&self, id: NodeId) -> Option<Range<usize>> {
        let column = self.entry_start(id) - self.first_on_line(id)?;
        let first = self.next_line(self.node(id)?.end as usize)?;
        let mut end = first;
        while let Some(next) = Some(end).filter(|&at| self.comment_column(at) == Some(column)) {
            end = self.next_line(next).unwrap_or(self.text.len());
        }
        let after = self.text.get(end..self.line_end(end)).unwrap_or_default();
        let deep = after.len() - after.trim_start_matches(' ').len();
        let complete = after.trim().is_empty() || deep < column;
        (end > first && complete).then_some(first..end)
    }

    /// The start of a field's or entry's line, if nothing but spaces is before it.
    pub(super) fn first_on_line(&self, id: NodeId) -> Option<usize> {
        self.node(id).filter(|node| node.in_source())?;
        let start = self.entry_start(id);
        let line = self.line_start(start);
        self.text.get(line..start)?.bytes().all(|byte| byte == b' ').then_some(line)
    }

    /// Where what stands in the text before a field or entry ends.
    fn end_before(&self, id: NodeId) -> usize {
        let Some(parent) = self.parent(id) else { return 0 };
        let before_first = || if parent == NodeId::ROOT { 0 } else { self.header_end(parent) };
        if id.index() < self.in_text {
            // The node before it is the last of what is before it, or its parent.
            return match id.0 - 1 {
                before if before == parent.0 => before_first(),
                before => self.node(NodeId(before)).map_or(0, |node| node.end as usize),
            };
        }
        // A copy: what stands before its original. Nodes are in the order of the text.
        let place = |node: &Node| (node.key, node.key_length);
        let Some(copied) = self.node(id).map(place) else { return 0 };
        let in_text = self.nodes.get(1..self.in_text).unwrap_or_default();
        let original = 1 + in_text.partition_point(|node| place(node) < copied);
        if original < self.in_text { self.end_before(NodeId(index(original))) } else { 0 }
    }

    /// The column of the comment that is all there is on the line that starts at `line`.
    fn comment_column(&self, line: usize) -> Option<usize> {
        let rest = self.text.get(line..)?;
        let comment = rest.trim_start_matches(' ');
        comment.starts_with('#').then(|| rest.len() - comment.len())
    }

    /// Where the line after the one at this position starts, if there is one.
    pub(super) fn next_line(&self, at: usize) -> Option<usize> {
        self.line_break_after(at).map(|newline| newline + 1)
    }
}

fn with_hash(line: &str) -> String {
    let line = line.trim();
    if line.starts_with('#') { line.to_owned() } else { format!("# {line}").trim_end().to_owned() }
}
