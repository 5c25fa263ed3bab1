//! From all that is configured to the index, and to what is told about it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use api::{Checked, ExecutorStatus, FunctionRules, GoRules, PodRules, TagRule, TemplateOverrides, Versions};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pods::{
    pod_cache,
    settings::{ContainerOverrides, FunctionSettings, Overrides},
};
use registry::Reference;

use super::{
    BuiltinFunction, Claim, ConfigFile, Executable, Index, Layer, Origin, PodFunction, Table, WarmUp,
    every_builtin,
};
use crate::{
    builtin::{self, Offered},
    evaluate::Asked,
};

/// What is configured now.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// `config.yaml` and where it is.
    pub config_file: Option<(Arc<Path>, Arc<ConfigFile>)>,
    /// The entries of `pod-cache-config` and where they are.
    pub pod_cache: Option<(Arc<Path>, Arc<[pod_cache::Entry]>)>,
    /// Files with FunctionConfigs, in the order of their names.
    pub files: BTreeMap<Arc<Path>, Arc<api::File>>,
    /// FunctionConfigs of the cluster, by name.
    pub objects: BTreeMap<Arc<str>, Arc<Object>>,
}

/// A FunctionConfig of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// When it was made: the first wins.
    pub created: Option<Time>,
    /// Its generation.
    pub generation: i64,
    /// What it says.
    pub checked: Checked,
}

/// What holds whatever is configured.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Which built-in functions are offered.
    pub builtins: Offered,
    /// The folder of the executables; `None` where none are run.
    pub functions: Option<PathBuf>,
    /// Whether functions run in pods.
    pub pods: bool,
    /// Put before image references without a "/".
    pub default_prefix: String,
    /// Whether a file can be executed, and why not.
    pub check: fn(&Path) -> Result<(), String>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Built {
    /// Who serves what.
    pub index: Arc<Index>,
    /// What became of the objects of the cluster.
    pub verdicts: HashMap<Arc<str>, Arc<Verdict>>,
    /// What operators should know of objects, wherever they are.
    pub warnings: Vec<String>,
}

/// What became of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// The generation that was looked at.
    pub generation: i64,
    /// What is not in force as it was written.
    pub problems: Vec<(Reason, String)>,
    /// Fields that this release does not know.
    pub unknown: Vec<String>,
    /// What serves the images.
    pub executors: Vec<ExecutorStatus>,
}

/// Why something is not in force, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is not what it should be.
    Invalid,
    /// Somebody else was first.
    Conflict,
    /// An executable is not there.
    ExecutableMissing,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Invalid => "Invalid",
            Self::Conflict => "Conflict",
            Self::ExecutableMissing => "ExecutableMissing",
        })
    }
}

impl Sources {
    /// Who serves what. Objects of the cluster win over objects in files, and those over older files; among
    /// objects the first does, by age in the cluster and by place in files.
    pub fn build(&self, terms: &Terms) -> Built {
        let mut builder = Builder { terms, layer: Layer::default(), warm_ups: Vec::new() };
        let mut verdicts = HashMap::new();
        let mut warnings = Vec::new();

        let mut objects: Vec<_> = self.objects.iter().collect();
        objects.sort_by_key(|(name, object)| (object.created.as_ref().map(|created| created.0), *name));
        for (name, object) in objects {
            let origin = Origin::Object(name.clone());
            let Checked { rules, problems, unknown } = &object.checked;
            let invalid = problems.iter().map(|problem| (Reason::Invalid, problem.to_string()));
            let mut verdict = Verdict {
                generation: object.generation,
                problems: invalid.collect(),
                unknown: unknown.iter().map(ToString::to_string).collect(),
                executors: Vec::new(),
            };
            builder.add(&origin, name, rules.as_ref(), &mut verdict);
            warnings.extend(verdict.problems.iter().map(|(_, problem)| format!("{origin}: {problem}")));
            verdicts.insert(name.clone(), Arc::new(verdict));
        }
        let mut layers = vec![std::mem::take(&mut builder.layer)];

        for (file, content) in &self.files {
            for object in &content.objects {
                let origin = Origin::FileObject { file: file.clone(), name: object.name.as_str().into() };
                let mut verdict = Verdict::default();
                builder.add(&origin, &object.name, object.rules.as_ref(), &mut verdict);
                let line = object.line;
                warnings.extend(
                    verdict.problems.iter().map(|(_, problem)| format!("{origin}, line {line}: {problem}")),
                );
            }
        }
        layers.push(std::mem::take(&mut builder.layer));

        if let (Some((path, file)), Some(functions)) = (&self.config_file, &terms.functions) {
            builder.layer = file.layer(path, functions, &terms.default_prefix).0;
        }
        if let Some((path, entries)) = self.pod_cache.as_ref().filter(|_| terms.pods) {
            builder.add_pod_cache(path, entries);
        }
        layers.push(builder.layer);
        if terms.builtins == Offered::All {
            layers.push(Layer { builtins: every_builtin(&terms.default_prefix), ..Layer::default() });
        }

        let mut known = HashSet::new();
        let mut warm_ups = builder.warm_ups;
        warm_ups.retain(|warm_up| known.insert(warm_up.asked.to_string()));
        Built { index: Arc::new(Index { layers, warm_ups }), verdicts, warnings }
    }
}

