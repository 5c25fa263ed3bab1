//! The results a function reports, and how much of them is kept.

use std::fmt;

/// At most this many results are kept.
pub const MAXIMUM_RESULTS: usize = 1000;

/// At most this many bytes of results' text are kept.
pub const MAXIMUM_RESULT_TEXT: usize = 256 * 1024;

/// Severities are a word; they are kept also where no other text is, so that errors can be counted.
const MAXIMUM_SEVERITY: usize = 32;

/// One entry of `results`, as far as the function filled it in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionResult {
    /// `error`, `warning` or `info`; functions may write others.
    pub severity: Option<String>,
    /// What the function has to say; ends in `…` where it was cut to [`MAXIMUM_RESULT_TEXT`].
    pub message: String,
    /// The object it is about.
    pub resource: Option<ResourceRef>,
    /// The field of that object, such as `spec.replicas`.
    pub field_path: Option<String>,
}

/// The object a result is about. What is missing is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceRef {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// Empty for objects of the whole cluster.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl FunctionResult {
    /// Whether the function itself called this an error. A missing severity is shown as `info`, as
    /// people are used to, and so is none.
    pub fn is_error(&self) -> bool {
        self.severity.as_deref() == Some("error")
    }
}

/// `[severity] apiVersion/kind/namespace/name field.path: message`, as far as present.
impl fmt::Display for FunctionResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = self.severity.as_deref().filter(|severity| !severity.is_empty());
        write!(out, "[{}]", severity.unwrap_or("info"))?;
        if let Some(ResourceRef { api_version, kind, namespace, name }) = &self.resource {
            let mut separator = ' ';
            for part in [api_version, kind, namespace, name].into_iter().filter(|part| !part.is_empty()) {
                write!(out, "{separator}{part}")?;
                separator = '/';
            }
        }
        if let Some(path) = self.field_path.as_deref().filter(|path| !path.is_empty()) {
            write!(out, " {path}")?;
        }
        write!(out, ": {}", self.message)
    }
}

/// The results as people read them, a blank line between each two.
pub fn render_results(results: &[FunctionResult]) -> String {
    results.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}

/// Collects results within [`MAXIMUM_RESULTS`] and [`MAXIMUM_RESULT_TEXT`] and counts the others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) results: Vec<FunctionResult>,
    pub(crate) omitted: usize,
    pub(crate) omitted_errors: usize,
    text_left: usize,
}

impl Kept {
    pub(crate) fn new() -> Self {
        Self { results: Vec::new(), omitted: 0, omitted_errors: 0, text_left: MAXIMUM_RESULT_TEXT }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.results.len() >= MAXIMUM_RESULTS || self.text_left == 0
    }

    /// As much of a result's text as may still be kept.
    pub(crate) fn text(&mut self, text: &str) -> String {
        if self.text_left == 0 {
            return String::new();
        }
        let kept = shorten(text, self.text_left);
        self.text_left = self.text_left.saturating_sub(text.len());
        kept
    }

    #[expect(clippy::unused_self, reason = "the place where all limits on kept text are applied")]
    pub(crate) fn severity(&self, text: &str) -> String {
        shorten(text, MAXIMUM_SEVERITY)
    }

    /// Keeps the result, or only counts it if there was no room left `before` it was read.
    pub(crate) fn add(&mut self, result: FunctionResult, full_before: bool) {
        if full_before {
            self.omitted += 1;
            self.omitted_errors += usize::from(result.is_error());
        } else {
            self.results.push(result);
        }
    }
}

/// The text, or its beginning and `…` where it is longer than `limit` bytes.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    match text.get(..text.floor_char_boundary(limit)) {
        Some(beginning) if beginning.len() < text.len() => format!("{beginning}…"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(parts: [&str; 4]) -> ResourceRef {
        let [api_version, kind, namespace, name] = parts.map(str::to_owned);
        ResourceRef { api_version, kind, namespace, name }
    }

    #[test]
    fn shows_what_is_present() {
        let message = "too few".to_owned();
        let mut result = FunctionResult { message, ..FunctionResult::default() };
        assert_eq!(result.to_string(), "[info]: too few");
        result.severity = Some(String::new());
        assert_eq!(result.to_string(), "[info]: too few");
        result.severity = Some("error".into());
        result.field_path = Some("spec.replicas".into());
        assert_eq!(result.to_string(), "[error] spec.replicas: too few");
        result.resource = Some(resource(["", "", "", ""]));
        assert_eq!(result.to_string(), "[error] spec.replicas: too few");
        result.resource = Some(resource(["v1", "Namespace", "", "shop"]));
        assert_eq!(result.to_string(), "[error] v1/Namespace/shop spec.replicas: too few");
        result.resource = Some(resource(["apps/v1", "Deployment", "shop", "web"]));
        assert_eq!(result.to_string(), "[error] apps/v1/Deployment/shop/web spec.replicas: too few");
        let other = FunctionResult { message: "b".into(), ..FunctionResult::default() };
        assert_eq!(render_results(&[other.clone(), other]), "[info]: b\n\n[info]: b");
        assert_eq!(render_results(&[]), "");
    }

    #[test]
    fn shortens_between_characters() {
        assert_eq!(shorten("häh", 3), "hä…");
        assert_eq!(shorten("häh", 2), "h…");
        assert_eq!(shorten("häh", 4), "häh");
        assert_eq!(shorten("", 0), "");
    }
}
