//! What scalars mean, by how they are written.

use std::borrow::Cow;

use super::node::{Node, Style};

/// A node's key as it is written.
pub(super) fn raw_key<'a>(text: &'a str, node: &Node) -> &'a str {
    let start = node.key as usize;
    text.get(start..start + usize::from(node.key_length)).unwrap_or_default()
}

/// A node's key.
pub(super) fn key<'a>(text: &'a str, node: &Node) -> Cow<'a, str> {
    let raw = raw_key(text, node);
    let style = match raw.as_bytes().first() {
        Some(b'"') => Style::Double,
        Some(b'\'') => Style::Single,
        // After a question mark.
        Some(b'|') => Style::Literal,
        Some(b'>') => Style::Folded,
        _ => Style::Plain,
    };
    scalar(raw, style, 0, false)
}

/// The text of a scalar. `parent` is the column of the collection it is in; `last` tells that it ends with
/// the document.
pub(super) fn scalar(raw: &str, style: Style, parent: usize, last: bool) -> Cow<'_, str> {
    let inner = || raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    match style {
        Style::Plain => flow_lines(raw, |_| false),
        Style::Single => flow_lines(inner(), |byte| byte == b'\''),
        Style::Double => flow_lines(inner(), |byte| byte == b'\\'),
        Style::Literal | Style::Folded => Cow::Owned(block(raw, style, parent, last)),
        Style::Block | Style::Flow => Cow::Borrowed(""),
    }
}

/// Folds lines and resolves escapes, of which `escape` knows the first byte: a quote or a backslash.
fn flow_lines(raw: &str, escape: impl Fn(u8) -> bool) -> Cow<'_, str> {
    if !raw.bytes().any(|byte| byte == b'\n' || escape(byte)) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(&byte) = rest.as_bytes().first() {
        if escape(byte) {
            rest = if byte == b'\'' { quote(rest, &mut out) } else { backslash(rest, &mut out) };
        } else if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            rest = blanks(rest, &mut out);
        } else {
            let end = rest.bytes().position(|byte| escape(byte) || byte.is_ascii_whitespace());
            let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
            // No escape and no blank that is folded, such as a form feed.
            let (text, after) = if text.is_empty() { rest.split_at(1) } else { (text, after) };
            out.push_str(text);
            rest = after;
        }
    }
    Cow::Owned(out)
}

/// Two single quotes stand for one.
fn quote<'a>(rest: &'a str, out: &mut String) -> &'a str {
    out.push('\'');
    rest.get(2..).unwrap_or_default()
}

/// Blanks stay as they are, unless there is a line break among them: one break is a space, more are one less.
fn blanks<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let end = rest.bytes().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    let (blanks, after) = rest.split_at(end.unwrap_or(rest.len()));
    match breaks(blanks) {
        0 => out.push_str(blanks),
        1 => out.push(' '),
        more => out.extend(std::iter::repeat_n('\n', more - 1)),
    }
    after
}

fn breaks(blanks: &str) -> usize {
    memchr::memchr_iter(b'\n', blanks.as_bytes()).count()
}

fn backslash<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let after = |count: usize| rest.get(count..).unwrap_or_default();
    let simple = match rest.as_bytes().get(1) {
        Some(b'\n' | b'\r') => {
            // The break itself is nothing; blank lines after it are breaks.
            let end = after(1).bytes().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
            let end = end.map_or(rest.len(), |end| end + 1);
            let blanks = rest.get(1..end).unwrap_or_default();
            out.extend(std::iter::repeat_n('\n', breaks(blanks).saturating_sub(1)));
            return after(end);
        }
        Some(b'0') => '\0',
        Some(b'a') => '\u{7}',
        Some(b'b') => '\u{8}',
        Some(b't' | b'\t') => '\t',
        Some(b'n') => '\n',
        Some(b'v') => '\u{B}',
        Some(b'f') => '\u{C}',
        Some(b'r') => '\r',
        Some(b'e') => '\u{1B}',
        Some(b'N') => '\u{85}',
        Some(b'_') => '\u{A0}',
        Some(b'L') => '\u{2028}',
        Some(b'P') => '\u{2029}',
        Some(b'x') => return unicode(rest, 2, out),
        Some(b'u') => return unicode(rest, 4, out),
        Some(b'U') => return unicode(rest, 8, out),
        Some(&other) => char::from(other),
        None => '\\',
    };
    out.push(simple);
    after(2)
}

