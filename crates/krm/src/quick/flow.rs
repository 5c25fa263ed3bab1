//! Flow collections that stand on one line: `{}`, `[a, b]`, `{name: web, ports: [80]}`.

use super::MAXIMUM_KEY;
use super::line::Lines;
use super::sink::Sink;
use crate::Style;

/// Nesting on one line is rarely deeper than two.
const MAXIMUM_DEPTH: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Mapping,
    Sequence,
}

/// Reads the flow collection that starts at `start`, and tells where it ends, if it does so on its line.
pub(super) fn scan<S: Sink>(lines: Lines<'_>, start: usize, sink: &mut S) -> Option<usize> {
    let mut open = Vec::new();
    let mut at = start;
    loop {
        // A value is due.
        let opened = match lines.at(at) {
            b'{' => Some((Open::Mapping, b'}')),
            b'[' => Some((Open::Sequence, b']')),
            _ => None,
        };
        if let Some((kind, closing)) = opened {
            if open.len() == MAXIMUM_DEPTH {
                return None;
            }
            sink.open(kind == Open::Mapping, at, true)?;
            at = lines.skip_spaces(at + 1);
            if lines.at(at) == closing {
                at += 1;
                sink.close(at, true)?;
            } else {
                open.push(kind);
                at = member(lines, at, kind, sink)?;
                continue;
            }
        } else {
            let (end, style) = scalar(lines, at)?;
            sink.scalar(at, end, style)?;
            at = end;
        }
        // A value is complete.
        loop {
            let Some(&kind) = open.last() else { return Some(at) };
            at = lines.skip_spaces(at);
            match (lines.at(at), kind) {
                (b',', _) => {
                    at = member(lines, lines.skip_spaces(at + 1), kind, sink)?;
                    break;
                }
                (b'}', Open::Mapping) | (b']', Open::Sequence) => {
                    open.pop();
                    at += 1;
                    sink.close(at, true)?;
                }
                _ => return None,
            }
        }
    }
}

/// Where the value of the field or entry that starts at `start` starts.
fn member<S: Sink>(lines: Lines<'_>, start: usize, kind: Open, sink: &mut S) -> Option<usize> {
    if kind == Open::Sequence {
        sink.entry(start, true)?;
        return Some(start);
    }
    let (end, _) = scalar(lines, start)?;
    if end - start > MAXIMUM_KEY || lines.at(end) != b':' || lines.at(end + 1) != b' ' {
        return None;
    }
    sink.key(start, end, end)?;
    Some(lines.skip_spaces(end + 1))
}

/// Where a scalar ends: a quoted one, or a plain one without any character of a special meaning.
fn scalar(lines: Lines<'_>, start: usize) -> Option<(usize, Style)> {
    if let quote @ (b'"' | b'\'') = lines.at(start) {
        let quoted = lines.quoted(start, 0)?;
        let style = if quote == b'"' { Style::Double } else { Style::Single };
        return quoted.one_line.then_some((quoted.end, style));
    }
    let mut at = start;
    if lines.at(at) == b'-' {
        at += 1;
    }
    if !is_plain(lines.at(at)) {
        return None;
    }
    while is_plain(lines.at(at)) || matches!(lines.at(at), b'-' | b'+' | b'=') {
        at += 1;
    }
    Some((at, Style::Plain))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'$')
}
