//! Reads any YAML into the arena, through the full parser.

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span, StrInput};

use super::aliases::MAXIMUM_ALIASES;
use super::build::{Builder, MAXIMUM_NESTING, index};
use super::decode::{Header, end_of_block};
use super::node::{Node, Style, flag};
use super::unreadable::Unreadable;
use crate::budget::Budget;
use crate::quick::{BYTE_ORDER_MARK, Sink};

/// Anchors and tags; manifests have few.
const MAXIMUM_PROPERTIES: usize = 100_000;

/// What few nodes have.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// Anchor and tag of a node's value.
    pub(super) properties: HashMap<u32, Properties>,
    /// Where fields start whose key is not the first of them.
    pub(super) entries: HashMap<u32, u32>,
    /// The nodes that aliases stand for.
    pub(super) aliases: HashMap<u32, u32>,
}

/// What may stand before a value: `&name` and `!tag`.
#[derive(Debug, Clone)]
pub(super) struct Properties {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The tag in full, such as `tag:yaml.org,2002:str`.
    pub(super) tag: Option<Rc<str>>,
}

/// The nodes of a text, and what few of them have.
pub(super) fn read(text: &str, budget: &Budget) -> Result<(Vec<Node>, Extras), Unreadable> {
    let mut options = Options::default();
    options.emit_comments = false;
    options.flow_nesting_limit = MAXIMUM_NESTING + 2;
    options.block_nesting_limit = MAXIMUM_NESTING + 2;
    let mut reader = Reader {
        text,
        builder: Builder::new(text, budget)?,
        extras: Extras::default(),
        anchors: HashMap::new(),
        open: Vec::new(),
        cursor: 0,
        found: false,
        complete: false,
        key: None,
        entry: 0,
    };
    reader.read(Parser::new_from_str_with_options(text, options))?;
    if !reader.found {
        return Err(Unreadable::Empty);
    }
    Ok((reader.builder.nodes, reader.extras))
}

/// A collection that is not complete.
#[derive(Debug, Clone, Copy)]
struct Open {
    mapping: bool,
    flow: bool,
    /// A key has been read, and its value is next.
    value_due: bool,
    node: u32,
}

struct Reader<'a> {
    text: &'a str,
    builder: Builder<'a>,
    extras: Extras,
    /// Nodes by the number of their anchor.
    anchors: HashMap<usize, u32>,
    open: Vec<Open>,
    /// Behind all that has been read.
    cursor: usize,
    /// There is a document that is not empty, and whether it is complete.
    found: bool,
    complete: bool,
    /// The place of a key that is read next.
    key: Option<usize>,
    /// Where the last field or entry starts.
    entry: usize,
}

impl<'a> Reader<'a> {
    fn read(&mut self, mut parser: Parser<'a, StrInput<'a>>) -> Result<(), Unreadable> {
        loop {
            let (event, span) = match parser.next_event() {
                None => return Ok(()),
                Some(Err(error)) if *error.kind() == ErrorKind::RecursionLimitExceeded => {
                    return Err(Unreadable::TooDeep { limit: MAXIMUM_NESTING, line: error.marker().line() });
                }
                Some(Err(error)) => {
                    let (marker, problem) = (error.marker(), error.kind().to_string());
                    return Err(Unreadable::Yaml { line: marker.line(), column: marker.col() + 1, problem });
                }
                Some(Ok(event)) => event,
            };
            if self.event(event, &span)?.is_none() {
                let line = span.start.line();
                let problem = "a place where this cannot be told".to_owned();
                let other = Unreadable::Yaml { line, column: span.start.col() + 1, problem };
                return Err(self.builder.problem.take().unwrap_or(other));
            }
        }
    }

