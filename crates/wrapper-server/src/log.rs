//! Lines on standard error.

use std::{fmt::Display, io::Write};

/// How much is told; see `--verbosity`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    verbosity: i64,
}

impl Log {
    pub(crate) fn new(verbosity: i64) -> Self {
        Self { verbosity }
    }

    /// Tells what somebody must look after.
    pub(crate) fn error(self, text: impl Display) {
        if self.verbosity >= 0 {
            say(&format!("ERROR {text}"));
        }
    }

    /// Tells what an operator should know.
    pub(crate) fn warn(self, text: impl Display) {
        if self.verbosity >= 1 {
            say(&format!("WARN {text}"));
        }
    }

    /// Tells what happens.
    pub(crate) fn info(self, text: impl Display) {
        if self.verbosity >= 2 {
            say(&format!("INFO {text}"));
        }
    }
}

/// Writes a line, whatever the verbosity. Nobody may be listening.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
