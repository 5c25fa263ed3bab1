//! From a call to its answer: evaluators in a fixed order, each of which
//! serves the images it knows.

mod asked;
mod builtin;
mod chain;
mod exec;
mod monitor;
mod pod;
mod processes;
mod progress;

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use registry::{Constraint, Reference};
use tokio::time::Instant;
use wire::{Answer, Failure, Memory, TraceContext};

pub use asked::Asked;
pub use builtin::{BuiltinEvaluator, BuiltinLimits};
pub use chain::Chain;
pub use exec::ExecEvaluator;
pub use pod::PodEvaluator;
pub use processes::{ProcessLimits, Processes};
pub use progress::{Progress, Stage};

/// One call of a function.
#[derive(Debug, Clone)]
pub struct Call {
    /// The function's image, default prefix and tag applied.
    pub image: Reference,
    /// Which tag of the image is meant, where it is not simply its own; see [`Asked`].
    pub constraint: Option<Constraint>,
    /// The ResourceList exactly as received.
    pub resource_list: Bytes,
    /// When the call arrived.
    pub arrived: Instant,
    /// When it must be answered.
    pub deadline: Option<Instant>,
    /// The trace it belongs to.
    pub trace: TraceContext,
    /// Where it is.
    pub progress: Progress,
    /// What its caller may have of the memory of the service.
    pub memory: Memory,
}

impl Call {
    /// A call that arrives now.
    pub fn new(
        asked: Asked,
        resource_list: Bytes,
        deadline: Option<Instant>,
        trace: TraceContext,
        progress: Progress,
    ) -> Self {
        let Asked { image, constraint } = asked;
        let (arrived, memory) = (Instant::now(), Memory::unlimited());
        Self { image, constraint, resource_list, arrived, deadline, trace, progress, memory }
    }

    /// The same call, of the tag that its constraint was found to mean, if it has one.
    fn meaning(&self, tag: Option<&str>) -> Cow<'_, Self> {
        // The tag is one of the configuration, so it is one.
        match tag.and_then(|tag| self.image.with_tag(tag).ok()) {
            Some(image) => Cow::Owned(Self { image, constraint: None, ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }

    /// What is asked for, as told to people.
    pub fn asked(&self) -> String {
        Asked { image: self.image.clone(), constraint: self.constraint.clone() }.to_string()
    }

    /// The failure of a call whose deadline passed.
    pub fn timed_out(&self, stderr: String) -> Failure {
        let after = self.arrived.elapsed();
        let cause = format!(
            "the deadline of the call passed after {} {}",
            seconds(after),
            self.progress.stage().describe()
        );
        Failure::TimedOut { image: self.asked(), cause, stderr }
    }
}

/// How long before the call its function is given up: it takes a moment to end
/// it, and what it wrote on stderr is to be told in time.
fn head_start(remaining: Duration) -> Duration {
    (remaining / 20).clamp(Duration::from_millis(2), Duration::from_millis(50))
}

/// When a function is ended.
struct Deadline {
    at: Instant,
    /// Because of a limit of ours, and not of the caller's deadline.
    is_own: bool,
}

impl Deadline {
    /// That of a function that starts now and may take so long.
    fn of(call: &Call, timeout: Duration) -> Self {
        let now = Instant::now();
        let latest = now + timeout;
        match call.deadline.filter(|&deadline| deadline <= latest) {
            Some(deadline) => {
                let remaining = deadline.saturating_duration_since(now);
                Self { at: deadline - head_start(remaining), is_own: false }
            }
            None => Self { at: latest, is_own: true },
        }
    }
}

/// A time span for people: `2.95s`.
pub(crate) fn seconds(span: Duration) -> String {
    format!("{:.2}s", span.as_secs_f64())
}

/// Runs the functions it knows.
#[tonic::async_trait]
pub trait Evaluator: Send + Sync + 'static {
    /// The name in logs and metrics.
    fn name(&self) -> &'static str;

    /// Answers the call, or says [`Failure::NotFound`] so that the next
    /// evaluator can. Dropping the future cancels the call.
    async fn evaluate(&self, call: &Call) -> Result<Answer, Failure>;
}
