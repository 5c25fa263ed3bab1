//! What a FunctionConfig says, understood: values that are what they should be, and a word on each that is not.

use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

use flags::GoDuration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use registry::{InvalidPrefix, Prefix, Reference};
use serde_json::Value;

use crate::{
    BinaryExecutor, FunctionConfigSpec, GoExecutor, PodExecutor, TemplateOverrides, Versions,
    conform::{Findings, shown},
    definitions,
    field::{FieldPath, Problem},
};

/// Prefixes and tags beyond these are left out. No sensible object comes near, and each tag is served under
/// each prefix.
const MOST_PREFIXES: usize = 100;
const MOST_TAGS: usize = 1000;

const EXECUTORS: [&str; 3] = ["podExecutor", "binaryExecutor", "goExecutor"];

/// The schema of a FunctionConfig's spec.
static SPEC: LazyLock<JSONSchemaProps> = LazyLock::new(|| {
    let [definition, _] = definitions();
    let version = definition.spec.versions.into_iter().next();
    let schema = version.and_then(|version| version.schema?.open_api_v3_schema);
    schema.and_then(|schema| schema.properties?.remove("spec")).unwrap_or_default()
});

/// Which images of a function are served by what. Values that are `None` are left to flags.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionRules {
    /// The last part of the images' repositories.
    pub image: String,
    /// What their repositories may begin with; `None` leaves it open. None at all: nothing is served.
    pub places: Vec<Option<Prefix>>,
    /// Images that an executable serves.
    pub binary: Option<BinaryRules>,
    /// Images whose pods are kept in a special way.
    pub pod: Option<PodRules>,
    /// Images that a built-in function serves.
    pub go: Option<GoRules>,
}

/// Images that an executable serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryRules {
    /// The executable, from the functions folder unless it is absolute.
    pub path: PathBuf,
    /// Which images.
    pub versions: Vec<TagRule>,
}

/// Images whose pods are kept in a special way.
#[derive(Debug, Clone, PartialEq)]
pub struct PodRules {
    /// Which images.
    pub versions: Vec<TagRule>,
    /// How long a pod is kept after its last use.
    pub time_to_live: Option<Duration>,
    /// Pods kept whether they are used or not.
    pub min_pods: Option<usize>,
    /// Pods at most.
    pub max_pods: Option<usize>,
    /// The number of calls in a pod from which on another pod is wanted.
    pub max_queue: Option<usize>,
    /// How long one call may take.
    pub timeout: Option<Duration>,
    /// What replaces parts of the template.
    pub overrides: TemplateOverrides,
}

/// Images that a built-in function serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoRules {
    /// The function.
    pub id: String,
    /// Which images.
    pub versions: Vec<TagRule>,
}

/// One of the tags of an executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagRule {
    /// As it was written; empty where nothing was.
    pub text: String,
    /// What it means.
    pub versions: Versions,
}

/// What became of a spec.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// What it says. `None` if nothing can be made of it.
    pub rules: Option<FunctionRules>,
    /// What of it is wrong, and not part of the rules.
    pub problems: Vec<Problem>,
    /// Fields that this release does not know.
    pub unknown: Vec<FieldPath>,
}

impl FunctionRules {
    /// Understands the `spec` of an object. The prefix "" stands for the default prefix.
    pub fn check(spec: Option<&Value>, default_prefix: &str) -> Checked {
        let path = FieldPath::of(["spec"]);
        let mut findings = Findings::default();
        let mut conforming = match spec.filter(|spec| !spec.is_null()) {
            Some(spec) => findings.conform(spec, &SPEC, &path),
            None => {
                findings.problems.push(path.problem("is missing"));
                None
            }
        };
        let has_executor = |spec: &Value| EXECUTORS.iter().any(|name| !spec[*name].is_null());
        if spec.is_some_and(|spec| spec.is_object() && !has_executor(spec)) {
            conforming = None;
            findings.problems.push(path.problem(
                "at least one of podExecutor, binaryExecutor and goExecutor must be set; this release knows no \
                 other executors",
            ));
        }
        let Findings { mut problems, unknown } = findings;
        let rules = conforming.and_then(|spec| match serde_json::from_value(spec) {
            Ok(spec) => Reader { default_prefix, problems: &mut problems }.rules(spec, &path),
            // What fits the schema fits the type, but for what only the type tells, such as very long numbers.
            Err(error) => {
                problems.push(path.problem(error));
                None
            }
        });
        Checked { rules, problems, unknown }
    }

