//! Copies values from one field to others.

mod configuration;

use krm::{Document, Kind, NodeId, Tag, Value};

use super::Function;
use crate::adopt::copy_comments;
use crate::config::FunctionConfig;
use crate::field_path::Place;
use crate::go;
use crate::identity::{identity, text, text_at};
use crate::list::{Resource, ResourceList};
use crate::report::Report;
use configuration::{Options, Replacement, Selector, Source, SourceField, Target};

pub(super) const FUNCTION: Function = Function {
    name: "apply-replacements",
    aliases: &[],
    summary: "Copies the value of one field to fields of other resources.",
    usage: "\
The functionConfig is an ApplyReplacements (fn.kpt.dev/v1alpha1) with a list of replacements, which are
made one after the other. Each has

- source: one resource, by group, version, kind, name and namespace (as many as are needed), and its
  field in fieldPath (metadata.name if missing); or, instead of source, sourceValue: a text.
- targets: a list. select says which resources: group, version, kind, name and namespace are regular
  expressions for the whole text; labelSelector and annotationSelector are selectors such as
  app=web,tier!=test. reject is a list of the same for resources that are not meant. fieldPaths lists
  the fields to set (metadata.name if missing).
- options of the source and of each target: delimiter splits the text of the field, index says which
  part is meant (of a target, a number below 0 is a part before the others, one that is too large a
  part behind them); create: true in a target makes what is missing of the field.

The parts of a field path are separated by dots: spec.template.spec.containers.[name=web].image. A
list's entries are given by number, by [field=expression], by [=expression] for those that are texts,
or by * for all. Dots that belong to a key are written \\. or in brackets: metadata.annotations.[a.b/c].
Where a path goes into a text that is YAML or JSON, the value is set in there.
",
    example: "\
apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata:
  name: example
replacements:
- source:
    kind: ConfigMap
    name: settings
    fieldPath: data.image
  targets:
  - select:
      kind: Deployment
    fieldPaths:
    - spec.template.spec.containers.[name=web].image
    options:
      delimiter: ':'
      index: 0
",
    body: run,
};

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    let mut report = Report::new();
    list.budget().follow("replacements");
    match configuration::read(config, list.budget()).and_then(|replacements| apply(list, &replacements)) {
        Ok(()) => report,
        Err(problem) => {
            report.error(problem);
            report.fail()
        }
    }
}

fn apply(list: &mut ResourceList<'_>, replacements: &[Replacement]) -> Result<(), String> {
    let mut items: Vec<(NodeId, Resource)> =
        list.items().into_iter().map(|item| (item, identity(list, item))).collect();
    for Replacement { source, targets } in replacements {
        let source = Copied::of(list, source, &items)?;
        for target in targets {
            for (item, resource) in &mut items {
                if selects(target, list, *item, resource)? {
                    source.to_fields(list, *item, target)?;
                    *resource = identity(list, *item);
                }
            }
        }
    }
    Ok(())
}

