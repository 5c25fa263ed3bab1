//! What a scanner tells of the text it reads.

use crate::Style;

/// Receives the parts of a text in their order. `None` means: leave this text to the full parser.
///
/// A key or an entry comes first, then its value: a scalar, or a collection with its own keys and entries.
/// What has no value written gets none told. The root collection comes without a key.
pub(crate) trait Sink {
    /// A field of the innermost mapping, its key with its quotes.
    fn key(&mut self, start: usize, end: usize, colon: usize) -> Option<()>;

    /// An entry of the innermost sequence; in flow style there is no dash, and this is where it starts.
    fn entry(&mut self, dash: usize, flow: bool) -> Option<()>;

    /// The value is a scalar.
    fn scalar(&mut self, start: usize, end: usize, style: Style) -> Option<()>;

    /// The value is a collection.
    fn open(&mut self, mapping: bool, start: usize, flow: bool) -> Option<()>;

    /// The innermost collection is complete; in flow style, `end` is behind its bracket.
    fn close(&mut self, end: usize, flow: bool) -> Option<()>;
}
