//! Why there is no Secret to pull with.

use std::path::PathBuf;

/// Why there is no Secret to pull with. Nothing of the credentials is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullSecretError {
    /// There are no credentials to put in it.
    #[error(
        "the credentials for private registries in {} cannot be used: {problem}; mount a Docker config there, \
         or name another file with --registry-auth-secret-path",
        path.display()
    )]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: FileProblem,
    },
    /// There is one of that name which the cluster cannot pull with, and which is not ours to change.
    #[error(
        "Secret {secret} is of type {kind}, so it is not a pull secret and not ours to change; remove it, or \
         name another with --registry-auth-secret-name"
    )]
    Foreign {
        /// Namespace and name.
        secret: String,
        /// Its type.
        kind: String,
    },
    /// The API server refused, or had trouble.
    #[error("cannot {what} Secret {secret}: {cause}")]
    Api {
        /// What we wanted to do.
        what: &'static str,
        /// Namespace and name.
        secret: String,
        /// The server's words.
        cause: String,
        /// Whether it may work later.
        may_pass: bool,
    },
}

impl PullSecretError {
    /// Whether trying again soon may help.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Api { may_pass: true, .. })
    }
}

/// What is wrong with a file of credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It is not JSON.
    #[error("it is not valid JSON from line {line}, column {column} on")]
    Malformed {
        /// Where.
        line: usize,
        /// Where in the line.
        column: usize,
    },
    /// It is JSON, but not an object.
    #[error("it is not a JSON object")]
    NotAnObject,
}
