//! The text of values that are not in the text yet.

use super::scalar::{self, Place, Written};
use super::splice;
use crate::document::Document;
use crate::document::node::{Kind, NodeId, Style, flag};
use crate::tag::Tag;

/// What a line takes beside its text.
const LINE: usize = 40;

/// How much deeper fields and entries are than the key of their collection, and what follows them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Steps {
    pub(super) mapping: usize,
    pub(super) sequence: usize,
    pub(super) tail: Tail,
}

/// What stands in the text behind new lines: a block scalar at their end must not take it for its own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tail {
    /// Blank lines.
    blank: bool,
    /// How deep comments and blank lines are.
    deepest: usize,
    /// Not known, since something is removed there.
    unknown: bool,
    /// Nothing, not even a line break.
    nothing: bool,
}

impl Tail {
    fn is_risky(self) -> bool {
        self.blank || self.deepest > 0 || self.unknown || self.nothing
    }
}

impl Document<'_> {
    pub(super) fn new_line(&self, out: &mut String, column: usize) {
        if !self.affords_blanks(column + 1) {
            return;
        }
        out.push_str(self.line_break);
        out.extend(std::iter::repeat_n(' ', column));
    }

    /// Counts blanks and line breaks, which nobody has counted before; `false` if there are too many.
    fn affords_blanks(&self, bytes: usize) -> bool {
        self.budget.write(bytes).and_then(|()| self.budget.memory(3 * bytes)).is_ok()
    }

    /// How deep things are around this node.
    pub(super) fn steps(&self, id: NodeId) -> Steps {
        let (mut mapping, mut sequence) = (None, None);
        let mut around = Some(id);
        while let Some(id) = around.filter(|_| mapping.is_none() || sequence.is_none()) {
            let fields = if self.is_mapping(id) { Some(self.children(id)) } else { None };
            for child in fields.into_iter().flatten() {
                let Some(node) = self.node(child) else { continue };
                if node.has(flag::NEW | flag::CHANGED | flag::ALIAS) || node.style != Style::Block {
                    continue;
                }
                let (key, value) = (self.column(self.entry_start(child)), self.column(node.start as usize));
                let step = value.checked_sub(key).filter(|step| *step < 9);
                match node.kind {
                    Kind::Mapping => mapping = mapping.or(step.filter(|step| *step > 0)),
                    _ => sequence = sequence.or(step),
                }
                if mapping.is_some() && sequence.is_some() {
                    break;
                }
            }
            around = self.parent(id);
        }
        Steps { mapping: mapping.unwrap_or(2), sequence: sequence.unwrap_or(2), tail: Tail::default() }
    }

    /// What stands in the text behind the lines of a node, which end at `end`.
    pub(super) fn tail(&self, id: NodeId, end: usize) -> Tail {
        let mut line = self.next_line(end);
        let mut tail = Tail { unknown: self.removed_behind(id), nothing: line.is_none(), ..Tail::default() };
        while let Some(start) = line.filter(|&start| start < self.text.len() && self.budget.step(1)) {
            let text = self.text.get(start..self.line_end(start)).unwrap_or_default();
            let spaces = text.len() - text.trim_start_matches(' ').len();
            if spaces == text.len() {
                tail.blank = true;
            } else if !text.trim_start_matches(' ').starts_with('#') {
                break;
            }
            tail.deepest = tail.deepest.max(spaces);
            line = self.next_line(start);
        }
        tail
    }

    /// Whether what is next in the text was removed.
    fn removed_behind(&self, id: NodeId) -> bool {
        let mut around = Some(id);
        while let Some(id) = around {
            let first = self.node(id).and_then(|node| self.nodes.get(node.next as usize));
            let next = std::iter::successors(first, |node| self.nodes.get(node.next as usize));
            if let Some(next) = next
                .into_iter()
                .find(|node| (node.in_source() && !node.has(flag::MERGED)) || !self.budget.step(1))
            {
                return next.has(flag::REMOVED);
            }
            around = self.parent(id);
        }
        false
    }

    /// Writes the fields or entries of a collection in block style at a column; the first one where the
    /// cursor is, the others on lines of their own.
    pub(super) fn render_children(&self, out: &mut String, collection: NodeId, column: usize, steps: Steps) {
        let mut children = self.children(collection).peekable();
        let mut first = true;
        while let Some(child) = children.next() {
            if !first {
                self.new_line(out, column);
            }
            first = false;
            let tail = if children.peek().is_none() { steps.tail } else { Tail::default() };
            self.render_entry(out, child, column, Steps { tail, ..steps });
        }
    }

    /// Writes a field or an entry in block style.
    pub(super) fn render_entry(&self, out: &mut String, id: NodeId, column: usize, steps: Steps) {
        if let Some(comment) = self.head_comment(id) {
            for line in comment.lines() {
                out.push_str(line);
                self.new_line(out, column);
            }
        }
        let Some(node) = self.node(id) else { return };
        let spoilt = steps.tail.is_risky() && self.ends_with_block_scalar(id);
        if node.in_source() && !spoilt && !self.has_anchors(id) {
            return self.render_copy(out, id, column);
        }
        match self.key(id) {
            Some(key) => {
                out.push_str(&scalar::key(&key, Place::Block));
                out.push(':');
            }
            None => out.push('-'),
        }
        self.render_value(out, id, column, steps);
    }

    /// Writes a value behind its colon or dash, whose field or entry starts at this column.
    fn render_value(&self, out: &mut String, id: NodeId, column: usize, steps: Steps) {
        match self.form_before(id, column + 2, steps.tail) {
            Form::Inline(text) => {
                out.push(' ');
                out.push_str(&text);
                self.render_comment(out, id);
            }
            Form::BlockScalar { header, lines } => {
                out.push(' ');
                out.push_str(&header);
                self.render_comment(out, id);
                self.render_lines(out, &lines, column + 2);
            }
            Form::BlockCollection => {
                let entry = self.key(id).is_none();
                let deeper = column + self.step(id, steps);
                if entry && self.line_comment(id).is_none() && !self.starts_with_comment(id) {
                    out.push(' ');
                } else {
                    self.render_comment(out, id);
                    self.new_line(out, deeper);
                }
                self.render_children(out, id, deeper, steps);
            }
        }
    }

    pub(super) fn starts_with_comment(&self, collection: NodeId) -> bool {
        self.children(collection).next().is_some_and(|first| self.head_comment(first).is_some())
    }

    /// How much deeper the content of a collection is than its key or dash.
    pub(super) fn step(&self, id: NodeId, steps: Steps) -> usize {
        match (self.key(id), self.kind(id)) {
            (None, _) => 2,
            (Some(_), Kind::Sequence) => steps.sequence,
            (Some(_), _) => steps.mapping,
        }
    }

    fn render_comment(&self, out: &mut String, id: NodeId) {
        if let Some(comment) = self.line_comment(id) {
            out.push(' ');
            out.push_str(&comment);
        }
    }

    pub(super) fn render_lines(&self, out: &mut String, lines: &[String], column: usize) {
        for line in lines {
            self.new_line(out, if line.is_empty() { 0 } else { column });
            out.push_str(line);
        }
    }

    /// Whether the last line of a value is one of a block scalar.
    pub(super) fn ends_with_block_scalar(&self, id: NodeId) -> bool {
        let last = std::iter::successors(Some(id), |&id| self.children(id).last());
        last.last().is_some_and(|last| {
            let is_new = self.node(last).is_some_and(|node| node.has(flag::NEW | flag::CHANGED));
            // A new text of several lines may become one, too.
            matches!(self.style(last), Style::Literal | Style::Folded)
                || (is_new && self.text(last).is_some_and(|text| text.contains('\n')))
        })
    }

    /// Whether there are anchors, tags or aliases in a value: they mean something else in another place.
    fn has_anchors(&self, id: NodeId) -> bool {
        if self.extras.properties.is_empty() && self.extras.aliases.is_empty() && self.merges == 0 {
            return false;
        }
        let means_more = flag::ALIAS | flag::PROPERTIES | flag::MERGE | flag::MERGED;
        self.node(id).is_some_and(|node| !node.has(flag::REMOVED) && node.has(means_more))
            || self.all_children(id).into_iter().any(|child| self.has_anchors(child))
    }

    /// Writes a copied field or entry as its original is written, moved to another column.
    fn render_copy(&self, out: &mut String, id: NodeId, column: usize) {
        let Some(node) = self.node(id) else { return };
        let start = self.entry_start(id);
        let mut splices = Vec::new();
        self.collect(id, &mut splices);
        // Written above.
        splices.retain(|splice| splice.start >= start);
        let mut text = String::new();
        splice::apply(self.text, start..self.line_end(node.end as usize), splices, &mut text);
        self.move_lines(out, &text, self.column(start), column);
    }

    /// The text of a value as a document of its own, with its comments.
    pub fn text_of(&self, id: NodeId) -> String {
        let mut out = String::new();
        match self
            .node(id)
            .filter(|node| node.in_source() && node.style == Style::Block && !node.has(flag::CHANGED))
        {
            Some(node) if !node.is_alias() && !self.is_empty(id) => {
                // A comment may stand between the dash and the first key.
                let header = self.header_end(id);
                let rest = self.text.get(header..).unwrap_or_default().trim_start_matches(' ');
                let mut start = self.text.len() - rest.len();
                if id == NodeId::ROOT {
                    start = self.head_start();
                } else if rest.starts_with(['\n', '\r']) {
                    start = self.next_line(start).unwrap_or(start);
                }
                let mut splices = Vec::new();
                self.collect(id, &mut splices);
                splices.retain(|splice| splice.start >= start);
                let mut text = String::new();
                splice::apply(self.text, start..self.line_end(node.end as usize), splices, &mut text);
                let column = self.column(node.start as usize);
                let indented = text.len() - text.trim_start_matches(' ').len();
                self.move_lines(&mut out, text.get(indented.min(column)..).unwrap_or_default(), column, 0);
            }
            _ => match self.form(id, Place::Block) {
                Form::Inline(text) => out = self.line_of(id).map_or(text, str::to_owned),
                Form::BlockScalar { header, lines } => {
                    out = header;
                    self.render_lines(&mut out, &lines, 2);
                }
                Form::BlockCollection => self.render_children(&mut out, id, 0, self.steps(id)),
            },
        }
        out.push_str(self.line_break);
        // Nothing of it is written, but it is there for a while.
        let _ = self.budget.read_text(out.len());
        out
    }

    /// A scalar as it is written, if it is still what the text says and on one line.
    fn line_of(&self, id: NodeId) -> Option<&str> {
        let node = self.node(id).filter(|node| node.in_source() && node.kind == Kind::Scalar)?;
        let text = self.text.get(node.start as usize..node.end as usize)?;
        let is_there = !node.has(flag::CHANGED | flag::ALIAS | flag::PROPERTIES);
        (is_there && !text.is_empty() && !text.contains('\n')).then_some(text)
    }

    /// Where the comments above the first key of the document start.
    fn head_start(&self) -> usize {
        let start = self.node(NodeId::ROOT).map_or(0, |node| node.start as usize);
        let before = self.text.get(..start).unwrap_or_default();
        // Behind the document's marker.
        before.rfind("---").and_then(|marker| self.next_line(marker)).unwrap_or(0)
    }

    /// How a value is written whose lines, if it is a block scalar, are at this column.
    pub(super) fn form_before(&self, id: NodeId, column: usize, tail: Tail) -> Form {
        let form = self.form(id, Place::Block);
        let Form::BlockScalar { header, .. } = &form else { return form };
        let spoilt = tail.unknown
            || column <= tail.deepest
            || (tail.blank && header.contains('+'))
            || (tail.nothing && !header.contains('-'));
        if spoilt { self.form(id, Place::Json) } else { form }
    }

    /// How a value is written in this place.
    pub(super) fn form(&self, id: NodeId, place: Place) -> Form {
        match self.kind(id) {
            Kind::Scalar => {
                let text = self.text(id).unwrap_or_default();
                let tag = self.tag(id).unwrap_or(Tag::Null);
                let own_tag = self.own_tag(id).map(|tag| format!("{tag} ")).unwrap_or_default();
                match scalar::value(&text, tag, self.style(id), place) {
                    Written::Inline(text) => Form::Inline(own_tag + &text),
                    Written::Block { header, lines } => {
                        // Each line is a text of its own for a while.
                        let _ = self.budget.memory(lines.len() * LINE);
                        Form::BlockScalar { header: own_tag + &header, lines }
                    }
                }
            }
            _ if place != Place::Block || self.is_empty(id) || self.style(id) == Style::Flow => {
                let mut text = String::new();
                self.render_flow(&mut text, id, if place == Place::Block { Place::Flow } else { place });
                Form::Inline(text)
            }
            _ => Form::BlockCollection,
        }
    }

    /// The tag of a scalar that is of a type of its own, when it is written in another place.
    fn own_tag(&self, id: NodeId) -> Option<&str> {
        if self.tag(id) != Some(Tag::Other) || self.node(id)?.has(flag::NEW | flag::CHANGED) {
            return None;
        }
        let properties = self.extras.properties.get(&self.origin(id).0)?;
        let text = self.text.get(properties.start as usize..properties.end as usize)?;
        text.split_ascii_whitespace().find(|word| word.starts_with('!'))
    }

    /// Writes a value in flow style.
    pub(super) fn render_flow(&self, out: &mut String, id: NodeId, place: Place) {
        let (open, close) = match self.kind(id) {
            Kind::Mapping => ('{', '}'),
            Kind::Sequence => ('[', ']'),
            Kind::Scalar => {
                if let Form::Inline(text) = self.form(id, place)
                    // What aliases stand for may be there many times.
                    && self.budget.memory(2 * text.len()).is_ok()
                {
                    out.push_str(&text);
                }
                return;
            }
        };
        out.push(open);
        for (at, child) in self.children(id).enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            self.render_flow_entry(out, child, place, ": ");
        }
        out.push(close);
    }

    /// Writes a field or an entry in flow style.
    pub(super) fn render_flow_entry(&self, out: &mut String, id: NodeId, place: Place, colon: &str) {
        if let Some(key) = self.key(id) {
            out.push_str(&scalar::key(&key, place));
            out.push_str(colon);
        }
        self.render_flow(out, id, place);
    }

    /// Writes lines that stand at one column as they stand at another; the first one where the cursor is.
    fn move_lines(&self, out: &mut String, text: &str, from: usize, to: usize) {
        for (at, line) in text.split('\n').enumerate() {
            if at == 0 {
                out.push_str(line);
                continue;
            }
            let spaces = line.bytes().take_while(|&byte| byte == b' ').count();
            let blank = spaces == line.trim_end_matches('\r').len();
            // A blank line may be part of a text, if it is deep enough.
            let column = if blank && spaces <= from { 0 } else { (spaces + to).saturating_sub(from) };
            if !self.affords_blanks(column.saturating_sub(spaces)) {
                return;
            }
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', column));
            out.push_str(line.get(spaces..).unwrap_or_default());
        }
    }
}

/// How a value is written.
#[derive(Debug)]
pub(super) enum Form {
    /// On the line of its key or dash.
    Inline(String),
    /// A header there, and lines below it, without indentation.
    BlockScalar { header: String, lines: Vec<String> },
    /// Fields or entries on lines of their own.
    BlockCollection,
}
