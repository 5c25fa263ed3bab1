//! Each rule of the pool, by itself.
#![allow(clippy::expect_used, reason = "helpers of tests are not seen as tests")]
#![allow(clippy::unchecked_time_subtraction, reason = "a test ends where its clock goes back")]

mod failures;
mod giving;
mod hygiene;
mod keeping;
mod launching;
mod revisions;
mod room;
mod scaling;
mod sharing;
mod support;
mod waiting;