    /// The name, without a tag, that images have under the first prefix or else under the default prefix.
    pub fn first_name(&self, default_prefix: &str) -> Option<Reference> {
        match self.places.first()? {
            Some(prefix) => Reference::parse(&format!("{prefix}/{}", self.image)).ok(),
            None => Reference::parse_with_prefix(&self.image, default_prefix).ok(),
        }
    }
}

struct Reader<'a> {
    default_prefix: &'a str,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn rules(&mut self, spec: FunctionConfigSpec, path: &FieldPath) -> Option<FunctionRules> {
        let FunctionConfigSpec { image, prefixes, pod_executor, binary_executor, go_executor } = spec;
        let image_is_name = Reference::parse(&format!("registry.invalid/{image}"))
            .is_ok_and(|parsed| parsed.name() == image && parsed.repository() == image);
        if !image_is_name {
            let cause = format!(
                "{} must be the last part of the images' name, such as set-labels; what stands before it belongs \
                 under prefixes, and what after it under an executor's tags",
                shown(&image)
            );
            self.problems.push(path.field("image").problem(cause));
            return None;
        }
        let places = self.places(prefixes, &path.field("prefixes"));
        let binary =
            binary_executor.and_then(|executor| self.binary(executor, &path.field("binaryExecutor")));
        let pod = pod_executor.map(|executor| self.pod(executor, &path.field("podExecutor")));
        let go = go_executor.map(|executor| self.go(executor, &image, &path.field("goExecutor")));
        Some(FunctionRules { image, places, binary, pod, go })
    }

    fn places(&mut self, prefixes: Option<Vec<String>>, path: &FieldPath) -> Vec<Option<Prefix>> {
        let prefixes = prefixes.unwrap_or_default();
        if prefixes.is_empty() {
            return vec![None];
        }
        self.bound(prefixes.len(), MOST_PREFIXES, path);
        let mut places = Vec::new();
        for (place, text) in prefixes.iter().take(MOST_PREFIXES).enumerate() {
            let meant = if text.is_empty() { self.default_prefix } else { text };
            let prefix = match meant {
                // Without a default prefix, images without one may be anywhere.
                "" => None,
                meant => match prefix(meant) {
                    Ok(prefix) => Some(prefix),
                    Err(cause) => {
                        self.problems.push(path.entry(place).problem(cause));
                        continue;
                    }
                },
            };
            // "" and the default prefix itself are commonly both there.
            if !places.contains(&prefix) {
                places.push(prefix);
            }
        }
        places
    }

    fn binary(&mut self, executor: BinaryExecutor, path: &FieldPath) -> Option<BinaryRules> {
        let BinaryExecutor { path: file, tags } = executor;
        let versions = self.versions(&tags, &path.field("tags"));
        if !is_executable_path(&file) {
            let cause = format!(
                "{} must be a path inside the functions folder, without \"..\", or an absolute path",
                shown(&file)
            );
            self.problems.push(path.field("path").problem(cause));
            return None;
        }
        Some(BinaryRules { path: PathBuf::from(file), versions })
    }

    fn go(&mut self, executor: GoExecutor, image: &str, path: &FieldPath) -> GoRules {
        let GoExecutor { id, tags } = executor;
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| image.to_owned());
        GoRules { id, versions: self.versions(&tags, &path.field("tags")) }
    }

    fn pod(&mut self, executor: PodExecutor, path: &FieldPath) -> PodRules {
        let PodExecutor {
            tags,
            time_to_live,
            max_parallel_executions,
            preferred_max_queue_length,
            min_replicas,
            timeout,
            template_overrides,
        } = executor;
        let tags = tags.unwrap_or_default();
        let versions = if tags.is_empty() {
            vec![TagRule { text: String::new(), versions: Versions::All }]
        } else {
            self.versions(&tags, &path.field("tags"))
        };
        let time_to_live = self.duration(&time_to_live, &path.field("timeToLive"));
        let timeout = timeout.and_then(|text| self.duration(&text, &path.field("timeout")));
        if timeout.is_some_and(GoDuration::is_negative) {
            self.problems.push(path.field("timeout").problem("must not be negative"));
        }
        let max_pods = positive(max_parallel_executions);
        let mut min_pods = positive(min_replicas);
        if let (Some(least), Some(most)) = (min_pods, max_pods)
            && least > most
        {
            let cause = format!("is {least}, more than maxParallelExecutions allows: {most} are kept");
            self.problems.push(path.field("minReplicas").problem(cause));
            min_pods = Some(most);
        }
        let names_none =
            versions.iter().all(|rule| matches!(rule.versions, Versions::All | Versions::AnyTag));
        if min_pods.is_some() && names_none {
            let cause = "keeps no pods: without a tag or a constraint in tags there is nothing to start";
            self.problems.push(path.field("minReplicas").problem(cause));
        }
        PodRules {
            versions,
            time_to_live: time_to_live.and_then(GoDuration::positive),
            min_pods,
            max_pods,
            max_queue: positive(preferred_max_queue_length),
            timeout: timeout.and_then(GoDuration::positive),
            overrides: template_overrides.unwrap_or_default(),
        }
    }

    fn versions(&mut self, tags: &[String], path: &FieldPath) -> Vec<TagRule> {
        self.bound(tags.len(), MOST_TAGS, path);
        let mut known = HashSet::new();
        let mut rules = Vec::new();
        for (place, text) in tags.iter().take(MOST_TAGS).enumerate() {
            match Versions::parse(text) {
                Ok(versions) if known.insert(text) => rules.push(TagRule { text: text.clone(), versions }),
                Ok(_) => {}
                Err(cause) => {
                    self.problems.push(path.entry(place).problem(format!("{}: {cause}", shown(text))));
                }
            }
        }
        rules
    }

    fn bound(&mut self, entries: usize, most: usize, path: &FieldPath) {
        if entries > most {
            self.problems.push(path.problem(format!(
                "has {entries} entries, of which only the first {most} are used; make more objects"
            )));
        }
    }

    fn duration(&mut self, text: &str, path: &FieldPath) -> Option<GoDuration> {
        let parsed = text.parse().map_err(|cause| path.problem(format!("{}: {cause}", shown(text))));
        parsed.map_err(|problem| self.problems.push(problem)).ok()
    }
}

/// What is zero or less is left to flags.
fn positive(number: Option<i64>) -> Option<usize> {
    usize::try_from(number?).ok().filter(|number| *number > 0)
}

/// Reads a prefix as image references are read: without a registry it is one of Docker Hub.
fn prefix(text: &str) -> Result<Prefix, InvalidPrefix> {
    let first = text.split('/').next().unwrap_or_default();
    if first == "localhost" || first.contains(['.', ':']) {
        Prefix::parse(text)
    } else {
        Prefix::parse(&format!("docker.io/{text}"))
    }
}

fn is_executable_path(path: &str) -> bool {
    let path_is_inside = |path: &Path| {
        path.components().next().is_some()
            && path.components().all(|component| matches!(component, Component::Normal(_)))
    };
    !path.contains('\0') && (path.starts_with('/') || path_is_inside(Path::new(path)))
}
