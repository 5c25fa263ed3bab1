//! Each rule of the pool, by itself.

mod failures;
mod giving;
mod hygiene;
mod keeping;
mod launching;
mod revisions;
mod room;
mod scaling;
mod support;
mod waiting;
