//! YAML text as a stream of nodes, whatever its style.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, StrInput};

use crate::malformed::Malformed;

/// As deep as Go's YAML library goes; the parser keeps its own stack, so this costs a few kilobytes.
const MAXIMUM_NESTING: usize = 10_000;

/// Anchored texts remembered for aliases. Manifests have few; a hostile text has a million.
const MAXIMUM_ANCHORS: usize = 10_000;

/// A text, with aliases resolved.
#[derive(Debug, Clone)]
pub(crate) struct Scalar<'a> {
    pub(crate) text: Text<'a>,
    pub(crate) plain: bool,
}

/// The text of a scalar; an anchored one is shared, so that a million aliases to it cost no copies.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Own(Cow<'a, str>),
    Shared(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Own(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl Scalar<'_> {
    /// The text, unless it stands for null.
    pub(crate) fn non_null(&self) -> Option<&str> {
        if self.plain && is_null(&self.text) { None } else { Some(&self.text) }
    }
}

/// Whether a plain scalar stands for null.
pub(crate) fn is_null(plain: &str) -> bool {
    matches!(plain, "" | "~" | "null" | "Null" | "NULL")
}

#[derive(Debug)]
pub(crate) enum Node<'a> {
    Scalar(Scalar<'a>),
    /// Keys and values follow in turn, up to [`Node::End`].
    Mapping,
    /// Items follow, up to [`Node::End`].
    Sequence,
    /// An alias to a collection, which is never expanded, or to one of too many anchors.
    Alias,
    /// The end of the innermost mapping or sequence.
    End,
    /// The end of the text.
    Finished,
}

/// Reads one node after the other. Iterative throughout: nesting costs no stack.
pub(crate) struct Nodes<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchored: HashMap<usize, Scalar<'a>>,
    line: usize,
}

impl<'a> Nodes<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut options = Options::default();
        options.emit_comments = false;
        options.flow_nesting_limit = MAXIMUM_NESTING;
        options.block_nesting_limit = MAXIMUM_NESTING;
        let parser = Parser::new_from_str_with_options(text, options);
        Self { parser, anchored: HashMap::new(), line: 1 }
    }

    /// The line of the last node.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// The next node; document boundaries are passed over.
    pub(crate) fn next(&mut self) -> Result<Node<'a>, Malformed> {
        loop {
            let (event, span) = match self.parser.next_event() {
                None => return Ok(Node::Finished),
                Some(Err(error)) => return Err(malformed(&error)),
                Some(Ok(event)) => event,
            };
            self.line = span.start.line();
            return Ok(match event {
                Event::Scalar(text, style, anchor, _) => {
                    let plain = style == ScalarStyle::Plain;
                    if anchor > 0 && self.anchored.len() < MAXIMUM_ANCHORS {
                        let scalar = Scalar { text: Text::Shared(text.into()), plain };
                        self.anchored.insert(anchor, scalar.clone());
                        Node::Scalar(scalar)
                    } else {
                        Node::Scalar(Scalar { text: Text::Own(text), plain })
                    }
                }
                Event::Alias(anchor) => self.anchored.get(&anchor).cloned().map_or(Node::Alias, Node::Scalar),
                Event::MappingStart(..) => Node::Mapping,
                Event::SequenceStart(..) => Node::Sequence,
                Event::MappingEnd | Event::SequenceEnd => Node::End,
                Event::StreamEnd => Node::Finished,
                _ => continue,
            });
        }
    }

    /// The next key of a mapping that has been begun, or nothing at its end. The value comes next.
    pub(crate) fn next_key(&mut self) -> Result<Option<Text<'a>>, Malformed> {
        loop {
            match self.next()? {
                Node::End | Node::Finished => return Ok(None),
                Node::Scalar(key) => return Ok(Some(key.text)),
                // A collection as a key: odd, but no business of ours.
                key => {
                    self.skip(&key)?;
                    let value = self.next()?;
                    self.skip(&value)?;
                }
            }
        }
    }

    /// Passes over what is left of a node that has been begun.
    pub(crate) fn skip(&mut self, begun: &Node<'a>) -> Result<(), Malformed> {
        let mut depth = usize::from(matches!(begun, Node::Mapping | Node::Sequence));
        while depth > 0 {
            match self.next()? {
                Node::Mapping | Node::Sequence => depth += 1,
                Node::End => depth -= 1,
                Node::Finished => break,
                Node::Scalar(_) | Node::Alias => {}
            }
        }
        Ok(())
    }
}

fn malformed(error: &ScanError) -> Malformed {
    let marker = error.marker();
    Malformed::Yaml { line: marker.line(), column: marker.col() + 1, problem: error.kind().to_string() }
}
