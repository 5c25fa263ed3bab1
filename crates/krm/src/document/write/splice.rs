//! Pieces of a text that are replaced.

use std::ops::Range;

/// A piece of the text and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
    order: Order,
}

/// What comes first of what is inserted at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Value,
    Comment,
    Lines,
}

/// Collects splices.
pub(crate) type Splices = Vec<Splice>;

pub(crate) fn replace(splices: &mut Splices, range: Range<usize>, text: impl Into<String>) {
    let text = text.into();
    if range.is_empty() && text.is_empty() {
        return;
    }
    splices.push(Splice { start: range.start, end: range.end, text, order: Order::Lines });
}

pub(crate) fn insert(splices: &mut Splices, at: usize, text: impl Into<String>) {
    replace(splices, at..at, text);
}

/// Inserts a value at the end of the line of its key, before its comment and the lines below it.
pub(crate) fn insert_value(splices: &mut Splices, at: usize, text: impl Into<String>) {
    splices.push(Splice { start: at, end: at, text: text.into(), order: Order::Value });
}

/// Inserts a comment at the end of a line, before the lines below it.
pub(crate) fn insert_comment(splices: &mut Splices, at: usize, text: impl Into<String>) {
    splices.push(Splice { start: at, end: at, text: text.into(), order: Order::Comment });
}

/// Writes the range of the text with its splices. Of those at one place, what is inserted comes before what is
/// replaced, values before comments before lines, and what was told first comes first.
pub(crate) fn apply(text: &str, range: Range<usize>, mut splices: Splices, out: &mut String) {
    splices.sort_by_key(|splice| (splice.start, splice.end, splice.order));
    // What is told twice for one place is done once.
    splices.dedup_by(|one, other| one == other && one.start < one.end);
    let mut at = range.start;
    for splice in &splices {
        debug_assert!(splice.start >= at, "{splice:?} overlaps what is before {at}");
        out.push_str(text.get(at..splice.start).unwrap_or_default());
        out.push_str(&splice.text);
        at = at.max(splice.end);
    }
    out.push_str(text.get(at..range.end).unwrap_or_default());
}
