//! The function runner: evaluates KRM functions for Porch over gRPC.
//!
//! A call walks one way: gRPC request → chain of evaluators → response.
//! Everything else is state beside that road.

pub mod args;
pub mod builtin;
pub mod cli;
pub mod evaluate;
pub mod images;
mod pods;
pub mod policy;
pub mod routing;
mod serve;
mod service;
pub mod settings;
mod shutdown;
pub mod telemetry;
pub mod version;
