//! What a function says about its work.

use krm::Value;

use crate::list::Resource;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The function failed.
    Error,
    /// Something that may be wrong.
    Warning,
    /// Something to know.
    Info,
}

impl Severity {
    /// As it is written in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// One structured result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    /// What there is to say.
    pub message: String,
    /// Some functions give none.
    pub severity: Option<Severity>,
    /// The resource it is about.
    pub resource: Option<Resource>,
    /// The field it is about.
    pub field: Option<Field>,
    /// The file it is about.
    pub file: Option<File>,
    /// Anything else, for tools.
    pub tags: Vec<(String, String)>,
}

/// The field of a resource that a finding is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// Such as `spec.replicas`.
    pub path: String,
    /// What it was.
    pub current: Option<Value>,
    /// What it became, or should become.
    pub proposed: Option<Value>,
}

/// The file that a finding is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct File {
    /// Its path in the package.
    pub path: String,
    /// The place of the resource in it.
    pub index: i64,
}

impl Finding {
    /// A finding with a severity and a message only.
    pub fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self { message: message.into(), severity: Some(severity), ..Self::default() }
    }

    /// How long its texts are.
    pub(crate) fn text_length(&self) -> usize {
        let resource = self.resource.as_ref().map_or(0, |Resource { api_version, kind, name, namespace }| {
            api_version.len() + kind.len() + name.len() + namespace.len()
        });
        let value = |value: &Option<Value>| value.as_ref().and_then(Value::text).map_or(0, str::len);
        let field = self
            .field
            .as_ref()
            .map_or(0, |Field { path, current, proposed }| path.len() + value(current) + value(proposed));
        let file = self.file.as_ref().map_or(0, |file| file.path.len());
        let tags = self.tags.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        self.message.len() + resource + field + file + tags
    }

    /// The finding as an entry of `results`: what is missing or empty is left out.
    pub(crate) fn to_value(&self) -> Value {
        let mut fields = vec![("message".to_owned(), Value::string(&self.message))];
        if let Some(severity) = self.severity {
            fields.push(("severity".to_owned(), severity.name().into()));
        }
        if let Some(resource) = &self.resource {
            let parts = [
                ("apiVersion", &resource.api_version),
                ("kind", &resource.kind),
                ("name", &resource.name),
                ("namespace", &resource.namespace),
            ];
            let parts = parts.into_iter().filter(|(_, part)| !part.is_empty());
            fields.push((
                "resourceRef".to_owned(),
                Value::strings(parts.map(|(key, part)| (key, part.clone()))),
            ));
        }
        if let Some(field) = &self.field {
            let mut parts = Vec::new();
            if !field.path.is_empty() {
                parts.push(("path".to_owned(), Value::string(&field.path)));
            }
            let values = [("currentValue", &field.current), ("proposedValue", &field.proposed)];
            for (key, value) in values {
                parts.extend(value.clone().map(|value| (key.to_owned(), value)));
            }
            fields.push(("field".to_owned(), Value::Mapping(parts)));
        }
        if let Some(file) = &self.file {
            let mut parts = Vec::new();
            if !file.path.is_empty() {
                parts.push(("path".to_owned(), Value::string(&file.path)));
            }
            if file.index != 0 {
                parts.push(("index".to_owned(), file.index.into()));
            }
            fields.push(("file".to_owned(), Value::Mapping(parts)));
        }
        if !self.tags.is_empty() {
            fields.push(("tags".to_owned(), Value::strings(self.tags.iter().cloned())));
        }
        Value::Mapping(fields)
    }
}

/// `[severity] apiVersion/kind/namespace/name field.path: message`, as far as present.
impl std::fmt::Display for Finding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "[{}]", self.severity.unwrap_or(Severity::Info).name())?;
        if let Some(resource) = &self.resource {
            let parts = [&resource.api_version, &resource.kind, &resource.namespace, &resource.name];
            let parts: Vec<&str> =
                parts.into_iter().map(|part| &**part).filter(|part| !part.is_empty()).collect();
            if !parts.is_empty() {
                write!(out, " {}", parts.join("/"))?;
            }
        }
        if let Some(field) = &self.field {
            write!(out, " {}", field.path)?;
        }
        write!(out, ": {}", self.message)
    }
}

/// What a function says about its work, and whether it succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Structured results, in their order.
    pub results: Vec<Finding>,
    /// Whether the function failed: its process would have exited with 1.
    pub failed: bool,
    /// What the function writes to stderr.
    pub stderr: String,
}

impl Report {
    /// Nothing to say.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.results.push(finding);
    }

    /// Adds something to know.
    pub fn info(&mut self, message: impl Into<String>) {
        self.add(Finding::new(Severity::Info, message));
    }

    /// Adds something that may be wrong.
    pub fn warning(&mut self, message: impl Into<String>) {
        self.add(Finding::new(Severity::Warning, message));
    }

    /// Adds an error; this alone does not make the function fail.
    pub fn error(&mut self, message: impl Into<String>) {
        self.add(Finding::new(Severity::Error, message));
    }

    /// Whether there is an error among the findings.
    pub fn has_errors(&self) -> bool {
        self.results.iter().any(|finding| finding.severity == Some(Severity::Error))
    }

    /// A failure as functions on the catalog's own library report it: the results are in the output.
    #[must_use]
    pub fn fail(mut self) -> Self {
        self.failed = true;
        self.stderr.push_str("failed to evaluate function: error: function failure\n");
        self
    }

    /// A failure as functions on the kustomize library report it: one error, also on stderr.
    #[must_use]
    pub fn fail_with(message: impl Into<String>) -> Self {
        let finding = Finding::new(Severity::Error, message);
        Self { stderr: finding.to_string(), results: vec![finding], failed: true }
    }
}
