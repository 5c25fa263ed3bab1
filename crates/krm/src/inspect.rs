//! The question asked of every output: is it a `ResourceList`, and what did the function report?

use std::fmt::Write as _;

use crate::malformed::Malformed;
use crate::results::{FunctionResult, Kept, render_results, shorten};
use crate::{full, quick};

/// No API version is longer; a hostile one is cut.
const MAXIMUM_API_VERSION: usize = 512;

/// What is known of an output that is one `ResourceList`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The list's own `apiVersion`, if it has one that is not null.
    pub api_version: Option<String>,
    /// What the function reported, in its order; the first ones if there is very much.
    pub results: Vec<FunctionResult>,
    /// How many more results there were than are kept in `results`.
    pub omitted: usize,
    /// How many of the omitted ones were errors.
    pub omitted_errors: usize,
}

impl Summary {
    pub(crate) fn new(api_version: Option<&str>, kept: Kept) -> Self {
        Self {
            api_version: api_version.map(|version| shorten(version, MAXIMUM_API_VERSION)),
            results: kept.results,
            omitted: kept.omitted,
            omitted_errors: kept.omitted_errors,
        }
    }

    /// Whether the list is of one of the two versions that exist.
    pub fn has_known_api_version(&self) -> bool {
        matches!(
            self.api_version.as_deref(),
            Some("config.kubernetes.io/v1" | "config.kubernetes.io/v1beta1")
        )
    }

    /// Whether any result, kept or omitted, has severity `error`.
    pub fn has_error_result(&self) -> bool {
        self.omitted_errors > 0 || self.results.iter().any(FunctionResult::is_error)
    }

    /// The results as people read them, with a note of those omitted.
    pub fn render_results(&self) -> String {
        let mut text = render_results(&self.results);
        if self.omitted > 0 {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n\n({} more results omitted)", self.omitted);
        }
        text
    }
}

/// Tells whether `output` is exactly one object of kind `ResourceList`, in YAML or JSON, and what the
/// function reported in it.
///
/// Time is linear in the size of the output, and memory beside it is bounded, whatever the bytes are.
pub fn inspect(output: &[u8]) -> Result<Summary, Malformed> {
    let text = decode(output)?;
    match quick::read(text) {
        Some(summary) => Ok(summary),
        None => full::read(text),
    }
}

fn decode(output: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(output).map_err(|error| {
        // None of these marks is valid UTF-8, so outputs that are never come here.
        let encoding = match output {
            [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => "UTF-32",
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "UTF-16",
            _ => {
                let byte = error.valid_up_to();
                let before = output.get(..byte).unwrap_or_default();
                return Malformed::NotUtf8 { byte, line: memchr::memchr_iter(b'\n', before).count() + 1 };
            }
        };
        Malformed::OtherEncoding { encoding }
    })
}
