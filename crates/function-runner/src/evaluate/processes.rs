//! Functions as processes of this machine, whoever knows which program they are.

use std::{ffi::OsString, num::NonZeroUsize, path::PathBuf, time::Duration};

use process::{AcquireError, Environment, FairQueue, Folder, Limits, Program, RunError, Scratch, Supervisor};
use wire::{Answer, Failure};

use super::{Call, Deadline, Stage};

/// Bounds of functions as processes.
#[derive(Debug, Clone)]
pub struct ProcessLimits {
    /// How long one function may run; the caller's deadline may be shorter.
    pub timeout: Duration,
    /// The largest output, its log included.
    pub max_output: usize,
    /// Functions running at once.
    pub max_concurrent: NonZeroUsize,
    /// Calls waiting for that.
    pub max_queued: usize,
}

/// Runs functions as processes. Clones share queue and bounds.
#[derive(Debug, Clone)]
pub struct Processes {
    supervisor: Supervisor,
    queue: FairQueue,
    limits: ProcessLimits,
    environment: Environment,
    scratch: Scratch,
}

/// A function as a program.
#[derive(Debug)]
pub(super) struct Task<'a> {
    /// The function's name: the key of fairness.
    pub(super) function: &'a str,
    /// The file to execute.
    pub(super) path: PathBuf,
    /// Its arguments.
    pub(super) arguments: Vec<OsString>,
}

impl Processes {
    /// Functions within these limits; `inherited` are the names of variables they may see of ours.
    pub fn new(
        supervisor: Supervisor,
        scratch: Scratch,
        limits: ProcessLimits,
        inherited: &[String],
    ) -> Self {
        let queue = FairQueue::new(limits.max_concurrent, limits.max_queued);
        let environment = Environment::Clean(clean_environment(inherited).into());
        Self { supervisor, queue, limits, environment, scratch }
    }

    /// The queue, for metrics.
    pub fn queue(&self) -> FairQueue {
        self.queue.clone()
    }

    /// The supervisor of all of them.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Runs a function. What `special` makes a failure of its own of is told so; all else is told in the words
    /// that all processes share.
    pub(super) async fn run(
        &self,
        call: &Call,
        task: Task<'_>,
        special: impl FnOnce(&RunError) -> Option<Failure>,
    ) -> Result<Answer, Failure> {
        call.progress.enter(Stage::Queued);
        let _permit = self
            .queue
            .acquire(task.function, call.deadline)
            .await
            .map_err(|full| refused(call, &full, FASTER))?;
        call.progress.enter(Stage::Running);
        let deadline = Deadline::of(call, self.limits.timeout);
        let limits = Limits {
            deadline: Some(deadline.at),
            max_output: self.limits.max_output,
            max_log: Limits::MAX_LOG,
        };
        let program = Program {
            path: task.path,
            arguments: task.arguments,
            environment: self.environment.clone(),
            folder: Folder::Working(self.scratch.clone()),
        };
        match self.supervisor.run(&program, call.resource_list.clone(), &limits).await {
            Ok(finished) => wire::verdict(&call.asked(), finished).await,
            Err(error) => Err(special(&error).unwrap_or_else(|| {
                wire::run_failure(&call.asked(), &error, |stderr| {
                    if deadline.is_own {
                        too_slow(call, self.limits.timeout, stderr)
                    } else {
                        call.timed_out(stderr)
                    }
                })
            })),
        }
    }
}

/// The failure of a call whose function took longer than it may.
pub(super) fn too_slow(call: &Call, timeout: Duration, stderr: String) -> Failure {
    let cause = format!("the function ran longer than --function-timeout allows ({timeout:?})");
    Failure::TimedOut { image: call.asked(), cause, stderr }
}

/// What makes processes wait less.
const FASTER: &str = "--max-concurrent-executions";

/// The failure of a call that got no turn; `faster` is what would let calls wait less.
pub(super) fn refused(call: &Call, error: &AcquireError, faster: &str) -> Failure {
    match error {
        AcquireError::TimedOut { .. } => call.timed_out(String::new()),
        AcquireError::Full { .. } => Failure::Exhausted {
            image: call.asked(),
            cause: format!("{error}, or raise --max-queued-executions or {faster}"),
            stderr: String::new(),
        },
    }
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
