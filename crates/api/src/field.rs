//! Fields of objects: where they are, and what is wrong with them.

use std::fmt;

/// The way to a field, such as `spec.podExecutor.tags[0]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

/// A step on the way to a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// To the field of this name.
    Field(String),
    /// To the entry at this place.
    Entry(usize),
}

/// Something wrong with a field. Its value is left out, as if it were not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which field.
    pub path: FieldPath,
    /// What is wrong, and what would be right.
    pub cause: String,
}

impl FieldPath {
    /// The way to a field by names alone.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(|name| Step::Field(name.to_owned())).collect())
    }

    /// The way on to a field of the field.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.on(Step::Field(name.to_owned()))
    }

    /// The way on to an entry of the field.
    #[must_use]
    pub fn entry(&self, place: usize) -> Self {
        self.on(Step::Entry(place))
    }

    /// The steps, from the object down.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Says that something is wrong with the field.
    pub fn problem(&self, cause: impl fmt::Display) -> Problem {
        Problem { path: self.clone(), cause: cause.to_string() }
    }

    fn on(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            match step {
                // Names that we do not know may be any text.
                Step::Field(name) if place == 0 => write!(formatter, "{}", name.escape_debug())?,
                Step::Field(name) => write!(formatter, ".{}", name.escape_debug())?,
                Step::Entry(entry) => write!(formatter, "[{entry}]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_line_whatever_its_fields_are_called() {
        let path = FieldPath::of(["spec", "a\nb\u{1b}"]).entry(1).field("ü");
        assert_eq!(path.to_string(), r"spec.a\nb\u{1b}[1].ü");
    }
}
