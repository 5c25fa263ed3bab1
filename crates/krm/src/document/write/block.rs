//! Fields and entries that come and go in block style.

use super::render::{Steps, Tail};
use super::splice::{Splices, insert, insert_value, replace};
use crate::document::Document;
use crate::document::decode::Header;
use crate::document::node::{Kind, Node, NodeId, Style, flag};

impl Document<'_> {
    /// All children of a collection in the order of their list, also those that were removed.
    pub(in crate::document) fn all_children(&self, id: NodeId) -> Vec<NodeId> {
        let first = self.node(id).map_or(super::super::node::NONE, |node| node.first);
        let ids = std::iter::successors(Some(first), |&id| self.nodes.get(id as usize).map(|node| node.next));
        ids.take_while(|&id| (id as usize) < self.nodes.len()).map(NodeId).collect()
    }

    /// Those of them that have, or will have, a place in the text of the collection.
    pub(super) fn written_children(&self, id: NodeId) -> Vec<NodeId> {
        let mut children = self.all_children(id);
        children.retain(|&child| !self.node(child).is_some_and(|node| node.has(flag::MERGED)));
        children
    }

    pub(super) fn is_kept(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| !node.has(flag::NEW | flag::REMOVED))
    }

    fn is_removed(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| node.in_source() && node.has(flag::REMOVED))
    }

    fn is_added(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| node.has(flag::NEW) && !node.has(flag::REMOVED))
    }

    /// Where the last line of a field or entry ends.
    fn end_of_entry(&self, id: NodeId) -> usize {
        self.line_end(self.node(id).map_or(0, |node| node.end as usize))
    }

    /// Tells what must be done to a block collection whose children are not all as in the text.
    pub(super) fn collect_block(&self, id: NodeId, splices: &mut Splices) {
        let children = self.written_children(id);
        let Some(&first_kept) = children.iter().find(|&&child| self.is_kept(child)) else {
            return self.replace_all(id, &children, splices);
        };
        let Some(&first) = children.iter().find(|&&child| self.node(child).is_some_and(Node::in_source))
        else {
            return;
        };
        // Looked for only where something is added.
        let adds = children.iter().any(|&child| self.is_added(child));
        let steps = if adds { self.steps(id) } else { Steps::default() };
        let column = self.column(self.entry_start(first));
        let mut last_kept = None;
        // Where it ends and what is behind it, once that is asked for.
        let mut behind: Option<(usize, Tail)> = None;
        let mut removed: Option<(NodeId, NodeId)> = None;
        let mut in_front = Vec::new();
        for child in children {
            if self.is_removed(child) {
                removed = Some((removed.map_or(child, |(first, _)| first), child));
            } else if self.is_kept(child) {
                let place =
                    removed.take().and_then(|run| self.remove_lines(run, (last_kept, Some(child)), splices));
                for new in in_front.drain(..) {
                    self.insert_before(first_kept, new, place, column, steps, splices);
                }
                self.collect(child, splices);
                last_kept = Some(child);
                behind = None;
            } else if self.is_added(child) {
                match last_kept {
                    Some(kept) => {
                        let (at, tail) = *behind.get_or_insert_with(|| {
                            let at = self.end_with_comments(kept, kept, false);
                            (at, self.tail(kept, at))
                        });
                        let mut text = String::new();
                        self.new_line(&mut text, column);
                        self.render_entry(&mut text, child, column, Steps { tail, ..steps });
                        insert(splices, at, text);
                        self.end_last_scalar(kept, splices);
                    }
                    None => in_front.push(child),
                }
            }
        }
        if let Some(run) = removed {
            self.remove_lines(run, (last_kept, None), splices);
        }
    }

    /// A block scalar that the document ends with, without a line break, has none in its text; it gets one when
    /// something follows, and then its header must say that this one does not count.
    fn end_last_scalar(&self, id: NodeId, splices: &mut Splices) {
        let is_there = |child: &NodeId| self.node(*child).is_some_and(|node| !node.has(flag::REMOVED));
        let last = |id: &NodeId| self.written_children(*id).into_iter().rfind(is_there);
        let last = std::iter::successors(Some(id), last).last();
        let Some(node) = last.and_then(|last| self.node(last)) else { return };
        let (start, end) = (node.start as usize, node.end as usize);
        let block = matches!(node.style, Style::Literal | Style::Folded);
        if !block || node.has(flag::NEW | flag::CHANGED | flag::ALIAS) || end < self.text.len() {
            return;
        }
        let raw = self.text.get(start..end).unwrap_or_default();
        let length = Header::of(raw).length;
        let header = raw.get(..length).unwrap_or_default();
        if !header.contains('-') {
            replace(splices, start..start + length, header.replace('+', "") + "-");
        }
    }

    /// Inserts a field or entry before one that stays, or at the place behind a dash that others have left.
    fn insert_before(
        &self,
        kept: NodeId,
        child: NodeId,
        place: Option<usize>,
        column: usize,
        steps: Steps,
        splices: &mut Splices,
    ) {
        let mut text = String::new();
        if let Some(line) = self.first_on_line(kept).filter(|_| place.is_none()) {
            text.extend(std::iter::repeat_n(' ', column));
            self.render_entry(&mut text, child, column, steps);
            text.push_str(self.line_break);
            insert(splices, self.head_comment_span(kept).map_or(line, |span| span.start), text);
        } else {
            self.render_entry(&mut text, child, column, steps);
            self.new_line(&mut text, column);
            insert(splices, place.unwrap_or_else(|| self.entry_start(kept)), text);
        }
    }

    /// Removes the lines of some fields or entries that follow each other, while others, and what is next, stay.
    /// Tells where on the line of its dash, if they began there, there is room now.
    fn remove_lines(
        &self,
        (first, last): (NodeId, NodeId),
        (before, next): (Option<NodeId>, Option<NodeId>),
        splices: &mut Splices,
    ) -> Option<usize> {
        let behind_block_scalar = before.is_some_and(|before| self.ends_with_block_scalar(before));
        let end = self.end_with_comments(first, last, behind_block_scalar);
        let Some(line) = self.first_on_line(first) else {
            // The first one on the line of its dash: what follows takes its place, unless it gets a comment.
            let commented =
                next.and_then(|next| self.comments.get(&next.0)).is_some_and(|new| new.head.is_some());
            if let Some(parent) = self.parent(first).filter(|_| commented) {
                replace(splices, self.header_end(parent)..end, "");
                return None;
            }
            let rest = self.text.get(end..).unwrap_or_default();
            let next = end + rest.len() - rest.trim_start_matches([' ', '\n', '\r']).len();
            replace(splices, self.entry_start(first)..next, "");
            return Some(next);
        };
        let start = self.head_comment_span(first).map_or(line, |span| span.start);
        if end == self.text.len() && behind_block_scalar {
            // The scalar needs the break before them.
            replace(splices, start..end, "");
            return None;
        }
        // The break before them goes, the one after them stays.
        let before = self.text.get(..start).unwrap_or_default();
        let before = before.strip_suffix('\n').map(|before| before.strip_suffix('\r').unwrap_or(before));
        match before {
            Some(before) => {
                // In two parts, for something may be inserted at the end of the last line.
                let lines_end = self.end_of_entry(last);
                replace(splices, before.len()..lines_end, "");
                replace(splices, lines_end..end, "");
            }
            None => replace(splices, start..self.next_line(end).unwrap_or(end), ""),
        }
        None
    }

    /// Where the last of some fields or entries ends, with the comments below it that are deeper than it. If a
    /// block scalar is before them, also with blank lines, which it would take for its own.
    fn end_with_comments(&self, first: NodeId, last: NodeId, behind_block_scalar: bool) -> usize {
        let column = self.column(self.entry_start(first));
        let mut end = self.end_of_entry(last);
        let mut line = self.next_line(end);
        while let Some(start) = line.filter(|&start| start < self.text.len() && self.budget.step(1)) {
            let text = self.text.get(start..self.line_end(start)).unwrap_or_default();
            let comment = text.trim_start_matches(' ');
            let blank = comment.is_empty();
            let deeper_comment = comment.starts_with('#') && text.len() - comment.len() > column;
            if !blank && !deeper_comment {
                break;
            }
            if !blank || behind_block_scalar {
                end = start + text.len();
            }
            line = self.next_line(start);
        }
        end
    }

    /// Tells what must be done to a block collection of which nothing stays.
    fn replace_all(&self, id: NodeId, children: &[NodeId], splices: &mut Splices) {
        let mut present =
            children.iter().copied().filter(|&child| self.node(child).is_some_and(Node::in_source));
        let Some(first) = present.next() else { return };
        let last = present.next_back().unwrap_or(first);
        let (start, end) = (self.entry_start(first), self.end_of_entry(last));
        if self.is_empty(id) {
            let empty = if self.kind(id) == Kind::Mapping { "{}" } else { "[]" };
            let header = self.header_end(id);
            if id == NodeId::ROOT || self.line_end(header) >= start {
                replace(splices, start..end, empty);
            } else {
                insert_value(splices, header, format!(" {empty}"));
                replace(splices, self.line_end(header)..end, "");
            }
            return;
        }
        let column = self.column(start);
        let mut text = String::new();
        let start = match self.head_comment_span(first) {
            Some(comment) => {
                text.extend(std::iter::repeat_n(' ', column));
                comment.start
            }
            None => start,
        };
        let steps = Steps { tail: self.tail(id, end), ..self.steps(id) };
        self.render_children(&mut text, id, column, steps);
        replace(splices, start..end, text);
    }
}
