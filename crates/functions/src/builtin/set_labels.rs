//! Sets labels, and the selectors that go by them.

use std::collections::BTreeMap;

use krm::{Kind, NodeId, Tag};

use super::Function;
use crate::config::FunctionConfig;
use crate::list::{Resource, ResourceList};
use crate::report::{Finding, Report, Severity};

pub(super) const FUNCTION: Function = Function {
    name: "set-labels",
    aliases: &[],
    summary: "Sets labels on all resources, their pod templates and the selectors that go by them.",
    usage: "\
The functionConfig is one of
- a ConfigMap with the labels in data,
- a SetLabels (fn.kpt.dev/v1alpha1) with the labels in labels.

Labels are added to metadata.labels of all resources, to spec.selector of Services and
ReplicationControllers, to spec.selector.matchLabels of Deployments, ReplicaSets, DaemonSets and
StatefulSets, and to the templates of pods, jobs and volume claims. In other selectors (of Jobs,
PodDisruptionBudgets, NetworkPolicies and topology spread constraints) a label is changed if it is
there. Resources for local use only stay as they are.
",
    example: "\
apiVersion: fn.kpt.dev/v1alpha1
kind: SetLabels
metadata:
  name: example
labels:
  color: orange
  fruit: apple
",
    body: run,
};

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    let mut report = Report::new();
    let is_placeholder =
        config.kind() == "ConfigMap" && config.name() == "function-input" && !has_data(config);
    let mut labels = BTreeMap::new();
    if config.is_empty() || (is_placeholder && config.at(&["data"]).is_some()) {
        report.info("`FunctionConfig` is not given");
    } else {
        match read(config) {
            Ok(read) => labels = read,
            Err(message) => {
                report.error(message);
                return report.fail();
            }
        }
    }
    let items = list.items_for_cluster();
    if items.is_empty() {
        report.info("no input resources");
        return report;
    }
    if is_placeholder || (config.kind().is_empty() && config.name().is_empty()) {
        return report.fail();
    }
    if labels.is_empty() {
        report.warning("no `labels` arguments are given in FunctionConfig");
        return report;
    }
    let field = if config.kind() == "ConfigMap" { "data" } else { "labels" };
    let mut setter = Setter { list, labels: &labels, count: 0 };
    setter.list.budget().follow(field);
    for item in items {
        if let Err(message) = setter.resource(item) {
            let finding = Finding::new(Severity::Error, message);
            // Beyond the budget, nobody will read it.
            if setter.list.afford(&finding).is_err() {
                break;
            }
            report.add(finding);
        }
    }
    report.info(format!("set {} labels in total", setter.count));
    if report.has_errors() { report.fail() } else { report }
}

fn has_data(config: &FunctionConfig) -> bool {
    config.texts(&["data"]).is_none_or(|data| !data.is_empty())
}

fn read(config: &FunctionConfig) -> Result<BTreeMap<String, String>, String> {
    let resource = config.resource();
    let labels = match (resource.group(), &*resource.kind) {
        ("", "ConfigMap") => config
            .texts(&["data"])
            .ok_or("failed to parse FunctionConfig as ConfigMap: all values of `data` must be texts"),
        ("fn.kpt.dev", "SetLabels") => config
            .strings(&["labels"])
            .ok_or("failed to parse FunctionConfig as SetLabels: all values of `labels` must be strings"),
        (group, kind) => {
            let dot = if group.is_empty() { "" } else { "." };
            return Err(format!(
                "unknown FunctionConfig `{kind}{dot}{group}`, expect `SetLabels.fn.kpt.dev` or `ConfigMap.v1`"
            ));
        }
    };
    Ok(labels?.into_iter().collect())
}

struct Setter<'l, 'a> {
    list: &'l mut ResourceList<'a>,
    labels: &'l BTreeMap<String, String>,
    /// Labels looked at: the catalog's function counts also those that are not to be created.
    count: usize,
}

