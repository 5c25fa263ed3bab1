//! What the property tests check, for inputs that a fuzzer makes.

use crate::document::tests as documents;
use crate::tests::agreement;

/// One thing done to a document, as numbers.
pub type Change = documents::edits::Change;

/// All readers agree on a text.
pub fn readers_agree(text: &str) -> Result<(), String> {
    let agreed = agreement::agree(text).and_then(|_| documents::agreement::agree(text));
    agreed.map(drop).map_err(|error| error.to_string())
}

/// A changed document's text says what its nodes say, and nothing else has changed.
pub fn edits_hold(text: &str, changes: &[Change]) -> Result<(), String> {
    documents::edits::check(text, changes).map_err(|error| error.to_string())
}