struct Builder<'a> {
    terms: &'a Terms,
    layer: Layer,
    warm_ups: Vec<WarmUp>,
}

impl Builder<'_> {
    fn add(&mut self, origin: &Origin, name: &str, rules: Option<&FunctionRules>, verdict: &mut Verdict) {
        let Some(rules) = rules else { return };
        let executor = |type_: &str, tags: Vec<String>, message: Option<String>| ExecutorStatus {
            type_: type_.to_owned(),
            tags: (!tags.is_empty()).then_some(tags),
            message,
        };
        if let Some(binary) = &rules.binary {
            let status = match &self.terms.functions {
                None => executor("binary", Vec::new(), Some("the exec runtime is turned off".to_owned())),
                Some(functions) => {
                    let path = functions.join(&binary.path);
                    let obstacle = (self.terms.check)(&path).err();
                    let shown = path.display().to_string();
                    let obstacle =
                        obstacle.map(|cause| format!("the executable {} {cause}", shown.escape_debug()));
                    if let Some(obstacle) = &obstacle {
                        let problem = format!(
                            "spec.binaryExecutor.path: {obstacle}: calls go on to the next runtime until it can \
                             be executed"
                        );
                        verdict.problems.push((Reason::ExecutableMissing, problem));
                    }
                    let function = binary.path.display().to_string();
                    let value = Arc::new(Executable { function, path, origin: origin.clone() });
                    let table = &mut self.layer.executables;
                    let won = lay_claims(
                        table,
                        rules,
                        &binary.versions,
                        &value,
                        |first| &first.origin,
                        |lost| {
                            verdict
                                .problems
                                .push((Reason::Conflict, format!("spec.binaryExecutor.tags: {lost}")));
                        },
                    );
                    executor("binary", texts(&won), obstacle)
                }
            };
            verdict.executors.push(status);
        }
        if let Some(pod) = &rules.pod {
            let status = if self.terms.pods {
                executor("pod", self.add_pod(origin, name, rules, pod, verdict), None)
            } else {
                executor("pod", Vec::new(), Some("the pod runtime is turned off".to_owned()))
            };
            verdict.executors.push(status);
        }
        if let Some(go) = &rules.go {
            let (tags, message) = self.add_builtin(origin, rules, go, verdict);
            verdict.executors.push(executor("go", tags, message));
        }
    }

    /// The tags that a built-in function serves, and why it serves none. A function that is not built in is no
    /// mistake of the object: Porch itself may have it.
    fn add_builtin(
        &mut self,
        origin: &Origin,
        rules: &FunctionRules,
        go: &GoRules,
        verdict: &mut Verdict,
    ) -> (Vec<String>, Option<String>) {
        if self.terms.builtins == Offered::Off {
            return (Vec::new(), Some("built-in functions are turned off".to_owned()));
        }
        let Some(function) = builtin::find(&go.id) else {
            let id = go.id.chars().take(100).collect::<String>();
            let message = format!("no function {id:?} is built in: other executors serve it");
            return (Vec::new(), Some(message));
        };
        let value = Arc::new(BuiltinFunction { function, origin: origin.clone() });
        let won = lay_claims(
            &mut self.layer.builtins,
            rules,
            &go.versions,
            &value,
            |first| &first.origin,
            |lost| {
                verdict.problems.push((Reason::Conflict, format!("spec.goExecutor.tags: {lost}")));
            },
        );
        (texts(&won), None)
    }

    fn add_pod(
        &mut self,
        origin: &Origin,
        name: &str,
        rules: &FunctionRules,
        pod: &PodRules,
        verdict: &mut Verdict,
    ) -> Vec<String> {
        let value = Arc::new(PodFunction { settings: Arc::new(settings(pod)), origin: origin.clone() });
        let table = &mut self.layer.pods;
        let won = lay_claims(
            table,
            rules,
            &pod.versions,
            &value,
            |first| &first.origin,
            |lost| {
                verdict.problems.push((Reason::Conflict, format!("spec.podExecutor.tags: {lost}")));
            },
        );
        let is_kept = pod.min_pods.is_some();
        if let Some(name) = rules.first_name(&self.terms.default_prefix) {
            let first = pod.versions.first();
            let wanted = won.iter().filter(|tag| is_kept || Some(**tag) == first);
            let warm_up = |tag: &&TagRule| Some(WarmUp { asked: asked(&name, &tag.versions)?, is_kept });
            self.warm_ups.extend(wanted.filter_map(warm_up));
        }
        match self.layer.pods_by_name.get(name) {
            Some(first) => {
                let problem = format!("metadata.name: {} has the same name", first.origin);
                verdict.problems.push((Reason::Conflict, problem));
            }
            None => drop(self.layer.pods_by_name.insert(name.to_owned(), value)),
        }
        texts(&won)
    }

    fn add_pod_cache(&mut self, path: &Arc<Path>, entries: &[pod_cache::Entry]) {
        let origin = Origin::File(path.clone());
        for entry in entries {
            // What is no image was told when the file was read.
            let Ok(image) = Reference::parse_with_prefix(&entry.image, &self.terms.default_prefix) else {
                continue;
            };
            let settings = Arc::new(entry.settings.clone());
            let value = Arc::new(PodFunction { settings, origin: origin.clone() });
            // The first entry of an image counts.
            let _ = self.layer.pods.add(&Claim::exact(&image), value);
            self.warm_ups.push(WarmUp { asked: image.into(), is_kept: false });
        }
    }
}

