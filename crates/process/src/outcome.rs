//! How a call ended.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use crate::{Log, obstacle};

/// A function that ran to its end, successfully or not.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its standard output, byte for byte.
    pub output: Bytes,
    /// The end of its standard error.
    pub log: Log,
    /// How the process ended.
    pub exit: Exit,
    /// The time from the call's begin to its end.
    pub elapsed: Duration,
}

/// How a process ended. Displayed in the words of Go: `exit status 3`, `signal: killed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// Whether it returned zero.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    /// Whether it was killed, or is a shell that tells so of its last command.
    pub(crate) fn killed(self) -> bool {
        matches!(self, Self::Signal(9) | Self::Code(137))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(formatter, "exit status {code}"),
            Self::Signal(number) => match signal_name(number) {
                Some(name) => write!(formatter, "signal: {name}"),
                None => write!(formatter, "signal: signal {number}"),
            },
        }
    }
}

/// The names Go gives to signals on Linux; people search for these words.
fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "hangup",
        2 => "interrupt",
        3 => "quit",
        4 => "illegal instruction",
        5 => "trace/breakpoint trap",
        6 => "aborted",
        7 => "bus error",
        8 => "floating point exception",
        9 => "killed",
        10 => "user defined signal 1",
        11 => "segmentation fault",
        12 => "user defined signal 2",
        13 => "broken pipe",
        14 => "alarm clock",
        15 => "terminated",
        _ => return None,
    })
}

/// Why a function did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program could not be started.
    #[error("cannot start {}: {source}{hint}", program.display())]
    Start {
        /// The program's file.
        program: PathBuf,
        /// What the operating system said.
        source: io::Error,
        /// What is seen to be wrong with the file, or what to look at.
        hint: String,
    },
    /// The private folder could not be made.
    #[error(
        "cannot make a private folder in {}: {source}; \
         make it writable, or free space and inodes there",
        path.display()
    )]
    Folder {
        /// Where.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The started process could not be followed: its pipes or its exit status failed. It has been killed.
    #[error("lost track of the running {}: {source}; it has been killed, try again", program.display())]
    Watch {
        /// The program's file.
        program: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The deadline passed first. Everything the function started has been killed.
    #[error("the function had not ended after {after:?}, when its deadline passed, and was killed")]
    TimedOut {
        /// How long it had run.
        after: Duration,
        /// What it had written to standard error until then.
        log: Log,
    },
    /// Standard output went beyond the limit. Everything the function started has been killed.
    #[error("the function wrote more than the allowed {limit} bytes to standard output and was killed")]
    OutputTooLarge {
        /// [`Limits::max_output`](crate::Limits::max_output).
        limit: usize,
        /// What it had written to standard error until then.
        log: Log,
    },
    /// The kernel killed it because its control group, or the machine, had no memory left.
    #[error("it ran out of memory: the kernel killed it{}", limit_in_words(*limit))]
    OutOfMemory {
        /// What the group, this process and all functions together, may use at most, in bytes; if anything.
        limit: Option<u64>,
        /// What it had written to standard error until then.
        log: Log,
    },
}

impl RunError {
    /// The failed start of a program. Looks at its file.
    pub(crate) fn start(program: &Path, source: io::Error) -> Self {
        Self::Start { program: program.to_owned(), hint: hint(program, &source), source }
    }

    /// Whether the system had too little of something in that moment: descriptors, processes, memory.
    pub fn may_pass(&self) -> bool {
        use rustix::io::Errno;
        let (Self::Start { source, .. } | Self::Folder { source, .. } | Self::Watch { source, .. }) = self
        else {
            return false;
        };
        [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM]
            .iter()
            .any(|errno| source.raw_os_error() == Some(errno.raw_os_error()))
    }

    /// The log of a function that had started.
    pub fn log(&self) -> Option<&Log> {
        match self {
            Self::TimedOut { log, .. } | Self::OutputTooLarge { log, .. } | Self::OutOfMemory { log, .. } => {
                Some(log)
            }
            Self::Start { .. } | Self::Folder { .. } | Self::Watch { .. } => None,
        }
    }
}

fn limit_in_words(limit: Option<u64>) -> String {
    limit.map_or_else(String::new, |bytes| {
        format!(", its container is limited to {} MiB for all that runs in it", bytes >> 20)
    })
}

/// What the system says is about the file where it is one of these.
fn hint(program: &Path, source: &io::Error) -> String {
    let is_bare = program.components().count() == 1 && program.is_relative();
    let seen = || (!is_bare).then(|| obstacle(program)).flatten().map(|seen| format!("; the file {seen}"));
    let otherwise = match source.kind() {
        io::ErrorKind::NotFound if is_bare => "; there is no such program in PATH",
        io::ErrorKind::NotFound => "; check that the file, and the interpreter it names, exist",
        io::ErrorKind::PermissionDenied => {
            "; check that this user may execute it, and that its file system is not mounted noexec"
        }
        io::ErrorKind::ArgumentListTooLong => {
            return "; its arguments and environment are too large".to_owned();
        }
        _ if source.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            "; it must be a program for this machine, or a script that starts with #!"
        }
        _ => return String::new(),
    };
    seen().unwrap_or_else(|| otherwise.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn exit_reads_as_go_writes_it() {
        assert_eq!(Exit::Code(3).to_string(), "exit status 3");
        assert_eq!(Exit::Signal(9).to_string(), "signal: killed");
        assert_eq!(Exit::Signal(11).to_string(), "signal: segmentation fault");
        assert_eq!(Exit::Signal(40).to_string(), "signal: signal 40");
        assert!(Exit::Signal(9).killed() && Exit::Code(137).killed());
        assert!(!Exit::Signal(15).killed() && !Exit::Code(9).killed());
        assert!(Exit::Code(0).success() && !Exit::Code(1).success() && !Exit::Signal(9).success());
    }
}
