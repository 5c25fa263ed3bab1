//! From a call to its answer: evaluators in a fixed order, each of which
//! serves the images it knows.

mod chain;
mod exec;

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use bytes::Bytes;
use registry::Reference;
use tokio::time::Instant;
use wire::{Answer, Failure, TraceContext};

pub use chain::{Chain, Outcome};
pub use exec::{ExecEvaluator, ExecLimits};

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
    stage: AtomicU8,
}

/// What a call is waiting for: told when its deadline passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// An evaluator is being chosen.
    Routing,
    /// As many functions as allowed are running already.
    Queued,
    /// The function runs.
    Running,
}

impl Stage {
    fn describe(self) -> &'static str {
        match self {
            Self::Routing => "while choosing how to run the function",
            Self::Queued => "while waiting for other functions to finish (see --max-concurrent-executions)",
            Self::Running => "while the function was running",
        }
    }
}

impl Call {
    /// A call that arrives now.
    pub fn new(
        image: Reference,
        resource_list: Bytes,
        deadline: Option<Instant>,
        trace: TraceContext,
    ) -> Self {
        let stage = AtomicU8::new(Stage::Routing as u8);
        Self { image, resource_list, arrived: Instant::now(), deadline, trace, stage }
    }

    /// The call now waits for something else.
    pub fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// What the call is waiting for.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            1 => Stage::Queued,
            2 => Stage::Running,
            _ => Stage::Routing,
        }
    }

    /// The failure of a call whose deadline passed.
    pub fn timed_out(&self, stderr: String) -> Failure {
        let after = self.arrived.elapsed();
        let cause =
            format!("the deadline of the call passed after {} {}", seconds(after), self.stage().describe());
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
