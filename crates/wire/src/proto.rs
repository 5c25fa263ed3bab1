//! Code generated from the `proto` folder.

#![allow(
    missing_debug_implementations,
    unused_qualifications,
    unreachable_pub,
    clippy::pedantic,
    reason = "generated code"
)]

tonic::include_proto!("evaluator");

/// What a function runner tells about its pods.
pub mod pods {
    tonic::include_proto!("functionrunner.v1");
}

/// The descriptors of all packages, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors"));
