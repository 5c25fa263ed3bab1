//! How a scalar is written: in its style if it can be, else in the next best.

use crate::document::node::Style;
use crate::tag::{Tag, is_string_to_all};

/// Deeper than the parent by this, for a text that needs to say so.
const STEP: usize = 2;

/// The text of a scalar as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// On the line of its key or dash.
    Inline(String),
    /// A header there, and lines below it, without indentation.
    Block { header: String, lines: Vec<String> },
}

/// Where a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Block,
    Flow,
    /// A flow collection in which all strings are in double quotes.
    Json,
}

/// A value.
pub(super) fn value(text: &str, tag: Tag, style: Style, place: Place) -> Written {
    if !matches!(tag, Tag::String | Tag::Other) {
        return Written::Inline(if text.is_empty() { "null".to_owned() } else { text.to_owned() });
    }
    if place == Place::Json {
        return Written::Inline(double_quoted(text, true));
    }
    let block = place == Place::Block;
    let written = match style {
        Style::Single if is_printable_line(text) => Some(Written::Inline(single_quoted(text))),
        Style::Single | Style::Double => None,
        Style::Literal if block => literal(text),
        Style::Folded if block => folded(text).or_else(|| literal(text)),
        _ if is_string_to_all(text) && is_plain(text, !block) => Some(Written::Inline(text.to_owned())),
        _ if block && text.contains('\n') => literal(text),
        _ if is_string_to_all(text) && is_printable_line(text) => Some(Written::Inline(single_quoted(text))),
        _ => None,
    };
    written.unwrap_or_else(|| Written::Inline(double_quoted(text, false)))
}

/// A key; it is always on one line.
pub(super) fn key(text: &str, place: Place) -> String {
    match place {
        Place::Json => double_quoted(text, true),
        _ if is_string_to_all(text) && is_plain(text, place == Place::Flow) => text.to_owned(),
        _ if is_string_to_all(text) && is_printable_line(text) => single_quoted(text),
        _ => double_quoted(text, false),
    }
}

/// Whether a plain scalar can have this text, whatever type it then is.
fn is_plain(text: &str, flow: bool) -> bool {
    let bytes = text.as_bytes();
    let blank = |byte: Option<&u8>| byte.is_none_or(|byte| *byte == b' ');
    let starts = match bytes.first() {
        None => false,
        Some(b'-' | b'?' | b':') => !blank(bytes.get(1)) && !flow,
        Some(first) => !b" ,[]{}#&*!|>'\"%@`".contains(first),
    };
    starts
        && !bytes.ends_with(b" ")
        && is_printable_line(text)
        && !text.starts_with("---")
        && !text.starts_with("...")
        && !text.contains(" #")
        && !bytes.iter().enumerate().any(|(at, byte)| *byte == b':' && blank(bytes.get(at + 1)))
        // Go's library stumbles over a question mark in a flow collection, wherever it is.
        && !(flow && text.contains([',', '[', ']', '{', '}', '?']))
}

/// Whether the text is one line of characters that every reader takes as they are.
fn is_printable_line(text: &str) -> bool {
    text.chars().all(|character| character != '\n' && is_printable(character))
}

fn is_printable(character: char) -> bool {
    matches!(character,
        '\n' | ' '..='~' | '\u{A0}'..='\u{2027}' | '\u{202A}'..='\u{D7FF}' | '\u{E000}'..='\u{FEFE}'
        | '\u{FF00}'..='\u{FFFD}' | '\u{1_0000}'..='\u{10_FFFF}')
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn double_quoted(text: &str, json: bool) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            plain if is_printable(plain) => quoted.push(plain),
            control => {
                let mut units = [0; 2];
                for unit in control.encode_utf16(&mut units) {
                    let short = !json && u32::from(control) < 0x80;
                    let escape = if short { format!("\\x{unit:02X}") } else { format!("\\u{unit:04x}") };
                    quoted.push_str(&escape);
                }
            }
        }
    }
    quoted.push('"');
    quoted
}

/// The header's signs: how deep the text is, where that cannot be seen, and what is at its end.
fn header(style: char, text: &str) -> String {
    let mut header = String::from(style);
    if text.starts_with([' ', '\n']) {
        header.push_str(&STEP.to_string());
    }
    if text.ends_with("\n\n") {
        header.push('+');
    } else if !text.ends_with('\n') {
        header.push('-');
    }
    header
}

fn is_block_text(text: &str) -> bool {
    // A tab at the start could be taken for indentation.
    text.chars().all(|character| character == '\t' || is_printable(character))
        && text.contains(|character| character != '\n')
        && !text.starts_with('\t')
}

fn literal(text: &str) -> Option<Written> {
    if !is_block_text(text) {
        return None;
    }
    let body = text.strip_suffix('\n').unwrap_or(text);
    Some(Written::Block { header: header('|', text), lines: body.split('\n').map(str::to_owned).collect() })
}

/// Only what folding leaves alone: a line break becomes a blank line, other lines are not touched.
fn folded(text: &str) -> Option<Written> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let simple = body
        .split('\n')
        .all(|line| !line.is_empty() && !line.starts_with([' ', '\t']) && !line.ends_with(' '));
    if !is_block_text(text) || !simple {
        return None;
    }
    let lines = body.split('\n').flat_map(|line| [String::new(), line.to_owned()]).skip(1).collect();
    Some(Written::Block { header: header('>', text), lines })
}
