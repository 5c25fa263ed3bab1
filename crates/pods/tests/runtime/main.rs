//! The pod runtime against an API server that fails in every way the test says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where its set-up fails"
)]

mod calls;
mod cluster;
mod keeping;
mod launching;
mod scene;
mod waiting;
mod watching;
mod wrapper;
