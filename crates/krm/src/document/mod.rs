//! A YAML or JSON document that can be read and changed while everything else in it stays byte for byte.
//!
//! [`Document::parse`] reads the text once into an arena of nodes that know where in the text they are. Edits
//! change the nodes only; [`Document::to_text`] compares them with the text, makes one list of splices of it
//! and applies them in one pass. So reading after writing sees what was written, and the order of edits does
//! not matter.

mod aliases;
mod build;
mod comments;
mod decode;
mod edit;
mod keys;
mod merges;
mod node;
mod parse;
mod read;
mod unreadable;
mod value;
mod write;

#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests, which a fuzzer runs as well")]
#[cfg_attr(not(test), allow(dead_code, unused_imports, reason = "only some of them are fuzzed"))]
pub(crate) mod tests;

use std::cell::OnceCell;
use std::collections::HashMap;

pub use edit::{EditError, WrongKind};
pub use node::{Kind, NodeId, Style};
pub use read::{Children, Fields};
pub use unreadable::Unreadable;
pub use value::Value;

pub(crate) use decode::end_of_block;

use crate::budget::Budget;
use crate::quick::{self, BYTE_ORDER_MARK};
use build::Builder;
use comments::Comments;
use edit::Fresh;
use keys::Keys;
use node::Node;
use parse::Extras;

/// Positions are kept in 32 bits, and some more are needed for what is added.
const MAXIMUM_LENGTH: usize = 1 << 31;

/// One YAML or JSON document, its text and the changes made to it.
///
/// Values are named by [`NodeId`]s. Reading is by methods that take one; each answers `None`, or nothing, for
/// a value of another kind, so that questions can be asked of any value without care.
#[derive(Debug)]
pub struct Document<'a> {
    /// Without the byte order mark.
    text: &'a str,
    marked: bool,
    /// How its lines end.
    line_break: &'static str,
    nodes: Vec<Node>,
    /// For how many nodes room was counted, if they were moved since the text was read.
    room: usize,
    extras: Extras,
    /// The keys and scalars that are not in the text.
    fresh: HashMap<u32, Fresh>,
    /// The comments that are not in the text.
    comments: HashMap<u32, Comments>,
    /// The last children of collections that something was added to, so that adding much takes little time.
    last_added: HashMap<u32, NodeId>,
    /// The fields of wide mappings, for the same reason.
    keys: Keys,
    /// How many nodes are in the text: their numbers are in its order.
    in_text: usize,
    /// How many mappings have a merge key.
    merges: usize,
    /// What all work on it is counted against.
    budget: Budget,
    /// Where line breaks are, once that is asked for.
    line_breaks: OnceCell<Vec<u32>>,
}

impl<'a> Document<'a> {
    /// Reads a text that is one document.
    ///
    /// Time and memory are linear in the length of the text, whatever it is. Aliases are read as the values
    /// they stand for, and what merge keys stand for as fields of the mappings that they are in.
    pub fn parse(text: &'a str) -> Result<Self, Unreadable> {
        let budget = Budget::default();
        budget.read(text.len());
        Self::parse_within(text, &budget)
    }

    /// Reads a text that is one document, and counts what that takes, and all that is done with it later.
    pub fn parse_within(text: &'a str, budget: &Budget) -> Result<Self, Unreadable> {
        if text.len() > MAXIMUM_LENGTH {
            return Err(Unreadable::TooLarge { limit: MAXIMUM_LENGTH });
        }
        let (marked, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) => (true, text),
            None => (false, text),
        };
        if let Some(at) = lone_carriage_return(text) {
            let line = memchr::memchr_iter(b'\n', text.as_bytes().get(..at).unwrap_or_default()).count() + 1;
            return Err(Unreadable::CarriageReturn { line });
        }
        budget.read_text(4 * text.len())?;
        let (mut nodes, mut extras) = match Self::parse_quickly(text, budget) {
            Some(nodes) => (nodes?, Extras::default()),
            None => parse::read(text, budget)?,
        };
        let in_text = nodes.len();
        let merges = aliases::expand(text, &mut nodes, &mut extras, budget)?;
        Ok(Self {
            text,
            marked,
            line_break: line_break(text),
            nodes,
            room: 0,
            extras,
            fresh: HashMap::new(),
            comments: HashMap::new(),
            last_added: HashMap::new(),
            keys: Keys::default(),
            in_text,
            merges,
            budget: budget.clone(),
            line_breaks: OnceCell::new(),
        })
    }

    /// Reads bytes that are one document.
    pub fn parse_bytes(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let budget = Budget::default();
        budget.read(bytes.len());
        Self::parse_bytes_within(bytes, &budget)
    }

    /// Reads bytes that are one document, and counts what that takes, and all that is done with it later.
    pub fn parse_bytes_within(bytes: &'a [u8], budget: &Budget) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            Unreadable::NotUtf8 { line: memchr::memchr_iter(b'\n', before).count() + 1 }
        })?;
        Self::parse_within(text, budget)
    }

    /// The nodes of a text in one of the usual styles.
    fn parse_quickly(text: &str, budget: &Budget) -> Option<Result<Vec<Node>, Unreadable>> {
        let mut builder = match Builder::new(text, budget) {
            Ok(builder) => builder,
            Err(over) => return Some(Err(over.into())),
        };
        match quick::scan(text, &mut builder) {
            Some(()) if builder.nodes.len() > 1 => Some(Ok(builder.nodes)),
            Some(()) => None,
            None => builder.problem.map(Err),
        }
    }

    /// The value that the document is.
    pub fn root(&self) -> NodeId {
        NodeId::ROOT
    }

    /// What all work on the document is counted against.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

/// The line break that a text uses.
fn line_break(text: &str) -> &'static str {
    let first = memchr::memchr(b'\n', text.as_bytes());
    if first.is_some_and(|at| text.as_bytes().get(..at).is_some_and(|line| line.ends_with(b"\r"))) {
        "\r\n"
    } else {
        "\n"
    }
}

/// The first carriage return that is not part of a line break as Windows has them. To some readers it is a
/// line break by itself.
fn lone_carriage_return(text: &str) -> Option<usize> {
    memchr::memchr_iter(b'\r', text.as_bytes()).find(|at| text.as_bytes().get(at + 1) != Some(&b'\n'))
}
