//! Adds comments that make values parameters.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use krm::{Budget, Document, Kind, NodeId};

use super::Function;
use crate::config::FunctionConfig;
use crate::framework;
use crate::go;
use crate::line_comments::LineComments;
use crate::list::ResourceList;
use crate::report::{Finding, Report};
use crate::walk::{Visitor, walk};

pub(super) const FUNCTION: Function = Function {
    name: "create-setters",
    aliases: &[],
    summary: "Adds setter comments to fields whose values are to be parameterized.",
    usage: "\
The functionConfig is a ConfigMap with the setters in data: their names and the values that are to be
parameterized.

A field whose value has such a value in it gets a comment that tells how it is made. With the setter
tag: 1.16.1,

  image: nginx:1.16.1

becomes

  image: nginx:1.16.1 # kpt-set: nginx:${tag}

Where several values fit, the longest is taken. Texts of several lines get no comment.

A setter whose value is a list in YAML, written as a text, is about fields that are lists of the same
entries in whatever order; their comment is on the line of the key.

It is an error if no field gets a comment.
",
    example: "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: setters
data:
  nginx-replicas: \"4\"
  tag: 1.16.1
  env: |
    - stage
    - dev
",
    body: run,
};

/// How long the values of all setters may be, in bytes.
const LONGEST: usize = 1 << 16;

/// What looking for values takes of memory for each of their bytes.
const STATE: usize = 96;

/// What an entry of a list takes beside its text.
const ENTRY: usize = 48;

/// Annotations that are for tools, and are gone when these are done.
const FOR_TOOLS: &[&str] = &[
    ".annotations.internal.config.kubernetes.io/",
    ".annotations.config.kubernetes.io/",
    ".annotations.config.k8s.io/",
];

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    list.budget().follow("data");
    match Creator::new(config, list.budget()).and_then(|creator| creator.create(list)) {
        Ok(results) => Report { results, ..Report::new() },
        Err(cause) => framework::failure(format!("failed to create setters: {cause}"), &cause),
    }
}

struct Creator {
    /// Finds the values of setters, of which it prefers the longest.
    values: AhoCorasick,
    /// Which setter has a value.
    names: HashMap<String, String>,
    /// Which setter has these entries, sorted.
    lists: HashMap<Vec<String>, String>,
    /// The file of what is being walked through.
    file: String,
    comments: LineComments,
    results: Vec<Finding>,
}

impl Creator {
    fn new(config: &FunctionConfig, budget: &Budget) -> Result<Self, String> {
        let data = framework::data(config)?;
        if data.is_empty() {
            return Err("config map cannot be empty".to_owned());
        }
        let (mut names, mut lists) = (HashMap::new(), HashMap::new());
        let mut values = Vec::new();
        for (name, value) in data {
            let document = Document::parse_within(&value, budget)
                .map_err(|error| format!("parsing error: the value of {}: {error}", go::quoted(&name)))?;
            match document.kind(document.root()) {
                Kind::Sequence => {
                    lists.entry(sorted_texts(&document, document.root())).or_insert(name);
                }
                // Texts of several lines get no comment.
                Kind::Scalar if value.contains('\n') => {}
                Kind::Scalar => {
                    values.push(value.clone());
                    names.entry(value).or_insert(name);
                }
                // Fields that are mappings have no setters.
                Kind::Mapping => {}
            }
        }
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let too_long = || {
            format!("the values of all setters have more than {} KiB; create fewer at once", LONGEST >> 10)
        };
        let length = values.iter().map(String::len).sum::<usize>();
        if length > LONGEST {
            return Err(too_long());
        }
        budget.memory(length * STATE)?;
        budget.work(length * 4)?;
        let mut builder = AhoCorasick::builder();
        // The other kinds take more memory for the same values.
        let builder = builder.kind(Some(AhoCorasickKind::ContiguousNFA)).match_kind(MatchKind::LeftmostFirst);
        let values = builder.build(&values);
        Ok(Self {
            values: values.map_err(|_| too_long())?,
            names,
            lists,
            file: String::new(),
            comments: LineComments::default(),
            results: Vec::new(),
        })
    }

    fn create(mut self, list: &mut ResourceList<'_>) -> Result<Vec<Finding>, String> {
        for item in list.items() {
            self.file = list.file(item).0.unwrap_or_default();
            walk(&mut self, list, item)?;
        }
        if self.results.is_empty() {
            return Err("no matches for the input list of setters".to_owned());
        }
        self.comments.set(list)?;
        Ok(self.results)
    }

    fn comment(
        &mut self,
        list: &ResourceList<'_>,
        node: NodeId,
        path: &str,
        pattern: &str,
        value: &str,
    ) -> Result<(), String> {
        let comment = format!("kpt-set: {pattern}");
        let message =
            format!("Added line comment {} for field with value {}", go::quoted(&comment), go::quoted(value));
        self.results.push(framework::finding(list, message, path, &self.file)?);
        self.comments.add(list, node, comment)
    }

    /// The value with setters in the place of their values, if there are any.
    fn parameterized(&self, budget: &Budget, value: &str) -> Result<Option<String>, String> {
        budget.read_text(8 * value.len())?;
        let mut pattern = String::new();
        let mut at = 0;
        for found in self.values.find_iter(value) {
            let name = value.get(found.range()).and_then(|part| self.names.get(part)).map_or("", |name| name);
            pattern.push_str(value.get(at..found.start()).unwrap_or_default());
            pattern.extend(["${", name, "}"]);
            // It becomes a comment, a message and a result.
            budget.memory(8 * (found.start() - at + name.len() + 3))?;
            at = found.end();
        }
        pattern.push_str(value.get(at..).unwrap_or_default());
        Ok(Some(pattern).filter(|pattern| pattern != value))
    }
}

/// The texts of a list's entries; entries that are collections have none.
fn sorted_texts(document: &Document<'_>, sequence: NodeId) -> Vec<String> {
    let text = |entry| {
        let text = document.text(entry).unwrap_or_default();
        // Whoever goes on will notice if it is too much.
        let is_too_much = document.budget().memory(ENTRY + text.len()).is_err();
        if is_too_much { String::new() } else { text.into_owned() }
    };
    let mut texts: Vec<String> = document.entries(sequence).map(text).collect();
    texts.sort_unstable();
    texts
}

impl Visitor for Creator {
    fn sequence(&mut self, list: &mut ResourceList<'_>, node: NodeId, path: &str) -> Result<(), String> {
        let texts = sorted_texts(list, node);
        list.budget().check()?;
        match self.lists.get(&texts).map(|name| format!("${{{name}}}")) {
            Some(pattern) => self.comment(list, node, path, &pattern, &go::list(&texts)),
            None => Ok(()),
        }
    }

    fn scalar(&mut self, list: &mut ResourceList<'_>, node: NodeId, path: &str) -> Result<(), String> {
        let text = list.text(node).unwrap_or_default().into_owned();
        let Some(pattern) = self.parameterized(list.budget(), &text)? else { return Ok(()) };
        if text.contains('\n') || FOR_TOOLS.iter().any(|annotation| path.contains(annotation)) {
            return Ok(());
        }
        self.comment(list, node, path, &pattern, &text)
    }
}
