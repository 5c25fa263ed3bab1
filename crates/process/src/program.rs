//! What to run, and within which limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::Instant;

use crate::Scratch;

/// A function as a program on this machine.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file to execute, best as an absolute path. A bare name is looked up in `PATH`; with
    /// [`Environment::Clean`] that lookup costs a slower way of starting the process.
    pub path: PathBuf,
    /// Its arguments, without the program's own name.
    pub arguments: Vec<OsString>,
    /// The environment it starts from.
    pub environment: Environment,
    /// The private folder it gets for the length of the call.
    pub folder: Folder,
}

/// The environment of a function, before the variables of its [`Folder`] and the call's own
/// `FUNCTION_CALL` are set in it.
#[derive(Clone, Debug)]
pub enum Environment {
    /// Exactly these variables.
    Clean(Arc<[(OsString, OsString)]>),
    /// The environment of the running program.
    Inherited,
}

/// The private folder of a call: made for it, readable by its user only, removed after it.
#[derive(Clone, Debug)]
pub enum Folder {
    /// No private folder; the function works where the running program works.
    None,
    /// `TMPDIR` names the private folder; the working folder stays that of the running program.
    Temporary(Scratch),
    /// The private folder is the working folder, `HOME` and `TMPDIR`.
    Working(Scratch),
}

impl Folder {
    pub(crate) fn scratch(&self) -> Option<&Scratch> {
        match self {
            Self::None => None,
            Self::Temporary(scratch) | Self::Working(scratch) => Some(scratch),
        }
    }
}

/// The bounds of one call.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// When the function must have ended; `None` waits for ever.
    pub deadline: Option<Instant>,
    /// The most bytes of standard output, and of standard output and log together: a longer output ends the
    /// call, a log that does not fit beside the output is cut.
    pub max_output: usize,
    /// The most bytes of log kept; earlier ones are cut.
    pub max_log: usize,
}

impl Limits {
    /// The usual bound for a log: 1 MiB.
    pub const MAX_LOG: usize = 1 << 20;
}
