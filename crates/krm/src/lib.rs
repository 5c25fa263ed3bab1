//! `ResourceList`s as text.
//!
//! A KRM function writes one `ResourceList` to its stdout. Whoever runs the function must know that
//! this is what it wrote, and which results it reported, but must hand the text on byte for byte. So
//! nothing here builds a tree or writes YAML back: [`inspect`] reads the text and says what it found.

mod full;
mod inspect;
mod malformed;
mod nodes;
mod quick;
mod results;

#[cfg(test)]
mod tests;

pub use inspect::{Summary, inspect};
pub use malformed::Malformed;
pub use results::{FunctionResult, MAXIMUM_RESULT_TEXT, MAXIMUM_RESULTS, ResourceRef, render_results};
