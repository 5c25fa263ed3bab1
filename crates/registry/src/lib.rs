//! Image registries: how images are named.

mod reference;

pub use reference::{ImageKey, InvalidReference, Problem, Reference};
