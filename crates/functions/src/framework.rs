//! What the catalog's functions on kustomize's framework have in common: settings are in `data` of whatever
//! object, results have a path and a file, and an error is told twice.

use krm::{NodeId, Style, Tag, Value};

use crate::config::FunctionConfig;
use crate::go;
use crate::list::ResourceList;
use crate::report::{Field, File, Finding, Report, Severity};

/// How long a text may become that is put together from others, in bytes.
const LONGEST: usize = 8 << 20;

/// How much a function may put into fields, in bytes, and how much it may tell.
const MOST_PUT: usize = 16 << 20;
const MOST_TOLD: usize = 64 << 20;

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

/// Counts what a function adds to what it was given, and refuses what is too much: a long value that is put
/// into many fields would fill the memory.
#[derive(Debug)]
pub(crate) struct Growth {
    put: usize,
    told: usize,
}

impl Growth {
    pub(crate) fn new() -> Self {
        Self { put: 0, told: 0 }
    }

    /// Notes that a text is about to be put into a field.
    pub(crate) fn put(&mut self, text: &str) -> Result<(), String> {
        add(&mut self.put, text.len(), MOST_PUT, "put into fields; use shorter values")
    }

    /// A finding about a field of a resource in a file.
    pub(crate) fn finding(&mut self, message: String, path: &str, file: &str) -> Result<Finding, String> {
        add(&mut self.told, message.len() + path.len() + file.len(), MOST_TOLD, "told; look for less")?;
        Ok(Finding {
            message,
            field: Some(Field { path: path.to_owned(), ..Field::default() }),
            file: Some(File { path: file.to_owned(), index: 0 }),
            ..Finding::default()
        })
    }
}

/// Adds to a count, as long as there is not too much.
fn add(count: &mut usize, bytes: usize, most: usize, what: &str) -> Result<(), String> {
    // Whatever is added takes some place, even if it is empty.
    *count = count.saturating_add(bytes).saturating_add(16);
    if *count > most { Err(format!("more than {} MiB would be {what}", most >> 20)) } else { Ok(()) }
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

/// Refuses a text that has become too long.
pub(crate) fn check_length(bytes: usize) -> Result<(), String> {
    if bytes <= LONGEST {
        return Ok(());
    }
    Err(format!("a value or comment would be longer than {} MiB; use shorter ones", LONGEST >> 20))
}
