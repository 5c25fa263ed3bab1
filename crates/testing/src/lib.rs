//! What the tests of both programs need: real servers, real functions made
//! of shell scripts, real gRPC clients. Used by tests and benchmarks only.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where its set-up fails"
)]

mod callers;
mod functions;
mod leftovers;
mod processes;
pub mod registry;
mod released;
mod server;

pub use callers::{Callers, Question, Seen, in_own_thread, is_refused};
pub use functions::{Functions, resource_list};
pub use leftovers::{lines_of, wait_until_gone};
pub use processes::{children_of, processes_with};
pub use released::{checkout, released};
pub use rustix::process::Signal;
pub use server::{Server, ServerBuilder, free_port};

use std::time::{Duration, Instant};

/// Tries until `check` holds; fails the test with `what` if it never does, as far as anybody waits.
pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !check() {
        assert!(begun.elapsed() < Duration::from_mins(2), "it never becomes true: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
