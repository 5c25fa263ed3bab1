//! `function-runner eval`: one function over the ResourceList on stdin.

use std::{
    io::{Read, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use bytes::Bytes;
use flags::{Flags, Mistakes};
use tokio::time::Instant;
use tonic::Status;
use wire::{
    Answer, Failure, TraceContext,
    client::{self, CallOptions, Client},
};

use super::{complain, in_runtime};
use crate::{
    args,
    evaluate::{Call, Progress},
    policy::Policy,
    serve,
    settings::{
        self, Besides, BuiltinSettings, Cluster, ExecSettings, FunctionConfigSettings, Logging, Machine,
        ProcessSettings, Surroundings,
    },
    telemetry,
};

/// What one evaluation needs.
#[derive(Debug)]
struct Evaluation {
    image: String,
    address: String,
    timeout: Option<Duration>,
    limit: usize,
    policy: Policy,
    function_configs: Option<PathBuf>,
    builtin: BuiltinSettings,
    processes: ProcessSettings,
    exec: ExecSettings,
    logging: Logging,
}

pub(super) fn main(flags: Flags) -> Result<ExitCode, Mistakes> {
    let evaluation = read(flags)?;
    let input = match read_input(evaluation.limit) {
        Ok(input) => input,
        Err(error) => {
            complain(&format!("function-runner eval: {error:#}"));
            return Ok(ExitCode::FAILURE);
        }
    };
    Ok(in_runtime(evaluation.run(input)))
}

fn read(mut flags: Flags) -> Result<Evaluation, Mistakes> {
    flags.refuse_arguments();
    let timeout = settings::not_negative(&mut flags, &args::TIMEOUT);
    let exec = settings::read_exec(&flags);
    // No cluster is asked here.
    let function_configs = FunctionConfigSettings {
        folder: settings::read_folder(&flags),
        cluster: Cluster::None,
        namespace: String::new(),
    };
    let besides = Besides { function_configs: &function_configs, exec: &exec, pod_cache: None };
    let evaluation = Evaluation {
        image: flags.get(&args::IMAGE),
        address: flags.get(&args::ADDRESS),
        timeout: (!timeout.is_zero()).then_some(timeout),
        limit: flags.get(&args::MAX_REQUEST_BODY_SIZE),
        policy: Policy {
            default_prefix: settings::read_prefix(&mut flags),
            allowed: settings::read_allowed(&mut flags),
        },
        builtin: settings::read_builtin(&flags, &besides, &Machine),
        processes: settings::read_processes(&mut flags, &Machine),
        function_configs: function_configs.folder,
        exec,
        logging: Logging {
            // A person wants the answer; warnings and worse are told beside it.
            level: if flags.given(&args::LOG_LEVEL) { settings::log_level(&flags) } else { 1 },
            json: settings::read_logging(&flags).json,
        },
    };
    if evaluation.image.is_empty() {
        flags.reject(&args::IMAGE, "name the function to run, such as --image=set-namespace");
    }
    flags.finish(evaluation)
}

fn read_input(limit: usize) -> anyhow::Result<Bytes> {
    let mut input = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().lock().take(most).read_to_end(&mut input).context("cannot read standard input")?;
    anyhow::ensure!(
        input.len() <= limit,
        "the input is larger than {limit} bytes; raise --max-request-body-size here and on the service"
    );
    krm::inspect(&input).map_err(|cause| {
        let cause = about_input(&cause.to_string());
        anyhow::anyhow!(
            "standard input is not a ResourceList: {cause}; put the resources under items: of one"
        )
    })?;
    Ok(input.into())
}

/// What is wrong with an output, said of an input: whoever typed the command wrote no function.
fn about_input(cause: &str) -> String {
    let cause = cause.split(" the function must ").next().unwrap_or(cause).trim_end_matches([':', ';']);
    cause.replacen("the output's", "its", 1).replacen("the output", "it", 1)
}

impl Evaluation {
    async fn run(self, input: Bytes) -> anyhow::Result<ExitCode> {
        telemetry::start_logs(self.logging);
        let answered =
            if self.address.is_empty() { self.evaluate_here(input).await? } else { self.ask(input).await? };
        match answered {
            Ok(Answer { resource_list, log, .. }) => {
                let _ = std::io::stderr().write_all(&log);
                write(&resource_list)?;
                Ok(ExitCode::SUCCESS)
            }
            Err(Refusal { status, output }) => {
                complain(&format!("{:?}: {}", status.code(), status.message()));
                write(&output)?;
                Ok(ExitCode::FAILURE)
            }
        }
    }

    /// Asks a running service.
    async fn ask(self, input: Bytes) -> anyhow::Result<Result<Answer, Refusal>> {
        let endpoint = client::endpoint(&self.address)
            .with_context(|| format!("--address {:?} is not HOST:PORT", self.address))?
            .connect_timeout(self.timeout.unwrap_or(Duration::from_secs(20)));
        let channel = endpoint.connect().await.with_context(|| {
            format!(
                "no function runner answers at {}; start one with function-runner --port=PORT",
                self.address
            )
        })?;
        let trace = Machine.variable("TRACEPARENT").as_deref().and_then(TraceContext::parse);
        let options = CallOptions { timeout: self.timeout, trace };
        let answered =
            Client::new(channel, self.limit + wire::ENVELOPE).evaluate(&self.image, input, options).await;
        Ok(answered
            .map(|response| Answer {
                resource_list: response.resource_list,
                log: response.log,
                notes: Vec::new(),
            })
            .map_err(|status| Refusal { status, output: Bytes::new() }))
    }

    /// Evaluates in this process, with the evaluators of the service.
    async fn evaluate_here(self, input: Bytes) -> anyhow::Result<Result<Answer, Refusal>> {
        let asked = match self.policy.admit(&self.image, "") {
            Ok(asked) => asked,
            Err(failure) => return Ok(Err(failure.into())),
        };
        let Self { policy, function_configs, builtin, processes, exec, limit, .. } = self;
        let prefix = &policy.default_prefix;
        let (routing, _) =
            serve::start_routing(prefix, builtin.offered, Some(&exec), None, function_configs)?;
        let local = serve::start_local(&builtin, &processes, true, &routing, limit)?;
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let call = Call::new(asked, input, deadline, TraceContext::begin(), Progress::default());
        let result = local.chain.evaluate(&call).await;
        // Whatever the function left behind must not outlive us.
        serve::await_last_processes(local.processes.as_ref()).await;
        Ok(result.map_err(Refusal::from))
    }
}

/// Why there is no answer.
#[derive(Debug)]
struct Refusal {
    status: Status,
    /// What a function wrote that then failed: its results are in it, for programs such as kpt to show. A service
    /// answers with the status alone.
    output: Bytes,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let output = match &failure {
            Failure::FunctionFailed { output, .. } => Bytes::clone(output),
            _ => Bytes::new(),
        };
        Self { status: failure.into(), output }
    }
}

fn write(resource_list: &[u8]) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(resource_list).and_then(|()| output.flush()).context("cannot write the result")
}
