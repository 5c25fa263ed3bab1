//! Values that are not, or not yet, in a document.

use crate::tag::Tag;

/// A value to be written into a document, or read out of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A scalar: its text and its type.
    Scalar(String, Tag),
    /// A list.
    Sequence(Vec<Value>),
    /// Fields in their order.
    Mapping(Vec<(String, Value)>),
}

impl Value {
    /// The value null.
    pub fn null() -> Self {
        Self::Scalar("null".to_owned(), Tag::Null)
    }

    /// A string, whatever it looks like: it is quoted where it would be taken for something else.
    pub fn string(text: impl Into<String>) -> Self {
        Self::Scalar(text.into(), Tag::String)
    }

    /// What `text` is as a plain scalar: `80` is a number, `web` a string.
    pub fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        let tag = Tag::of_plain(&text);
        Self::Scalar(text, tag)
    }

    /// A mapping without fields.
    pub const fn mapping() -> Self {
        Self::Mapping(Vec::new())
    }

    /// A mapping of strings.
    pub fn strings<K: Into<String>, V: Into<String>>(fields: impl IntoIterator<Item = (K, V)>) -> Self {
        Self::Mapping(fields.into_iter().map(|(key, value)| (key.into(), Self::string(value))).collect())
    }

    /// The field of a mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Mapping(fields) => fields.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text of a scalar, of whatever type; null has none.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(_, Tag::Null) => None,
            Self::Scalar(text, _) => Some(text),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::string(text)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Scalar(truth.to_string(), Tag::Boolean)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Scalar(number.to_string(), Tag::Integer)
    }
}
