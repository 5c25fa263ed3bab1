//! Values whose content is another one than the text says.

use std::ops::Range;

use super::render::{Form, Steps};
use super::scalar::Place;
use super::splice::{Splices, insert, insert_value, replace};
use crate::document::Document;
use crate::document::decode::Header;
use crate::document::node::{NodeId, Style, flag};
use crate::tag::Tag;

/// Content as it is written: what stands on the line of the key or dash, and the lines below it.
struct Content {
    inline: String,
    body: String,
    is_collection: bool,
}

impl Document<'_> {
    /// How a value is written in the text, whatever it is now.
    fn original_style(&self, id: NodeId) -> Style {
        let was = self.fresh.get(&id.0).and_then(|fresh| fresh.was);
        was.map_or_else(|| self.style(id), |(_, style)| style)
    }

    /// Tells what must be done to give a value its new content.
    pub(super) fn replace_content(&self, id: NodeId, splices: &mut Splices) {
        let Some(node) = self.node(id) else { return };
        if id == NodeId::ROOT {
            return self.replace_root(splices);
        }
        let (value, end) = (node.start as usize, node.end as usize);
        let (start, header) = match self.tag_to_drop(id) {
            // The anchor that was with it stays.
            Some((tag, Some(anchor))) => {
                replace(splices, tag, anchor);
                (value, self.header_end(id))
            }
            Some((tag, None)) => (tag.start, self.after_colon(id)),
            None => (value, self.header_end(id)),
        };
        let place = self.place_in(id);
        if place != Place::Block {
            if let Form::Inline(text) = self.form(id, place) {
                replace(splices, start..end, self.after_key(id, start, end, &text));
            }
            return;
        }
        let original = self.original_style(id);
        let compact = self.can_be_compact(id, original, header..start);
        let Content { inline, body, is_collection } = self.content(id, start, compact);
        let spaced = if inline.is_empty() { String::new() } else { format!(" {inline}") };
        match original {
            Style::Block if compact => {
                // There was no place for a comment of its own before.
                let comment = self.comments.get(&id.0).and_then(|comments| comments.line.clone());
                let comment = comment
                    .filter(|comment| !is_collection && !comment.is_empty())
                    .map(|comment| format!(" {comment}"));
                replace(splices, start..self.line_end(end), inline + &comment.unwrap_or_default() + &body);
            }
            Style::Block => {
                match self.header_end(id) {
                    dropped if dropped > header => replace(splices, header..dropped, spaced),
                    _ => insert_value(splices, header, spaced),
                }
                replace(splices, self.line_end(header)..self.line_end(end), body);
            }
            Style::Literal | Style::Folded => {
                let token = value + Header::of(self.text.get(value..end).unwrap_or_default()).length;
                if inline.is_empty() {
                    replace(splices, header..token, "");
                } else {
                    replace(splices, start..token, inline);
                }
                let line_end = self.line_end(value);
                // Without lines, it ends with its header.
                replace(splices, line_end..end.max(line_end), body);
            }
            _ if compact && is_collection => {
                // No blanks may follow on its line; those before a comment that goes, go with it.
                let text = if start == end { spaced } else { inline };
                let end = if self.line_comment_span(id).is_some() { end } else { self.line_end(end) };
                replace(splices, start..end, text);
            }
            _ => {
                if start == end {
                    insert_value(splices, start, spaced);
                } else if inline.is_empty() {
                    replace(splices, header..end, "");
                } else {
                    replace(splices, start..end, inline);
                }
                if !body.is_empty() {
                    insert(splices, self.line_end(end), body);
                }
            }
        }
    }

    /// Whether a block collection can start on the line of its dash, `gap` being between them.
    fn can_be_compact(&self, id: NodeId, original: Style, gap: Range<usize>) -> bool {
        match original {
            Style::Block => self.line_end(gap.start) >= gap.end,
            Style::Literal | Style::Folded => false,
            _ => {
                // Behind an anchor, a block collection starts on a line of its own.
                self.key(id).is_none()
                    && gap.start == self.after_colon(id)
                    && self.line_comment(id).is_none()
                    && !self.starts_with_comment(id)
                    && self.text.get(gap).unwrap_or_default().bytes().all(|byte| byte == b' ')
            }
        }
    }

    /// A value's new content; a collection that is compact starts where the old value does.
    fn content(&self, id: NodeId, start: usize, compact: bool) -> Content {
        let mut body = String::new();
        let form = self.form(id, Place::Block);
        if let Form::Inline(inline) = form {
            return Content { inline, body, is_collection: false };
        }
        let column = self.column(self.entry_start(id));
        let tail = self.tail(id, self.node(id).map_or(0, |node| node.end as usize));
        match self.form_before(id, self.text_column(id, column), tail) {
            Form::Inline(inline) => Content { inline, body, is_collection: false },
            Form::BlockScalar { header, lines } => {
                self.render_lines(&mut body, &lines, self.text_column(id, column));
                Content { inline: header, body, is_collection: false }
            }
            Form::BlockCollection => {
                let steps = Steps { tail, ..self.steps(self.parent(id).unwrap_or(id)) };
                let missing = self.node(id).is_some_and(|node| start == node.end as usize);
                let column = match (compact, missing) {
                    (true, false) => self.column(start),
                    (true, true) => column + 2,
                    (false, _) => column + self.step(id, steps),
                };
                let mut inline = String::new();
                if compact {
                    self.render_children(&mut inline, id, column, steps);
                } else {
                    self.new_line(&mut body, column);
                    self.render_children(&mut body, id, column, steps);
                }
                Content { inline, body, is_collection: true }
            }
        }
    }

    /// Where the lines of a block scalar go: as deep as they were.
    fn text_column(&self, id: NodeId, column: usize) -> usize {
        let Some(node) = self.node(id) else { return column + 2 };
        let original = self.original_style(id);
        let raw = self.text.get(node.start as usize..node.end as usize).unwrap_or_default();
        // What needs a number in its header has the usual depth.
        let new = self.text(id).unwrap_or_default();
        if matches!(original, Style::Literal | Style::Folded) && !new.starts_with([' ', '\n']) {
            let mut lines = raw.lines().skip(1).filter(|line| !line.trim_start_matches(' ').is_empty());
            if let Some(line) = lines.next() {
                let spaces = line.len() - line.trim_start_matches(' ').len();
                if Header::of(raw).explicit.is_none() && spaces > column {
                    return spaces;
                }
            }
        }
        column + 2
    }

    /// Puts what is missing between a key and its value in a flow collection.
    fn after_key(&self, id: NodeId, start: usize, end: usize, text: &str) -> String {
        if start < end || (self.key(id).is_none() && self.header_end(id) == self.after_colon(id)) {
            return text.to_owned();
        }
        let colon = self.node(id).is_some_and(|node| node.has(flag::NO_COLON));
        // Some parsers take a comment for one without a blank before it.
        let blank = if self.text.as_bytes().get(end) == Some(&b'#') { " " } else { "" };
        if colon { format!(": {text}{blank}") } else { format!(" {text}{blank}") }
    }

    /// A tag that would make something else of the new value: where it is, with the anchor that is with it.
    fn tag_to_drop(&self, id: NodeId) -> Option<(Range<usize>, Option<String>)> {
        let properties = self.extras.properties.get(&id.0)?;
        let tag = Tag::of_name(properties.tag.as_deref()?);
        if tag != Tag::Other && self.tag(id) == Some(tag) {
            return None;
        }
        let range = properties.start as usize..properties.end as usize;
        let text = self.text.get(range.clone()).unwrap_or_default();
        let anchor = text.split_ascii_whitespace().find(|word| word.starts_with('&'));
        Some((range, anchor.map(str::to_owned)))
    }

    fn replace_root(&self, splices: &mut Splices) {
        let Some(node) = self.node(NodeId::ROOT) else { return };
        let (start, end) = (node.start as usize, node.end as usize);
        let original = self.original_style(NodeId::ROOT);
        let end = if original == Style::Block { self.line_end(end) } else { end };
        let start = match self.tag_to_drop(NodeId::ROOT) {
            Some((tag, _)) => tag.start,
            None => start,
        };
        let mut text = String::new();
        // What is not in block style need not start on a line of its own.
        let place = if original == Style::Block { Place::Block } else { Place::Json };
        let form = match place {
            Place::Block => self.form_before(NodeId::ROOT, 2, self.tail(NodeId::ROOT, end)),
            _ => self.form(NodeId::ROOT, place),
        };
        match form {
            Form::Inline(inline) => text = inline,
            Form::BlockScalar { header, lines } => {
                text.push_str(&header);
                self.render_lines(&mut text, &lines, 2);
            }
            Form::BlockCollection => {
                let steps = Steps { tail: self.tail(NodeId::ROOT, end), ..self.steps(NodeId::ROOT) };
                self.render_children(&mut text, NodeId::ROOT, self.column(start), steps);
            }
        }
        if start == end && self.extras.properties.contains_key(&NodeId::ROOT.0) {
            text.insert(0, ' ');
        }
        replace(splices, start..end, text);
    }
}
