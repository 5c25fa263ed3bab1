//! Tests on a real Kubernetes; `make test` brings one up and runs them in it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod function_configs;
mod harness;
mod install;
mod installation;
mod load;
mod manifests;
mod pods;
mod porch;
mod upgrade;
