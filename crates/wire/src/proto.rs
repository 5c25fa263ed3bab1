//! Code generated from `proto/evaluator.proto`.

#![allow(
    missing_debug_implementations,
    unused_qualifications,
    unreachable_pub,
    clippy::pedantic,
    reason = "generated code"
)]

tonic::include_proto!("evaluator");

/// The descriptors of the package, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/evaluator.descriptors"));
