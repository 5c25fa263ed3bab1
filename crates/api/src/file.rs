//! Objects of the kind FunctionConfig in files, for those who have no cluster, or none that knows the kind.

use std::fmt;

use crate::{
    API_VERSION, Checked, FieldPath, FunctionRules, GROUP,
    conform::shown,
    document::{Document, Malformed},
};

/// What a file has of objects of the kind FunctionConfig.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    /// Those with a name.
    pub objects: Vec<FileObject>,
    /// What is wrong with the file, or with objects of it.
    pub problems: Vec<FileProblem>,
    /// Fields that this release does not know.
    pub unknown: Vec<FileProblem>,
    /// What is there beside.
    pub remarks: Vec<FileProblem>,
    /// Whether it is no YAML at all.
    pub is_malformed: bool,
}

/// A FunctionConfig of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileObject {
    /// Its name.
    pub name: String,
    /// The line it begins on.
    pub line: u64,
    /// What it says. `None` if nothing can be made of it.
    pub rules: Option<FunctionRules>,
}

/// Something about a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// What there is to say.
    pub cause: String,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "line {line}: {}", self.cause),
            None => formatter.write_str(&self.cause),
        }
    }
}

impl File {
    /// Reads a file of any number of documents. Objects of other kinds are passed over.
    pub fn parse(content: &[u8], default_prefix: &str) -> Self {
        let mut file = Self::default();
        let parsed = std::str::from_utf8(content)
            .map_err(|error| {
                let text = content.get(..error.valid_up_to()).unwrap_or_default();
                let line = text.split(|byte| *byte == b'\n').count() as u64;
                Malformed { line: Some(line), cause: "it is not text in UTF-8".to_owned() }
            })
            .and_then(Document::parse_all);
        match parsed {
            Ok(documents) => documents.into_iter().for_each(|document| file.add(document, default_prefix)),
            Err(Malformed { line, cause }) => {
                file.problems.push(FileProblem { line, cause });
                file.is_malformed = true;
            }
        }
        file
    }

    fn add(&mut self, document: Document, default_prefix: &str) {
        let (line, kind, version) = (document.line(), document.text("kind"), document.text("apiVersion"));
        let problem = |line, cause: String| FileProblem { line: Some(line), cause };
        let (Some(kind), Some(version)) = (kind, version) else {
            let cause = "this is no object of Kubernetes: apiVersion and kind are not both there as text";
            self.problems.push(problem(line, cause.to_owned()));
            return;
        };
        let is_ours = version.split('/').next() == Some(GROUP);
        match kind {
            "List" | "FunctionConfigList" if version == "v1" || is_ours => {
                let items = document.into_field("items").map(Document::into_entries);
                items.into_iter().flatten().for_each(|item| self.add(item, default_prefix));
            }
            "FunctionConfig" if version == API_VERSION => self.add_config(&document, default_prefix),
            "FunctionConfig" if is_ours => {
                let cause = format!(
                    "apiVersion is {}, of which this release knows nothing; it reads {API_VERSION}",
                    shown(version)
                );
                self.problems.push(problem(document.line_of(&FieldPath::of(["apiVersion"])), cause));
            }
            _ => {
                let cause = format!("an object of kind {} in {} is passed over", shown(kind), shown(version));
                self.remarks.push(problem(line, cause));
            }
        }
    }

    fn add_config(&mut self, document: &Document, default_prefix: &str) {
        let at = |path: &FieldPath| Some(document.line_of(path));
        let name = document.field("metadata").and_then(|metadata| metadata.text("name"));
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            let path = FieldPath::of(["metadata", "name"]);
            let cause = format!("{path}: is missing, or not text");
            self.problems.push(FileProblem { line: at(&path), cause });
            return;
        };
        let spec = document.field("spec").map(Document::value);
        let Checked { rules, problems, unknown } = FunctionRules::check(spec.as_ref(), default_prefix);
        let problem = |path: &FieldPath, cause: &str| FileProblem {
            line: at(path),
            cause: format!("FunctionConfig {}: {path}: {cause}", shown(name)),
        };
        self.problems.extend(problems.iter().map(|found| problem(&found.path, &found.cause)));
        self.unknown.extend(unknown.iter().map(|path| problem(path, "is not known to this release")));
        self.objects.push(FileObject { name: name.to_owned(), line: document.line(), rules });
    }
}
