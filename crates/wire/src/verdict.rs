//! From a finished function process to an answer or a failure, the same for
//! the exec runtime and for the wrapper server.

use bytes::Bytes;
use process::{Finished, Log, RunError};

use crate::Failure;

/// What a successful call returns.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The function's stdout, byte for byte.
    pub resource_list: Bytes,
    /// The function's stderr.
    pub log: Bytes,
    /// What an operator should know about an otherwise successful call.
    pub notes: Vec<Note>,
}

/// Something odd about a successful call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The function exited with 0 but reported an error result.
    ErrorResult,
    /// The output's apiVersion is not one we know.
    UnknownApiVersion(Option<String>),
}

impl std::fmt::Display for Note {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ErrorResult => {
                formatter.write_str("the function exited with 0 but reported an error result")
            }
            Self::UnknownApiVersion(None) => {
                formatter.write_str("the function's ResourceList has no apiVersion")
            }
            Self::UnknownApiVersion(Some(version)) => {
                write!(formatter, "the function's ResourceList has the unknown apiVersion {version:?}")
            }
        }
    }
}

/// Outputs larger than this are looked at beside the threads that serve calls:
/// so much takes at most a millisecond, however odd it is.
const LARGE: usize = 32 * 1024;

/// How much of an output that is no ResourceList is told.
const MOST_OF_OUTPUT: usize = 4 * 1024;

/// Judges a finished process without holding up the thread that serves the call.
pub async fn verdict(image: &str, finished: Finished) -> Result<Answer, Failure> {
    if finished.output.len() < LARGE {
        return judge(image, finished);
    }
    let name = image.to_owned();
    tokio::task::spawn_blocking(move || judge(&name, finished)).await.unwrap_or_else(|error| {
        Err(Failure::Internal { cause: format!("looking at the output of {image}: {error}") })
    })
}

/// Judges a finished process: only the exit code decides between success and
/// failure, but what is not a ResourceList is a failure in any case.
pub fn judge(image: &str, finished: Finished) -> Result<Answer, Failure> {
    let summary = match krm::inspect(&finished.output) {
        Ok(summary) => summary,
        Err(malformed) => {
            return Err(Failure::OutputMalformed {
                image: image.to_owned(),
                exit: finished.exit,
                cause: malformed.to_string(),
                stderr: last_words(&finished),
            });
        }
    };
    if !finished.exit.success() {
        return Err(Failure::FunctionFailed {
            image: image.to_owned(),
            exit: finished.exit.to_string(),
            results: summary.render_results(),
            stderr: text(&finished.log),
            output: Box::new(finished.output),
        });
    }
    let mut notes = Vec::new();
    if summary.has_error_result() {
        notes.push(Note::ErrorResult);
    }
    if !summary.has_known_api_version() {
        notes.push(Note::UnknownApiVersion(summary.api_version));
    }
    Ok(Answer { resource_list: finished.output, log: finished.log.to_bytes(), notes })
}

/// What a function wrote on stderr. One that failed, and has said nothing there, may have said why on stdout.
fn last_words(finished: &Finished) -> String {
    let stderr = text(&finished.log);
    if finished.exit.success() || !stderr.trim().is_empty() {
        return stderr;
    }
    let from = finished.output.len().saturating_sub(MOST_OF_OUTPUT);
    String::from_utf8_lossy(&finished.output[from..]).into_owned()
}

/// A log as text for a message.
fn text(log: &Log) -> String {
    String::from_utf8_lossy(&log.to_bytes()).into_owned()
}

/// The failure of a process that did not run to its end; `timed_out` is what
/// to say when that is because of its deadline.
pub fn run_failure(image: &str, error: &RunError, timed_out: impl FnOnce(String) -> Failure) -> Failure {
    let image = image.to_owned();
    let stderr = error.log().map(text).unwrap_or_default();
    match error {
        RunError::TimedOut { .. } => timed_out(stderr),
        RunError::OutputTooLarge { .. } => {
            let cause = format!("{error}; --max-request-body-size sets that limit");
            Failure::Exhausted { image, cause, stderr }
        }
        RunError::OutOfMemory { limit, .. } => {
            // Where there is no limit, a larger one is of no use.
            let remedy = if limit.is_some() { "limits" } else { "requests" };
            let cause = format!("{error}; give the function more with resources.{remedy}.memory");
            Failure::Exhausted { image, cause, stderr }
        }
        RunError::Start { .. } | RunError::Folder { .. } | RunError::Watch { .. } if error.may_pass() => {
            let remedy = "try again; if it lasts, raise the limits of open files, processes or memory";
            Failure::Exhausted { image, cause: format!("{error}; {remedy}"), stderr }
        }
        RunError::Start { .. } | RunError::Folder { .. } | RunError::Watch { .. } => {
            Failure::NotStarted { image, cause: error.to_string() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_has_too_little_of_may_be_there_soon() {
        let failure = |number: i32| {
            let source = std::io::Error::from_raw_os_error(number);
            let error = RunError::Start { program: "/f".into(), source, hint: String::new() };
            run_failure("x", &error, |_| Failure::Cancelled { image: String::new() })
        };
        // EAGAIN, ENOMEM, ENFILE, EMFILE.
        for number in [11, 12, 23, 24] {
            assert_eq!(failure(number).code(), tonic::Code::ResourceExhausted);
        }
        assert!(failure(24).message().contains("cannot start /f: Too many open files"));
        assert_eq!(failure(2).code(), tonic::Code::Internal);
    }

    #[test]
    fn out_of_memory_is_told_with_its_limit_and_the_remedy() {
        for (limit, expected) in [
            (
                Some(128 << 20),
                "function \"x\" was not answered: it ran out of memory: the kernel killed it, \
                 its container is limited to 128 MiB for all that runs in it; \
                 give the function more with resources.limits.memory",
            ),
            (
                None,
                "function \"x\" was not answered: it ran out of memory: the kernel killed it; \
                 give the function more with resources.requests.memory",
            ),
        ] {
            let error = RunError::OutOfMemory { limit, log: Log::default() };
            let failure = run_failure("x", &error, |_| Failure::Cancelled { image: String::new() });
            assert_eq!(failure.message(), expected);
            assert_eq!(failure.code(), tonic::Code::ResourceExhausted);
        }
    }
}
