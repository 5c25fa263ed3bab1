//! From a call to its answer: evaluators in a fixed order, each of which
//! serves the images it knows.

mod chain;
mod exec;
mod progress;

use std::time::Duration;

use bytes::Bytes;
use registry::Reference;
use tokio::time::Instant;
use wire::{Answer, Failure, TraceContext};

pub use chain::Chain;
pub use exec::{ExecEvaluator, ExecLimits};
pub use progress::{Progress, Stage};

/// One call of a function.
#[derive(Debug)]
pub struct Call {
    /// The function's image, default prefix and tag applied.
    pub image: Reference,
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
}

impl Call {
    /// A call that arrives now.
    pub fn new(
        image: Reference,
        resource_list: Bytes,
        deadline: Option<Instant>,
        trace: TraceContext,
        progress: Progress,
    ) -> Self {
        Self { image, resource_list, arrived: Instant::now(), deadline, trace, progress }
    }

    /// The failure of a call whose deadline passed.
    pub fn timed_out(&self, stderr: String) -> Failure {
        let after = self.arrived.elapsed();
        let cause = format!(
            "the deadline of the call passed after {} {}",
            seconds(after),
            self.progress.stage().describe()
        );
        Failure::TimedOut { image: self.image.as_given().to_owned(), cause, stderr }
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
