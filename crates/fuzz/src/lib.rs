//! What a fuzzer throws bytes at: one function per target, which panics where something is wrong.
//!
//! `make fuzz` builds them with libFuzzer (`main.rs`) and lets it look for inputs that reach new code. The ordinary
//! tests run them on the inputs in `corpus`, one folder a target.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a target says that something is wrong")]

mod configuration;
mod credentials;
mod flag;
mod function;
mod name;
mod reference;
mod registry;
mod request;
mod yaml;

/// One thing to throw bytes at.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, also that of its folder in `corpus`.
    pub name: &'static str,
    /// Takes an input; panics where something is wrong.
    pub body: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "config-yaml", body: configuration::config_yaml },
    Target { name: "docker-config", body: credentials::docker_config },
    Target { name: "flags", body: flag::command_line },
    Target { name: "function-configs", body: configuration::function_configs },
    Target { name: "functions", body: function::run },
    Target { name: "name-servers", body: name::answers },
    Target { name: "pod-cache", body: configuration::pod_cache },
    Target { name: "pod-template", body: configuration::pod_template },
    Target { name: "references", body: reference::names },
    Target { name: "registry", body: registry::answers },
    Target { name: "requests", body: request::requests },
    Target { name: "yaml", body: yaml::read },
    Target { name: "yaml-edits", body: yaml::edit },
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}

/// The parts of an input: texts of their own between lines of `====`, so that what is written by hand can be read.
fn parts(input: &str) -> impl Iterator<Item = &str> {
    input.split("\n====\n")
}

/// Fails unless a message for people is one line that a terminal shows as it is.
#[track_caller]
fn is_one_line(message: &str) {
    assert!(!message.is_empty(), "an empty message");
    assert!(!message.contains(char::is_control), "control characters in {message:?}");
}
