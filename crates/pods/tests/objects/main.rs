//! The objects of the cluster: how they are named, made, read and kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends where its set-up fails, and says what it did not try"
)]

mod api_server;
mod hostile;
mod names;
mod observation;
mod pod_cache;
mod porch;
mod pull_secret;
mod rendering;
mod template_source;
mod templates;
