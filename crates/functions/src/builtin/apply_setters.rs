//! Gives setters their values.

use std::collections::HashMap;

use krm::{Document, NodeId, Value};

use super::Function;
use crate::config::FunctionConfig;
use crate::framework;
use crate::go;
use crate::list::{Resource, ResourceList};
use crate::report::{Field, Finding, Report, Severity};
use crate::secrets::redacted;
use crate::setter::{Pattern, pattern_text};
use crate::walk::{Visitor, walk};

pub(super) const FUNCTION: Function = Function {
    name: "apply-setters",
    aliases: &["apply-setters-v1"],
    summary: "Sets the values of fields that are parameterized by setter comments.",
    usage: "\
The functionConfig is a ConfigMap with the setters in data: their names and new values.

A field is parameterized by a comment on its line, such as

  image: nginx:1.16.1 # kpt-set: nginx:${tag}

where ${tag} stands for the value of the setter tag. A comment may have several setters; those that
are not given keep the value that they have in the field. A field none of whose setters is given
stays as it is.

The comment of a list is on the line of its key, and has one setter and nothing else. The value of that
setter is a list in YAML, written as a text:

  environments: # kpt-set: ${env}
    - dev
    - stage

The results tell each field that was set. Values that look like secrets are not told there.
",
    example: "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: setters
data:
  nginx-replicas: \"3\"
  tag: 1.16.2
  env: |
    - prod
    - dev
",
    body: run,
};

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    let results = framework::data(config).and_then(|data| apply(list, data.into_iter().collect()));
    match results {
        Ok(results) if results.is_empty() => {
            let message = "no matches for input setter(s)".to_owned();
            Report { results: vec![Finding { message, ..Finding::default() }], ..Report::new() }
        }
        Ok(results) => Report { results, ..Report::new() },
        Err(cause) => framework::failure(format!("failed to apply setters: {cause}"), &cause),
    }
}

fn apply(list: &mut ResourceList<'_>, setters: HashMap<String, String>) -> Result<Vec<Finding>, String> {
    let mut setter =
        Setter { setters, resource: Resource::default(), file: String::new(), results: Vec::new() };
    list.budget().follow("data");
    for item in list.items() {
        setter.resource = list.resource(item);
        setter.file = list.file(item).0.unwrap_or_default();
        walk(&mut setter, list, item)?;
    }
    Ok(setter.results)
}

struct Setter {
    setters: HashMap<String, String>,
    /// What is being walked through, and the file it is in.
    resource: Resource,
    file: String,
    results: Vec<Finding>,
}

impl Visitor for Setter {
    fn visits_aliases(&self) -> bool {
        true
    }

    fn sequence(&mut self, list: &mut ResourceList<'_>, node: NodeId, path: &str) -> Result<(), String> {
        let Some(text) = pattern_text(list, node).filter(|text| self.concerns(&Pattern::parse(text))) else {
            return Ok(());
        };
        let pattern = Pattern::parse(&text);
        let name = pattern
            .only_name()
            .ok_or_else(|| format!("invalid setter pattern for array node: {}", go::quoted(&text)))?;
        let new = self.setters.get(name).cloned().unwrap_or_default();
        let old = list.text_of(node);
        let old = list.line_comment(node).and_then(|comment| old.strip_prefix(&*comment)).unwrap_or(&old);
        let old = old.trim_start().to_owned();
        list.budget().read_text(8 * (old.len() + new.len()))?;
        set_entries(list, node, &new)?;
        self.report(list, path, &old, &new, &pattern)
    }

    fn scalar(&mut self, list: &mut ResourceList<'_>, node: NodeId, path: &str) -> Result<(), String> {
        let Some(text) = pattern_text(list, node).filter(|text| self.concerns(&Pattern::parse(text))) else {
            return Ok(());
        };
        let pattern = Pattern::parse(&text);
        let old = list.text(node).unwrap_or_default().into_owned();
        // What was set to nothing before, and is so again, does not make the others unknown.
        let present = pattern.values(&old, |name| self.setters.get(name).is_some_and(String::is_empty));
        let value =
            |name: &str| self.setters.get(name).map(|value| &**value).or_else(|| present.get(name).copied());
        list.budget().read_text(8 * (old.len() + text.len()))?;
        let new = pattern.resolve(list.budget(), value)?;
        let missing: Vec<String> =
            Pattern::parse(&new).names().iter().map(|name| format!("${{{name}}}")).collect();
        if !missing.is_empty() {
            return Err(format!("values for setters {} must be provided", go::list(missing)));
        }
        let value = framework::in_place_of(list, node, &new);
        list.set(node, value)?;
        self.report(list, path, &old, &new, &pattern)
    }
}

impl Setter {
    /// Whether one of the setters is given.
    fn concerns(&self, pattern: &Pattern<'_>) -> bool {
        pattern.names().iter().any(|name| self.setters.contains_key(*name))
    }

    fn report(
        &mut self,
        list: &ResourceList<'_>,
        path: &str,
        old: &str,
        new: &str,
        pattern: &Pattern<'_>,
    ) -> Result<(), String> {
        let told = |value: &str| redacted(value, pattern.names().iter().copied().chain([path]));
        let (old, new) = (told(old), told(new));
        let message = format!("set field value to {}", go::quoted(&new));
        let finding = framework::finding(list, message, path, &self.file)?;
        self.results.push(Finding {
            severity: Some(Severity::Info),
            resource: Some(self.resource.clone()),
            field: Some(Field {
                path: path.to_owned(),
                current: Some(Value::string(old)),
                proposed: Some(Value::string(new)),
            }),
            ..finding
        });
        Ok(())
    }
}

/// Makes a list what a text says. Entries that stay keep their comments; others have those of the text.
fn set_entries(list: &mut ResourceList<'_>, node: NodeId, text: &str) -> Result<(), String> {
    let text = if text.is_empty() { "[]" } else { text };
    let new = Document::parse_within(text, list.budget())
        .ok()
        .filter(|new| new.is_sequence(new.root()))
        .ok_or_else(|| {
            format!("input to array setter must be an array of values, but found {}", go::quoted(text))
        })?;
    let old: HashMap<NodeId, Value> = list.entries(node).map(|entry| (entry, list.value(entry))).collect();
    list.set(node, new.value(new.root()))?;
    let entries: Vec<NodeId> = list.entries(node).collect();
    for (entry, from) in entries.into_iter().zip(new.entries(new.root())) {
        if old.get(&entry).is_none_or(|old| !list.is_value(entry, old)) {
            take_comments(list, entry, &new, from);
        }
    }
    Ok(())
}

/// Gives a value, and all in it, the comments of an equal one.
fn take_comments(list: &mut ResourceList<'_>, node: NodeId, from: &Document<'_>, other: NodeId) {
    list.set_line_comment(node, from.line_comment(other).as_deref());
    list.set_head_comment(node, from.head_comment(other).as_deref());
    let pairs: Vec<(NodeId, NodeId)> = if list.is_mapping(node) {
        list.fields(node).filter_map(|(key, field)| Some((field, from.get(other, &key)?))).collect()
    } else {
        list.entries(node).zip(from.entries(other)).collect()
    };
    for (child, other) in pairs {
        take_comments(list, child, from, other);
    }
}
