//! The client against Debian's `docker-registry` in all its shapes, and against a server that misbehaves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unnecessary_wraps,
    reason = "helpers of tests"
)]

mod hostile;
mod names;
mod real;
mod roads;
mod support;