impl Setter<'_, '_> {
    fn resource(&mut self, item: NodeId) -> Result<(), String> {
        let resource = self.list.resource(item);
        let is = |group: &str, version: &str, kind: &str| resource.is_roughly(group, version, kind);
        self.set(&resource, item, &["metadata", "labels"], true)?;
        if is("", "v1", "Service") || is("", "v1", "ReplicationController") {
            self.set(&resource, item, &["spec", "selector"], true)?;
        }
        let selects_always = is("", "", "Deployment")
            || is("", "", "ReplicaSet")
            || is("", "", "DaemonSet")
            || is("apps", "", "StatefulSet");
        if selects_always || is("batch", "", "Job") || is("policy", "", "PodDisruptionBudget") {
            self.set(&resource, item, &["spec", "selector", "matchLabels"], selects_always)?;
        }
        let is_policy = is("networking.k8s.io", "", "NetworkPolicy");
        if is_policy {
            self.set(&resource, item, &["spec", "podSelector", "matchLabels"], false)?;
        }
        if selects_always || is("", "v1", "ReplicationController") || is("batch", "", "Job") {
            // The catalog's function does not report what is wrong in a pod template.
            let _ = self.pod(&resource, self.list.at(item, &["spec", "template"]));
        }
        if let Some(job) = self.list.at(item, &["spec", "jobTemplate"]).filter(|_| is("batch", "", "CronJob"))
        {
            self.set(&resource, job, &["metadata", "labels"], true)?;
            if let Some(spec) = self.list.get(job, "spec") {
                self.set(&resource, spec, &["selector", "matchLabels"], false)?;
                self.pod(&resource, self.list.get(spec, "template"))?;
            }
        }
        if is("apps", "", "StatefulSet") {
            for volume in self.entries(Some(item), &["spec", "volumeClaimTemplates"]) {
                self.set(&resource, volume, &["metadata", "labels"], true)?;
                self.set(&resource, volume, &["selector", "matchLabels"], false)?;
            }
        }
        if is_policy {
            for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
                for rule in self.entries(Some(item), &["spec", rules]) {
                    for peer in self.entries(Some(rule), &[peers]) {
                        self.set(&resource, peer, &["podSelector", "matchLabels"], false)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn pod(&mut self, resource: &Resource, pod: Option<NodeId>) -> Result<(), String> {
        let Some(pod) = pod else { return Ok(()) };
        self.set(resource, pod, &["metadata", "labels"], true)?;
        for constraint in self.entries(Some(pod), &["spec", "topologySpreadConstraints"]) {
            self.set(resource, constraint, &["labelSelector", "matchLabels"], false)?;
        }
        Ok(())
    }

    fn entries(&self, node: Option<NodeId>, path: &[&str]) -> Vec<NodeId> {
        let sequence = node.and_then(|node| self.list.at(node, path));
        sequence.map(|sequence| self.list.entries(sequence).collect()).unwrap_or_default()
    }

    /// Sets the labels in the mapping at the end of a path; those that are not there, only if they are to be
    /// created.
    fn set(&mut self, resource: &Resource, node: NodeId, path: &[&str], create: bool) -> Result<(), String> {
        let odd = |key: &str| {
            format!(
                "Resource(apiVersion={}, kind={}) has unmatched field type \"string\" in fieldpath .{}.{key}",
                resource.api_version,
                resource.kind,
                path.join(".")
            )
        };
        let Some(first) = self.labels.keys().next() else { return Ok(()) };
        let mut mapping = Some(node);
        for field in path {
            mapping = mapping.and_then(|mapping| self.list.get(mapping, field));
            if mapping.is_some_and(|found| !self.list.is_null(found) && !self.list.is_mapping(found)) {
                return Err(odd(first));
            }
        }
        if !create {
            return self.change(mapping, odd);
        }
        if self.list.kind(node) == Kind::Mapping && mapping.is_none_or(|found| self.list.is_null(found)) {
            mapping = Some(self.list.ensure_path(node, path)?);
        }
        for (key, value) in self.labels {
            match mapping.and_then(|mapping| self.list.get(mapping, key)) {
                Some(label) if self.list.tag(label) != Some(Tag::String) => return Err(odd(key)),
                Some(label) => self.list.set(label, &**value)?,
                None => {
                    if let Some(mapping) = mapping {
                        self.list.set_field(mapping, key, &**value)?;
                    }
                }
            }
            self.count += 1;
        }
        Ok(())
    }

    /// Changes those labels that are there, which may be far fewer than are to be set.
    fn change(&mut self, mapping: Option<NodeId>, odd: impl Fn(&str) -> String) -> Result<(), String> {
        let present: BTreeMap<String, NodeId> = mapping
            .into_iter()
            .flat_map(|mapping| self.list.fields(mapping))
            .filter(|(key, _)| self.labels.contains_key(&**key))
            .map(|(key, label)| (key.into_owned(), label))
            .collect();
        for (key, label) in present {
            if self.list.tag(label) != Some(Tag::String) {
                return Err(odd(&key));
            }
            if let Some(value) = self.labels.get(&key) {
                self.list.set(label, &**value)?;
            }
        }
        self.count += self.labels.len();
        Ok(())
    }
}
