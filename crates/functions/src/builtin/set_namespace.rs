//! Moves resources to another namespace.

use std::collections::{BTreeSet, HashSet};

use krm::NodeId;

use super::Function;
use crate::config::FunctionConfig;
use crate::go;
use crate::list::{Resource, ResourceList};
use crate::report::{File, Finding, Report, Severity};
use crate::scope::is_namespaced;

pub(super) const FUNCTION: Function = Function {
    name: "set-namespace",
    aliases: &["set-namespace-v3"],
    summary: "Sets the namespace of all resources that belong to one, and of what refers to them.",
    usage: "\
The functionConfig is one of
- a ConfigMap with the new namespace in data.namespace,
- the package context, a ConfigMap named kptfile.kpt.dev with the new namespace in data.name,
- a SetNamespace (fn.kpt.dev/v1alpha1) with the new namespace in namespace.
With namespaceMatcher beside the namespace, only resources that are, or originally were, in that
namespace are changed.

Changed are metadata.namespace of resources that belong to a namespace (of custom resources, those
that have the field), the name of Namespaces, the namespace of subjects in ClusterRoleBindings, of
the conversion webhook's service in CustomResourceDefinitions and of the service in APIServices, and
the namespace in the annotation config.kubernetes.io/depends-on where it refers to a resource of the
package. Resources for local use only stay as they are.
",
    example: "\
apiVersion: fn.kpt.dev/v1alpha1
kind: SetNamespace
metadata:
  name: example
namespace: example-ns
",
    body: run,
};

const EXPECTED: &str = "`ConfigMap.v1` or `SetNamespace.v1alpha1.fn.kpt.dev`";
const PACKAGE_CONTEXT: &str = "kptfile.kpt.dev";
const UPSTREAM: &str = "internal.kpt.dev/upstream-identifier";
const DEPENDS_ON: &str = "config.kubernetes.io/depends-on";
/// Where a resource without a namespace is.
const DEFAULT: &str = "default";
/// Stands for no namespace in identifiers.
const NO_NAMESPACE: &str = "~C";

/// A resource as it was given.
struct Item {
    node: NodeId,
    resource: Resource,
    namespaced: bool,
    /// Its namespace, or where it is without one, or [`NO_NAMESPACE`].
    namespace: String,
}

impl Item {
    fn new(list: &ResourceList<'_>, node: NodeId) -> Self {
        let resource = list.resource(node);
        let namespaced = is_namespaced(list, node, &resource);
        let namespace = if list.at(node, &["metadata", "namespace"]).is_some() {
            resource.namespace.clone()
        } else if namespaced {
            DEFAULT.to_owned()
        } else {
            NO_NAMESPACE.to_owned()
        };
        Self { node, resource, namespaced, namespace }
    }

    /// What a `depends-on` annotation calls it, if it has a namespace.
    fn dependency(&self) -> Option<String> {
        let Self { resource, namespace, .. } = self;
        (namespace != NO_NAMESPACE).then(|| {
            format!("{}/namespaces/{namespace}/{}/{}", resource.group(), resource.kind, resource.name)
        })
    }
}

/// What to do.
struct Wanted {
    namespace: String,
    /// Only what is, or was, in this namespace.
    matcher: Option<String>,
}

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    let wanted = match read(config) {
        Ok(wanted) => wanted,
        Err(message) => {
            let (path, index) = config.node().map(|node| list.file(node)).unwrap_or_default();
            let mut report = Report::new();
            report.add(Finding {
                resource: Some(config.resource()),
                file: Some(File { path: path.unwrap_or_default(), index: index.unwrap_or(-1) }),
                ..Finding::new(Severity::Error, message)
            });
            return report.fail();
        }
    };
    list.budget().follow("namespace");
    let items: Vec<Item> = list.items_for_cluster().into_iter().map(|node| Item::new(list, node)).collect();
    let known: HashSet<String> = items.iter().filter_map(Item::dependency).collect();
    let mut change = Change { wanted: &wanted, old: BTreeSet::new(), count: 0, report: Report::new() };
    for item in items.iter().filter(|item| !item.namespaced) {
        change.cluster_resource(list, item);
    }
    for item in items.iter().filter(|item| item.namespaced) {
        change.namespaced_resource(list, item);
    }
    let namespace = go::quoted(&wanted.namespace);
    let Change { old, count, mut report, .. } = change;
    report.info(if count == 0 {
        format!("all matching namespaces are already {namespace}. no value changed")
    } else {
        format!("namespace {} updated to {namespace}, {count} value(s) changed", go::list(old))
    });
    let (old, count) = update_dependencies(list, &items, &known, &wanted);
    report.info(if count == 0 {
        "all `depends-on` annotations are up-to-date. no `namespace` changed".to_owned()
    } else {
        format!(
            "`depends-on` annotation namespace {} updated to {namespace}, {count} value(s) changed",
            go::list(old)
        )
    });
    report
}

