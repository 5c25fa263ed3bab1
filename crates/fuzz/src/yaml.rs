//! The YAML engine.

use krm::{Document, fuzzing};

/// Reading: all readers agree, and what is not changed is written as it was.
pub(crate) fn read(input: &[u8]) {
    let document = Document::parse_bytes(input).map_err(|error| crate::is_one_line(&error.to_string()));
    let Ok(text) = std::str::from_utf8(input) else {
        assert!(document.is_err() && krm::inspect(input).is_err(), "bytes that are no text are read");
        return;
    };
    fuzzing::readers_agree(text).unwrap_or_else(|problem| panic!("{problem}"));
    match krm::inspect(input) {
        Ok(summary) => drop(summary.render_results()),
        Err(error) => crate::is_one_line(&error.to_string()),
    }
}

/// The bytes of one change.
const CHANGE: usize = 5;
/// The most changes of one input.
const CHANGES: usize = 8;

/// Changing: the first byte says how many changes, five bytes are one, and the rest is the text that is changed.
/// What is written says what was set, and nothing else has changed.
pub(crate) fn edit(input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let length = CHANGE * (usize::from(count) % (CHANGES + 1));
    let Some((changes, text)) = rest.split_at_checked(length) else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let changes: Vec<fuzzing::Change> = changes
        .as_chunks::<CHANGE>()
        .0
        .iter()
        .map(|&[low, high, how, first, second]| (u16::from_le_bytes([low, high]), how, first, second))
        .collect();
    fuzzing::edits_hold(text, &changes).unwrap_or_else(|problem| panic!("{problem}"));
}
