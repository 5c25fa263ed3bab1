//! The log on standard error.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::settings::Logging;

/// Starts the log. Later calls change nothing.
pub fn start(logging: Logging) {
    let (ours, others) = levels(logging.level);
    let filter = Targets::new().with_default(others).with_targets(
        ["function_runner", "process", "wire", "krm", "pods", "registry"].map(|name| (name, ours)),
    );
    let registry = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    // A second start, as in tests, keeps the first log.
    let _ = if logging.json {
        registry.with(lines.json().flatten_event(true)).try_init()
    } else {
        registry.with(lines.with_ansi(std::io::stderr().is_terminal())).try_init()
    };
}

/// What is told of our own doings and of the libraries'.
fn levels(level: u8) -> (LevelFilter, LevelFilter) {
    match level {
        0 => (LevelFilter::ERROR, LevelFilter::ERROR),
        1 => (LevelFilter::WARN, LevelFilter::ERROR),
        2 => (LevelFilter::INFO, LevelFilter::ERROR),
        3 => (LevelFilter::DEBUG, LevelFilter::WARN),
        4 => (LevelFilter::DEBUG, LevelFilter::INFO),
        _ => (LevelFilter::TRACE, LevelFilter::DEBUG),
    }
}