fn read(config: &FunctionConfig) -> Result<Wanted, String> {
    if config.is_empty() {
        return Err(format!("FunctionConfig is missing. Expect {EXPECTED}"));
    }
    let resource = config.resource();
    let (namespace, matcher) = if resource.is_roughly("", "v1", "ConfigMap") {
        let data = config.strings(&["data"]).ok_or("failed to parse FunctionConfig as ConfigMap")?;
        let get = |key: &str| data.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value);
        let namespace = match get("namespace") {
            "" if config.name() == PACKAGE_CONTEXT => get("name"),
            namespace => namespace,
        };
        if namespace.is_empty() {
            return Err("`data.namespace` should not be empty".to_owned());
        }
        (namespace.to_owned(), get("namespaceMatcher").to_owned())
    } else if resource.is_roughly("fn.kpt.dev", "v1alpha1", "SetNamespace") {
        let texts = [config.at(&["namespace"]), config.at(&["namespaceMatcher"])];
        if texts.into_iter().flatten().any(|value| !is_string_or_null(value)) {
            return Err("failed to parse FunctionConfig as fn.kpt.dev.v1alpha1.SetNamespace".to_owned());
        }
        let namespace = config.string(&["namespace"]);
        if namespace.is_empty() {
            return Err("`namespace` should not be empty".to_owned());
        }
        (namespace.to_owned(), config.string(&["namespaceMatcher"]).to_owned())
    } else {
        return Err(format!(
            "unknown functionConfig Kind={} ApiVersion={}, expect {EXPECTED}",
            resource.kind, resource.api_version
        ));
    };
    Ok(Wanted { namespace, matcher: Some(matcher).filter(|matcher| !matcher.is_empty()) })
}

fn is_string_or_null(value: &krm::Value) -> bool {
    matches!(value, krm::Value::Scalar(_, krm::Tag::String | krm::Tag::Null))
}

/// The change, and what there is to say about it.
struct Change<'w> {
    wanted: &'w Wanted,
    old: BTreeSet<String>,
    count: usize,
    report: Report,
}

