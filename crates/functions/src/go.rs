//! Texts as Go's `fmt` writes them, since results are compared with those of Go programs.

use std::fmt::Write as _;

/// `%q`: in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{C}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{B}' => out.push_str("\\v"),
            // Writing to a String cannot fail.
            control if u32::from(control) < 0x80 && control.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(control));
            }
            control if control.is_control() || control == char::REPLACEMENT_CHARACTER => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}

/// `%v` of a list of texts: in brackets, with blanks between them.
pub(crate) fn list<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| text.as_ref().to_owned()).collect();
    format!("[{}]", texts.join(" "))
}
