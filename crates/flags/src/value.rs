//! What a flag takes: from the text somebody wrote to a value, and what to tell them if it is none.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::duration::GoDuration;
use crate::flag::Spec;
use crate::nearest::nearest;
use crate::number;

/// The kinds of flags, each with its default.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Boolean { default: bool },
    Integer { default: i64, least: i64, greatest: i64 },
    Text { default: &'static str },
    Duration { default: GoDuration },
    List { default: &'static [&'static str], words: &'static [&'static str] },
    Choice { default: &'static str, words: &'static [&'static str] },
    Path { default: &'static str },
}

/// A value of one of the kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Boolean(bool),
    Integer(i64),
    Text(String),
    Duration(GoDuration),
    List(Vec<String>),
    Choice(&'static str),
    Path(PathBuf),
}

impl Kind {
    /// The value of a flag that is not given.
    pub(crate) fn default_value(&self) -> Value {
        match *self {
            Self::Boolean { default } => Value::Boolean(default),
            Self::Integer { default, .. } => Value::Integer(default),
            Self::Text { default } => Value::Text(default.to_owned()),
            Self::Duration { default } => Value::Duration(default),
            Self::List { default, .. } => Value::List(default.iter().map(ToString::to_string).collect()),
            Self::Choice { default, .. } => Value::Choice(default),
            Self::Path { default } => Value::Path(default.into()),
        }
    }

    /// The default as one would write it on the command line.
    pub(crate) fn default_text(&self) -> String {
        match *self {
            Self::Boolean { default } => default.to_string(),
            Self::Integer { default, .. } => default.to_string(),
            Self::Text { default } | Self::Choice { default, .. } | Self::Path { default } => {
                default.to_owned()
            }
            Self::Duration { default } => default.to_string(),
            Self::List { default, .. } => default.join(","),
        }
    }

    /// Reads a value, or says what would have been accepted.
    pub(crate) fn read(&self, given: &OsStr) -> Result<Value, String> {
        if let Self::Path { .. } = self {
            return Ok(Value::Path(given.into()));
        }
        let Some(text) = given.to_str() else {
            return Err(format!("not UTF-8; must be {}", self.accepted()));
        };
        let must_be = || format!("must be {}", self.accepted());
        match *self {
            Self::Boolean { .. } => number::boolean(text).map(Value::Boolean).ok_or_else(must_be),
            Self::Integer { least, greatest, .. } => number::integer(text)
                .filter(|number| (least..=greatest).contains(number))
                .map(Value::Integer)
                .ok_or_else(must_be),
            Self::Text { .. } => Ok(Value::Text(text.to_owned())),
            Self::Duration { .. } => text.parse().map(Value::Duration).map_err(|error| error.to_string()),
            Self::List { words, .. } => {
                let items = || text.split(',').map(str::trim).filter(|item| !item.is_empty());
                match items().find(|item| !words.is_empty() && !words.contains(item)) {
                    Some(wrong) => Err(must_be() + &did_you_mean(wrong, words)),
                    None => Ok(Value::List(items().map(str::to_owned).collect())),
                }
            }
            Self::Choice { words, .. } => words
                .iter()
                .find(|word| **word == text)
                .map(|word| Value::Choice(word))
                .ok_or_else(|| must_be() + &did_you_mean(text, words)),
            Self::Path { .. } => Ok(Value::Path(text.into())),
        }
    }

    /// What the flag takes, to follow "must be".
    pub(crate) fn accepted(&self) -> String {
        match *self {
            Self::Boolean { .. } => "true or false".to_owned(),
            Self::Integer { least: i64::MIN, greatest: i64::MAX, .. } => "a whole number".to_owned(),
            Self::Integer { least, greatest: i64::MAX, .. } => {
                format!("a whole number, {least} or more")
            }
            Self::Integer { least, greatest, .. } => {
                format!("a whole number from {least} to {greatest}")
            }
            Self::Text { .. } => "a text".to_owned(),
            Self::Duration { .. } => "a duration such as 30m, 1h30m or 1.5s".to_owned(),
            Self::List { words: [], .. } => "words separated by commas".to_owned(),
            Self::List { words, .. } => format!("some of {}, separated by commas", words.join(", ")),
            Self::Choice { words, .. } => format!("one of {}", words.join(", ")),
            Self::Path { .. } => "a path".to_owned(),
        }
    }
}

fn did_you_mean(wrong: &str, words: &'static [&'static str]) -> String {
    nearest(wrong, words.iter().copied()).map_or_else(String::new, |word| format!("; did you mean {word}?"))
}

impl Spec {
    pub(crate) const fn is_boolean(&self) -> bool {
        matches!(self.kind, Kind::Boolean { .. })
    }

    /// What is wrong with the declaration itself, if anything.
    pub(crate) fn defect(&self) -> Option<String> {
        let name = self.name;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        {
            return Some(format!("the flag name {name:?} is not made of letters, digits, - _ and ."));
        }
        if name.starts_with('-') {
            return Some(format!("the flag name {name:?} must be written without dashes in front"));
        }
        // A choice has no empty word unless it lists one, and a range may exclude the default.
        match self.kind.read(OsStr::new(&self.kind.default_text())) {
            Ok(value) if value == self.kind.default_value() => None,
            Ok(_) => Some(format!("the default of --{name} reads as something else")),
            Err(reason) => Some(format!("the default of --{name} is not accepted: {reason}")),
        }
    }
}
