//! Functions that are part of this program.

use std::{
    num::NonZeroUsize,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use functions::{Function, Outcome};
use krm::{Budget, Exceeded, OverBudget};
use process::{Exit, FairQueue, Finished, Limits, Log, RunError};
use wire::{Answer, Failure};

use super::{
    Call, Deadline, Evaluator, Processes, Stage,
    monitor::{Abandoned, CallMonitor, Moment, Refusal},
    processes::{Task, refused, too_slow},
};
use crate::{
    builtin::{AS_FUNCTION, Builtin, Offered},
    routing::{BuiltinFunction, Routing, Table, every_builtin},
};

/// What a small input is: whatever is asked for, it takes less than a second.
const SMALL: usize = 64 * 1024;

/// What most functions do in a moment: see [`Moment`].
const TINY: usize = 8 * 1024;

/// This program itself, also where its file has been replaced since.
const OURSELVES: &str = "/proc/self/exe";

/// Bounds of functions that run in this process.
#[derive(Debug, Clone)]
pub struct BuiltinLimits {
    /// How many compute at once.
    pub cores: NonZeroUsize,
    /// Calls waiting for that, where no processes are run that they would wait with.
    pub max_queued: usize,
    /// How long one function may take; the caller's deadline may be shorter.
    pub timeout: Duration,
    /// The largest output, its log included.
    pub max_output: usize,
}

/// Runs the functions that are part of this program.
#[derive(Debug)]
pub struct BuiltinEvaluator {
    routing: Routing,
    /// What would be there if all were offered.
    every: Table<Arc<BuiltinFunction>>,
    /// For small inputs, and for all others: what takes long leaves cores to what does not.
    cores: [FairQueue; 2],
    limits: BuiltinLimits,
    processes: Option<Processes>,
}

impl BuiltinEvaluator {
    /// An evaluator for what `routing` names. Without `processes`, those functions are left to others that need
    /// one.
    pub fn new(routing: Routing, limits: BuiltinLimits, processes: Option<Processes>) -> Self {
        let every = every_builtin(&routing.terms().default_prefix);
        // All that wait for their turn, for whatever it is, are counted together.
        let cores = match &processes {
            Some(processes) => processes.queue().beside(limits.cores),
            None => FairQueue::new(limits.cores, limits.max_queued),
        };
        let cores = [cores.beside(limits.cores), cores];
        Self { routing, every, cores, limits, processes }
    }

    /// Where calls wait for a core, for metrics.
    pub(crate) fn queues(&self) -> [FairQueue; 2] {
        self.cores.clone()
    }

    /// Runs a function in this process, beside the threads that serve calls.
    async fn run(&self, call: &Call, function: &'static Function) -> Result<Answer, Failure> {
        call.progress.enter(Stage::WaitingForCore);
        let asked = call.asked();
        let [small, others] = &self.cores;
        let cores = if call.resource_list.len() <= SMALL { small } else { others };
        let core = cores.acquire(function.name, call.deadline).await;
        let core = core.map_err(|error| refused(call, &error, "give the service more processor cores"))?;
        call.progress.enter(Stage::Running);
        if let Some(answer) = self.run_at_once(call, function) {
            return answer;
        }
        let Deadline { at, is_own } = Deadline::of(call, self.limits.timeout);
        let (input, max_output) = (call.resource_list.clone(), self.limits.max_output);
        let memory = call.memory.clone();
        let abandoned = Abandoned::default();
        let _guard = abandoned.guard();
        let refusal = Refusal::default();
        let refused_memory = refusal.clone();
        let image = asked.clone();
        // The core is taken until the function ends, also where nobody waits for it any more: that is soon.
        let run = move || {
            let _core = core;
            let begun = Instant::now();
            let budget =
                Budget::monitored(max_output, CallMonitor::new(at, abandoned, memory, refused_memory));
            let outcome = function.run(&input, &budget);
            drop(input);
            match outcome.over_budget {
                Some(over) => Err(over),
                None => Ok(wire::judge(&image, finished(outcome, begun, max_output))),
            }
        };
        match tokio::task::spawn_blocking(run).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(over)) => match refusal.get().filter(|_| over.exceeded == Exceeded::Busy) {
                Some(full) => Err(Failure::MemoryFull { full }),
                None => Err(self.exceeded(call, &over, is_own)),
            },
            Err(_) => Err(Failure::Internal {
                cause: format!("the built-in function {} broke down on a call of {asked}", function.name),
            }),
        }
    }

    /// Runs a function right here if that takes no longer than to hand it to another thread and back. `None` if
    /// it turns out to take longer, and then nothing has happened.
    fn run_at_once(&self, call: &Call, function: &Function) -> Option<Result<Answer, Failure>> {
        if call.resource_list.len() > TINY {
            return None;
        }
        let begun = Instant::now();
        let max_output = self.limits.max_output.min(SMALL);
        let run = || function.run(&call.resource_list, &Budget::monitored(max_output, Moment::default()));
        // One that breaks down is told of by the thread that it then breaks down on.
        let outcome = panic::catch_unwind(AssertUnwindSafe(run)).ok()?;
        outcome
            .over_budget
            .is_none()
            .then(|| wire::judge(&call.asked(), finished(outcome, begun, self.limits.max_output)))
    }

    /// What to tell of a function that was stopped.
    fn exceeded(&self, call: &Call, over: &OverBudget, is_own_limit: bool) -> Failure {
        let remedy = match over.exceeded {
            Exceeded::Time if is_own_limit => return too_slow(call, self.limits.timeout, String::new()),
            Exceeded::Time => return call.timed_out(String::new()),
            Exceeded::Cancelled => return Failure::Cancelled { image: call.asked() },
            Exceeded::Output { .. } => "--max-request-body-size sets that limit",
            _ => "use fewer or shorter entries there, or split the list",
        };
        Failure::Exhausted { image: call.asked(), cause: format!("{over}; {remedy}"), stderr: String::new() }
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
        processes.run(call, task, special).await.map_err(|failure| match failure {
            Failure::OutputMalformed { image, exit, cause, stderr } => {
                match starlark_function::why_it_ended(&stderr) {
                    Some(why) => Failure::Exhausted { image, cause: why.to_owned(), stderr },
                    None => Failure::OutputMalformed { image, exit, cause, stderr },
                }
            }
            other => other,
        })
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

/// How the process of the function would have ended. The log gives way to the output.
fn finished(outcome: Outcome, begun: Instant, max_output: usize) -> Finished {
    let Outcome { output, stderr, succeeded, .. } = outcome;
    let mut log = Log::from(Bytes::from(stderr));
    log.shrink(Limits::MAX_LOG.min(max_output.saturating_sub(output.len())));
    let exit = Exit::Code(i32::from(!succeeded));
    Finished { output: output.into(), log, exit, elapsed: begun.elapsed() }
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
    use std::path::Path;

    use registry::Reference;
    use tonic::Code;
    use wire::{Memory, TraceContext};

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
        let limits = BuiltinLimits {
            cores: NonZeroUsize::MIN,
            max_queued: 1,
            timeout: Duration::from_mins(1),
            max_output: 1000,
        };
        BuiltinEvaluator::new(routing, limits, None)
    }

    fn call(image: &str, deadline: Option<Duration>) -> Call {
        let image = Reference::parse_with_prefix(image, "example.com").unwrap();
        let deadline = deadline.map(|after| tokio::time::Instant::now() + after);
        Call::new(image.into(), Bytes::new(), deadline, TraceContext::begin(), Progress::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_a_core_no_longer_than_its_deadline() {
        let evaluator = evaluator(Offered::All);
        let taken = evaluator.cores[0].acquire("set-image", None).await.unwrap();
        let chain = Chain::default().with(evaluator);
        let late = chain.evaluate(&call("set-labels", Some(Duration::from_secs(2)))).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded);
        assert!(late.to_string().contains("after 2.00s while waiting for a processor core"), "{late}");
        drop(taken);
        assert!(chain.evaluate(&call("set-labels", None)).await.is_ok());
    }

    #[tokio::test]
    async fn no_more_wait_for_a_core_than_may() {
        let evaluator = Arc::new(evaluator(Offered::All));
        let taken = evaluator.cores[0].acquire("set-image", None).await.unwrap();
        let first = tokio::spawn({
            let evaluator = evaluator.clone();
            async move { evaluator.evaluate(&call("set-labels", None)).await }
        });
        while evaluator.cores[0].waiting() == 0 {
            tokio::task::yield_now().await;
        }
        // That they wait is to be seen in the metrics.
        assert_eq!(evaluator.queues().iter().map(FairQueue::waiting).sum::<usize>(), 1);
        let refused = evaluator.evaluate(&call("set-labels", None)).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        let told = refused.to_string();
        let help = "raise --max-queued-executions or give the service more processor cores";
        assert!(told.contains(help) && !told.contains("--max-concurrent-executions"), "{told}");
        drop(taken);
        assert!(first.await.unwrap().is_ok());
    }

    /// Labels for many items: 8 KB of which a function makes a hundred times as much.
    fn laborious() -> Bytes {
        let labels: Vec<String> = (0..300).map(|at| format!("    l{at}: v\n")).collect();
        let list = format!(
            "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n  kind: ConfigMap\n  \
             metadata: {{name: x}}\n  data:\n{}items:\n{}",
            labels.concat(),
            "- kind: A\n".repeat(300)
        );
        assert!(list.len() <= TINY);
        list.into()
    }

    /// With one thread for all of it, others come to their turn while a function computes.
    #[tokio::test(flavor = "current_thread")]
    async fn what_computes_does_not_hold_up_the_thread_that_serves() {
        let mut evaluator = evaluator(Offered::All);
        evaluator.limits.max_output = 10 << 20;
        let order = std::sync::Mutex::new(Vec::new());
        let small = Call { resource_list: laborious(), ..call("set-labels", None) };
        tokio::join!(
            async {
                evaluator.evaluate(&small).await.unwrap();
                order.lock().unwrap().push("the call");
            },
            async { order.lock().unwrap().push("another") },
        );
        assert_eq!(*order.lock().unwrap(), ["another", "the call"]);
    }

    #[test]
    fn only_what_is_done_in_a_moment_is_done_by_the_thread_that_serves() {
        let evaluator = evaluator(Offered::All);
        let function = functions::find("set-labels").unwrap();
        let tried = |list: Bytes| {
            evaluator.run_at_once(&Call { resource_list: list, ..call("set-labels", None) }, function)
        };
        assert!(tried("kind: ResourceList\nitems: []\n".into()).is_some());
        assert!(tried("kind: ResourceList\nitems: [\n".into()).is_some_and(|answer| answer.is_err()));
        assert!(tried(laborious()).is_none());
        assert!(tried(format!("kind: ResourceList\nitems: []\n#{}", "x".repeat(TINY)).into()).is_none());
    }

    #[tokio::test]
    async fn what_takes_long_leaves_cores_to_what_does_not() {
        let evaluator = evaluator(Offered::All);
        let _taken = evaluator.cores[1].acquire("set-image", None).await.unwrap();
        evaluator.evaluate(&call("set-labels", None)).await.unwrap();
    }

    #[tokio::test]
    async fn a_call_whose_budget_is_exceeded_says_why() {
        let evaluator = evaluator(Offered::All);
        let labels: Vec<String> = (0..50).map(|at| format!("    l{at}: v\n")).collect();
        let list = format!(
            "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n  kind: ConfigMap\n  \
             metadata: {{name: x}}\n  data:\n{}items:\n{}",
            labels.concat(),
            "- kind: A\n".repeat(50)
        );
        let mut call = call("set-labels", None);
        call.resource_list = list.into();
        let failure = evaluator.evaluate(&call).await.unwrap_err();
        assert_eq!(failure.code(), Code::ResourceExhausted);
        let told = failure.to_string();
        assert!(told.contains("more than 1000 bytes of output, because of `data`"), "{told}");
        assert!(told.contains("--max-request-body-size"), "{told}");
    }

    #[tokio::test]
    async fn a_call_that_finds_no_memory_may_be_tried_again() {
        let call = Call { memory: Memory::new(10), resource_list: laborious(), ..call("set-labels", None) };
        let failure = evaluator(Offered::All).evaluate(&call).await.unwrap_err();
        assert_eq!(failure.code(), Code::ResourceExhausted);
        assert!(failure.to_string().contains("--max-memory"), "{failure}");
    }

    /// However much of it there was: none is taken for a mistake of the list.
    #[tokio::test]
    async fn no_bound_of_memory_makes_a_list_look_wrong() {
        let list = format!(
            "kind: ResourceList\nfunctionConfig: {{kind: ConfigMap, metadata: {{name: x}}, data: {{a: b}}}}\nitems:\n\
             - {{kind: A, l: [{}]}}\n",
            "a,".repeat(50_000)
        );
        let mut answered = 0;
        for limit in (0..40).map(|step| step << 18) {
            let mut evaluator = evaluator(Offered::All);
            evaluator.limits.max_output = 6 << 20;
            let resource_list = list.clone().into();
            let call = Call { memory: Memory::new(limit), resource_list, ..call("set-labels", None) };
            match evaluator.evaluate(&call).await {
                Ok(_) => answered += 1,
                Err(failure) => assert!(
                    failure.to_string().contains("--max-memory") && failure.code() == Code::ResourceExhausted,
                    "{limit}: {failure}"
                ),
            }
        }
        assert!((1..39).contains(&answered), "{answered}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_function_is_limited_also_without_a_deadline() {
        let mut evaluator = evaluator(Offered::All);
        evaluator.limits.timeout = Duration::ZERO;
        let mut long = call("set-labels", None);
        // Time is looked at after some thousand steps.
        long.resource_list = format!("kind: ResourceList\nitems:\n{}", "- a: b\n".repeat(50_000)).into();
        let failure = evaluator.evaluate(&long).await.unwrap_err();
        assert_eq!(failure.code(), Code::DeadlineExceeded);
        assert!(failure.to_string().contains("--function-timeout"), "{failure}");
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
            over_budget: None,
        };
        let whole = finished(outcome(100), Instant::now(), 1000);
        assert_eq!((whole.exit, whole.log.to_bytes().len()), (Exit::Code(1), 500));
        let cut = finished(outcome(900), Instant::now(), 1000);
        assert!(cut.log.to_bytes().len() <= 100 && cut.log.cut() > 0, "{:?}", cut.log);
        assert!(finished(outcome(1000), Instant::now(), 1000).log.is_empty());
    }
}
