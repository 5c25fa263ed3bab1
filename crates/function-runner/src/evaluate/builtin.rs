//! Functions that are part of this program.

use std::{
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;
use functions::{Function, Outcome};
use process::{Exit, Finished, Limits, Log, RunError};
use tokio::sync::Semaphore;
use wire::{Answer, Failure};

use super::{Call, Evaluator, Processes, Stage, processes::Task};
use crate::{
    builtin::{AS_FUNCTION, Builtin, Offered},
    routing::{BuiltinFunction, Routing, Table, every_builtin},
};

/// Larger inputs are worked on beside the threads that serve calls; so much takes 0.3 ms, or 2 ms where the YAML is
/// odd.
const SMALL: usize = 64 * 1024;

/// This program itself, also where its file has been replaced since.
const OURSELVES: &str = "/proc/self/exe";

/// Runs the functions that are part of this program.
#[derive(Debug)]
pub struct BuiltinEvaluator {
    routing: Routing,
    /// What would be there if all were offered.
    every: Table<Arc<BuiltinFunction>>,
    cores: Arc<Semaphore>,
    max_output: usize,
    processes: Option<Processes>,
}

impl BuiltinEvaluator {
    /// An evaluator for what `routing` names, on so many cores at once. Without `processes`, those functions
    /// are left to others that need one.
    pub fn new(
        routing: Routing,
        cores: NonZeroUsize,
        max_output: usize,
        processes: Option<Processes>,
    ) -> Self {
        let every = every_builtin(&routing.terms().default_prefix);
        let cores = Arc::new(Semaphore::new(cores.get().min(Semaphore::MAX_PERMITS)));
        Self { routing, every, cores, max_output, processes }
    }

    /// Runs a function in this process.
    async fn run(&self, call: &Call, function: &'static Function) -> Result<Answer, Failure> {
        call.progress.enter(Stage::WaitingForCore);
        let broken = || Failure::Internal {
            cause: format!(
                "the built-in function {} broke down on a call of {}",
                function.name,
                call.asked()
            ),
        };
        let core = self.cores.clone().acquire_owned().await.map_err(|_| broken())?;
        call.progress.enter(Stage::Running);
        let begun = Instant::now();
        let input = call.resource_list.clone();
        let is_small = input.len() <= SMALL;
        // The core is taken until the function ends, also where nobody waits for it any more.
        let run = move || {
            let _core = core;
            function.run(&input)
        };
        let outcome = if is_small {
            catch_unwind(AssertUnwindSafe(run)).ok()
        } else {
            tokio::task::spawn_blocking(run).await.ok()
        };
        match finished(outcome.ok_or_else(broken)?, begun, self.max_output) {
            Ok(finished) => wire::verdict(&call.asked(), finished).await,
            Err(error) => Err(wire::run_failure(&call.asked(), &error, |stderr| call.timed_out(stderr))),
        }
    }

    /// Runs a function in a child of this process that is the function.
    async fn start(&self, call: &Call, function: Builtin) -> Result<Answer, Failure> {
        let name = function.name();
        let Some(processes) = &self.processes else {
            let detail =
                format!("the built-in function {name} needs a process, and none can be started here");
            return Err(Failure::NotFound { image: call.asked(), detail: Some(detail) });
        };
        let task = Task {
            function: name,
            path: PathBuf::from(OURSELVES),
            arguments: vec![AS_FUNCTION.into(), name.into()],
        };
        let special = |error: &RunError| match error {
            RunError::Start { source, .. } | RunError::Watch { source, .. } => Some(Failure::NotStarted {
                image: call.asked(),
                cause: format!("the process of the built-in function {name} failed: {source}; try again"),
            }),
            _ => None,
        };
        processes.run(call, task, special).await
    }

    /// What to tell of a function that is there but not offered.
    fn hint(&self, call: &Call) -> Option<String> {
        let found = self.every.find(&call.image, call.constraint.as_ref())?;
        (self.routing.terms().builtins == Offered::Configured).then(|| {
            format!(
                "the built-in function {} is offered for images that the goExecutor of a FunctionConfig lists, or \
                 for this one too with --builtin-functions=all",
                found.value.function.name()
            )
        })
    }
}

/// How the process of the function would have ended.
fn finished(outcome: Outcome, begun: Instant, max_output: usize) -> Result<Finished, RunError> {
    let Outcome { output, stderr, succeeded, results: _ } = outcome;
    let mut log = Log::from(Bytes::from(stderr));
    let Some(room) = max_output.checked_sub(output.len()) else {
        log.shrink(Limits::MAX_LOG);
        return Err(RunError::OutputTooLarge { limit: max_output, log });
    };
    log.shrink(Limits::MAX_LOG.min(room));
    let exit = Exit::Code(i32::from(!succeeded));
    Ok(Finished { output: output.into(), log, exit, elapsed: begun.elapsed() })
}

#[tonic::async_trait]
impl Evaluator for BuiltinEvaluator {
    fn name(&self) -> &'static str {
        "builtin"
    }

    async fn evaluate(&self, call: &Call) -> Result<Answer, Failure> {
        let index = self.routing.index();
        let Some(found) = index.builtin(&call.image, call.constraint.as_ref()) else {
            return Err(Failure::NotFound { image: call.asked(), detail: self.hint(call) });
        };
        let call = call.meaning(found.tag);
        match found.value.function {
            Builtin::Pure(function) => self.run(&call, function).await,
            function @ Builtin::Starlark => self.start(&call, function).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use registry::Reference;
    use tonic::Code;
    use wire::TraceContext;

    use super::*;
    use crate::{
        evaluate::{Chain, Progress},
        routing::Terms,
    };

    fn evaluator(offered: Offered) -> BuiltinEvaluator {
        let routing = Routing::new(Terms {
            builtins: offered,
            functions: None,
            pods: false,
            default_prefix: "example.com".to_owned(),
            check: |_: &Path| Ok(()),
        });
        BuiltinEvaluator::new(routing, NonZeroUsize::MIN, 1000, None)
    }

    fn call(image: &str, deadline: Option<Duration>) -> Call {
        let image = Reference::parse_with_prefix(image, "example.com").unwrap();
        let deadline = deadline.map(|after| tokio::time::Instant::now() + after);
        Call::new(image.into(), Bytes::new(), deadline, TraceContext::begin(), Progress::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_a_core_no_longer_than_its_deadline() {
        let evaluator = evaluator(Offered::All);
        let taken = evaluator.cores.clone().acquire_owned().await.unwrap();
        let chain = Chain::default().with(evaluator);
        let late = chain.evaluate(&call("set-labels", Some(Duration::from_secs(2)))).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded);
        assert!(late.to_string().contains("after 2.00s while waiting for a processor core"), "{late}");
        drop(taken);
        assert!(chain.evaluate(&call("set-labels", None)).await.is_ok());
    }

    #[tokio::test]
    async fn what_needs_a_process_is_left_to_others_where_none_can_be_started() {
        let chain = Chain::default().with(evaluator(Offered::All));
        let failure = chain.evaluate(&call("starlark", None)).await.unwrap_err();
        assert_eq!(failure.code(), Code::NotFound);
        assert!(failure.to_string().contains("starlark needs a process"), "{failure}");
    }

    #[test]
    fn the_log_gives_way_to_the_output_as_that_of_a_process_does() {
        let outcome = |output: usize| Outcome {
            output: vec![b'x'; output],
            stderr: "word ".repeat(100),
            succeeded: false,
            results: Vec::new(),
        };
        let whole = finished(outcome(100), Instant::now(), 1000).unwrap();
        assert_eq!((whole.exit, whole.log.to_bytes().len()), (Exit::Code(1), 500));
        let cut = finished(outcome(900), Instant::now(), 1000).unwrap();
        assert!(cut.log.to_bytes().len() <= 100 && cut.log.cut() > 0, "{:?}", cut.log);
        assert!(finished(outcome(1000), Instant::now(), 1000).unwrap().log.is_empty());
        let too_large = finished(outcome(1001), Instant::now(), 1000);
        assert!(matches!(too_large, Err(RunError::OutputTooLarge { limit: 1000, .. })));
    }
}
