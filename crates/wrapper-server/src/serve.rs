//! The server: one function, evaluated as often as it is asked.

use std::{io, num::NonZeroUsize, path::PathBuf, process::ExitCode, sync::Arc};

use flags::{Command, Flag, Flags, Group, Mistake, Mistakes};
use process::{AcquireError, Environment, FairQueue, Folder, Limits, Program, Scratch, Supervisor};
use tokio::{
    signal::unix::signal,
    sync::{mpsc, oneshot},
};
use tonic::{Code, Request, Response, Status};
use wire::{
    Answer, Arrival, Failure, Front, Health, Memory, Propagators, ServeOptions,
    proto::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
    },
};

use crate::{
    log::{self, Log},
    metrics::Metrics,
    otlp::{self, Traces, Wanted},
};

const PORT: Flag<u16> = Flag::integer("port", 9446, 0..=65535, "Port of the gRPC service on all interfaces.");
const MAX_REQUEST_BODY_SIZE: Flag<usize> = Flag::integer(
    "max-request-body-size",
    6 * 1024 * 1024,
    1..=0x7fff_ffff,
    "Largest gRPC message in bytes, both ways.",
)
.placeholder("BYTES");
const VERBOSITY: Flag<i64> = Flag::integer(
    "verbosity",
    2,
    i64::MIN..=i64::MAX,
    "0 errors only, 1 warnings, 2 and more a line per call.",
);

pub(crate) static COMMAND: Command = Command {
    name: "wrapper-server",
    usage: "[flags] -- ENTRYPOINT [ARGUMENT…]",
    summary: "Runs the entrypoint of a KRM function once for each gRPC call.",
    groups: &[Group {
        heading: "Flags",
        flags: &[PORT.spec(), MAX_REQUEST_BODY_SIZE.spec(), VERBOSITY.spec()],
    }],
};

/// How many calls run at once, and how many may wait for that. Calls given to a pod run at once, so this is
/// far beyond what anybody means to give it, and within what a container can take.
const MAX_RUNNING: NonZeroUsize = NonZeroUsize::new(256).unwrap();
const MAX_WAITING: usize = 1024;

struct Settings {
    port: u16,
    limit: usize,
    log: Log,
}

pub(crate) fn main(mut flags: Flags) -> Result<ExitCode, Mistakes> {
    let mut entrypoint = flags.arguments().to_vec().into_iter();
    let path = entrypoint.next().filter(|path| !path.is_empty());
    if path.is_none() {
        flags.add(Mistake::Other(
            "the entrypoint is missing; put the function's program and arguments behind \"--\"".to_owned(),
        ));
    }
    let settings = Settings {
        port: flags.get(&PORT),
        limit: flags.get(&MAX_REQUEST_BODY_SIZE),
        log: Log::new(flags.get(&VERBOSITY)),
    };
    let Settings { port, limit, log } = flags.finish(settings)?;
    let path = PathBuf::from(path.unwrap_or_default());
    let served = crate::runtime().and_then(|runtime| {
        runtime.block_on(async {
            let folder = match Scratch::find(Scratch::candidates()) {
                Ok(scratch) => Folder::Temporary(scratch),
                Err(none) => {
                    log.warn(format_args!("functions share the container's temporary folder: {none}"));
                    Folder::None
                }
            };
            let arguments = entrypoint.collect();
            let program = Program { path, arguments, environment: Environment::Inherited, folder };
            serve(program, port, limit, log).await
        })
    });
    Ok(served.map_or_else(
        |error| {
            log::say(&format!("wrapper-server: {error}"));
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    ))
}

async fn serve(program: Program, port: u16, limit: usize, log: Log) -> io::Result<()> {
    let listener = wire::listen(None, port).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on port {port} (--port): {error}"))
    })?;
    let address = listener.local_addr()?;
    let supervisor = Supervisor::start_with_watchdog()?;
    let health = Health::new();
    let metrics = Metrics::default();
    let (traces, sender) = start_telemetry(&metrics, log).await;
    let limits =
        Limits { deadline: None, max_output: limit.saturating_sub(wire::ENVELOPE), max_log: Limits::MAX_LOG };
    let entrypoint = program.path.display().to_string();
    let queue = FairQueue::new(MAX_RUNNING, MAX_WAITING);
    let wrapper = Wrapper { supervisor: supervisor.clone(), queue, program, limits, traces, log };
    let service = FunctionEvaluatorServer::new(wrapper)
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    let memory = memory();
    log.info(format_args!("calls may hold {} bytes at once", memory.limit()));
    let front = Front::new(limit, memory, Arc::new(metrics))
        .mount(service, &["EvaluateFunction"])
        .mount_small(health.service(), &["Check", "Watch"]);
    let (drain, end) = on_signals(health.clone(), log)?;
    health.set_serving(true);
    log.info(format_args!("serving {entrypoint} on {address}"));
    let served = async {
        let options = ServeOptions::default().at_most(process::spare_descriptors(MAX_RUNNING.get()));
        wire::serve(listener, front, options, drain).await;
        supervisor.idle().await;
        log.info("all calls are answered");
        sender.finish().await;
        Ok(())
    };
    // With the runtime end the calls that are still running, and with them their processes.
    tokio::select! {
        served = served => served,
        () = end => Err(io::Error::other("told again to end: running calls are not answered")),
    }
}

