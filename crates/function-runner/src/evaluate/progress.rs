//! Where a call is: told in its log line, and in its error when its deadline
//! passes. Shared, because a cancelled call is dropped and cannot tell itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a call is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// An evaluator is being chosen.
    Routing,
    /// The image's registry is asked.
    Resolving,
    /// There is no pod for it yet.
    WaitingForPod,
    /// As many functions as allowed are running already.
    Queued,
    /// As many built-in functions are running as there are processor cores.
    WaitingForCore,
    /// The function runs.
    Running,
}

impl Stage {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Routing => "while choosing how to run the function",
            Self::Resolving => "while asking the registry about the image",
            Self::WaitingForPod => "while waiting for a pod",
            Self::Queued => "while waiting for other functions to finish (see --max-concurrent-executions)",
            Self::WaitingForCore => {
                "while waiting for a processor core: other built-in functions have them all"
            }
            Self::Running => "while the function was running",
        }
    }
}

/// Who has a call, and what it waits for there.
#[derive(Debug, Clone)]
pub struct Progress {
    state: Arc<Mutex<(&'static str, Stage)>>,
}

/// The evaluator of a call that none has.
const NOBODY: &str = "none";

impl Default for Progress {
    fn default() -> Self {
        Self { state: Arc::new(Mutex::new((NOBODY, Stage::Routing))) }
    }
}

impl Progress {
    /// The call is now with this evaluator.
    pub(super) fn ask(&self, evaluator: &'static str) {
        *self.state() = (evaluator, Stage::Routing);
    }

    /// No evaluator knows the image.
    pub(super) fn nobody(&self) {
        self.ask(NOBODY);
    }

    /// The call now waits for something else.
    pub(super) fn enter(&self, stage: Stage) {
        self.state().1 = stage;
    }

    /// What the call waits for.
    pub fn stage(&self) -> Stage {
        self.state().1
    }

    /// The evaluator that has the call, or had it last.
    pub fn evaluator(&self) -> &'static str {
        self.state().0
    }

    fn state(&self) -> MutexGuard<'_, (&'static str, Stage)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
