//! What `explain` found out, as text and as JSON.

use std::path::PathBuf;

use registry::{Metadata, Reference};
use serde::Serialize;
use wire::Failure;

/// All that was found out. Never holds a secret.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// The image with the default prefix.
    pub(super) image: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tag: Option<String>,
    #[serde(rename = "allowed")]
    pub(super) is_allowed: bool,
    /// Why it is allowed or not.
    pub(super) policy: String,
    /// What would run it, `null` for nothing.
    pub(super) executor: Option<&'static str>,
    /// Which FunctionConfigs of the cluster were considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_configs: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) builtin: Option<Builtin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exec: Option<Exec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pod: Option<Pod>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) registry: Option<Registry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) registry_error: Option<Failed>,
}

/// What the built-in functions make of it.
#[derive(Debug, Serialize)]
pub(super) struct Builtin {
    pub(super) runs: bool,
    pub(super) reason: String,
    /// The entry of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entry: Option<String>,
    /// The function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<&'static str>,
    /// The image a constraint was found to mean.
    #[serde(skip)]
    pub(super) reference: Option<Reference>,
}

/// What the exec runtime makes of it.
#[derive(Debug, Serialize)]
pub(super) struct Exec {
    pub(super) runs: bool,
    pub(super) reason: String,
    /// The entry of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entry: Option<String>,
    /// The executable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<PathBuf>,
    /// The image a constraint was found to mean.
    #[serde(skip)]
    pub(super) reference: Option<Reference>,
}

/// What the pod runtime makes of it.
#[derive(Debug, Serialize)]
pub(super) struct Pod {
    pub(super) runs: bool,
    pub(super) reason: String,
}

/// What the registry says of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Registry {
    reference: String,
    /// The name it was read by.
    source: String,
    digest: String,
    /// What a pod runs, where that is not the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<String>,
    entrypoint: Vec<String>,
    command: Vec<String>,
    user: String,
    working_dir: String,
    platform: String,
    /// The entry of the Docker config, `null` for none.
    credential: Option<String>,
    trust: String,
}

/// Why the registry says nothing of it.
#[derive(Debug, Serialize)]
pub(super) struct Failed {
    code: String,
    message: String,
}

impl Builtin {
    pub(super) fn no(reason: String) -> Self {
        Self { runs: false, reason, entry: None, function: None, reference: None }
    }
}

impl Exec {
    pub(super) fn no(reason: &str) -> Self {
        Self { runs: false, reason: reason.to_owned(), entry: None, file: None, reference: None }
    }
}

impl Registry {
    pub(super) fn new(metadata: &Metadata, is_pinned: bool) -> Self {
        let Metadata { reference, source, digest, .. } = metadata;
        Self {
            reference: reference.as_given().to_owned(),
            source: source.as_given().to_owned(),
            digest: digest.clone(),
            pinned: reference.with_digest(digest).ok().filter(|_| is_pinned).map(|image| image.to_string()),
            entrypoint: metadata.entrypoint.clone(),
            command: metadata.command.clone(),
            user: metadata.user.clone(),
            working_dir: metadata.working_dir.clone(),
            platform: metadata.platform.to_string(),
            credential: metadata.credential.clone(),
            trust: metadata.trust.to_string(),
        }
    }
}

impl Failed {
    pub(super) fn new(failure: &Failure) -> Self {
        Self { code: format!("{:?}", failure.code()), message: failure.message() }
    }
}

impl Report {
    /// The report on an image that is not allowed: nobody was asked about it.
    pub(super) fn refused(image: &Reference, tag: Option<String>, policy: String) -> Self {
        Self {
            image: image.to_string(),
            tag,
            is_allowed: false,
            policy,
            executor: None,
            function_configs: None,
            builtin: None,
            exec: None,
            pod: None,
            registry: None,
            registry_error: None,
        }
    }

    /// As aligned lines.
    pub(super) fn to_text(&self) -> String {
        let rows = self.rows();
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let lines: Vec<String> = rows
            .iter()
            .map(|(name, value)| format!("{name:width$}  {value}").trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let verdict = |is_so: bool, reason: &str| format!("{}: {reason}", if is_so { "yes" } else { "no" });
        let mut rows = vec![("image", self.image.clone())];
        rows.extend(self.tag.clone().map(|tag| ("tag", tag)));
        rows.push(("allowed", verdict(self.is_allowed, &self.policy)));
        rows.extend(self.function_configs.clone().map(|configs| ("FunctionConfigs", configs)));
        rows.extend(self.builtin.as_ref().map(|builtin| ("builtin", verdict(builtin.runs, &builtin.reason))));
        rows.extend(self.exec.as_ref().map(|exec| ("exec", verdict(exec.runs, &exec.reason))));
        rows.extend(self.pod.as_ref().map(|pod| ("pod", verdict(pod.runs, &pod.reason))));
        let function = self.builtin.as_ref().and_then(|builtin| builtin.function);
        let file = self.exec.as_ref().and_then(|exec| exec.file.as_ref());
        rows.push((
            "runs as",
            match (self.executor, function, file) {
                (Some("builtin"), Some(function), _) => format!("the built-in function {function}"),
                (Some("exec"), _, Some(file)) => format!("the executable {}", file.display()),
                (Some(_), ..) => "a pod".to_owned(),
                (None, ..) => "nothing".to_owned(),
            },
        ));
        if let Some(registry) = &self.registry {
            rows.extend(registry.rows());
        }
        rows.extend(
            self.registry_error
                .as_ref()
                .map(|error| ("registry", format!("{}: {}", error.code, error.message))),
        );
        rows
    }
}

impl Registry {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let or = |text: &str, other: &str| if text.is_empty() { other } else { text }.to_owned();
        let mut rows = vec![("reference", self.reference.clone())];
        if self.source != self.reference {
            rows.push(("mirror", self.source.clone()));
        }
        rows.push(("digest", self.digest.clone()));
        rows.extend(self.pinned.clone().map(|pinned| ("pinned", pinned)));
        rows.extend([
            ("entrypoint", words(&self.entrypoint)),
            ("command", words(&self.command)),
            ("user", or(&self.user, "root")),
            ("folder", or(&self.working_dir, "/")),
            ("platform", self.platform.clone()),
            ("credential", self.credential.clone().unwrap_or_else(|| "none".to_owned())),
            ("trust", self.trust.clone()),
        ]);
        rows
    }
}

/// Words as a shell would take them, or nearly so.
fn words(words: &[String]) -> String {
    let plain =
        |word: &String| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    let shown: Vec<String> =
        words.iter().map(|word| if plain(word) { word.clone() } else { format!("{word:?}") }).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(" ") }
}
