//! The service from its start to its end.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use ::pods::{Access, AccessError, ApiRequest, Runtime};
use anyhow::Context as _;
use kube::Client;
use process::{FairQueue, Scratch, Supervisor};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use wire::{Front, Health, Memory, ServeOptions};

use crate::{
    builtin::Offered,
    evaluate::{BuiltinEvaluator, BuiltinLimits, Chain, ExecEvaluator, ProcessLimits, Processes},
    images::Images,
    pods::{self, PodList},
    policy::Policy,
    routing::{FileFollower, FileSettings, Look, Routing, Terms, check_executable, objects::ObjectFollower},
    service::Service,
    settings::{
        BuiltinSettings, Cluster, ExecSettings, FunctionConfigSettings, MaxMemory, PodSettings,
        ProcessSettings, Serving, Settings,
    },
    shutdown::{self, Ending, Phases},
    telemetry::{self, Metrics, Telemetry},
    version,
};

/// How long after the last call's end its processes may take to be gone.
const LAST_PROCESSES: Duration = Duration::from_secs(2);

/// How long the first calls wait for the FunctionConfigs of the cluster to be read.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// Serves until a signal ends it.
pub(crate) async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let Settings {
        serving,
        logging,
        telemetry,
        default_image_prefix,
        registries,
        function_configs,
        builtin,
        processes,
        exec,
        pod,
    } = settings;
    // From the first moment on: as process 1, what nobody listens for is lost.
    let signals = shutdown::signals()?;
    let policy = Policy { default_prefix: default_image_prefix, allowed: registries.allowed.clone() };
    telemetry::start_logs(logging);
    info!("{}", version::line());
    let propagators = telemetry.propagators;
    let telemetry = Telemetry::start(&telemetry).await?;
    let metrics = telemetry.metrics();
    let memory = start_memory(serving.memory, &metrics);

    let FunctionConfigSettings { folder, cluster, namespace } = function_configs;
    let prefix = &policy.default_prefix;
    let (routing, files) = start_routing(prefix, builtin.offered, exec.as_ref(), pod.as_ref(), folder)?;
    let reloads = metrics.clone();
    tokio::spawn(files.follow(move |look| match look {
        Look::Same => {}
        Look::Replaced => reloads.config_reloaded(true),
        Look::Kept => reloads.config_reloaded(false),
    }));

    let max_concurrent = processes.max_concurrent;
    let Local { mut chain, processes, cores } =
        start_local(&builtin, &processes, exec.is_some(), &routing, serving.max_message)?;
    observe_queues(&metrics, processes.as_ref(), cores);
    let pod_metrics = metrics.pods();
    let counted = pod_metrics.clone();
    let client = match connect(&cluster, move |request| counted.requested(request)).await {
        Err(error) if pod.is_none() => {
            warn!("{error}; FunctionConfigs are read from files only");
            None
        }
        client => client?,
    };
    if let Some(client) = &client {
        follow_objects(client.clone(), &namespace, &routing).await;
    }
    let mut pods = None;
    match (&pod, client) {
        (None, _) => info!("the pod runtime is disabled: all other images are answered NotFound"),
        (Some(_), None) => info!(
            "no cluster is configured (--kubeconfig, KUBECONFIG or an in-cluster account): \
             running without the pod runtime, all other images are answered NotFound"
        ),
        (Some(pod), Some(client)) => {
            let images = Arc::new(Images::new(&registries)?);
            images.warn_of_unreadable().await;
            let limit = serving.max_message;
            let started = pods::start(client, pod, &registries, images, &routing, limit, &pod_metrics)?;
            chain = chain.with(started.evaluator);
            pods = Some(started.runtime);
        }
    }
    info!(evaluators = ?chain, "functions are evaluated in this order");

    let Serving { port, max_message, memory: _, max_connection_age, shutdown_delay, shutdown_grace } =
        serving;
    let (listener, address) = listen(port)?;
    let (drain, abandon) = (CancellationToken::new(), CancellationToken::new());
    let health = Health::new();
    let service = Service::new(chain, policy, metrics.clone(), propagators, abandon.clone());
    let front = front(service, pods, &health, max_message, memory, Arc::new(metrics))?;
    let options = ServeOptions { max_connection_age, ..ServeOptions::default() }
        .at_most(process::spare_descriptors(max_concurrent.get()));
    let done = CancellationToken::new();
    let guard = done.clone().drop_guard();
    let draining = drain.clone().cancelled_owned();
    let server = tokio::spawn(async move {
        let _guard = guard;
        wire::serve(listener, front, options, draining).await;
    });
    health.set_serving(true);
    info!(%address, "serving");

    let phases =
        Phases { delay: shutdown_delay, grace: shutdown_grace, health, drain, abandon: abandon.clone() };
    match shutdown::run(phases, signals, done.cancelled()).await {
        Ending::Orderly => {}
        Ending::Forced => {
            // At once, but not without the functions: nobody would end them after us.
            abandon.cancel();
            await_last_processes(processes.as_ref()).await;
            return Ok(ExitCode::FAILURE);
        }
        Ending::ByItself => {
            server.await.context("the server ended by itself")?;
            anyhow::bail!("the server ended by itself");
        }
    }
    await_last_processes(processes.as_ref()).await;
    telemetry.flush().await;
    info!("ended");
    Ok(ExitCode::SUCCESS)
}

