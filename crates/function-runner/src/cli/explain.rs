//! `function-runner explain`: which executor would run an image and why, and what its registry says of it.

mod report;

use std::{ffi::OsString, process::ExitCode, time::Duration};

use anyhow::Context as _;
use flags::{Flags, Mistakes, Outcome};
use registry::Reference;
use tokio::time::Instant;
use wire::Failure;

use super::{in_runtime, run, say};
use crate::{
    args,
    builtin::Offered,
    evaluate::Asked,
    images::Images,
    policy::Policy,
    routing::{BuiltinFunction, Index, Routing, objects::ObjectFollower},
    serve,
    settings::{
        self, BuiltinSettings, Cluster, ExecSettings, FunctionConfigSettings, Logging, Machine, PodSettings,
        Settings,
    },
    telemetry,
};
use report::{Builtin, Exec, Failed, Pod, Registry, Report};

/// What is to be explained.
#[derive(Debug)]
struct Explain {
    image: String,
    tag: String,
    json: bool,
    timeout: Option<Duration>,
    settings: Settings,
}

/// The image may stand before the flags, after them or among them.
pub(super) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut arguments: Vec<OsString> = arguments.collect();
    let image = match args::EXPLAIN.parse(arguments.iter().cloned()) {
        // What follows the first that is no flag is left unread.
        Outcome::Flags(flags) if !flags.arguments().is_empty() => {
            Some(arguments.remove(arguments.len() - flags.arguments().len()))
        }
        _ => None,
    };
    run(&args::EXPLAIN, arguments, |flags| Ok(in_runtime(read(image, flags)?.run())))
}

fn read(image: Option<OsString>, mut flags: Flags) -> Result<Explain, Mistakes> {
    let images: Vec<OsString> = image.into_iter().chain(flags.arguments().iter().cloned()).collect();
    let image = match images.as_slice() {
        [image] => image.to_string_lossy().into_owned(),
        [] => {
            flags.add(mistake("name the image to explain, such as example.com/set-owner:v1"));
            String::new()
        }
        [_, second, ..] => {
            let second = second.to_string_lossy();
            flags.add(mistake(&format!("one image is explained at a time; what is {second:?}?")));
            String::new()
        }
    };
    let timeout = settings::not_negative(&mut flags, &args::TIMEOUT);
    let mut settings = Settings::gather(&mut flags, &Machine);
    if !flags.given(&args::LOG_LEVEL) {
        // A person wants the answer; warnings and worse are told beside it.
        settings.logging = Logging { level: 1, ..settings.logging };
    }
    let explain = Explain {
        image,
        tag: flags.get(&args::TAG),
        json: flags.get(&args::OUTPUT) == "json",
        timeout: (!timeout.is_zero()).then_some(timeout),
        settings,
    };
    flags.finish(explain)
}

fn mistake(text: &str) -> flags::Mistake {
    flags::Mistake::Other(text.to_owned())
}