/// Lays claim to each tag under each prefix. Those tags that were won at least once; of the others, and of
/// prefixes under which somebody else was first, `tell` is told.
fn lay_claims<'a, T>(
    table: &mut Table<Arc<T>>,
    rules: &FunctionRules,
    tags: &'a [TagRule],
    value: &Arc<T>,
    origin: fn(&T) -> &Origin,
    mut tell: impl FnMut(String),
) -> Vec<&'a TagRule> {
    let mut won = Vec::new();
    let mut lost: BTreeMap<Origin, Vec<String>> = BTreeMap::new();
    for tag in tags {
        let mut is_won = false;
        for prefix in &rules.places {
            let claim = Claim::named(&rules.image, prefix.as_ref(), &tag.text, &tag.versions);
            match table.add(&claim, value.clone()) {
                Ok(()) => is_won = true,
                // Two ways to write one constraint.
                Err(first) if origin(first) == origin(value) => {}
                Err(first) => lost.entry(origin(first).clone()).or_default().push(claim.entry),
            }
        }
        if is_won {
            won.push(tag);
        }
    }
    for (first, entries) in lost {
        tell(format!("{} configures {} already, and was first", first, listed(&entries)));
    }
    won
}

/// The first few of many.
fn listed(entries: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = entries.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match entries.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn texts(tags: &[&TagRule]) -> Vec<String> {
    tags.iter().map(|tag| tag.text.clone()).filter(|text| !text.is_empty()).collect()
}

/// The image to warm up, where the tag tells of one.
fn asked(name: &Reference, versions: &Versions) -> Option<Asked> {
    match versions {
        Versions::Tag(tag) => name.with_tag(tag).ok().map(Asked::from),
        Versions::Digest(digest) => name.with_digest(digest).ok().map(Asked::from),
        Versions::Constraint(constraint) => {
            Some(Asked { image: name.clone(), constraint: Some(constraint.clone()) })
        }
        Versions::AnyTag | Versions::All => None,
    }
}

/// What an object says about pods, as the pod runtime wants to know it.
fn settings(rules: &PodRules) -> FunctionSettings {
    let PodRules { versions: _, time_to_live, min_pods, max_pods, max_queue, timeout, overrides } = rules;
    let TemplateOverrides { service_account_name, security_context, init_container, container } =
        overrides.clone();
    let container_overrides = |overrides: Option<api::ContainerOverrides>| {
        let api::ContainerOverrides { resources, env, env_from } = overrides.unwrap_or_default();
        ContainerOverrides { resources, env, env_from }
    };
    FunctionSettings {
        time_to_live: *time_to_live,
        min_pods: *min_pods,
        max_pods: *max_pods,
        max_queue: *max_queue,
        timeout: *timeout,
        overrides: Overrides {
            service_account: service_account_name,
            security_context,
            init_container: container_overrides(init_container),
            container: container_overrides(container),
        },
    }
}
