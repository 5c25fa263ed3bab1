//! What is wrong with a command line, all of it at once.

use std::ffi::OsStr;
use std::fmt;

/// How much of a wrong value is repeated in an error.
const SHOWN_CHARACTERS: usize = 80;
/// How many mistakes are spelled out; more than that is no longer a person's slip.
pub(crate) const SHOWN_MISTAKES: usize = 20;

/// One mistake on the command line. Flags are named as they were written, values are quoted and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// No flag of this name exists.
    #[error("{flag}: unknown flag{}", did_you_mean(*suggestion))]
    Unknown {
        /// The flag as given.
        flag: String,
        /// The name it probably should have been.
        suggestion: Option<&'static str>,
    },
    /// Dashes that are followed by no name, such as `---x` or `--=v`.
    #[error("{argument}: not a flag; write --name or --name=value")]
    Malformed {
        /// The argument as given.
        argument: String,
    },
    /// The flag is the last argument, or another flag follows where its value should be.
    #[error("{flag}: the value is missing; must be {accepted}")]
    MissingValue {
        /// The flag as given.
        flag: String,
        /// What would be accepted.
        accepted: String,
    },
    /// The value is not of the flag's kind, or the caller rejects it.
    #[error("{flag} {value}: {reason}")]
    WrongValue {
        /// The flag as given.
        flag: String,
        /// The value, in quotes.
        value: String,
        /// What is wrong or what would be accepted.
        reason: String,
    },
    /// `--switch false`, which Go reads as `--switch=true` and ends the flags there.
    #[error("{flag} {word}: write {flag}={word}; a switch takes its value only with \"=\"")]
    DetachedBoolean {
        /// The flag as given.
        flag: String,
        /// The word after it.
        word: String,
    },
    /// An argument where none is taken.
    #[error("{argument}: unexpected argument; only flags are taken here")]
    UnexpectedArgument {
        /// The argument, in quotes.
        argument: String,
    },
    /// Anything else the caller found.
    #[error("{0}")]
    Other(String),
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!("; did you mean --{name}?"))
}

/// All mistakes of a command line, at least one. Prints as one line each, with a pointer to the help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    pub(crate) command: &'static str,
    pub(crate) list: Vec<Mistake>,
}

impl Mistakes {
    /// The mistakes in the order in which they were found.
    pub fn list(&self) -> &[Mistake] {
        &self.list
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.list.len();
        writeln!(
            formatter,
            "{count} {} on the command line:",
            if count == 1 { "mistake" } else { "mistakes" }
        )?;
        for mistake in self.list.iter().take(SHOWN_MISTAKES) {
            writeln!(formatter, "  {mistake}")?;
        }
        if let Some(more @ 1..) = count.checked_sub(SHOWN_MISTAKES) {
            writeln!(formatter, "  and {more} more")?;
        }
        write!(formatter, "All flags: {} --help", self.command)
    }
}

impl std::error::Error for Mistakes {}

/// Makes any argument fit for an error message: no control characters, not longer than a line or two.
pub(crate) fn shown(argument: &OsStr) -> String {
    let quoted = quoted(argument);
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

/// The same in quotes, which an argument that was cut tells its length behind.
pub(crate) fn quoted(argument: &OsStr) -> String {
    // Four bytes hold any character: what lies beyond need not be looked at.
    let bytes = argument.as_encoded_bytes();
    let head = String::from_utf8_lossy(bytes.get(..SHOWN_CHARACTERS * 4).unwrap_or(bytes));
    let text: String = head.chars().take(SHOWN_CHARACTERS).collect();
    if text.len() < head.len() || head.len() < bytes.len() {
        format!("{:?} ({} bytes)", text + "…", bytes.len())
    } else {
        format!("{text:?}")
    }
}
