//! Writing: the differences between the nodes and the text, as splices.

mod block;
mod content;
mod flow;
mod render;
mod scalar;
mod splice;

use super::node::{Kind, Node, NodeId, Style, flag};
use super::{BYTE_ORDER_MARK, Document};
use crate::budget::OverBudget;
use crate::tag::Tag;
use scalar::Place;
use splice::{Splice, Splices, insert_comment, replace};

impl Document<'_> {
    /// The text of the document as it is now. Without changes, it is the text that was parsed. An error if it is
    /// longer than the budget allows, or if that was exceeded before.
    pub fn to_text(&mut self) -> Result<String, OverBudget> {
        self.settle_merges()?;
        self.settle_aliases()?;
        let mut splices = Splices::new();
        self.collect(NodeId::ROOT, &mut splices);
        let added: usize = splices.iter().map(|splice| splice.text.len()).sum();
        let most = self.text.len() + added + BYTE_ORDER_MARK.len();
        self.budget.memory(most + splices.len() * size_of::<Splice>())?;
        let mut out = String::with_capacity(most);
        if self.marked {
            out.push_str(BYTE_ORDER_MARK);
        }
        splice::apply(self.text, 0..self.text.len(), splices, &mut out);
        self.budget.output(out.len())?;
        Ok(out)
    }

    /// Turns those aliases into values that no longer are what their anchor is.
    fn settle_aliases(&mut self) -> Result<(), OverBudget> {
        if !self.is_changed() {
            return self.budget.check();
        }
        let mut aliases: Vec<(u32, u32)> =
            self.extras.aliases.iter().map(|(&alias, &target)| (alias, target)).collect();
        aliases.sort_unstable();
        for (alias, target) in aliases.into_iter().map(|(alias, target)| (NodeId(alias), NodeId(target))) {
            let Some(node) = self.node(alias).copied() else { continue };
            if self.is_merged(&node) {
                continue;
            }
            let same = self.is_there(target) && self.same(alias, target) && !self.has_new_comments_in(alias);
            if let Some(node) = self.nodes.get_mut(alias.index()) {
                node.flags = if same { node.flags | flag::SAME } else { node.flags & !flag::SAME };
            }
            if same || node.has(flag::CHANGED | flag::REMOVED) {
                continue;
            }
            let text = self.text(alias);
            let length = text.as_deref().map_or_else(|| self.length(target), str::len);
            self.budget.memory(4 * length)?;
            self.budget.write(length)?;
            let text = text.map(std::borrow::Cow::into_owned);
            let scalar = text.map(|text| (text, self.tag(alias).unwrap_or(Tag::Null)));
            let fresh = self.fresh.entry(alias.0).or_default();
            fresh.scalar = scalar;
            fresh.was = Some((Kind::Scalar, Style::Plain));
            if let Some(node) = self.nodes.get_mut(alias.index()) {
                node.mark(flag::CHANGED);
            }
            self.touch(alias);
        }
        self.budget.check()
    }

    /// Whether an alias is all or a part of what a merge key stands for, or comes from there: whether that is still so
    /// is settled with the merge key.
    fn is_merged(&self, node: &Node) -> bool {
        let parent = self.nodes.get(node.parent as usize);
        node.has(flag::MERGE | flag::MERGED)
            || parent.is_some_and(|parent| parent.has(flag::MERGE) && parent.kind == Kind::Sequence)
    }

    /// How long the text of a value is.
    fn length(&self, id: NodeId) -> usize {
        self.node(id).map_or(0, |node| (node.end - node.start) as usize)
    }

    /// Whether a comment was set in a collection.
    fn has_new_comments_in(&self, id: NodeId) -> bool {
        self.children(id).any(|child| {
            self.node(child).is_some_and(|node| node.has(flag::TOUCHED))
                && (self.node(child).is_some_and(|node| node.has(flag::COMMENTED))
                    || self.has_new_comments_in(child))
        })
    }

    /// Whether a node is not, and is not in, what was removed.
    pub(super) fn is_there(&self, id: NodeId) -> bool {
        std::iter::successors(Some(id), |&id| self.parent(id).filter(|_| self.budget.step(1)))
            .all(|id| self.node(id).is_some_and(|node| !node.has(flag::REMOVED)))
    }

    /// Tells what must be done to the text of a node that has a place in it.
    fn collect(&self, id: NodeId, splices: &mut Splices) {
        let Some(node) = self.node(id).filter(|node| node.has(flag::TOUCHED)) else { return };
        if !self.budget.step(4) {
            return;
        }
        if node.has(flag::RENAMED) {
            let range = node.key as usize..node.key as usize + usize::from(node.key_length);
            // A colon may follow right behind its quote.
            let quoted = self.text.as_bytes().get(range.start) == Some(&b'"');
            let place = if quoted { Place::Json } else { self.place_in(id) };
            replace(splices, range, scalar::key(&self.key(id).unwrap_or_default(), place));
        }
        if node.has(flag::COMMENTED) {
            self.collect_comments(id, splices);
        }
        if node.is_alias() && node.has(flag::SAME) {
            return;
        }
        if node.has(flag::CHANGED) {
            self.replace_content(id, splices);
        } else if !node.is_alias() {
            match node.style {
                Style::Block => self.collect_block(id, splices),
                Style::Flow => self.collect_flow(id, splices),
                _ => {}
            }
        }
    }

    /// The style of the collection that a node is in.
    fn place_in(&self, id: NodeId) -> Place {
        match self.parent(id) {
            Some(parent) if self.style(parent) == Style::Flow => self.place_of(parent),
            _ => Place::Block,
        }
    }

    /// How strings are written in a flow collection: as in the nearest mapping around them.
    fn place_of(&self, collection: NodeId) -> Place {
        let around = std::iter::successors(Some(collection), |&id| self.parent(id));
        for id in around.take_while(|&id| self.style(id) == Style::Flow) {
            let mut keys =
                self.children(id).filter_map(|child| self.node(child)).filter(|node| node.in_source());
            if let Some(node) = keys.next().filter(|_| self.is_mapping(id)) {
                let quoted = self.text.as_bytes().get(node.key as usize) == Some(&b'"');
                return if quoted { Place::Json } else { Place::Flow };
            }
        }
        Place::Flow
    }

    /// Tells what must be done for comments that are not those in the text.
    fn collect_comments(&self, id: NodeId, splices: &mut Splices) {
        let Some(comments) = self.comments.get(&id.0) else { return };
        if let (Some(head), Some(line)) = (&comments.head, self.first_on_line(id)) {
            let column = self.entry_start(id) - line;
            let mut text = String::new();
            for comment in head.lines() {
                text.extend(std::iter::repeat_n(' ', column));
                text.push_str(comment);
                text.push_str(self.line_break);
            }
            replace(splices, self.head_comment_span(id).unwrap_or(line..line), text);
        }
        let (Some(comment), Some(at)) = (&comments.line, self.before_line_comment(id)) else { return };
        let old = self.line_comment_span(id);
        match old {
            Some(old) if comment.is_empty() => replace(splices, at..old.end, ""),
            Some(old) => replace(splices, old, &**comment),
            None if comment.is_empty() => {}
            // Only where nothing follows on the line.
            None => {
                let end = self.line_end(at);
                let rest = self.text.get(at..end).unwrap_or_default();
                if rest.trim().is_empty() {
                    insert_comment(splices, at + rest.len(), format!(" {comment}"));
                }
            }
        }
    }
}
