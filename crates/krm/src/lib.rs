//! `ResourceList`s as text.
//!
//! A KRM function writes one `ResourceList` to its stdout. Whoever runs the function must know that
//! this is what it wrote, and which results it reported, but must hand the text on byte for byte:
//! [`inspect`] reads the text and says what it found, without building a tree.
//!
//! Whoever is a function reads and changes a [`Document`], which writes YAML back only where it was
//! changed.

mod budget;
mod document;
mod full;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod inspect;
mod malformed;
mod nodes;
mod quick;
mod results;
mod tag;

#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests, which a fuzzer runs as well")]
#[cfg_attr(not(test), allow(dead_code, unused_imports, reason = "only some of them are fuzzed"))]
mod tests;

pub use budget::{Budget, Exceeded, Monitor, OverBudget, Used};
pub use document::{
    Children, Document, EditError, Fields, Kind, NodeId, Style, Unreadable, Value, WrongKind,
};
pub use inspect::{Summary, inspect};
pub use malformed::Malformed;
pub use results::{FunctionResult, MAXIMUM_RESULT_TEXT, MAXIMUM_RESULTS, ResourceRef, render_results};
pub use tag::Tag;