/// `\xXX`, `\uXXXX` or `\UXXXXXXXX`; two of the second kind may be one character.
fn unicode<'a>(rest: &'a str, digits: usize, out: &mut String) -> &'a str {
    let number = |from: usize| u32::from_str_radix(rest.get(from..from + digits)?, 16).ok();
    let mut end = 2 + digits;
    let mut code = number(2).unwrap_or_default();
    if let (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) = (code, number(end + 2)) {
        code = 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        end += 6;
    }
    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    rest.get(end..).unwrap_or_default()
}

/// What a block scalar's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// `-`: no line break at the end.
    pub(super) strip: bool,
    /// `+`: all line breaks at the end.
    pub(super) keep: bool,
    /// How deep the text is below its parent.
    pub(super) explicit: Option<usize>,
    /// The length of the header without blanks and comment.
    pub(super) length: usize,
}

impl Header {
    pub(super) fn of(raw: &str) -> Self {
        let length = raw.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(raw.len());
        let indicators = raw.get(1..length).unwrap_or_default();
        let explicit = indicators.bytes().find(u8::is_ascii_digit).map(|digit| usize::from(digit - b'0'));
        Self { strip: indicators.contains('-'), keep: indicators.contains('+'), explicit, length }
    }
}

/// A block scalar's lines without their indentation, folded if that is its style.
fn block(raw: &str, style: Style, parent: usize, last: bool) -> String {
    let header = Header::of(raw);
    let body = raw.split_once('\n').map_or("", |(_, body)| body);
    let lines = || body.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let spaces = |line: &str| line.bytes().take_while(|&byte| byte == b' ').count();
    let indentation = header.explicit.map_or_else(
        || lines().find(|line| spaces(line) < line.len()).map_or(usize::MAX, spaces),
        |explicit| parent + explicit,
    );
    let mut out = String::with_capacity(body.len());
    let mut previous: Option<&str> = None;
    let mut blank_lines = 0;
    // Without a line break there is no line, not even an empty one.
    for line in lines().take(if raw.contains('\n') { usize::MAX } else { 0 }) {
        let Some(line) = line.get(spaces(line).min(indentation)..).filter(|line| !line.is_empty()) else {
            blank_lines += 1;
            continue;
        };
        let deeper = |line: &str| line.starts_with([' ', '\t']);
        let folds = |previous| style == Style::Folded && !deeper(previous) && !deeper(line);
        match previous {
            Some(previous) if !folds(previous) => out.push('\n'),
            Some(_) if blank_lines == 0 => out.push(' '),
            _ => {}
        }
        out.extend(std::iter::repeat_n('\n', blank_lines));
        blank_lines = 0;
        out.push_str(line);
        previous = Some(line);
    }
    // The last line has its break, unless the document ends with it.
    let ended = !last || raw.ends_with('\n');
    if !header.strip && previous.is_some() && (ended || blank_lines > 0) {
        out.push('\n');
    }
    if header.keep {
        out.extend(std::iter::repeat_n('\n', blank_lines));
    }
    out
}

/// Where a block scalar ends: behind its last line that is not blank, or, with blank lines kept, behind all
/// of them. `next` is where the line after it starts, `content` how deep its text is.
pub(crate) fn end_of_block(text: &str, start: usize, next: usize, content: Option<usize>) -> usize {
    let header = Header::of(text.get(start..).unwrap_or_default());
    let mut end = next.min(text.len());
    loop {
        let before = text.get(start..end).unwrap_or_default();
        let before = before.strip_suffix('\n').unwrap_or(before);
        let before = before.strip_suffix('\r').unwrap_or(before);
        let Some((_, line)) = before.rsplit_once('\n') else { return start + header.length };
        let blank = line.bytes().all(|byte| byte == b' ') && content.is_none_or(|deep| line.len() <= deep);
        // What is left of a line at the end of the document is no line.
        let unfinished = blank && start + before.len() == text.len();
        if (header.keep && !unfinished) || !blank {
            return start + before.len();
        }
        end = start + before.len() - line.len();
    }
}