impl Explain {
    async fn run(self) -> anyhow::Result<ExitCode> {
        telemetry::start_logs(self.settings.logging);
        let report = self.explain().await?;
        if self.json {
            say(&serde_json::to_string_pretty(&report).context("cannot write the answer as JSON")?);
        } else {
            say(&report.to_text());
        }
        Ok(if report.executor.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn explain(&self) -> anyhow::Result<Report> {
        let Settings { default_image_prefix, registries, builtin, exec, pod, .. } = &self.settings;
        let policy =
            Policy { default_prefix: default_image_prefix.clone(), allowed: registries.allowed.clone() };
        let image = Reference::parse_with_prefix(&self.image, default_image_prefix)?;
        let tag = (!self.tag.is_empty()).then(|| self.tag.clone());
        let asked = match policy.admit(&self.image, &self.tag) {
            Ok(asked) => asked,
            Err(Failure::ImageDenied { cause, .. }) => return Ok(Report::refused(&image, tag, cause)),
            Err(failure) => return Err(failure.into()),
        };
        let (routing, cluster) = read_configuration(&self.settings).await?;
        let index = routing.index();
        let builtin = explain_builtin(builtin, &asked, &index);
        let taken = builtin.runs.then_some("builtin");
        let exec = explain_exec(exec.as_ref(), &asked, &index, taken);
        let images = Images::new(registries)?;
        // Where something of ours runs it, the tag is the one it was configured for.
        let asked = builtin.reference.clone().or(exec.reference.clone()).map_or(asked, Asked::from);
        let taken = taken.or(exec.runs.then_some("exec"));
        let mut pod = explain_pod(pod.as_ref(), &asked, &index, taken);
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let found = images.resolve(&asked.image, asked.constraint.as_ref(), deadline).await;
        if pod.runs && found.is_err() {
            pod = Pod { runs: false, reason: format!("{}, but needs to read it: see below", pod.reason) };
        }
        let is_pinned = self.settings.pod.as_ref().is_some_and(|pod| pod.pin_digests);
        Ok(Report {
            image: image.to_string(),
            tag,
            is_allowed: true,
            policy: match policy.allowed.allowing(&image) {
                Some(prefix) => format!("it is under {prefix} of --allowed-images"),
                None => "every image is, as --allowed-images lists none".to_owned(),
            },
            executor: taken.or(pod.runs.then_some("pod")),
            function_configs: cluster,
            builtin: Some(builtin),
            exec: Some(exec),
            pod: Some(pod),
            registry: found.as_ref().ok().map(|metadata| Registry::new(metadata, is_pinned)),
            registry_error: found.err().map(|failure| Failed::new(&failure)),
        })
    }
}

/// Reads all that is configured, and tells how that went in the cluster.
pub(super) async fn read_configuration(settings: &Settings) -> anyhow::Result<(Routing, Option<String>)> {
    let Settings { default_image_prefix, function_configs, builtin, exec, pod, .. } = settings;
    let (routing, _) = serve::start_routing(
        default_image_prefix,
        builtin.offered,
        exec.as_ref(),
        pod.as_ref(),
        function_configs.folder.clone(),
    )?;
    let cluster = read_cluster(function_configs, &routing).await;
    Ok((routing, cluster))
}

/// Reads the FunctionConfigs of the cluster, and tells how that went.
async fn read_cluster(settings: &FunctionConfigSettings, routing: &Routing) -> Option<String> {
    let FunctionConfigSettings { cluster, namespace, .. } = settings;
    if *cluster == Cluster::None {
        return None;
    }
    let read = match serve::connect(cluster, |_| ()).await {
        Ok(Some(client)) => ObjectFollower::new(client, namespace, routing.clone()).look().await,
        Ok(None) => return None,
        Err(error) => return Some(format!("those of the cluster are not considered: {error}")),
    };
    Some(match read {
        Ok(objects) => format!("{objects} are in {namespace} of the cluster"),
        Err(error) => format!("those of the cluster are not considered: {}", ::pods::words(&error)),
    })
}

fn explain_builtin(builtin: &BuiltinSettings, asked: &Asked, index: &Index) -> Builtin {
    let Some(found) = index.builtin(&asked.image, asked.constraint.as_ref()) else {
        let BuiltinSettings { offered, reason, .. } = builtin;
        return Builtin::no(match offered {
            Offered::Off => "they are turned off by --builtin-functions".to_owned(),
            Offered::Configured => format!(
                "no FunctionConfig lists it under goExecutor, and nothing else is offered as {reason}"
            ),
            Offered::All => "none has its name".to_owned(),
        });
    };
    let BuiltinFunction { function, origin } = &**found.value;
    let name = function.name();
    Builtin {
        runs: true,
        reason: format!("the entry {:?} of {origin} names the built-in function {name}", found.entry),
        entry: Some(found.entry.to_owned()),
        function: Some(name),
        reference: found.tag.and_then(|tag| asked.image.with_tag(tag).ok()),
    }
}

fn explain_exec(
    exec: Option<&ExecSettings>,
    asked: &Asked,
    index: &Index,
    taken: Option<&'static str>,
) -> Exec {
    let Some(exec) = exec else { return Exec::no("it is turned off by --disable-runtimes") };
    if let Some(first) = taken {
        return Exec::no(&format!("it is not asked, as {first} comes first"));
    }
    let Some(found) = index.executable(&asked.image, asked.constraint.as_ref()) else {
        let config = exec.config.display();
        return Exec::no(&match index.executables() {
            0 => format!(
                "{config} lists no images, or is not there, and no FunctionConfig names an executable"
            ),
            entries => format!("none of the {entries} entries of {config} and of FunctionConfigs is for it"),
        });
    };
    let origin = &found.value.origin;
    let file = &found.value.path;
    let problem = found.value.check().err();
    let reason = match &problem {
        None => format!("the entry {:?} of {origin} names the executable {}", found.entry, file.display()),
        Some(problem) => format!(
            "the entry {:?} of {origin} names the executable {}, but that {problem}",
            found.entry,
            file.display()
        ),
    };
    let reference: Option<Reference> = found.tag.and_then(|tag| asked.image.with_tag(tag).ok());
    Exec {
        runs: problem.is_none(),
        reason,
        entry: Some(found.entry.to_owned()),
        file: Some(file.clone()),
        reference,
    }
}

fn explain_pod(pod: Option<&PodSettings>, asked: &Asked, index: &Index, taken: Option<&'static str>) -> Pod {
    let obstacle = match pod {
        None => Some("it is turned off by --disable-runtimes"),
        Some(pod) => pod.obstacle(),
    };
    let reason = match (obstacle, taken) {
        (Some(obstacle), _) => obstacle.to_owned(),
        (None, Some(first)) => format!("it is not asked, as {first} comes first"),
        (None, None) => match index.pod(&asked.image) {
            Some(function) => format!("it takes every image; its pods are as {} says", function.origin),
            None => "it takes every image".to_owned(),
        },
    };
    Pod { runs: obstacle.is_none() && taken.is_none(), reason }
}
