//! Strict JSON, in one pass without recursion.

use super::line::Lines;
use super::sink::Sink;
use super::{MAXIMUM_KEY, MAXIMUM_NESTING};
use crate::Style;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Object,
    Array,
}

/// Reads the text if it is one JSON object.
pub(super) fn scan<S: Sink>(text: &str, sink: &mut S) -> Option<()> {
    let mut scanner = Scanner { lines: Lines::new(text), open: Vec::new(), sink };
    scanner.scan()
}

struct Scanner<'a, 's, S> {
    lines: Lines<'a>,
    open: Vec<Open>,
    sink: &'s mut S,
}

impl<S: Sink> Scanner<'_, '_, S> {
    fn scan(&mut self) -> Option<()> {
        let mut at = self.skip_blanks(0);
        loop {
            // A value is due.
            let opened = match self.lines.at(at) {
                b'{' => Some((Open::Object, b'}')),
                b'[' => Some((Open::Array, b']')),
                _ => None,
            };
            if let Some((kind, closing)) = opened {
                if self.open.len() == MAXIMUM_NESTING {
                    return None;
                }
                self.sink.open(kind == Open::Object, at, true)?;
                at = self.skip_blanks(at + 1);
                self.open.push(kind);
                if self.lines.at(at) != closing {
                    at = self.member(at)?;
                    continue;
                }
            } else {
                let (end, style) = self.scalar(at)?;
                self.sink.scalar(at, end, style)?;
                at = end;
            }
            // A value is complete, or its closing bracket is next.
            loop {
                at = self.skip_blanks(at);
                match (self.lines.at(at), self.open.last()?) {
                    (b',', _) => {
                        at = self.member(self.skip_blanks(at + 1))?;
                        break;
                    }
                    (b'}', Open::Object) | (b']', Open::Array) => {
                        self.open.pop();
                        at += 1;
                        self.sink.close(at, true)?;
                    }
                    _ => return None,
                }
                if self.open.is_empty() {
                    return (self.skip_blanks(at) >= self.lines.len()).then_some(());
                }
            }
        }
    }

    fn skip_blanks(&self, mut at: usize) -> usize {
        while at < self.lines.len() && matches!(self.lines.at(at), b' ' | b'\n' | b'\t' | b'\r') {
            at += 1;
        }
        at
    }

    /// Where the value of the field or element that starts at `start` starts.
    fn member(&mut self, start: usize) -> Option<usize> {
        if self.open.last() == Some(&Open::Array) {
            self.sink.entry(start, true)?;
            return Some(start);
        }
        if self.lines.at(start) != b'"' {
            return None;
        }
        let end = self.lines.json_string(start)?;
        let colon = self.lines.skip_spaces(end);
        if self.lines.at(colon) != b':' || colon - start > MAXIMUM_KEY {
            return None;
        }
        self.sink.key(start, end, colon)?;
        Some(self.skip_blanks(colon + 1))
    }

    fn scalar(&self, start: usize) -> Option<(usize, Style)> {
        match self.lines.at(start) {
            b'"' => Some((self.lines.json_string(start)?, Style::Double)),
            b'-' | b'0'..=b'9' => Some((self.number(start)?, Style::Plain)),
            _ => ["true", "false", "null"]
                .iter()
                .find(|word| self.lines.starts_with(start, word.as_bytes()))
                .map(|word| (start + word.len(), Style::Plain)),
        }
    }

    fn number(&self, start: usize) -> Option<usize> {
        let mut at = start + usize::from(self.lines.at(start) == b'-');
        at = if self.lines.at(at) == b'0' { at + 1 } else { self.digits(at)? };
        if self.lines.at(at) == b'.' {
            at = self.digits(at + 1)?;
        }
        if matches!(self.lines.at(at), b'e' | b'E') {
            at += 1 + usize::from(matches!(self.lines.at(at + 1), b'+' | b'-'));
            at = self.digits(at)?;
        }
        Some(at)
    }

    fn digits(&self, start: usize) -> Option<usize> {
        let mut at = start;
        while self.lines.at(at).is_ascii_digit() {
            at += 1;
        }
        (at > start).then_some(at)
    }
}
