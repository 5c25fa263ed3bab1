//! Tells which setters there are.

use std::collections::{BTreeMap, HashMap};

use krm::{Budget, Document, NodeId, Tag};

use super::Function;
use crate::config::FunctionConfig;
use crate::framework;
use crate::go;
use crate::list::ResourceList;
use crate::report::{Finding, Report};
use crate::setter::{Pattern, pattern_text};
use crate::walk::{Visitor, walk};

pub(super) const FUNCTION: Function = Function {
    name: "list-setters",
    aliases: &[],
    summary: "Lists the setters of a package with their values, types and numbers of fields.",
    usage: "\
It takes no functionConfig and changes nothing.

Setters are found in comments, such as

  image: nginx:1.16.1 # kpt-set: nginx:${tag}

and, where the package's Kptfile is among the resources, in what its pipeline gives to apply-setters,
as configMap or as configPath. For each setter there is a result that tells its name, value and type
and how many fields have it.
",
    example: "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: list-setters
data: {}
",
    body: run,
};

/// What a Kptfile may say.
const KPTFILE_FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "upstream",
    "upstreamLock",
    "info",
    "pipeline",
    "inventory",
    "status",
];

/// The type of a setter until more is known.
const STRING: &str = "str";

fn run(list: &mut ResourceList<'_>, _: &FunctionConfig) -> Report {
    let setters = match find(list) {
        Ok(setters) => setters,
        Err(cause) => return framework::failure(format!("failed to list setters: {cause}"), &cause),
    };
    let mut report = Report::new();
    for message in setters.lines() {
        let finding = Finding { message, ..Finding::default() };
        // Beyond the budget, nobody will read it.
        if list.afford(&finding).is_err() {
            break;
        }
        report.add(finding);
    }
    if report.results.is_empty() {
        report.warning("no setters found");
    }
    report
}

fn find(list: &mut ResourceList<'_>) -> Result<Setters, String> {
    let mut setters = Setters::default();
    for (name, value) in declared(list)? {
        setters.declare(list.budget(), name, value)?;
    }
    for item in list.items() {
        walk(&mut setters, list, item)?;
    }
    Ok(setters)
}

/// What the pipeline in the package's Kptfile gives to apply-setters; nothing where something of it is missing.
fn declared(list: &ResourceList<'_>) -> Result<BTreeMap<String, String>, String> {
    let mut files: HashMap<String, NodeId> = HashMap::new();
    for item in list.items() {
        files.entry(list.file(item).0.unwrap_or_default()).or_insert(item);
    }
    let Some(&kptfile) = files.get("Kptfile") else { return Ok(BTreeMap::new()) };
    check_kptfile(list, kptfile)?;
    let mutators = list.at(kptfile, &["pipeline", "mutators"]);
    let mutators = mutators.into_iter().flat_map(|mutators| list.entries(mutators));
    let mut setters = BTreeMap::new();
    for function in mutators {
        if !list.string_at(function, &["image"]).is_some_and(|image| image.contains("apply-setters")) {
            continue;
        }
        let path = list.string_at(function, &["configPath"]).filter(|path| !path.is_empty());
        let data = match (list.get(function, "configMap").filter(|&data| !list.is_null(data)), path) {
            (Some(data), _) => Some(data),
            (None, Some(path)) => match files.get(&*path) {
                Some(&config) => list.get(config, "data"),
                None => return Ok(BTreeMap::new()),
            },
            (None, None) => return Ok(BTreeMap::new()),
        };
        for (name, value) in data.into_iter().flat_map(|data| list.fields(data)) {
            list.budget().work(8)?;
            let value = list.text(value).filter(|_| !list.is_null(value)).unwrap_or_default();
            setters.insert(name.into_owned(), value.into_owned());
        }
    }
    Ok(setters)
}

fn check_kptfile(list: &ResourceList<'_>, kptfile: NodeId) -> Result<(), String> {
    let wrong = |line: usize, cause: String| Err(format!("unable to read Kptfile: line {line}: {cause}"));
    for (key, field) in list.fields(kptfile) {
        if !KPTFILE_FIELDS.contains(&&*key) {
            return wrong(list.line(field), format!("field {} not found in Kptfile", go::quoted(&key)));
        }
    }
    let Some(pipeline) = list.get(kptfile, "pipeline").filter(|&pipeline| !list.is_null(pipeline)) else {
        return Ok(());
    };
    if !list.is_mapping(pipeline) {
        return wrong(list.line(pipeline), "pipeline must be a mapping".to_owned());
    }
    let mutators = list.get(pipeline, "mutators").filter(|&mutators| !list.is_null(mutators));
    match mutators.filter(|&mutators| !list.is_sequence(mutators)) {
        Some(mutators) => wrong(list.line(mutators), "pipeline.mutators must be a list".to_owned()),
        None => Ok(()),
    }
}

