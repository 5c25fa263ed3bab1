//! The kinds: their definitions, what objects say, and objects in files.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)] // also in helpers that are no tests themselves

mod definitions;
mod files;
mod porch;
mod rules;

use api::{Checked, FunctionRules};
use serde_json::Value;

const DEFAULT_PREFIX: &str = "ghcr.io/kptdev/krm-functions-catalog";

/// A spec, understood.
fn check(spec: &Value) -> Checked {
    FunctionRules::check(Some(spec), DEFAULT_PREFIX)
}

/// The texts of problems.
fn told(checked: &Checked) -> Vec<String> {
    checked.problems.iter().map(ToString::to_string).collect()
}
