//! The pieces of YAML that stand on a line: scalars of every style, keys, comments.

use memchr::memchr;

use crate::document::end_of_block;

/// Bytes with a meaning of their own, by where they have it.
const CLASSES: [u8; 256] = classes();
const ENDS_PLAIN: u8 = 1;
const ENDS_DOUBLE_QUOTED: u8 = 2;
const ENDS_SINGLE_QUOTED: u8 = 4;
const STARTS_PLAIN: u8 = 8;

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        let mut class = 0;
        if matches!(byte, b':' | b'#' | b'\n' | b'\t' | b'\r') {
            class |= ENDS_PLAIN;
        }
        if matches!(byte, b'"' | b'\\' | b'\n' | b'\t' | b'\r') {
            class |= ENDS_DOUBLE_QUOTED;
        }
        if matches!(byte, b'\'' | b'\n' | b'\t' | b'\r') {
            class |= ENDS_SINGLE_QUOTED;
        }
        if byte >= 0x80
            || byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'.' | b'/' | b'$' | b'(')
            || matches!(byte, b')' | b'<' | b'=' | b'+' | b';' | b'^' | b'~' | b'\\')
        {
            class |= STARTS_PLAIN;
        }
        classes[byte as usize] = class;
        if byte == u8::MAX {
            return classes;
        }
        byte += 1;
    }
}

/// A text that is read by position. Behind its end there are only line ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'a> {
    text: &'a str,
}

/// A quoted scalar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quoted {
    /// Just after the closing quote.
    pub(super) end: usize,
    pub(super) one_line: bool,
}

/// A scalar after `|` or `>`.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockScalar {
    /// The line after it.
    pub(super) next: usize,
    /// The end of its last line, which is not a blank one unless blank ones are kept.
    pub(super) end: usize,
}