impl Change<'_> {
    /// The namespace that takes the place of the current one, which originally was `origin`.
    fn namespace(&mut self, current: &str, origin: &str, resource: Option<&Resource>) -> Option<String> {
        if origin == NO_NAMESPACE {
            return None;
        }
        let current = if current.is_empty() { DEFAULT } else { current };
        let Wanted { namespace, matcher } = self.wanted;
        let matches = current != namespace
            && matcher.as_ref().is_none_or(|matcher| {
                if let Some(resource) = resource.filter(|_| matcher == origin) {
                    self.report.info(format!("[{}] has matching origin {origin}", short(resource)));
                }
                matcher == current || matcher == origin
            });
        if !matches {
            return Some(current.to_owned());
        }
        self.old.insert(current.to_owned());
        self.count += 1;
        Some(namespace.clone())
    }

    /// Gives a field the namespace that takes the place of the one in it.
    fn field(
        &mut self,
        list: &mut ResourceList<'_>,
        mapping: NodeId,
        key: &str,
        origin: &str,
        of: Option<&Resource>,
    ) {
        let current = list.string_at(mapping, &[key]).unwrap_or_default().into_owned();
        if let Some(namespace) = self.namespace(&current, origin, of) {
            // It is a mapping; whether the budget was exceeded is seen in the end.
            let _ = list.set_field(mapping, key, namespace);
        }
    }

    fn metadata(&mut self, list: &mut ResourceList<'_>, item: &Item, key: &str, origin: &str) {
        if let Ok(metadata) = list.ensure_mapping(item.node, "metadata") {
            self.field(list, metadata, key, origin, Some(&item.resource));
        }
    }

    /// A resource of the whole cluster may have namespaces in it.
    fn cluster_resource(&mut self, list: &mut ResourceList<'_>, item: &Item) {
        let Item { node, resource, .. } = item;
        if resource.is_roughly("", "v1", "Namespace") {
            let origin = origin(list, *node).map_or_else(|| resource.name.clone(), |(_, name)| name);
            self.metadata(list, item, "name", &origin);
        } else if resource.is_roughly("apiextensions.k8s.io", "v1", "CustomResourceDefinition") {
            let strategy = list.string_at(*node, &["spec", "conversion", "strategy"]);
            if strategy.as_deref() == Some("Webhook") {
                self.service(list, *node, &["spec", "conversion", "webhook", "clientConfig", "service"]);
            }
        } else if resource.is_roughly("apiregistration.k8s.io", "v1", "APIService") {
            self.service(list, *node, &["spec", "service"]);
        } else if matches!(&*resource.kind, "ClusterRoleBinding" | "RoleBinding") {
            let subjects =
                list.get(*node, "subjects").map(|subjects| list.entries(subjects).collect::<Vec<_>>());
            for subject in subjects.into_iter().flatten() {
                if list.string_at(subject, &["namespace"]).is_some() {
                    self.field(list, subject, "namespace", "", None);
                }
            }
        }
    }

    /// The namespace of a service, if there is one with a name.
    fn service(&mut self, list: &mut ResourceList<'_>, item: NodeId, path: &[&str]) {
        if let Some(service) = list.at(item, path).filter(|&service| list.get(service, "name").is_some()) {
            self.field(list, service, "namespace", "", None);
        }
    }

    fn namespaced_resource(&mut self, list: &mut ResourceList<'_>, item: &Item) {
        let origin =
            origin(list, item.node).map_or_else(|| item.namespace.clone(), |(namespace, _)| namespace);
        self.metadata(list, item, "namespace", &origin);
    }
}

fn short(resource: &Resource) -> String {
    let Resource { api_version, kind, name, namespace } = resource;
    format!("Resource(apiVersion={api_version}, kind={kind}, namespace={namespace}, name={name})")
}

/// The namespace and name that a resource had in the package it comes from.
fn origin(list: &ResourceList<'_>, item: NodeId) -> Option<(String, String)> {
    let identifier = list.annotation(item, UPSTREAM).filter(|identifier| !identifier.is_empty())?;
    let unknown = || Some((NO_NAMESPACE.to_owned(), String::new()));
    let mut parts = identifier.splitn(4, '|').skip(1);
    let (Some(kind), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return unknown();
    };
    let is_label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let name: String = name.bytes().take_while(|&byte| is_label(byte)).take(63).map(char::from).collect();
    let well_formed = kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && (namespace == NO_NAMESPACE
            || (matches!(namespace.len(), 1..=63) && namespace.bytes().all(is_label)))
        && !name.is_empty();
    if well_formed { Some((namespace.to_owned(), name)) } else { unknown() }
}

/// Changes the namespace in annotations that name one of the known resources.
fn update_dependencies(
    list: &mut ResourceList<'_>,
    items: &[Item],
    known: &HashSet<String>,
    wanted: &Wanted,
) -> (BTreeSet<String>, usize) {
    let (mut old, mut count) = (BTreeSet::new(), 0);
    for item in items {
        let Some(annotation) = list.at(item.node, &["metadata", "annotations", DEPENDS_ON]) else { continue };
        let Some(text) = list.text(annotation).filter(|text| known.contains(&**text)) else { continue };
        let parts: Vec<&str> = text.split('/').collect();
        let [group, "namespaces", namespace, kind, name] = parts[..] else { continue };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if ![group, namespace, kind, name].iter().all(|part| part.bytes().all(is_word)) {
            continue;
        }
        if namespace == wanted.namespace
            || wanted.matcher.as_ref().is_some_and(|matcher| matcher != namespace)
        {
            continue;
        }
        old.insert(namespace.to_owned());
        count += 1;
        let new = format!("{group}/namespaces/{}/{kind}/{name}", wanted.namespace);
        // Whether the budget was exceeded is seen in the end.
        let _ = list.set(annotation, new);
    }
    (old, count)
}
