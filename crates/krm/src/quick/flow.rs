//! Flow collections that stand on one line: `{}`, `[a, b]`, `{name: web, ports: [80]}`.

use super::MAXIMUM_KEY;
use super::line::Lines;

/// Nesting on one line is rarely deeper than two.
const MAXIMUM_DEPTH: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Mapping,
    Sequence,
}

/// Where the flow collection that starts at `start` ends, if it does so on its line.
pub(super) fn end(lines: Lines<'_>, start: usize) -> Option<usize> {
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
            at = lines.skip_spaces(at + 1);
            if lines.at(at) == closing {
                at += 1;
            } else {
                open.push(kind);
                if kind == Open::Mapping {
                    at = key(lines, at)?;
                }
                continue;
            }
        } else {
            at = scalar(lines, at)?;
        }
        // A value is complete.
        loop {
            let Some(&kind) = open.last() else { return Some(at) };
            at = lines.skip_spaces(at);
            match (lines.at(at), kind) {
                (b',', Open::Mapping) => {
                    at = key(lines, lines.skip_spaces(at + 1))?;
                    break;
                }
                (b',', Open::Sequence) => {
                    at = lines.skip_spaces(at + 1);
                    break;
                }
                (b'}', Open::Mapping) | (b']', Open::Sequence) => {
                    open.pop();
                    at += 1;
                }
                _ => return None,
            }
        }
    }
}

/// Where the value after a key and its colon starts.
fn key(lines: Lines<'_>, start: usize) -> Option<usize> {
    let end = scalar(lines, start)?;
    if end - start > MAXIMUM_KEY || lines.at(end) != b':' || lines.at(end + 1) != b' ' {
        return None;
    }
    Some(lines.skip_spaces(end + 1))
}

/// Where a scalar ends: a quoted one, or a plain one without any character of a special meaning.
fn scalar(lines: Lines<'_>, start: usize) -> Option<usize> {
    if matches!(lines.at(start), b'"' | b'\'') {
        let quoted = lines.quoted(start, 0)?;
        return quoted.one_line.then_some(quoted.end);
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
    Some(at)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'$')
}
