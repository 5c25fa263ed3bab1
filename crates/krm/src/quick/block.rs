//! YAML in block style, as emitters write it: line by line, with a stack of open collections.

use super::line::{Lines, Stop};
use super::sink::Sink;
use super::{MAXIMUM_KEY, MAXIMUM_NESTING, flow};
use crate::Style;

/// Reads the text if it is one mapping in plain block style.
pub(super) fn scan<S: Sink>(text: &str, sink: &mut S) -> Option<()> {
    if memchr::memchr(b'\r', text.as_bytes()).is_some() {
        return None;
    }
    let mut scanner = Scanner { lines: Lines::new(text), open: Vec::new(), value_due: false, sink };
    scanner.scan()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mapping,
    Sequence,
}

/// A collection whose keys or entries start at this column.
#[derive(Clone, Copy)]
struct Open {
    column: usize,
    kind: Kind,
}

/// What starts at some place on a line.
enum Start {
    /// Where the key ends, and where its colon is.
    Key {
        end: usize,
        colon: usize,
    },
    Value,
}

struct Scanner<'a, 's, S> {
    lines: Lines<'a>,
    open: Vec<Open>,
    /// The last key or entry has no value yet: a deeper collection may follow.
    value_due: bool,
    sink: &'s mut S,
}

impl<S: Sink> Scanner<'_, '_, S> {
    fn scan(&mut self) -> Option<()> {
        let mut line = self.prologue()?;
        while line < self.lines.len() {
            let start = self.lines.skip_spaces(line);
            line = match self.lines.at(start) {
                b'\n' => start + 1,
                b'#' => self.lines.next_line(start),
                _ => self.line(line, start)?,
            };
        }
        while self.open.pop().is_some() {
            self.sink.close(self.lines.len(), false)?;
        }
        Some(())
    }

    /// Passes over comments and one document marker.
    fn prologue(&self) -> Option<usize> {
        let mut line = 0;
        loop {
            let start = self.lines.skip_spaces(line);
            match self.lines.at(start) {
                b'\n' if start < self.lines.len() => line = start + 1,
                b'#' => line = self.lines.next_line(start),
                b'-' if start == line && self.lines.starts_with(line, b"---") => {
                    return self.lines.finish_line(line + 3);
                }
                _ => return Some(line),
            }
        }
    }

    /// Reads the node that starts at `start` on the line that starts at `line`, up to its last line.
    fn line(&mut self, line: usize, start: usize) -> Option<usize> {
        if start == line && (self.lines.starts_with(line, b"---") || self.lines.starts_with(line, b"...")) {
            return None;
        }
        let mut at = start;
        let mut entry = self.lines.is_entry(at);
        self.settle(line, at, if entry { Kind::Sequence } else { Kind::Mapping })?;
        while entry {
            let parent = at - line;
            self.sink.entry(at, false)?;
            let content = self.lines.skip_spaces(at + 1);
            if let Some(next) = self.lines.finish_line(at + 1) {
                self.value_due = true;
                return Some(next);
            }
            at = content;
            entry = self.lines.is_entry(at);
            if entry {
                self.push(line, at, Kind::Sequence)?;
                continue;
            }
            return match self.start(at)? {
                Start::Key { end, colon } => {
                    self.push(line, at, Kind::Mapping)?;
                    self.field(line, at, end, colon)
                }
                Start::Value => self.value(at, parent),
            };
        }
        match self.start(at)? {
            Start::Key { end, colon } => self.field(line, at, end, colon),
            Start::Value => None,
        }
    }

    /// Reads a field and its value.
    fn field(&mut self, line: usize, start: usize, end: usize, colon: usize) -> Option<usize> {
        self.sink.key(start, end, colon)?;
        if let Some(next) = self.lines.finish_line(colon + 1) {
            self.value_due = true;
            return Some(next);
        }
        self.value(self.lines.skip_spaces(colon + 1), start - line)
    }

    /// Makes the collection that a line with something at this place belongs to the innermost one.
    fn settle(&mut self, line: usize, at: usize, kind: Kind) -> Option<()> {
        let column = at - line;
        let Some(innermost) = self.open.last() else {
            return if column == 0 && kind == Kind::Mapping { self.push(line, at, kind) } else { None };
        };
        let value_due = std::mem::take(&mut self.value_due);
        // A list may stand at the column of the key it belongs to.
        let beside = column == innermost.column && kind == Kind::Sequence && innermost.kind == Kind::Mapping;
        if value_due && (column > innermost.column || beside) {
            return self.push(line, at, kind);
        }
        while let Some(innermost) = self.open.last() {
            if innermost.column == column && innermost.kind == kind {
                return Some(());
            }
            if innermost.column < column || (innermost.column == column && kind == Kind::Sequence) {
                return None;
            }
            self.open.pop();
            self.sink.close(line, false)?;
        }
        None
    }

    fn push(&mut self, line: usize, at: usize, kind: Kind) -> Option<()> {
        if self.open.len() == MAXIMUM_NESTING {
            return None;
        }
        self.open.push(Open { column: at - line, kind });
        self.sink.open(kind == Kind::Mapping, at, false)
    }

    /// Tells a key from a value.
    fn start(&self, start: usize) -> Option<Start> {
        let (end, colon) = match self.lines.at(start) {
            b'"' | b'\'' => {
                // A quoted value may span lines; a key may not.
                let Some(quoted) = self.lines.quoted(start, 0).filter(|quoted| quoted.one_line) else {
                    return Some(Start::Value);
                };
                let colon = self.lines.skip_spaces(quoted.end);
                if self.lines.at(colon) != b':' {
                    return Some(Start::Value);
                }
                (quoted.end, colon)
            }
            b'{' | b'[' | b'|' | b'>' => return Some(Start::Value),
            _ => {
                let plain = self.lines.plain(start)?;
                if plain.before != Stop::Colon {
                    return Some(Start::Value);
                }
                (self.lines.trim_end(start, plain.end), plain.end)
            }
        };
        if colon - start > MAXIMUM_KEY || !matches!(self.lines.at(colon + 1), b' ' | b'\n') {
            return None;
        }
        Some(Start::Key { end, colon })
    }

    /// Reads a value that starts on this line; its other lines must be deeper than `parent`.
    fn value(&mut self, start: usize, parent: usize) -> Option<usize> {
        match self.lines.at(start) {
            header @ (b'|' | b'>') => {
                let scalar = self.lines.block_scalar(start, parent)?;
                let style = if header == b'|' { Style::Literal } else { Style::Folded };
                self.sink.scalar(start, scalar.end, style)?;
                Some(scalar.next)
            }
            b'{' | b'[' => self.lines.finish_line(flow::scan(self.lines, start, self.sink)?),
            quote @ (b'"' | b'\'') => {
                let quoted = self.lines.quoted(start, parent)?;
                let style = if quote == b'"' { Style::Double } else { Style::Single };
                self.sink.scalar(start, quoted.end, style)?;
                self.lines.finish_line(quoted.end)
            }
            _ => {
                let plain = self.lines.plain(start)?;
                let (next, end) = self.lines.plain_to_end(plain, parent)?;
                self.sink.scalar(start, self.lines.trim_end(start, end), Style::Plain)?;
                Some(next)
            }
        }
    }
}
