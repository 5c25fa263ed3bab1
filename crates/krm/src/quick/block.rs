//! YAML in block style, as emitters write it: line by line, with a stack of open collections.

use super::line::{Lines, Stop};
use super::{Facts, MAXIMUM_KEY, MAXIMUM_NESTING, flow};
use crate::nodes::is_null;

/// What the text says, if it is one mapping in plain block style.
pub(super) fn scan(text: &str) -> Option<Facts<'_>> {
    if memchr::memchr(b'\r', text.as_bytes()).is_some() {
        return None;
    }
    let lines = Lines::new(text);
    let scanner =
        Scanner { lines, open: Vec::new(), value_due: false, facts: Facts::default(), results: None };
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
enum Start<'a> {
    /// Its text, if easily told, and where its colon is.
    Key {
        name: Option<&'a str>,
        colon: usize,
    },
    Value,
}

/// A value that is complete on its own lines.
enum Value<'a> {
    Plain(&'a str),
    Quoted(&'a str),
    /// A scalar whose text takes more work to tell.
    OtherScalar,
    Flow,
}

struct Scanner<'a> {
    lines: Lines<'a>,
    open: Vec<Open>,
    /// The last key or entry has no value yet: a deeper collection may follow.
    value_due: bool,
    facts: Facts<'a>,
    /// Where the value of `results` starts, while it is being read.
    results: Option<usize>,
}

impl<'a> Scanner<'a> {
    fn scan(mut self) -> Option<Facts<'a>> {
        let mut line = self.prologue()?;
        while line < self.lines.len() {
            let start = self.lines.skip_spaces(line);
            line = match self.lines.at(start) {
                b'\n' => start + 1,
                b'#' => self.lines.next_line(start),
                _ => self.line(line, start)?,
            };
        }
        self.finish_results(self.lines.len());
        Some(self.facts)
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
        self.settle(at - line, if entry { Kind::Sequence } else { Kind::Mapping })?;
        while entry {
            let parent = at - line;
            let content = self.lines.skip_spaces(at + 1);
            if let Some(next) = self.lines.finish_line(at + 1) {
                self.value_due = true;
                return Some(next);
            }
            at = content;
            entry = self.lines.is_entry(at);
            if entry {
                self.push(at - line, Kind::Sequence)?;
                continue;
            }
            return match self.start(at)? {
                Start::Key { name, colon } => {
                    self.push(at - line, Kind::Mapping)?;
                    self.field(line, at - line, name, colon)
                }
                Start::Value => self.value(at, parent).map(|(next, _)| next),
            };
        }
        match self.start(at)? {
            Start::Key { name, colon } => self.field(line, at - line, name, colon),
            Start::Value => None,
        }
    }

    /// Reads what follows a key in the mapping at `column`.
    fn field(&mut self, line: usize, column: usize, name: Option<&'a str>, colon: usize) -> Option<usize> {
        let top = self.open.len() == 1;
        if top {
            self.finish_results(line);
            self.facts.see(name?)?;
            if name == Some("results") {
                self.results = Some(colon + 1);
            }
        }
        if let Some(next) = self.lines.finish_line(colon + 1) {
            self.value_due = true;
            // A missing kind or version is unusual, and so is one that is a collection.
            return if top && matches!(name, Some("kind" | "apiVersion")) { None } else { Some(next) };
        }
        let (next, value) = self.value(self.lines.skip_spaces(colon + 1), column)?;
        if top {
            self.note(name?, &value)?;
        }
        Some(next)
    }

    fn note(&mut self, name: &str, value: &Value<'a>) -> Option<()> {
        let text = match *value {
            Value::Plain(text) if !is_null(text) => Some(text),
            Value::Quoted(text) => Some(text),
            _ => None,
        };
        match name {
            "kind" => self.facts.kind = Some(text?),
            "apiVersion" => self.facts.api_version = Some(text?),
            "results" if !matches!(value, Value::Flow) => self.results = None,
            _ => {}
        }
        Some(())
    }

    fn finish_results(&mut self, end: usize) {
        if let Some(start) = self.results.take() {
            self.facts.results = self.lines.slice(start, end);
        }
    }

    /// Makes the collection that a line at this column belongs to the innermost one.
    fn settle(&mut self, column: usize, kind: Kind) -> Option<()> {
        let Some(innermost) = self.open.last() else {
            return if column == 0 && kind == Kind::Mapping { self.push(column, kind) } else { None };
        };
        let value_due = std::mem::take(&mut self.value_due);
        // A list may stand at the column of the key it belongs to.
        let beside = column == innermost.column && kind == Kind::Sequence && innermost.kind == Kind::Mapping;
        if value_due && (column > innermost.column || beside) {
            return self.push(column, kind);
        }
        while let Some(innermost) = self.open.last() {
            if innermost.column == column && innermost.kind == kind {
                return Some(());
            }
            if innermost.column < column || (innermost.column == column && kind == Kind::Sequence) {
                return None;
            }
            self.open.pop();
        }
        None
    }

    fn push(&mut self, column: usize, kind: Kind) -> Option<()> {
        if self.open.len() == MAXIMUM_NESTING {
            return None;
        }
        self.open.push(Open { column, kind });
        Some(())
    }

    /// Tells a key from a value.
    fn start(&self, start: usize) -> Option<Start<'a>> {
        let (name, colon) = match self.lines.at(start) {
            b'"' | b'\'' => {
                // A quoted value may span lines; a key may not.
                let Some(quoted) = self.lines.quoted(start, 0).filter(|quoted| quoted.one_line) else {
                    return Some(Start::Value);
                };
                let name = if quoted.verbatim { self.lines.slice(start + 1, quoted.end - 1) } else { None };
                let colon = self.lines.skip_spaces(quoted.end);
                if self.lines.at(colon) != b':' {
                    return Some(Start::Value);
                }
                (name, colon)
            }
            b'{' | b'[' | b'|' | b'>' => return Some(Start::Value),
            _ => {
                let plain = self.lines.plain(start)?;
                if plain.before != Stop::Colon {
                    return Some(Start::Value);
                }
                (self.lines.slice(start, plain.end).map(str::trim_ascii_end), plain.end)
            }
        };
        if colon - start > MAXIMUM_KEY || !matches!(self.lines.at(colon + 1), b' ' | b'\n') {
            return None;
        }
        Some(Start::Key { name, colon })
    }

    /// Reads a value that starts on this line; its other lines must be deeper than `parent`.
    fn value(&self, start: usize, parent: usize) -> Option<(usize, Value<'a>)> {
        match self.lines.at(start) {
            b'|' | b'>' => Some((self.lines.block_scalar(start, parent)?, Value::OtherScalar)),
            b'{' | b'[' => Some((self.lines.finish_line(flow::end(self.lines, start)?)?, Value::Flow)),
            b'"' | b'\'' => {
                let quoted = self.lines.quoted(start, parent)?;
                let value = if quoted.verbatim {
                    Value::Quoted(self.lines.slice(start + 1, quoted.end - 1)?)
                } else {
                    Value::OtherScalar
                };
                Some((self.lines.finish_line(quoted.end)?, value))
            }
            _ => {
                let plain = self.lines.plain(start)?;
                let next = self.lines.plain_to_end(plain, parent)?;
                let one_line = next == self.lines.next_line(plain.end);
                let value = if one_line {
                    Value::Plain(self.lines.slice(start, plain.end)?.trim_ascii_end())
                } else {
                    Value::OtherScalar
                };
                Some((next, value))
            }
        }
    }
}
