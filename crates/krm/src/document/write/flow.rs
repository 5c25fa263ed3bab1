//! Fields and entries that come and go in flow style.

use super::scalar::Place;
use super::splice::{Splices, insert, replace};
use crate::document::Document;
use crate::document::node::{Node, NodeId, flag};

impl Document<'_> {
    /// Tells what must be done to a flow collection whose children are not all as in the text.
    pub(super) fn collect_flow(&self, id: NodeId, splices: &mut Splices) {
        let Some(node) = self.node(id) else { return };
        let (start, end) = (node.start as usize, node.end as usize);
        let children = self.written_children(id);
        let kept: Vec<NodeId> = children.iter().copied().filter(|&child| self.is_kept(child)).collect();
        let place = match self.place_of(id) {
            Place::Block => Place::Flow,
            place => place,
        };
        let bracket = matches!(self.text.as_bytes().get(start), Some(b'{' | b'['));
        let same = children.len() == kept.len();
        let Some(&first_kept) = kept.first().filter(|_| bracket || same) else {
            let mut text = String::new();
            self.render_flow(&mut text, id, place);
            return replace(splices, start..end, text);
        };
        let separators = self.separators(id, &kept, place);
        let last_kept = kept.last().copied().unwrap_or(first_kept);
        let mut appended = Vec::new();
        let mut after = kept.iter().copied().peekable();
        let mut tail = self.end_of(last_kept);
        for (at, &child) in children.iter().enumerate() {
            let Some(node) = self.node(child) else { continue };
            if self.is_kept(child) {
                after.next();
                self.collect(child, splices);
            } else if !node.has(flag::NEW) {
                let next =
                    children.iter().skip(at + 1).find(|&&next| self.node(next).is_some_and(Node::in_source));
                match next.filter(|_| after.peek().is_some()) {
                    Some(&next) => replace(splices, self.entry_start(child)..self.entry_start(next), ""),
                    None => {
                        replace(splices, tail..self.end_of(child), "");
                        tail = self.end_of(child);
                    }
                }
            } else if !node.has(flag::REMOVED) {
                let mut entry = String::new();
                self.render_flow_entry(&mut entry, child, place, separators.colon);
                match after.peek() {
                    Some(&next) => insert(splices, self.entry_start(next), entry + &separators.comma),
                    None => appended.push(entry),
                }
            }
        }
        if !appended.is_empty() {
            self.append_flow(last_kept, &appended.join(&separators.comma), &separators, splices);
        }
    }

    /// Adds entries behind the last one that stays.
    fn append_flow(&self, last: NodeId, entry: &str, separators: &Separators, splices: &mut Splices) {
        let end = self.end_of(last);
        let comment = self.line_comment_span(last);
        match comment.filter(|_| separators.comma.contains('\n')) {
            Some(comment) => {
                let rest = self.text.get(end..comment.start).unwrap_or_default();
                let line = separators.comma.trim_start_matches(',');
                if rest.trim() == "," {
                    insert(splices, comment.end, format!("{line}{entry},"));
                } else {
                    insert(splices, end, ",");
                    insert(splices, comment.end, format!("{line}{entry}"));
                }
            }
            None => insert(splices, end, format!("{}{entry}", separators.comma)),
        }
    }

    fn end_of(&self, id: NodeId) -> usize {
        self.node(id).map_or(0, |node| node.end as usize)
    }

    /// What stands between entries, and between a key and its value, as in the entries that are there.
    fn separators(&self, id: NodeId, kept: &[NodeId], place: Place) -> Separators {
        let byte = |at: usize| self.text.as_bytes().get(at).copied();
        let colon = match kept.first().filter(|_| place == Place::Json && self.is_mapping(id)) {
            Some(&first)
                if byte(self.header_end(first)) != Some(b' ')
                    && byte(self.header_end(first)) != Some(b'\n') =>
            {
                ":"
            }
            _ => ": ",
        };
        let on_lines =
            kept.last().and_then(|&last| self.first_on_line(last).map(|line| self.entry_start(last) - line));
        let comma = match on_lines.filter(|_| self.spans_lines(id)) {
            Some(column) => format!(",{}{}", self.line_break, " ".repeat(column)),
            None if colon == ":" => ",".to_owned(),
            None => match kept {
                [first, second, ..]
                    if byte(self.entry_start(*second) - 1) == Some(b',')
                        && self.end_of(*first) + 1 == self.entry_start(*second) =>
                {
                    ",".to_owned()
                }
                _ => ", ".to_owned(),
            },
        };
        Separators { comma, colon }
    }

    fn spans_lines(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| {
            self.text.get(node.start as usize..node.end as usize).is_some_and(|text| text.contains('\n'))
        })
    }
}

struct Separators {
    comma: String,
    colon: &'static str,
}
