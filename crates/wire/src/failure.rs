//! Why a call failed, and the one place where that becomes a gRPC status.
//!
//! Porch reads nothing of a failed call but its code and message, so all that
//! a person needs stands in the message. `google.rpc.ErrorInfo` repeats the
//! kind and the image for programs.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use process::Exit;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::{
    Full,
    message::{self, Piece, Room},
};

/// The `domain` of the `ErrorInfo` beside each message.
pub const DOMAIN: &str = "function-runner";

/// When a call that found no memory may try again: by then most of what was in its way is answered.
const RETRY: Duration = Duration::from_secs(1);

/// Why a call has no answer.
#[derive(Debug, Clone)]
pub enum Failure {
    /// No evaluator serves the image. The only failure that lets the next
    /// evaluator of the chain try.
    NotFound {
        /// The image asked for.
        image: String,
        /// What is known beyond "not found", such as a missing executable.
        detail: Option<String>,
    },
    /// The function ran, wrote a ResourceList and failed.
    FunctionFailed {
        /// The image asked for.
        image: String,
        /// How the process ended.
        exit: String,
        /// The structured results, rendered.
        results: String,
        /// The end of what the function wrote on stderr.
        stderr: String,
        /// The ResourceList, byte for byte; no part of the status.
        output: Box<Bytes>,
    },
    /// The function left no ResourceList: it failed before it wrote one, or wrote something else.
    OutputMalformed {
        /// The image asked for.
        image: String,
        /// How the process ended. Of one that failed, this is told, and not what is wrong with the output.
        exit: Exit,
        /// What is wrong with the output.
        cause: String,
        /// The end of what the function wrote on stderr; if it failed and wrote nothing there, of its output.
        stderr: String,
    },
    /// The function could not be started.
    NotStarted {
        /// The image asked for.
        image: String,
        /// Why not.
        cause: String,
    },
    /// The call's deadline, or a limit on the function's time, passed.
    TimedOut {
        /// The image asked for.
        image: String,
        /// Where the time was spent.
        cause: String,
        /// What the function had written on stderr by then.
        stderr: String,
    },
    /// The client went away.
    Cancelled {
        /// The image asked for.
        image: String,
    },
    /// A bound of ours was reached.
    Exhausted {
        /// The image asked for.
        image: String,
        /// Which bound, and what to do.
        cause: String,
        /// What the function had written on stderr by then.
        stderr: String,
    },
    /// A message is larger than the limit.
    MessageTooLarge {
        /// The size of the message.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Calls hold as many bytes as they may.
    MemoryFull {
        /// What was asked for, and what there is.
        full: Full,
    },
    /// The request is not one of gRPC, or breaks its rules.
    InvalidRequest {
        /// What is wrong with it.
        cause: String,
    },
    /// The image reference is empty or malformed.
    InvalidImage {
        /// What is wrong with it, naming it.
        cause: String,
    },
    /// The registry does not have the image.
    ImageMissing {
        /// The image asked for.
        image: String,
        /// The registry's words.
        cause: String,
    },
    /// The registry, or our policy, refuses the image.
    ImageDenied {
        /// The image asked for.
        image: String,
        /// The registry's words.
        cause: String,
    },
    /// Something must be put right first: an image that cannot be used, a
    /// template that is wrong, a pod that the cluster refuses.
    Unusable {
        /// What, why, and what to do.
        cause: String,
    },
    /// There is no pod to run the function in; the code is that of the cause.
    NoPod {
        /// The image asked for.
        image: String,
        /// Why there is none.
        cause: Box<Failure>,
    },
    /// The pod's wrapper server answered with a failure; its code is kept.
    Pod {
        /// The image asked for.
        image: String,
        /// The wrapper's answer.
        status: Box<Status>,
    },
    /// Trouble around us that may pass.
    Unavailable {
        /// What is the matter.
        cause: String,
    },
    /// A fault of our own.
    Internal {
        /// What happened.
        cause: String,
    },
}

impl Failure {
    /// The gRPC code a caller sees.
    pub fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::NotFound,
            Self::FunctionFailed { .. }
            | Self::OutputMalformed { .. }
            | Self::NotStarted { .. }
            | Self::Internal { .. } => Code::Internal,
            Self::TimedOut { .. } => Code::DeadlineExceeded,
            Self::Cancelled { .. } => Code::Cancelled,
            Self::Exhausted { .. } | Self::MessageTooLarge { .. } | Self::MemoryFull { .. } => {
                Code::ResourceExhausted
            }
            Self::InvalidImage { .. } | Self::InvalidRequest { .. } => Code::InvalidArgument,
            Self::ImageMissing { .. } | Self::Unusable { .. } => Code::FailedPrecondition,
            Self::ImageDenied { .. } => Code::PermissionDenied,
            Self::Unavailable { .. } => Code::Unavailable,
            Self::NoPod { cause, .. } => cause.code(),
            Self::Pod { status, .. } => status.code(),
        }
    }

    /// Whether whoever runs the service must look after it: neither function nor caller can help it.
    pub fn is_ours(&self) -> bool {
        match self {
            Self::NotStarted { .. } | Self::Unusable { .. } | Self::Internal { .. } => true,
            Self::NoPod { cause, .. } => cause.is_ours(),
            // A wrapper of ours says which of its failures it is; of others only the code is known.
            Self::Pod { status, .. } => status
                .get_details_error_info()
                .is_some_and(|told| ["FUNCTION_NOT_STARTED", "INTERNAL"].contains(&told.reason.as_str())),
            _ => false,
        }
    }

    /// The kind, as a word for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "FUNCTION_NOT_FOUND",
            Self::FunctionFailed { .. } => "FUNCTION_FAILED",
            Self::OutputMalformed { exit, .. } if !exit.success() => "FUNCTION_FAILED",
            Self::OutputMalformed { .. } => "OUTPUT_NOT_A_RESOURCE_LIST",
            Self::NotStarted { .. } => "FUNCTION_NOT_STARTED",
            Self::TimedOut { .. } => "TIMED_OUT",
            Self::Cancelled { .. } => "CANCELLED",
            Self::Exhausted { .. } => "LIMIT_REACHED",
            Self::MessageTooLarge { .. } => "MESSAGE_TOO_LARGE",
            Self::MemoryFull { .. } => "MEMORY_LIMIT_REACHED",
            Self::InvalidRequest { .. } => "REQUEST_INVALID",
            Self::InvalidImage { .. } => "IMAGE_REFERENCE_INVALID",
            Self::ImageMissing { .. } => "IMAGE_MISSING",
            Self::ImageDenied { .. } => "IMAGE_DENIED",
            Self::Unusable { .. } => "NEEDS_FIXING",
            Self::NoPod { .. } => "NO_POD",
            Self::Pod { .. } => "POD_FAILED",
            Self::Unavailable { .. } => "UNAVAILABLE",
            Self::Internal { .. } => "INTERNAL",
        }
    }

    /// The message for people, bounded so that it fits its header.
    pub fn message(&self) -> String {
        message::compose(&self.pieces(), Room::USUAL.message)
    }

    /// What a caller gets who has so much room for it. The message goes first: there are details where they fit
    /// beside it.
    pub fn into_status(self, room: Room) -> Status {
        let message = message::compose(&self.pieces(), room.message);
        let status = Status::with_error_details(self.code(), &message, self.details());
        let details = status.details().len().div_ceil(3) * 4;
        if message::encoded_len(&message) + details <= room.total {
            status
        } else {
            Status::new(self.code(), message)
        }
    }

    /// What programs can read: the kind, the image, and when to try again.
    fn details(&self) -> ErrorDetails {
        // A wrapper server of ours knows best what went wrong in its pod.
        let (told, mut retry) = match self {
            Self::Pod { status, .. } => (
                status.get_details_error_info().filter(|info| info.domain == DOMAIN),
                status.get_details_retry_info().and_then(|info| info.retry_delay),
            ),
            _ => (None, None),
        };
        let reason = told.as_ref().map_or_else(|| self.reason().to_owned(), |info| info.reason.clone());
        let mut metadata = told.map_or_else(HashMap::new, |info| info.metadata);
        if let Some(image) = self.image() {
            metadata.insert("image".to_owned(), message::shown_image(image));
        }
        if let Some(exit) = self.exit() {
            metadata.insert("exit".to_owned(), exit);
        }
        if let Self::MemoryFull { full } = self {
            retry = full.may_pass().then_some(RETRY);
        }
        let mut details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
        if let Some(delay) = retry {
            details.set_retry_info(Some(delay));
        }
        details
    }

    /// What happened without the function's own words, which may quote resources: fit for a log.
    pub fn outline(&self) -> String {
        match self {
            Self::FunctionFailed { exit, .. } => format!("the function failed: {exit}"),
            Self::OutputMalformed { exit, .. } if !exit.success() => format!("the function failed: {exit}"),
            Self::OutputMalformed { cause, .. }
            | Self::TimedOut { cause, .. }
            | Self::Exhausted { cause, .. } => cause.clone(),
            Self::NoPod { cause, .. } => format!("there is no pod: {}", cause.outline()),
            Self::Pod { status, .. } => format!("the pod answered {:?}", status.code()),
            _ => self.message(),
        }
    }

    fn image(&self) -> Option<&str> {
        match self {
            Self::NotFound { image, .. }
            | Self::FunctionFailed { image, .. }
            | Self::OutputMalformed { image, .. }
            | Self::NotStarted { image, .. }
            | Self::TimedOut { image, .. }
            | Self::Cancelled { image }
            | Self::Exhausted { image, .. }
            | Self::ImageMissing { image, .. }
            | Self::ImageDenied { image, .. }
            | Self::NoPod { image, .. }
            | Self::Pod { image, .. } => Some(image),
            Self::MessageTooLarge { .. }
            | Self::MemoryFull { .. }
            | Self::InvalidRequest { .. }
            | Self::InvalidImage { .. }
            | Self::Unusable { .. }
            | Self::Unavailable { .. }
            | Self::Internal { .. } => None,
        }
    }

    fn exit(&self) -> Option<String> {
        match self {
            Self::FunctionFailed { exit, .. } => Some(exit.clone()),
            Self::OutputMalformed { exit, .. } => Some(exit.to_string()),
            _ => None,
        }
    }

    fn pieces(&self) -> Vec<Piece<'_>> {
        use Piece::{End, Fixed, Middle, Start};
        let shown = self.image().map(message::shown_image).unwrap_or_default();
        match self {
            Self::NotFound { detail, .. } => {
                let mut pieces = vec![Fixed(format!("function {shown:?} not found"))];
                if let Some(detail) = detail {
                    pieces.extend([Fixed(": ".into()), Start(detail)]);
                }
                pieces
            }
            Self::FunctionFailed { exit, results, stderr, .. } => vec![
                Fixed(format!("failed to evaluate function {shown:?} with structured results: ")),
                Start(results),
                Fixed(" and stderr: ".into()),
                End(or_exit(stderr, results, exit)),
            ],
            Self::OutputMalformed { exit, stderr, .. } if !exit.success() => vec![
                Fixed(format!("Failed to execute function {shown:?}: {exit} (")),
                End(stderr),
                Fixed(")".into()),
            ],
            Self::OutputMalformed { stderr, cause, .. } => vec![
                Fixed(format!("failed to parse the output of function {shown:?} with stderr '")),
                End(stderr),
                Fixed("': ".into()),
                Start(cause),
            ],
            Self::NotStarted { cause, .. } => {
                vec![
                    Fixed(format!("Failed to execute function {shown:?}: ")),
                    Start(cause),
                    Fixed(" ()".into()),
                ]
            }
            Self::TimedOut { cause, stderr, .. } => {
                with_stderr(Fixed(format!("function evaluation timed out for {shown}: ")), cause, stderr)
            }
            Self::Cancelled { .. } => {
                vec![Fixed(format!("evaluation of {shown} was cancelled by the client"))]
            }
            Self::Exhausted { cause, stderr, .. } => {
                with_stderr(Fixed(format!("function {shown:?} was not answered: ")), cause, stderr)
            }
            Self::MessageTooLarge { size, limit } => vec![Fixed(format!(
                "the message is {size} bytes, more than the limit of {limit} bytes set by --max-request-body-size; \
                 raise that flag on the function runner and the flag of the same name on its client"
            ))],
            Self::ImageMissing { cause, .. } => {
                vec![Fixed(format!("image {shown:?} is not in its registry: ")), Start(cause)]
            }
            Self::ImageDenied { cause, .. } => {
                vec![Fixed(format!("image {shown:?} is refused: ")), Start(cause)]
            }
            Self::NoPod { cause, .. } => {
                let mut pieces =
                    vec![Fixed(format!("unable to get the grpc client to the pod for {shown}: "))];
                pieces.extend(cause.pieces());
                pieces
            }
            Self::Pod { status, .. } => {
                vec![
                    Fixed(format!("unable to evaluate {shown} with pod evaluator: ")),
                    Middle(status.message()),
                ]
            }
            Self::MemoryFull { full: full @ Full { wanted, .. } } => vec![Fixed(if full.may_pass() {
                format!(
                    "the call was refused: {full}; try again in {} s, or raise --max-memory or the container's \
                     memory limit",
                    RETRY.as_secs()
                )
            } else {
                format!(
                    "the call was refused: it needs {wanted} bytes more, and no caller may hold more than {}; \
                     raise --max-memory or the container's memory limit",
                    full.most()
                )
            })],
            Self::InvalidRequest { cause }
            | Self::InvalidImage { cause }
            | Self::Unusable { cause }
            | Self::Unavailable { cause }
            | Self::Internal { cause } => vec![Start(cause)],
        }
    }
}

/// A function that failed without a word is shown by its exit status.
fn or_exit<'a>(stderr: &'a str, results: &str, exit: &'a str) -> &'a str {
    if stderr.trim().is_empty() && results.is_empty() { exit } else { stderr }
}

fn with_stderr<'a>(prefix: Piece<'a>, cause: &'a str, stderr: &'a str) -> Vec<Piece<'a>> {
    let mut pieces = vec![prefix, Piece::Start(cause)];
    if !stderr.trim().is_empty() {
        pieces.extend([Piece::Fixed(STDERR.into()), Piece::End(stderr)]);
    }
    pieces
}

/// What comes between the cause and what the function wrote.
const STDERR: &str = "; stderr so far: ";

/// What the function wrote on stderr by the message of a failure, which may come from another process of ours.
pub fn stderr_so_far(message: &str) -> &str {
    message.split_once(STDERR).map_or("", |(_, stderr)| stderr)
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message())
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        failure.into_status(Room::USUAL)
    }
}
