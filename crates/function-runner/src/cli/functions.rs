//! `function-runner functions`: what a service can run, and by which executor.

use std::process::ExitCode;

use anyhow::Context as _;
use flags::{Flags, Mistakes};
use serde::Serialize;

use super::{explain::read_configuration, in_runtime, say, table::table};
use crate::{
    args,
    routing::Index,
    settings::{BuiltinSettings, Logging, Machine, Settings},
    telemetry,
};

/// All that can be run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    builtin_functions: Offer,
    /// Which FunctionConfigs of the cluster were considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    function_configs: Option<String>,
    /// Prefixes of the images that may be run; none means all.
    allowed_images: Vec<String>,
    /// What is configured, in the order in which executors are asked.
    functions: Vec<Row>,
    /// What becomes of all other images.
    other_images: Others,
}

/// Which built-in functions are offered.
#[derive(Debug, Serialize)]
struct Offer {
    offered: String,
    reason: String,
}

/// Some images that are configured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    executor: &'static str,
    /// As it was written. Without tag and digest: all versions.
    image: String,
    /// The name of a built-in function, or an executable file.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs_as: Option<String>,
    /// Who says so.
    source: String,
    /// Why it cannot be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Images that are not configured.
#[derive(Debug, Serialize)]
struct Others {
    /// What runs them, `null` for nothing.
    executor: Option<&'static str>,
    reason: String,
}

pub(super) fn main(mut flags: Flags) -> Result<ExitCode, Mistakes> {
    flags.refuse_arguments();
    let is_json = flags.get(&args::OUTPUT) == "json";
    let mut settings = Settings::gather(&mut flags, &Machine);
    if !flags.given(&args::LOG_LEVEL) {
        // A person wants the answer; warnings and worse are told beside it.
        settings.logging = Logging { level: 1, ..settings.logging };
    }
    flags.finish(settings).map(|settings| in_runtime(show(settings, is_json)))
}

async fn show(settings: Settings, is_json: bool) -> anyhow::Result<ExitCode> {
    telemetry::start_logs(settings.logging);
    let (routing, function_configs) = read_configuration(&settings).await?;
    let listing = Listing::new(&settings, function_configs, &routing.index());
    Ok(say(&if is_json {
        serde_json::to_string_pretty(&listing).context("cannot write the answer as JSON")?
    } else {
        listing.to_text()
    }))
}

impl Listing {
    fn new(settings: &Settings, function_configs: Option<String>, index: &Index) -> Self {
        let BuiltinSettings { offered, reason, .. } = &settings.builtin;
        let obstacle = match &settings.pod {
            None => Some("the pod runtime is turned off by --disable-runtimes"),
            Some(pod) => pod.obstacle(),
        };
        let allowed = settings.registries.allowed.prefixes();
        Self {
            builtin_functions: Offer { offered: offered.to_string(), reason: reason.clone() },
            function_configs,
            allowed_images: allowed.iter().map(ToString::to_string).collect(),
            functions: builtins(index).chain(executables(index)).chain(pods(index)).collect(),
            other_images: Others {
                executor: obstacle.is_none().then_some("pod"),
                reason: obstacle.unwrap_or("the pod runtime takes every image").to_owned(),
            },
        }
    }

    fn to_text(&self) -> String {
        let rows = self.functions.iter().map(|row| {
            let runs_as = match (&row.runs_as, &row.problem) {
                (Some(runs_as), Some(problem)) => format!("{runs_as}, which {problem}"),
                (Some(runs_as), None) => runs_as.clone(),
                (None, _) => "its image".to_owned(),
            };
            [row.executor.to_owned(), row.image.clone(), runs_as, row.source.clone()]
        });
        let mut text = table(["EXECUTOR", "IMAGE", "RUNS AS", "SOURCE"], rows);
        let Offer { offered, reason } = &self.builtin_functions;
        let mut notes = vec![format!("Built-in functions: {offered}, as {reason}.")];
        notes.extend(self.function_configs.iter().map(|configs| format!("FunctionConfigs: {configs}.")));
        if !self.allowed_images.is_empty() {
            notes.push(format!("Allowed are only images under {}.", self.allowed_images.join(", ")));
        }
        let Others { executor, reason } = &self.other_images;
        notes.push(match executor {
            Some(_) => "Any other image runs in a pod.".to_owned(),
            None => format!("No other image runs: {reason}."),
        });
        text.push('\n');
        text.push_str(&notes.join("\n"));
        text
    }
}

fn builtins(index: &Index) -> impl Iterator<Item = Row> {
    let entries = index.layers.iter().flat_map(|layer| layer.builtins.entries());
    entries.map(|(image, found)| Row {
        executor: "builtin",
        image: image.to_owned(),
        runs_as: Some(found.function.name().to_owned()),
        source: found.origin.to_string(),
        problem: None,
    })
}

fn executables(index: &Index) -> impl Iterator<Item = Row> {
    let entries = index.layers.iter().flat_map(|layer| layer.executables.entries());
    entries.map(|(image, found)| Row {
        executor: "exec",
        image: image.to_owned(),
        runs_as: Some(found.path.display().to_string()),
        source: found.origin.to_string(),
        problem: found.check().err(),
    })
}

fn pods(index: &Index) -> impl Iterator<Item = Row> {
    let entries = index.layers.iter().flat_map(|layer| layer.pods.entries());
    entries.map(|(image, found)| Row {
        executor: "pod",
        image: image.to_owned(),
        runs_as: None,
        source: found.origin.to_string(),
        problem: None,
    })
}