fn selects(
    target: &Target,
    list: &ResourceList<'_>,
    item: NodeId,
    resource: &Resource,
) -> Result<bool, String> {
    let in_metadata = |part: &str, key: &str| text_at(list, item, &["metadata", part, key]);
    let has_marks = |selector: &Selector| {
        list.budget().work(selector.annotations.len() + selector.labels.len())?;
        let has = selector.annotations.matches(|key| in_metadata("annotations", key))
            && selector.labels.matches(|key| in_metadata("labels", key));
        list.budget().check().map(|()| has)
    };
    list.budget().work(8)?;
    if !target.select.names(resource)? || !has_marks(&target.select)? {
        return Ok(false);
    }
    for reject in &target.reject {
        list.budget().work(8)?;
        if (reject.has_names() && reject.names(resource)?) || (reject.has_selectors() && has_marks(reject)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A value to be copied.
struct Copied {
    value: Value,
    /// What a copy of it takes.
    cost: usize,
    /// Where it comes from, if it comes from there as it is.
    from: Option<NodeId>,
    /// A string of a resource stays a string, whatever it looks like.
    is_string: bool,
}

impl Copied {
    fn of(list: &ResourceList<'_>, source: &Source, items: &[(NodeId, Resource)]) -> Result<Self, String> {
        let field = match source {
            Source::Value(text) => {
                return Ok(Self {
                    value: Value::plain(text),
                    cost: text.len(),
                    from: None,
                    is_string: false,
                });
            }
            Source::Field(field) => field,
        };
        list.budget().work(4 * items.len())?;
        let mut matching = items.iter().filter(|(_, resource)| field.names(resource));
        let (item, _) = matching.next().ok_or_else(|| format!("nothing selected by {field}"))?;
        if matching.next().is_some() {
            return Err(format!("multiple matches for selector {field}"));
        }
        let SourceField { path, options, .. } = &**field;
        let node = path
            .lookup(list, *item)
            .map_err(|problem| format!("error looking up replacement source: {problem}"))?
            .filter(|&node| !list.is_null(node) && (list.kind(node) == Kind::Scalar || !list.is_empty(node)))
            .ok_or_else(|| {
                let path = path.as_str();
                format!("fieldPath `{path}` is missing for replacement source {}", field.resource())
            })?;
        let is_string = list.tag(node) == Some(Tag::String);
        if options.delimiter.is_empty() {
            let before = list.budget().used().memory;
            let value = list.value(node);
            let cost = usize::try_from(list.budget().used().memory - before).unwrap_or(usize::MAX);
            return Ok(Self { value, cost, from: Some(node), is_string });
        }
        let whole = text(list, node).ok_or("delimiter option can only be used with scalar nodes")?;
        list.budget().read_text(8 * whole.len())?;
        let part =
            usize::try_from(options.index).ok().and_then(|index| whole.split(&*options.delimiter).nth(index));
        let part = part
            .ok_or_else(|| format!("options.index {} is out of bounds for value {whole}", options.index))?;
        let value = if is_string { Value::string(part) } else { Value::plain(part) };
        Ok(Self { value, cost: 0, from: None, is_string })
    }

    fn to_fields(&self, list: &mut ResourceList<'_>, item: NodeId, target: &Target) -> Result<(), String> {
        let create = target.options.create.then_some(match self.value {
            Value::Scalar(..) => Kind::Scalar,
            Value::Sequence(_) => Kind::Sequence,
            Value::Mapping(_) => Kind::Mapping,
        });
        for path in &target.paths {
            list.budget().work(4)?;
            // It was found, but cannot be set.
            let mut refused = None;
            let mut set = |document: &mut Document<'_>, place: Place| {
                let outcome = self.to(document, place, &target.options);
                outcome.inspect_err(|problem| refused = Some(problem.clone()))
            };
            let found = path.visit(list, item, create, &mut set);
            let what = if create.is_some() { "find or create" } else { "find" };
            let missing =
                || format!("unable to {what} field {} in replacement target", go::quoted(path.as_str()));
            match (found, refused) {
                (Ok(0), _) => return Err(missing()),
                (Ok(_), _) => {}
                (Err(_), Some(problem)) => return Err(problem),
                (Err(problem), None) => return Err(format!("{}: {problem}", missing())),
            }
        }
        Ok(())
    }

    fn to(&self, document: &mut Document<'_>, place: Place, options: &Options) -> Result<(), String> {
        let Place { node, created, embedded } = place;
        let is_scalar = document.kind(node) == Kind::Scalar;
        if !options.delimiter.is_empty() && !is_scalar {
            return Err("delimiter option can only be used with scalar nodes".to_owned());
        }
        let value = match &self.value {
            Value::Scalar(new, _) if is_scalar => {
                let old = if created { None } else { text(document, node) };
                let new = if options.delimiter.is_empty() {
                    new.clone()
                } else {
                    let old = old.unwrap_or_default();
                    document.budget().read_text(8 * (old.len() + new.len()))?;
                    put(&old, new, options)
                };
                // A field that is a string stays one; in a text of its own, a field that is none stays none.
                let is_string = (self.is_string && (created || !embedded))
                    || (!created && document.tag(node) == Some(Tag::String));
                if is_string { Value::string(new) } else { Value::plain(new) }
            }
            _ if !options.delimiter.is_empty() => {
                return Err("delimiter option can only be used with scalar nodes".to_owned());
            }
            value => {
                document.budget().memory(self.cost)?;
                value.clone()
            }
        };
        document.set(node, value)?;
        if let Some(from) = self.from.filter(|&from| !embedded && !is_inside(document, node, from)) {
            copy_comments(document, node, from)?;
        }
        Ok(())
    }
}

/// Puts a text in the place of one part of another.
fn put(old: &str, new: &str, options: &Options) -> String {
    let mut parts: Vec<&str> = old.split(&*options.delimiter).collect();
    match usize::try_from(options.index) {
        Err(_) => parts.insert(0, new),
        Ok(index) => match parts.get_mut(index) {
            Some(part) => *part = new,
            None => parts.push(new),
        },
    }
    parts.join(&options.delimiter)
}

/// Whether one of the values is in the other, or they are the same.
fn is_inside(document: &Document<'_>, one: NodeId, other: NodeId) -> bool {
    let is_in = |inner: NodeId, outer: NodeId| {
        std::iter::successors(Some(inner), |&node| document.parent(node)).any(|node| node == outer)
    };
    is_in(one, other) || is_in(other, one)
}
