//! What the catalog's functions on kustomize's framework have in common: settings are in `data` of whatever
//! object, results have a path and a file, and an error is told twice.

use krm::{NodeId, Style, Tag, Value};

use crate::config::FunctionConfig;
use crate::go;
use crate::list::ResourceList;
use crate::report::{Field, File, Finding, Report, Severity};

/// The texts in `data`, in their order. Numbers and booleans are as they are written, null is empty.
pub(crate) fn data(config: &FunctionConfig) -> Result<Vec<(String, String)>, String> {
    let fields = match config.at(&["data"]) {
        None | Some(Value::Scalar(_, Tag::Null)) => return Ok(Vec::new()),
        Some(Value::Mapping(fields)) => fields,
        Some(_) => return Err("`data` of the functionConfig must be a mapping of texts".to_owned()),
    };
    let text = |key: &str, value: &Value| match value {
        Value::Scalar(_, Tag::Null) => Ok(String::new()),
        Value::Scalar(text, _) => Ok(text.clone()),
        // The catalog's functions take it for an empty text, which would empty the list that is meant.
        _ => Err(format!(
            "{} in `data` of the functionConfig must be a text; write a list or mapping as one, after `|`",
            go::quoted(key)
        )),
    };
    fields.iter().map(|(key, value)| Ok((key.clone(), text(key, value)?))).collect()
}

/// A finding about a field of a resource in a file.
pub(crate) fn finding(
    list: &ResourceList<'_>,
    message: String,
    path: &str,
    file: &str,
) -> Result<Finding, String> {
    let finding = Finding {
        message,
        field: Some(Field { path: path.to_owned(), ..Field::default() }),
        file: Some(File { path: file.to_owned(), index: 0 }),
        ..Finding::default()
    };
    list.afford(&finding)?;
    Ok(finding)
}

/// A failure: the message is the result, its cause is on stderr.
pub(crate) fn failure(message: String, cause: &str) -> Report {
    let finding = Finding::new(Severity::Error, message);
    Report { results: vec![finding], failed: true, stderr: format!("{cause}\n") }
}

/// What a text is in the place of a value: what is written without quotes may become a number, what has quotes
/// stays a string.
pub(crate) fn in_place_of(list: &ResourceList<'_>, node: NodeId, text: &str) -> Value {
    match list.style(node) {
        Style::Single | Style::Double | Style::Literal | Style::Folded => Value::string(text),
        _ => plain(text),
    }
}

/// What a text is without quotes; nothing is a string.
pub(crate) fn plain(text: &str) -> Value {
    if text.is_empty() { Value::string(text) } else { Value::plain(text) }
}