/// Offers and sends what the standard variables say.
async fn start_telemetry(metrics: &Metrics, log: Log) -> (Traces, otlp::Sender) {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let of_metrics = Wanted::read("METRICS", "prometheus", variable);
    let of_traces = Wanted::read("TRACES", "none", variable);
    let list = variable("OTEL_PROPAGATORS").unwrap_or_default();
    let (propagators, unknown) = Propagators::read(&list);
    for note in of_metrics.notes.iter().chain(&of_traces.notes) {
        log.warn(note);
    }
    if !unknown.is_empty() {
        log.warn(format_args!("OTEL_PROPAGATORS has {unknown:?}, which are passed over"));
    }
    if of_metrics.prometheus {
        metrics.offer(log, variable).await;
    }
    let sent = of_metrics.collector.map(|target| (target, metrics.clone()));
    otlp::start(of_traces.collector, sent, propagators, log)
}

/// Half of the memory that the container has: the other half is for the function.
fn memory() -> Memory {
    let half = process::available_memory().map(|bytes| usize::try_from(bytes / 2).unwrap_or(usize::MAX));
    half.map_or_else(Memory::unlimited, Memory::new)
}

/// Two futures: the first resolves at the first signal, after which running
/// calls may finish, the other one at the second, which ends everything.
fn on_signals(health: Health, log: Log) -> io::Result<(impl Future<Output = ()>, impl Future<Output = ()>)> {
    let (sender, mut signals) = mpsc::channel(2);
    for kind in process::END_SIGNALS {
        let mut arriving = signal(kind)?;
        let sender = sender.clone();
        tokio::spawn(
            async move { while arriving.recv().await.is_some() && sender.send(()).await.is_ok() {} },
        );
    }
    let (first, drain) = oneshot::channel::<()>();
    let end = async move {
        signals.recv().await;
        log.info("told to end: clients are asked to leave, calls that arrive are answered");
        health.close();
        let _ = first.send(());
        signals.recv().await;
    };
    let drain = async move {
        let _ = drain.await;
    };
    Ok((drain, end))
}

/// Evaluates the one function of this pod.
struct Wrapper {
    supervisor: Supervisor,
    queue: FairQueue,
    program: Program,
    limits: Limits,
    traces: Traces,
    log: Log,
}

impl Wrapper {
    async fn evaluate(&self, request: EvaluateFunctionRequest, arrival: Arrival) -> Result<Answer, Failure> {
        let image = request.image;
        let _permit =
            self.queue.acquire("", arrival.deadline).await.map_err(|error| refused(&image, &error))?;
        let limits = Limits { deadline: arrival.deadline, ..self.limits };
        match self.supervisor.run(&self.program, request.resource_list, &limits).await {
            Ok(finished) => wire::verdict(&image, finished).await,
            Err(error) => Err(wire::run_failure(&image, &error, |stderr| Failure::TimedOut {
                image: image.clone(),
                cause: error.to_string(),
                stderr,
            })),
        }
    }
}

fn refused(image: &str, error: &AcquireError) -> Failure {
    let (image, cause, stderr) = (image.to_owned(), error.to_string(), String::new());
    match error {
        AcquireError::Full { .. } => Failure::Exhausted { image, cause, stderr },
        AcquireError::TimedOut { .. } => Failure::TimedOut { image, cause, stderr },
    }
}

#[tonic::async_trait]
impl FunctionEvaluator for Wrapper {
    async fn evaluate_function(
        &self,
        request: Request<EvaluateFunctionRequest>,
    ) -> Result<Response<EvaluateFunctionResponse>, Status> {
        let arrival = request.extensions().get().copied().unwrap_or_else(Arrival::now);
        let received = request.get_ref().resource_list.len();
        let mut span = self.traces.begin(request.metadata().as_ref(), &request.get_ref().image);
        let result = self.evaluate(request.into_inner(), arrival).await;
        let (elapsed, trace) = (arrival.at.elapsed(), span.shown());
        match &result {
            Ok(answer) => {
                span.end(Code::Ok, "");
                for note in &answer.notes {
                    self.log.warn(note);
                }
                let sent = answer.resource_list.len();
                self.log.info(format_args!(
                    "call code=Ok duration={elapsed:.2?} bytes_in={received} bytes_out={sent}{trace}"
                ));
            }
            Err(failure) => {
                let code = failure.code();
                span.end(code, &failure.message());
                let line = format!("call code={code:?} duration={elapsed:.2?} bytes_in={received}{trace}");
                if failure.is_ours() { self.log.error(line) } else { self.log.warn(line) }
            }
        }
        let Answer { resource_list, log, .. } =
            result.map_err(|failure| failure.into_status(arrival.room))?;
        Ok(Response::new(EvaluateFunctionResponse { resource_list, log }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_beyond_the_bound_are_refused_and_those_within_it_are_not() {
        let program = Program {
            path: "/bin/cat".into(),
            arguments: Vec::new(),
            environment: Environment::Inherited,
            folder: Folder::None,
        };
        let wrapper = Wrapper {
            supervisor: Supervisor::start().unwrap(),
            queue: FairQueue::new(NonZeroUsize::MIN, 0),
            program,
            limits: Limits { deadline: None, max_output: 1000, max_log: 1000 },
            traces: otlp::start(None, None, Propagators::default(), Log::new(0)).0,
            log: Log::new(0),
        };
        let request = || EvaluateFunctionRequest {
            image: "example.com/cat".to_owned(),
            resource_list: "kind: ResourceList\n".into(),
            ..EvaluateFunctionRequest::default()
        };
        let running = wrapper.queue.acquire("", None).await.unwrap();
        let failure = wrapper.evaluate(request(), Arrival::now()).await.unwrap_err();
        assert_eq!(failure.code(), Code::ResourceExhausted);
        assert!(failure.to_string().contains("1 calls are running and 0 are waiting"), "{failure}");
        drop(running);
        wrapper.evaluate(request(), Arrival::now()).await.unwrap();
        assert_eq!(wrapper.queue.running(), 0);
    }
}