/// Where a plain scalar ends on its line, and at what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain {
    pub(super) end: usize,
    pub(super) before: Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Colon,
    Comment,
    LineEnd,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text }
    }

    pub(super) fn len(self) -> usize {
        self.text.len()
    }

    pub(super) fn at(self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(b'\n')
    }

    /// Where the text between two positions ends but for spaces.
    pub(super) fn trim_end(self, from: usize, to: usize) -> usize {
        let text = self.text.as_bytes().get(from..to).unwrap_or_default();
        from + text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1)
    }

    pub(super) fn starts_with(self, at: usize, prefix: &[u8]) -> bool {
        self.text.as_bytes().get(at..).is_some_and(|rest| rest.starts_with(prefix))
    }

    /// The first position from `at` on that is not a space.
    pub(super) fn skip_spaces(self, at: usize) -> usize {
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        at + rest.iter().position(|&byte| byte != b' ').unwrap_or(rest.len())
    }

    /// Where the line after the one at `at` starts.
    pub(super) fn next_line(self, at: usize) -> usize {
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        at + memchr(b'\n', rest).unwrap_or(rest.len()) + 1
    }

    /// Where the next line starts, if nothing but spaces and a comment is left of this one.
    pub(super) fn finish_line(self, at: usize) -> Option<usize> {
        let next = self.skip_spaces(at);
        match self.at(next) {
            b'\n' => Some(next + 1),
            b'#' if next > at => Some(self.next_line(next)),
            _ => None,
        }
    }

    fn is_blank_at(self, at: usize) -> bool {
        matches!(self.at(at), b' ' | b'\n')
    }

    /// Whether a list entry starts here.
    pub(super) fn is_entry(self, at: usize) -> bool {
        self.at(at) == b'-' && self.is_blank_at(at + 1)
    }

    fn find(self, from: usize, class: u8) -> Option<usize> {
        let rest = self.text.as_bytes().get(from..)?;
        rest.iter().position(|&byte| CLASSES[usize::from(byte)] & class != 0).map(|found| from + found)
    }

    /// A plain scalar, up to its end on this line.
    pub(super) fn plain(self, start: usize) -> Option<Plain> {
        let starts = match self.at(start) {
            b'-' | b':' | b'?' => !self.is_blank_at(start + 1),
            first => CLASSES[usize::from(first)] & STARTS_PLAIN != 0,
        };
        if starts { self.plain_rest(start) } else { None }
    }

    fn plain_rest(self, start: usize) -> Option<Plain> {
        let mut at = start;
        loop {
            let Some(end) = self.find(at, ENDS_PLAIN) else {
                return Some(Plain { end: self.len(), before: Stop::LineEnd });
            };
            match self.at(end) {
                b'\n' => return Some(Plain { end, before: Stop::LineEnd }),
                b':' if self.is_blank_at(end + 1) => return Some(Plain { end, before: Stop::Colon }),
                b'#' if self.at(end.checked_sub(1)?) == b' ' => {
                    return Some(Plain { end, before: Stop::Comment });
                }
                b':' | b'#' => at = end + 1,
                _ => return None,
            }
        }
    }

    /// Where the line after a plain scalar starts, which may go on on lines deeper than `parent`, and
    /// where the scalar itself ends but for spaces.
    pub(super) fn plain_to_end(self, first: Plain, parent: usize) -> Option<(usize, usize)> {
        let mut line = first;
        loop {
            match line.before {
                Stop::Colon => return None,
                Stop::Comment => return Some((self.next_line(line.end), line.end)),
                Stop::LineEnd => {}
            }
            let next = line.end + 1;
            let Some(start) = self.continuation(next, parent) else { return Some((next, line.end)) };
            if self.at(start) == b'#' {
                return Some((next, line.end));
            }
            if matches!(self.at(start), b'-' | b'?' | b':') && self.is_blank_at(start + 1) {
                return None;
            }
            line = self.plain_rest(start)?;
        }
    }

    /// Where the text starts on the next line that is not blank, if it is deeper than `parent`.
    fn continuation(self, mut line: usize, parent: usize) -> Option<usize> {
        while line < self.len() {
            let start = self.skip_spaces(line);
            if self.at(start) != b'\n' {
                return (start - line > parent).then_some(start);
            }
            line = start + 1;
        }
        None
    }

    /// A quoted scalar in either style, which may go on on lines deeper than `parent`.
    pub(super) fn quoted(self, start: usize, parent: usize) -> Option<Quoted> {
        let double = self.at(start) == b'"';
        let class = if double { ENDS_DOUBLE_QUOTED } else { ENDS_SINGLE_QUOTED };
        let mut quoted = Quoted { end: 0, one_line: true };
        let mut at = start + 1;
        loop {
            let found = self.find(at, class)?;
            match self.at(found) {
                b'\'' if self.at(found + 1) == b'\'' => at = found + 2,
                b'"' | b'\'' => {
                    quoted.end = found + 1;
                    return Some(quoted);
                }
                b'\\' if self.at(found + 1) != b'\n' => at = self.escape(found)?,
                b'\\' | b'\n' => {
                    quoted.one_line = false;
                    let line = if self.at(found) == b'\\' { found + 2 } else { found + 1 };
                    at = self.continuation(line, parent)?;
                }
                _ => return None,
            }
        }
    }

    /// Where a YAML escape that starts with the backslash at `at` ends.
    fn escape(self, at: usize) -> Option<usize> {
        match self.at(at + 1) {
            b'"' | b'\\' | b'/' | b' ' | b'0' | b'a' | b'b' | b'e' | b'f' | b'n' | b'r' | b't' | b'v'
            | b'N' | b'_' | b'L' | b'P' => Some(at + 2),
            b'x' => self.hexadecimal(at + 2, 2).map(|_| at + 4),
            b'u' => self.unicode_escape(at),
            _ => None,
        }
    }

    /// Where an escape `\uXXXX`, or a pair of them for one character, ends.
    pub(super) fn unicode_escape(self, at: usize) -> Option<usize> {
        match self.hexadecimal(at + 2, 4)? {
            0xD800..=0xDBFF => {
                let low = self.starts_with(at + 6, b"\\u").then(|| self.hexadecimal(at + 8, 4))??;
                (0xDC00..=0xDFFF).contains(&low).then_some(at + 12)
            }
            0xDC00..=0xDFFF => None,
            _ => Some(at + 6),
        }
    }

    fn hexadecimal(self, at: usize, digits: usize) -> Option<u32> {
        let digits = self.text.get(at..at + digits)?;
        // Numbers may start with a sign; escapes may not.
        if digits.starts_with('+') { None } else { u32::from_str_radix(digits, 16).ok() }
    }

    /// The end of a string between double quotes, by JSON's rules.
    pub(super) fn json_string(self, start: usize) -> Option<usize> {
        let mut at = start + 1;
        loop {
            let found = self.find(at, ENDS_DOUBLE_QUOTED)?;
            match self.at(found) {
                b'"' => return Some(found + 1),
                b'\\' => {
                    at = match self.at(found + 1) {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => found + 2,
                        b'u' => self.unicode_escape(found)?,
                        _ => return None,
                    };
                }
                _ => return None,
            }
        }
    }

    /// The block scalar whose header is at `start`.
    pub(super) fn block_scalar(self, start: usize, parent: usize) -> Option<BlockScalar> {
        let (header_end, explicit) = self.block_header(start)?;
        let mut content = explicit.map(|indentation| parent + indentation);
        let mut widest_blank = 0;
        let mut first = true;
        let mut line = self.finish_line(header_end)?;
        while line < self.len() {
            let text = self.skip_spaces(line);
            let indentation = text - line;
            match (self.at(text), content) {
                (b'\n', _) => {
                    widest_blank = widest_blank.max(indentation);
                    line = text + 1;
                    continue;
                }
                (b'\t', None) => return None,
                (_, None) if indentation <= parent => break,
                // Blank lines before the first may not be deeper.
                (_, None) if widest_blank > indentation => return None,
                (_, None) => content = Some(indentation),
                (byte, Some(content)) if indentation < content => {
                    if byte == b'\t' || (first && indentation > parent) {
                        return None;
                    }
                    break;
                }
                (_, Some(_)) => {}
            }
            first = false;
            line = self.next_line(text);
        }
        // Without a text, how deep it would be is up to the full parser.
        if content.is_none() && widest_blank > 0 {
            return None;
        }
        Some(BlockScalar { next: line, end: end_of_block(self.text, start, line, content) })
    }

    /// Where the header ends (`|`, `>-`, `|2+`), and the indentation it names.
    fn block_header(self, start: usize) -> Option<(usize, Option<usize>)> {
        let mut at = start + 1;
        let mut chomping = false;
        let mut explicit = None;
        loop {
            match self.at(at) {
                b'+' | b'-' if !chomping => chomping = true,
                digit @ b'1'..=b'9' if explicit.is_none() => explicit = Some(usize::from(digit - b'0')),
                b' ' | b'\n' => return Some((at, explicit)),
                _ => return None,
            }
            at += 1;
        }
    }
}