/// What a setter, and an entry of one, takes beside its texts.
const SETTER: usize = 192;
const ENTRY: usize = 48;

/// The setters that were found, by name: those of lists and the others, which may have the same names.
#[derive(Debug, Default)]
struct Setters {
    lists: BTreeMap<String, ListSetter>,
    scalars: BTreeMap<String, ScalarSetter>,
}

#[derive(Debug)]
struct ListSetter {
    values: Vec<String>,
    count: usize,
}

#[derive(Debug)]
struct ScalarSetter {
    value: String,
    kind: &'static str,
    count: usize,
}

impl Setters {
    fn declare(&mut self, budget: &Budget, name: String, value: String) -> Result<(), String> {
        budget.memory(SETTER + 4 * value.len())?;
        let document = Document::parse_within(&value, budget)
            .ok()
            .filter(|document| document.is_sequence(document.root()));
        match document {
            Some(list) => {
                let mut values = Vec::new();
                for entry in list.entries(list.root()) {
                    let value = list.text_of(entry).replace('\n', "");
                    budget.memory(ENTRY + 4 * value.len())?;
                    values.push(value);
                }
                self.lists.insert(name, ListSetter { values, count: 0 });
            }
            None => {
                self.scalars.insert(name, ScalarSetter { value, kind: STRING, count: 0 });
            }
        }
        Ok(budget.check()?)
    }

    /// A line for each, by name.
    fn lines(&self) -> Vec<String> {
        let lists = self.lists.iter().map(|(name, list)| {
            let values = list.values.join(", ");
            (name, format!("Name: {name}, Value: [{values}], Type: array, Count: {}", list.count))
        });
        let scalars = self.scalars.iter().map(|(name, scalar)| {
            let ScalarSetter { value, kind, count } = scalar;
            (name, format!("Name: {name}, Value: {value}, Type: {kind}, Count: {count}"))
        });
        let mut lines: Vec<(&String, String)> = lists.chain(scalars).collect();
        lines.sort_by_key(|(name, _)| *name);
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

impl Visitor for Setters {
    fn sequence(&mut self, list: &mut ResourceList<'_>, node: NodeId, _: &str) -> Result<(), String> {
        let Some(pattern) = pattern_text(list, node) else { return Ok(()) };
        let setter = self.lists.entry(Pattern::parse(&pattern).stripped().to_owned()).or_insert_with(|| {
            let text = |entry| {
                let text = list.text(entry).unwrap_or_default().into_owned();
                // Whoever goes on will notice if it is too much.
                let _ = list.budget().memory(ENTRY + 4 * text.len());
                text
            };
            let mut values: Vec<String> = list.entries(node).map(text).collect();
            values.sort_unstable();
            ListSetter { values, count: 0 }
        });
        setter.count += 1;
        Ok(())
    }

    fn scalar(&mut self, list: &mut ResourceList<'_>, node: NodeId, _: &str) -> Result<(), String> {
        let Some(pattern) = pattern_text(list, node) else { return Ok(()) };
        let text = list.text(node).unwrap_or_default();
        let kind = kind(list.tag(node));
        list.budget().read_text(8 * (pattern.len() + text.len()))?;
        for (name, value) in Pattern::parse(&pattern).values(&text, |_| false) {
            list.budget().memory(SETTER + 4 * value.len())?;
            let setter = self.scalars.entry(name.to_owned()).or_insert_with(|| ScalarSetter {
                value: value.to_owned(),
                kind,
                count: 0,
            });
            // A part of a longer text, or of a pipeline, is a string for now.
            if setter.kind == STRING {
                setter.kind = kind;
            }
            setter.count += 1;
        }
        Ok(())
    }
}

/// The type as YAML names it.
fn kind(tag: Option<Tag>) -> &'static str {
    match tag {
        Some(Tag::Null) => "null",
        Some(Tag::Boolean) => "bool",
        Some(Tag::Integer) => "int",
        Some(Tag::Float) => "float",
        Some(Tag::Timestamp) => "timestamp",
        Some(Tag::Other) => "binary",
        Some(Tag::String) | None => STRING,
    }
}