/// Keeps the configuration in step with the objects of the cluster.
async fn follow_objects(client: Client, namespace: &str, routing: &Routing) {
    let follower = ObjectFollower::new(client, namespace, routing.clone());
    let first_look = follower.first_look();
    tokio::spawn(follower.follow());
    // Else the first calls would be sent to runtimes that are not meant for them.
    let _ = tokio::time::timeout(FIRST_LOOK, first_look).await;
}

/// Listens on the port of the service.
fn listen(port: u16) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = wire::listen(None, port)
        .with_context(|| format!("cannot listen on port {port}; choose another with --port"))?;
    let address = listener.local_addr().context("the gRPC port has no address")?;
    Ok((listener, address))
}

/// The memory of all calls.
fn start_memory(settings: MaxMemory, metrics: &Metrics) -> Memory {
    let MaxMemory { bytes, reason } = settings;
    info!(bytes, reason, "calls may hold so much memory at once");
    let memory = Memory::new(bytes);
    metrics.observe_memory(memory.clone());
    memory
}

/// Waits until no process of any call is left, within reason.
pub(crate) async fn await_last_processes(processes: Option<&Processes>) {
    if let Some(processes) = processes {
        let _ = tokio::time::timeout(LAST_PROCESSES, processes.supervisor().idle()).await;
    }
}

/// The configuration of files, and what keeps it in step with them.
pub(crate) fn start_routing(
    default_prefix: &str,
    builtins: Offered,
    exec: Option<&ExecSettings>,
    pod: Option<&PodSettings>,
    function_configs: Option<PathBuf>,
) -> anyhow::Result<(Routing, FileFollower)> {
    // The function's working folder is another one than ours.
    let pod = pod.filter(|pod| pod.cluster != Cluster::None);
    let functions = exec.map(|exec| std::path::absolute(&exec.functions)).transpose();
    let routing = Routing::new(Terms {
        builtins,
        functions: functions.context("the current folder is gone")?,
        pods: pod.is_some(),
        default_prefix: default_prefix.to_owned(),
        check: check_executable,
    });
    let settings = FileSettings {
        // Who names none has none, as in the original.
        config: exec
            .filter(|exec| !exec.config.as_os_str().is_empty())
            .map(|exec| (exec.config.clone(), exec.config_required)),
        pod_cache: pod.map(|pod| pod.cache_config.clone()),
        function_configs,
    };
    let follower = FileFollower::start(settings, routing.clone())?;
    Ok((routing, follower))
}

