//! Reads the text that functions usually write, many times faster than a full parser.
//!
//! The scanners here accept only what they are certain of: whatever they accept, the full parser
//! accepts too and finds the same in it. To anything else, be it unusual or wrong, they answer `None`,
//! and [`crate::full`] decides.

mod block;
mod facts;
mod flow;
mod json;
mod line;
mod sink;

pub(crate) use sink::Sink;

use crate::full;
use crate::inspect::Summary;
use crate::results::Kept;
use facts::Facts;

/// A scanner gives up below this depth, far above the full parser's limit.
const MAXIMUM_NESTING: usize = 100;

/// YAML allows keys of 1024 characters.
const MAXIMUM_KEY: usize = 1000;

pub(crate) const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// The summary of a text in one of the usual styles that is one `ResourceList`.
pub(crate) fn read(text: &str) -> Option<Summary> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut facts = Facts::new(text);
    scan(text, &mut facts)?;
    if facts.kind != Some("ResourceList") {
        return None;
    }
    let kept = match facts.results {
        Some(value) => full::read_results(value)?,
        None => Kept::new(),
    };
    Some(Summary::new(facts.api_version, kept))
}

/// Tells the sink what is in a text that is one mapping in one of the usual styles.
pub(crate) fn scan<S: Sink>(text: &str, sink: &mut S) -> Option<()> {
    if !is_printable(text) {
        return None;
    }
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => json::scan(text, sink),
        _ => block::scan(text, sink),
    }
}

/// Whether the text is free of characters that YAML forbids or that only the full parser handles:
/// controls other than blanks and line ends, byte order marks and non-characters.
fn is_printable(text: &str) -> bool {
    let bytes = text.as_bytes();
    // No early exit, so that the compiler can look at many bytes at once.
    let controls = bytes.iter().fold(0, |found, &byte| {
        let control = byte < b' ' && byte != b'\n' && byte != b'\t' && byte != b'\r';
        found | u8::from(control) | u8::from(byte == 0x7F)
    });
    if controls != 0 {
        return false;
    }
    text.is_ascii()
        || memchr::memchr2_iter(0xC2, 0xEF, bytes).all(|at| {
            !matches!(
                bytes.get(at..).unwrap_or_default(),
                [0xC2, 0x80..=0x9F, ..] | [0xEF, 0xBB, 0xBF, ..] | [0xEF, 0xBF, 0xBE | 0xBF, ..]
            )
        })
}
