//! KRM functions that need no process: the common ones of the function catalog, on the text of the
//! `ResourceList` itself. What they do not change stays byte for byte.
//!
//! A function is a `fn(&mut ResourceList, &FunctionConfig) -> Report` in a file of its own under `builtin`,
//! and a line in the table of [`all`]. It does no I/O. [`Function::run`] gives it its input and makes
//! of its report what the process of that function would have given: stdout, stderr, success or failure.

mod adopt;
mod builtin;
mod config;
mod field_match;
mod field_path;
mod field_spec;
mod framework;
mod glob;
mod go;
mod identity;
mod json;
mod label_selector;
mod line_comments;
mod list;
mod pattern;
mod regexp;
mod report;
mod run;
mod scope;
mod secrets;
mod selector;
mod setter;
mod walk;

pub use builtin::{Function, all, find};
pub use config::FunctionConfig;
pub use field_spec::{FieldSpec, Found, split_path};
pub use list::{InputError, Resource, ResourceList};
pub use report::{Field, File, Finding, Report, Severity};
pub use run::{Outcome, run, run_with};
pub use selector::Selector;