    fn event(&mut self, event: Event<'a>, span: &Span) -> Result<Option<()>, Unreadable> {
        let (start, end) = (offset(span.start), offset(span.end));
        Ok(match event {
            Event::Scalar(_, style, anchor, tag) => {
                let empty = style == ScalarStyle::Plain && start == end;
                if self.open.is_empty() && empty && anchor == 0 && tag.is_none() {
                    return Ok(Some(()));
                }
                let tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
                self.place(span)?;
                if let Some(entry) = self.key.take() {
                    return self.read_key(
                        entry,
                        span,
                        style,
                        usize::from(anchor > 0) + usize::from(tag.is_some()),
                    );
                }
                self.properties(anchor, tag, span)?;
                let node = self.builder.last_index();
                let value = self.scalar(span, style);
                if anchor > 0 {
                    self.anchors.insert(anchor, node);
                }
                value
            }
            Event::Alias(anchor) => {
                self.place(span)?;
                if self.key.is_some() {
                    return Err(Unreadable::OddKey { line: span.start.line() });
                }
                let node = self.builder.last_index();
                let Some(&target) = self.anchors.get(&anchor) else {
                    return Err(Unreadable::EndlessAlias { line: span.start.line() });
                };
                if self.open.iter().any(|open| open.node == target) {
                    return Err(Unreadable::EndlessAlias { line: span.start.line() });
                }
                if self.extras.aliases.len() == MAXIMUM_ALIASES {
                    let line = span.start.line();
                    return Err(Unreadable::TooManyAliases { limit: MAXIMUM_ALIASES, line });
                }
                let target = self.extras.aliases.get(&target).copied().unwrap_or(target);
                self.extras.aliases.insert(node, target);
                self.cursor = end;
                let value = self.builder.scalar(start, end, Style::Plain);
                if let Some(node) = self.builder.last() {
                    node.mark(flag::ALIAS);
                }
                value
            }
            Event::MappingStart(style, anchor, tag) => {
                let tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
                self.collection(true, style == granit_parser::StructureStyle::Flow, span, anchor, tag)?
            }
            Event::SequenceStart(style, anchor, tag) => {
                let tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
                self.collection(false, style == granit_parser::StructureStyle::Flow, span, anchor, tag)?
            }
            Event::MappingEnd | Event::SequenceEnd => {
                let Some(open) = self.open.pop() else { return Ok(None) };
                if open.flow {
                    self.cursor = end;
                }
                self.complete = self.open.is_empty();
                self.builder.close(end, open.flow)
            }
            _ => Some(()),
        })
    }

    /// Makes room for a node in the innermost collection; for a key, notes where its field starts.
    fn place(&mut self, span: &Span) -> Result<(), Unreadable> {
        let Some(open) = self.open.last_mut() else {
            if self.found {
                return Err(Unreadable::SeveralDocuments { line: span.start.line() });
            }
            self.found = true;
            return Ok(());
        };
        if open.mapping && open.value_due {
            open.value_due = false;
            return Ok(());
        }
        let flow = open.flow;
        let at = self.skip(self.cursor, flow);
        self.entry = at;
        if self.open.last().is_some_and(|open| open.mapping) {
            self.key = Some(at);
            return Ok(());
        }
        self.cursor = if flow { at } else { at + 1 };
        // There is an open collection: it can only fail for want of room.
        let _ = self.builder.entry(at, flow);
        self.builder.problem.take().map_or(Ok(()), Err)
    }

    fn read_key(
        &mut self,
        entry: usize,
        span: &Span,
        style: ScalarStyle,
        properties: usize,
    ) -> Result<Option<()>, Unreadable> {
        let explicit = self.byte(entry) == b'?' && offset(span.start) > entry;
        self.cursor = if explicit { entry + 1 } else { entry };
        self.cursor = self.skip_properties(self.cursor, properties);
        let (start, end) = self.extent(span, style);
        if start == end {
            return Err(Unreadable::OddKey { line: span.start.line() });
        }
        let colon = self.skip(end, false);
        let flow = self.open.last().is_some_and(|open| open.flow);
        let has_colon = self.byte(colon) == b':' && (flow || self.byte(colon + 1).is_ascii_whitespace());
        if !has_colon && !flow {
            return Err(Unreadable::OddKey { line: span.start.line() });
        }
        let Ok(length) = u16::try_from(end - start) else {
            return Err(Unreadable::LongKey { line: span.start.line() });
        };
        if has_colon {
            self.cursor = colon + 1;
            if self.builder.key(start, end, colon).is_none() {
                return Ok(None);
            }
        } else {
            self.cursor = end;
            if self.builder.child(start, length, end).is_none() {
                return Ok(None);
            }
        }
        let index = self.builder.last_index();
        if let Some(node) = self.builder.last() {
            if !has_colon {
                node.mark(flag::NO_COLON);
            }
            if entry != start {
                node.mark(flag::EXPLICIT);
                self.extras.entries.insert(index, super::build::index(entry));
            }
        }
        if let Some(open) = self.open.last_mut() {
            open.value_due = true;
        }
        Ok(Some(()))
    }

