//! The exec runtime: functions as executables on this machine.

use std::io;

use process::RunError;
use wire::{Answer, Failure};

use super::{Call, Evaluator, Processes, processes::Task};
use crate::routing::{Executable, Routing};

/// Runs functions as executables.
#[derive(Debug)]
pub struct ExecEvaluator {
    routing: Routing,
    processes: Processes,
}

impl ExecEvaluator {
    /// An evaluator for what `routing` names.
    pub fn new(routing: Routing, processes: Processes) -> Self {
        Self { routing, processes }
    }
}

/// A configured executable that is not there is no failure of the call: the next runtime may have the image.
fn absent(call: &Call, executable: &Executable, source: &io::Error, hint: &str) -> Failure {
    let detail = format!(
        "it is configured as the executable {}, which cannot be started: {source}{hint}",
        executable.path.display()
    );
    Failure::NotFound { image: call.asked(), detail: Some(detail) }
}

#[tonic::async_trait]
impl Evaluator for ExecEvaluator {
    fn name(&self) -> &'static str {
        "exec"
    }

    async fn evaluate(&self, call: &Call) -> Result<Answer, Failure> {
        let index = self.routing.index();
        let Some(found) = index.executable(&call.image, call.constraint.as_ref()) else {
            return Err(Failure::NotFound { image: call.asked(), detail: None });
        };
        let call = call.meaning(found.tag);
        let executable = found.value;
        let task =
            Task { function: &executable.function, path: executable.path.clone(), arguments: Vec::new() };
        let special = |error: &RunError| match error {
            RunError::Start { source, hint, .. } if is_absent(source) => {
                Some(absent(&call, executable, source, hint))
            }
            _ => None,
        };
        self.processes.run(&call, task, special).await
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
    )
}
