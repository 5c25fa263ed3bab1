//! The exec runtime: functions as executables on this machine.

use std::{ffi::OsString, io, num::NonZeroUsize, time::Duration};

use process::{AcquireError, Environment, FairQueue, Folder, Limits, Program, RunError, Scratch, Supervisor};
use tokio::time::Instant;
use wire::{Answer, Failure};

use super::{Call, Evaluator, Stage, head_start};
use crate::routing::{Executable, Routing};

/// Bounds of the exec runtime.
#[derive(Debug, Clone)]
pub struct ExecLimits {
    /// How long one function may run; the caller's deadline may be shorter.
    pub timeout: Duration,
    /// The largest output, its log included.
    pub max_output: usize,
    /// Functions running at once.
    pub max_concurrent: NonZeroUsize,
    /// Calls waiting for that.
    pub max_queued: usize,
}

/// Runs functions as processes.
#[derive(Debug)]
pub struct ExecEvaluator {
    routing: Routing,
    supervisor: Supervisor,
    queue: FairQueue,
    limits: ExecLimits,
    environment: Environment,
    scratch: Scratch,
}

impl ExecEvaluator {
    /// An evaluator for what `routing` names; `inherited` are the names of
    /// variables functions may see of ours.
    pub fn new(
        routing: Routing,
        supervisor: Supervisor,
        scratch: Scratch,
        limits: ExecLimits,
        inherited: &[String],
    ) -> Self {
        let queue = FairQueue::new(limits.max_concurrent, limits.max_queued);
        let environment = Environment::Clean(clean_environment(inherited).into());
        Self { routing, supervisor, queue, limits, environment, scratch }
    }

    /// The queue, for metrics.
    pub fn queue(&self) -> FairQueue {
        self.queue.clone()
    }

    async fn run(&self, call: &Call, executable: &Executable) -> Result<Answer, Failure> {
        call.progress.enter(Stage::Queued);
        let _permit = self
            .queue
            .acquire(&executable.function, call.deadline)
            .await
            .map_err(|full| Self::refused(call, &full))?;
        call.progress.enter(Stage::Running);
        let latest = Instant::now() + self.limits.timeout;
        let own_limit = call.deadline.is_none_or(|deadline| latest < deadline);
        let limits = Limits {
            deadline: Some(if own_limit {
                latest
            } else {
                call.deadline
                    .map_or(latest, |at| at - head_start(at.saturating_duration_since(Instant::now())))
            }),
            max_output: self.limits.max_output,
            max_log: Limits::MAX_LOG,
        };
        let program = Program {
            path: executable.path.clone(),
            arguments: Vec::new(),
            environment: self.environment.clone(),
            folder: Folder::Working(self.scratch.clone()),
        };
        match self.supervisor.run(&program, call.resource_list.clone(), &limits).await {
            Ok(finished) => wire::verdict(&call.asked(), finished).await,
            Err(RunError::Start { source, .. }) if is_absent(&source) => {
                Err(Self::absent(call, executable, &source))
            }
            Err(error) => Err(wire::run_failure(&call.asked(), &error, |stderr| {
                if own_limit { self.too_slow(call, stderr) } else { call.timed_out(stderr) }
            })),
        }
    }

    fn refused(call: &Call, error: &AcquireError) -> Failure {
        match error {
            AcquireError::TimedOut { .. } => call.timed_out(String::new()),
            AcquireError::Full { .. } => Failure::Exhausted {
                image: call.asked(),
                cause: format!("{error}, or raise --max-queued-executions or --max-concurrent-executions"),
                stderr: String::new(),
            },
        }
    }

    fn too_slow(&self, call: &Call, stderr: String) -> Failure {
        let cause =
            format!("the function ran longer than --function-timeout allows ({:?})", self.limits.timeout);
        Failure::TimedOut { image: call.asked(), cause, stderr }
    }

    /// A configured executable that is not there is no failure of the call:
    /// the next runtime may have the image.
    fn absent(call: &Call, executable: &Executable, source: &io::Error) -> Failure {
        let detail = format!(
            "it is configured as the executable {}, which cannot be started: {source}",
            executable.path.display()
        );
        Failure::NotFound { image: call.asked(), detail: Some(detail) }
    }
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
        // The tag is one of the configuration, so it is one.
        match found.tag.and_then(|tag| call.image.with_tag(tag).ok()) {
            Some(image) => self.run(&call.of(image), found.value).await,
            None => self.run(call, found.value).await,
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
    )
}

/// What every function sees: where programs are, its language, and what the
/// operator lets through. Nothing else of ours, least of all secrets.
fn clean_environment(inherited: &[String]) -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH")
        .unwrap_or_else(|| "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into());
    let mut environment = vec![("PATH".into(), path)];
    let language = std::env::var_os("LANG").unwrap_or_else(|| "C.UTF-8".into());
    environment.push(("LANG".into(), language));
    let locale = ["LC_ALL", "LC_CTYPE", "LANGUAGE"].into_iter().map(str::to_owned);
    for name in locale.chain(inherited.iter().cloned()) {
        if let Some(value) = std::env::var_os(&name) {
            environment.retain(|(known, _)| *known != *name);
            environment.push((name.into(), value));
        }
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_is_there_once_and_only_if_it_has_a_value() {
        let inherited = ["PATH", "LANG", "NO_SUCH_VARIABLE_AT_ALL", ""].map(str::to_owned);
        let environment = clean_environment(&inherited);
        let names: Vec<_> = environment.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        for name in ["PATH", "LANG"] {
            assert_eq!(names.iter().filter(|known| **known == name).count(), 1, "{names:?}");
        }
        assert!(!names.contains(&"NO_SUCH_VARIABLE_AT_ALL") && !names.contains(&""), "{names:?}");
        assert!(clean_environment(&[]).iter().all(|(name, _)| {
            ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "LANGUAGE"].iter().any(|known| name == known)
        }));
    }
}