/// A client of the cluster, if there is one.
pub(crate) async fn connect(
    cluster: &Cluster,
    count: impl Fn(&ApiRequest) + Send + Sync + 'static,
) -> Result<Option<Client>, AccessError> {
    let access = match cluster {
        Cluster::None => return Ok(None),
        Cluster::Kubeconfig(path) => Access::Kubeconfig(path.clone()),
        Cluster::InCluster => Access::InCluster,
    };
    access.client(Arc::new(count)).await.map(Some)
}

/// What runs functions on this machine.
pub(crate) struct Local {
    /// The evaluators in their order.
    pub(crate) chain: Chain,
    /// What runs processes for them.
    pub(crate) processes: Option<Processes>,
    /// Where built-in functions wait for a processor core.
    cores: Vec<FairQueue>,
}

/// Shows who waits for what.
fn observe_queues(metrics: &Metrics, processes: Option<&Processes>, cores: Vec<FairQueue>) {
    let queue = processes.map(Processes::queue);
    metrics.observe_queued(queue.iter().chain(&cores).cloned().collect());
    if let Some(queue) = queue {
        metrics.observe_processes(queue);
    }
    metrics.observe_builtins(cores);
}

/// The evaluators of this machine.
pub(crate) fn start_local(
    builtin: &BuiltinSettings,
    settings: &ProcessSettings,
    is_exec_enabled: bool,
    routing: &Routing,
    max_message: usize,
) -> anyhow::Result<Local> {
    let BuiltinSettings { offered, reason, cores } = builtin;
    info!(%offered, reason, "built-in functions");
    let has_builtins = *offered != Offered::Off;
    let max_output = max_message.saturating_sub(wire::ENVELOPE);
    let needed = (is_exec_enabled || has_builtins).then(|| start_processes(settings, max_output));
    let processes = match needed {
        Some(Err(cause)) if !is_exec_enabled => {
            warn!("{cause:#}: the built-in function starlark, which needs a process, is not offered");
            None
        }
        needed => needed.transpose()?,
    };
    let (mut chain, mut queues) = (Chain::default(), Vec::new());
    if has_builtins {
        let limits = BuiltinLimits {
            cores: *cores,
            max_queued: settings.max_queued,
            timeout: settings.timeout,
            max_output,
        };
        let evaluator = BuiltinEvaluator::new(routing.clone(), limits, processes.clone());
        queues.extend(evaluator.queues());
        chain = chain.with(evaluator);
    }
    if let Some(processes) = processes.clone().filter(|_| is_exec_enabled) {
        chain = chain.with(ExecEvaluator::new(routing.clone(), processes));
    }
    Ok(Local { chain, processes, cores: queues })
}

/// Starts what runs functions as processes.
fn start_processes(settings: &ProcessSettings, max_output: usize) -> anyhow::Result<Processes> {
    let ProcessSettings { timeout, max_concurrent, max_queued, inherited } = settings;
    let supervisor = Supervisor::start_with_watchdog().context("cannot supervise function processes")?;
    let scratch = Scratch::find(Scratch::candidates()).context("functions need a private folder each")?;
    let limits = ProcessLimits {
        timeout: *timeout,
        max_output,
        max_concurrent: *max_concurrent,
        max_queued: *max_queued,
    };
    Ok(Processes::new(supervisor, scratch, limits, inherited))
}

/// The one method of reflection.
const REFLECT: &[&str] = &["ServerReflectionInfo"];

/// All services of the gRPC port.
fn front(
    service: Service,
    pods: Option<Runtime>,
    health: &Health,
    limit: usize,
    memory: Memory,
    observer: Arc<dyn wire::Observer>,
) -> anyhow::Result<Front> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(wire::proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    Ok(Front::new(limit, memory, observer)
        .mount(service.into_server(), &["EvaluateFunction"])
        .mount(PodList::service(pods), &["List"])
        .mount_small(health.service(), &["Check", "Watch"])
        .mount_small(reflection().build_v1().context("reflection")?, REFLECT)
        .mount_small(reflection().build_v1alpha().context("reflection")?, REFLECT))
}
