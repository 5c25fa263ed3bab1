//! Strict JSON, in one pass without recursion.

use super::line::Lines;
use super::{Facts, MAXIMUM_KEY, MAXIMUM_NESTING};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Object,
    Array,
}

/// What the text says, if it is one JSON object.
pub(super) fn scan(text: &str) -> Option<Facts<'_>> {
    let scanner = Scanner { lines: Lines::new(text), open: Vec::new(), facts: Facts::default() };
    scanner.scan()
}

struct Scanner<'a> {
    lines: Lines<'a>,
    open: Vec<Open>,
    facts: Facts<'a>,
}

impl<'a> Scanner<'a> {
    fn scan(mut self) -> Option<Facts<'a>> {
        let mut field = None;
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
                at = self.skip_blanks(at + 1);
                self.open.push(kind);
                if self.lines.at(at) != closing {
                    if kind == Open::Object {
                        at = self.key(at, &mut field)?;
                    }
                    continue;
                }
            } else {
                at = self.scalar(at)?;
            }
            // A value is complete, or its closing bracket is next.
            loop {
                if self.open.len() == 1
                    && let Some(field) = field.take()
                {
                    self.complete(field, at)?;
                }
                at = self.skip_blanks(at);
                match (self.lines.at(at), self.open.last()?) {
                    (b',', Open::Object) => {
                        at = self.key(self.skip_blanks(at + 1), &mut field)?;
                        break;
                    }
                    (b',', Open::Array) => {
                        at = self.skip_blanks(at + 1);
                        break;
                    }
                    (b'}', Open::Object) | (b']', Open::Array) => {
                        self.open.pop();
                        at += 1;
                    }
                    _ => return None,
                }
                if self.open.is_empty() {
                    return (self.skip_blanks(at) >= self.lines.len()).then_some(self.facts);
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

    /// Where the value after a key starts; for a top-level key, `field` becomes its name and that place.
    fn key(&mut self, start: usize, field: &mut Option<(&'a str, usize)>) -> Option<usize> {
        if self.lines.at(start) != b'"' {
            return None;
        }
        let key = self.lines.json_string(start)?;
        let colon = self.lines.skip_spaces(key.end);
        if self.lines.at(colon) != b':' || colon - start > MAXIMUM_KEY {
            return None;
        }
        let value = self.skip_blanks(colon + 1);
        if self.open.len() == 1 {
            let name = self.lines.slice(start + 1, key.end - 1)?;
            if !key.verbatim {
                return None;
            }
            self.facts.see(name)?;
            *field = Some((name, value));
        }
        Some(value)
    }

    fn scalar(&self, start: usize) -> Option<usize> {
        match self.lines.at(start) {
            b'"' => self.lines.json_string(start).map(|string| string.end),
            b'-' | b'0'..=b'9' => self.number(start),
            _ => ["true", "false", "null"]
                .iter()
                .find(|word| self.lines.starts_with(start, word.as_bytes()))
                .map(|word| start + word.len()),
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

    /// Takes note of a complete top-level field.
    fn complete(&mut self, (name, start): (&str, usize), end: usize) -> Option<()> {
        match name {
            "kind" => self.facts.kind = Some(self.string(start, end)?),
            "apiVersion" => self.facts.api_version = Some(self.string(start, end)?),
            "results" if matches!(self.lines.at(start), b'{' | b'[') => {
                self.facts.results = self.lines.slice(start, end);
            }
            _ => {}
        }
        Some(())
    }

    /// The text of a string without escapes.
    fn string(&self, start: usize, end: usize) -> Option<&'a str> {
        let text = self.lines.slice(start, end)?.strip_prefix('"')?.strip_suffix('"')?;
        (!text.contains('\\')).then_some(text)
    }
}