    fn scalar(&mut self, span: &Span, style: ScalarStyle) -> Option<()> {
        let (start, end) = self.extent(span, style);
        self.cursor = end;
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted => Style::Single,
            ScalarStyle::DoubleQuoted => Style::Double,
            ScalarStyle::Literal => Style::Literal,
            ScalarStyle::Folded => Style::Folded,
        };
        if self.open.is_empty() {
            self.complete = true;
        }
        self.builder.scalar(start, end, style)
    }

    /// Where a scalar is: at the cursor, if it is empty; with its header, if it is a block scalar.
    fn extent(&self, span: &Span, style: ScalarStyle) -> (usize, usize) {
        let (start, end) = (offset(span.start), offset(span.end));
        match style {
            ScalarStyle::Plain if start == end => (self.cursor, self.cursor),
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let header = self.skip(self.cursor, false);
                // The parser may have passed over the next line's indentation.
                let line = self.text.get(..end).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
                let blank =
                    self.text.get(line..end).is_some_and(|text| text.bytes().all(|byte| byte == b' '));
                let next = if blank && end < self.text.len() { line } else { end };
                let explicit = Header::of(self.text.get(header..).unwrap_or_default()).explicit;
                let content =
                    explicit.map_or(span.indent, |explicit| Some(self.column(self.entry) + explicit));
                (header, end_of_block(self.text, header, next, content))
            }
            _ => (start, end),
        }
    }

    fn collection(
        &mut self,
        mapping: bool,
        flow: bool,
        span: &Span,
        anchor: usize,
        tag: Option<String>,
    ) -> Result<Option<()>, Unreadable> {
        self.place(span)?;
        if self.key.is_some() {
            return Err(Unreadable::OddKey { line: span.start.line() });
        }
        self.properties(anchor, tag, span)?;
        let node = self.builder.last_index();
        if anchor > 0 {
            self.anchors.insert(anchor, node);
        }
        let start = self.skip(self.cursor, false);
        // A single pair in a flow sequence has no bracket of its own.
        let bracket = flow && matches!(self.byte(start), b'{' | b'[') && offset(span.end) > start;
        self.cursor = if bracket { start + 1 } else { start };
        self.open.push(Open { mapping, flow, value_due: false, node });
        Ok(self.builder.open(mapping, start, flow))
    }

    /// Notes a node's anchor and tag, and passes over them.
    fn properties(&mut self, anchor: usize, tag: Option<String>, span: &Span) -> Result<(), Unreadable> {
        if anchor == 0 && tag.is_none() {
            return Ok(());
        }
        if self.extras.properties.len() == MAXIMUM_PROPERTIES {
            return Err(Unreadable::TooManyAnchors { limit: MAXIMUM_PROPERTIES, line: span.start.line() });
        }
        let start = self.skip(self.cursor, false);
        self.cursor = self.skip_properties(start, usize::from(anchor > 0) + usize::from(tag.is_some()));
        let node = self.builder.last_index();
        let properties =
            Properties { start: index(start), end: index(self.cursor), tag: tag.map(Into::into) };
        self.extras.properties.insert(node, properties);
        if let Some(node) = self.builder.last() {
            node.mark(flag::PROPERTIES);
            (node.start, node.end) = (index(self.cursor), index(self.cursor));
        }
        Ok(())
    }

    /// Where so many anchors and tags that start at `at` end.
    fn skip_properties(&self, at: usize, count: usize) -> usize {
        let mut end = at;
        for _ in 0..count {
            end = self.skip(end, false);
            let verbatim = self.byte(end + 1) == b'<';
            while !self.byte(end).is_ascii_whitespace()
                && (verbatim || !matches!(self.byte(end), b',' | b'[' | b']' | b'{' | b'}'))
            {
                end += 1;
            }
        }
        end
    }

    fn column(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        at - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1)
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(b'\n')
    }

    /// The first position that is neither blank nor in a comment; commas are passed over where asked.
    fn skip(&self, mut at: usize, commas: bool) -> usize {
        while at < self.text.len() {
            match self.byte(at) {
                b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                b',' if commas => at += 1,
                // A byte order mark may stand before the document, also behind comments.
                0xEF if self.builder.last_index() == 0 && self.is_byte_order_mark(at) => {
                    at += BYTE_ORDER_MARK.len();
                }
                b'#' => {
                    let rest = self.text.as_bytes().get(at..).unwrap_or_default();
                    at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                b'-' | b'.' | b'%' if self.open.is_empty() && self.is_marker(at) => {
                    let rest = self.text.as_bytes().get(at..).unwrap_or_default();
                    let directive = self.byte(at) == b'%';
                    at += if directive { memchr::memchr(b'\n', rest).unwrap_or(rest.len()) } else { 3 };
                }
                _ => break,
            }
        }
        at
    }

    fn is_byte_order_mark(&self, at: usize) -> bool {
        self.text.get(at..).is_some_and(|rest| rest.starts_with(BYTE_ORDER_MARK))
    }

    /// Whether a document's marker or a directive is here.
    fn is_marker(&self, at: usize) -> bool {
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        let marker = rest.starts_with(b"---") || rest.starts_with(b"...");
        self.column(at) == 0
            && (rest.starts_with(b"%") || (marker && self.byte(at + 3).is_ascii_whitespace()))
    }
}

fn offset(marker: granit_parser::Marker) -> usize {
    marker.byte_offset().unwrap_or_else(|| marker.index())
}
