//! What can go wrong between a login and its file.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why the login for an image could not be found out. Names files, keys and programs, never what is in them.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KeychainError {
    /// The file is there and cannot be read.
    #[error(
        "cannot read the Docker config file {}: {source}; make it a regular file that this user may read",
        file.display()
    )]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// The file is not what it should be. The content is not shown, as it may be a password.
    #[error(
        "the Docker config file {} is malformed: {problem}; it must look like \
         {{\"auths\": {{\"registry.example.com\": {{\"auth\": \"BASE64 OF USER:PASSWORD\"}}}}}}",
        file.display()
    )]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: Malformed,
    },
    /// The entry for the image is not what it should be. Other entries may be fine.
    #[error("the entry {entry:?} of the Docker config file {} cannot be used: {problem}", file.display())]
    Entry {
        /// The file.
        file: PathBuf,
        /// The key of the entry.
        entry: String,
        /// What is wrong.
        problem: BrokenEntry,
    },
    /// The helper program gave no answer.
    #[error(
        "the credential helper {program}, named in the Docker config file {}, gave no login for {server}: {problem}",
        file.display()
    )]
    Helper {
        /// The file.
        file: PathBuf,
        /// The program's name.
        program: String,
        /// Which registry's login was asked for.
        server: String,
        /// Why.
        problem: HelperProblem,
    },
}

impl KeychainError {
    /// Whether a helper program is not installed, and nothing else is wrong.
    pub fn is_missing_helper(&self) -> bool {
        matches!(self, Self::Helper { problem: HelperProblem::Missing, .. })
    }
}

/// What can be wrong with a file as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// More than any such file has.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// Not JSON.
    #[error("it is not JSON at line {line}, column {column}")]
    Json {
        /// From 1.
        line: usize,
        /// From 1; 0 at a line's end.
        column: usize,
    },
    /// JSON of another shape.
    #[error("{0} must be {1}")]
    Shape(&'static str, &'static str),
}

/// What can be wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenEntry {
    /// Not an object.
    #[error("it must be an object with \"auth\", or with \"username\" and \"password\"")]
    Shape,
    /// A field that is not a text.
    #[error("{0:?} must be a string")]
    Field(&'static str),
    /// The field `auth` cannot be read.
    #[error("\"auth\" must be the base64 of USER:PASSWORD in UTF-8")]
    Auth,
    /// The name of a helper that no program can have.
    #[error(
        "it names no helper program: the name goes after \"docker-credential-\" and has letters, digits, \".\", \
         \"_\" and \"-\" only"
    )]
    HelperName,
}

/// What can be wrong with a helper program. Its output is never repeated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HelperProblem {
    /// No such program.
    #[error("there is no such program in PATH; install it, or remove it from the file")]
    Missing,
    /// It could not be started, fed or watched.
    #[error("it cannot be run: {0}")]
    Run(Arc<io::Error>),
    /// It took too long.
    #[error("it did not finish within {0} seconds; run it by hand to see what it waits for")]
    TimedOut(u64),
    /// It wrote more than a login needs.
    #[error("it wrote more than {0} bytes")]
    TooMuch(usize),
    /// It failed.
    #[error("it failed ({0}); run it by hand to see why")]
    Failed(String),
    /// It wrote something else than a login.
    #[error("its output is not JSON with \"Username\" and \"Secret\"")]
    Garbage,
}
