//! The service from its start to its end.

use std::{process::ExitCode, sync::Arc, time::Duration};

use ::pods::Runtime;
use anyhow::Context as _;
use process::{Scratch, Supervisor};
use tokio_util::sync::CancellationToken;
use tracing::info;
use wire::{Front, Health, ServeOptions};

use crate::{
    evaluate::{Chain, ExecEvaluator, ExecLimits},
    images::Images,
    pods::{self, PodList},
    policy::Policy,
    routing::{ConfigFollower, Look, Routing},
    service::Service,
    settings::{ExecSettings, Serving, Settings},
    shutdown::{self, Ending, Phases},
    telemetry::{self, Telemetry},
    version,
};

/// How long after the last call's end its processes may take to be gone.
const LAST_PROCESSES: Duration = Duration::from_secs(2);

/// Serves until a signal ends it.
pub(crate) async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let Settings { serving, logging, telemetry, default_image_prefix, registries, exec, pod } = settings;
    let policy = Policy { default_prefix: default_image_prefix, allowed: registries.allowed.clone() };
    telemetry::start_logs(logging);
    info!("{}", version::line());
    let telemetry = Telemetry::start(&telemetry)?;
    let metrics = telemetry.metrics();

    let mut chain = Chain::default();
    let mut supervisor = None;
    if let Some(exec) = &exec {
        let runtime = start_exec(exec, &policy.default_prefix, serving.max_message)?;
        metrics.observe_queue(runtime.evaluator.queue());
        let reloads = metrics.clone();
        tokio::spawn(runtime.follower.follow(move |look| match look {
            Look::Same => {}
            Look::Replaced => reloads.config_reloaded(true),
            Look::Kept => reloads.config_reloaded(false),
        }));
        chain = chain.with(runtime.evaluator);
        supervisor = Some(runtime.supervisor);
    }
    let mut pods = None;
    if let Some(pod) = &pod {
        let images = Arc::new(Images::new(&registries)?);
        let (prefix, limit) = (&policy.default_prefix, serving.max_message);
        if let Some(started) = pods::start(pod, &registries, images, prefix, limit, metrics.pods()).await? {
            chain = chain.with(started.evaluator);
            pods = Some(started.runtime);
        }
    } else {
        info!("the pod runtime is disabled: images without an executable are answered NotFound");
    }
    info!(evaluators = ?chain, "functions are evaluated in this order");

    let Serving { port, max_message, max_connection_age, shutdown_delay, shutdown_grace } = serving;
    let listener = wire::listen(None, port)
        .with_context(|| format!("cannot listen on port {port}; choose another with --port"))?;
    let address = listener.local_addr().context("the gRPC port has no address")?;
    let (drain, abandon) = (CancellationToken::new(), CancellationToken::new());
    let health = Health::new();
    let service = Service::new(chain, policy, metrics.clone(), abandon.clone());
    let front = front(service, pods, &health, max_message, Arc::new(metrics))?;
    let options = ServeOptions { max_connection_age };
    let done = CancellationToken::new();
    let guard = done.clone().drop_guard();
    let draining = drain.clone().cancelled_owned();
    let server = tokio::spawn(async move {
        let _guard = guard;
        wire::serve(listener, front, options, draining).await
    });
    health.set_serving(true);
    info!(%address, "serving");

    let phases =
        Phases { delay: shutdown_delay, grace: shutdown_grace, health, drain, abandon: abandon.clone() };
    match shutdown::run(phases, shutdown::signals()?, done.cancelled()).await {
        Ending::Orderly => {}
        Ending::Forced => {
            // At once, but not without the functions: nobody would end them after us.
            abandon.cancel();
            await_last_processes(supervisor.as_ref()).await;
            return Ok(ExitCode::FAILURE);
        }
        Ending::ByItself => {
            server.await.context("the server ended by itself")?.context("the server failed")?;
            anyhow::bail!("the server ended by itself");
        }
    }
    await_last_processes(supervisor.as_ref()).await;
    telemetry.flush().await;
    info!("ended");
    Ok(ExitCode::SUCCESS)
}

/// Waits until no process of any call is left, within reason.
async fn await_last_processes(supervisor: Option<&Supervisor>) {
    if let Some(supervisor) = supervisor {
        let _ = tokio::time::timeout(LAST_PROCESSES, supervisor.idle()).await;
    }
}

/// The exec runtime and what keeps it going.
pub(crate) struct ExecRuntime {
    pub(crate) evaluator: ExecEvaluator,
    pub(crate) follower: ConfigFollower,
    pub(crate) supervisor: Supervisor,
}

/// Starts the exec runtime.
pub(crate) fn start_exec(
    exec: &ExecSettings,
    default_prefix: &str,
    max_message: usize,
) -> anyhow::Result<ExecRuntime> {
    let ExecSettings { functions, config, config_required, timeout, max_concurrent, max_queued, inherited } =
        exec;
    // The function's working folder is another one than ours.
    let functions = std::path::absolute(functions).context("the current folder is gone")?;
    let routing = Routing::default();
    let follower =
        ConfigFollower::start(config, *config_required, &functions, default_prefix, routing.clone())?;
    let supervisor = Supervisor::start().context("cannot supervise function processes")?;
    let scratch = Scratch::find(Scratch::candidates()).context("functions need a private folder each")?;
    let limits = ExecLimits {
        timeout: *timeout,
        max_output: max_message.saturating_sub(wire::ENVELOPE),
        max_concurrent: *max_concurrent,
        max_queued: *max_queued,
    };
    let evaluator = ExecEvaluator::new(routing, supervisor.clone(), scratch, limits, inherited);
    Ok(ExecRuntime { evaluator, follower, supervisor })
}

/// The one method of reflection.
const REFLECT: &[&str] = &["ServerReflectionInfo"];

/// All services of the gRPC port.
fn front(
    service: Service,
    pods: Option<Runtime>,
    health: &Health,
    limit: usize,
    observer: Arc<dyn wire::Observer>,
) -> anyhow::Result<Front> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(wire::proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    Ok(Front::new(limit, observer)
        .mount(service.into_server(), &["EvaluateFunction"])
        .mount(PodList::service(pods), &["List"])
        .mount(health.service(), &["Check", "Watch"])
        .mount(reflection().build_v1().context("reflection")?, REFLECT)
        .mount(reflection().build_v1alpha().context("reflection")?, REFLECT))
}
