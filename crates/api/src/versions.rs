//! Which images of a repository somebody means who lists tags.

use registry::{Constraint, Reference};

/// Which images of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Versions {
    /// The one of this tag.
    Tag(String),
    /// The one of this digest.
    Digest(String),
    /// Those whose tags are versions that meet a constraint.
    Constraint(Constraint),
    /// Those of any tag, whether it is a version or not.
    AnyTag,
    /// All, whether by tag or by digest.
    All,
}

impl Versions {
    /// Reads a tag, or a digest or a constraint in its place.
    ///
    /// What can be a tag is one, also `v0.4`, which as a constraint would mean more. The exception is a version
    /// with an open part, such as `1.x`: nobody means a tag by that.
    pub fn parse(text: &str) -> Result<Self, String> {
        if Reference::check_tag(text).is_ok() && !is_open_version(text) {
            return Ok(Self::Tag(text.to_owned()));
        }
        if Reference::parse(&format!("name@{text}")).is_ok() {
            return Ok(Self::Digest(text.to_owned()));
        }
        if text.trim() == "*" {
            return Ok(Self::AnyTag);
        }
        Constraint::parse(text)
            .map(Self::Constraint)
            .map_err(|error| format!("it is neither a tag nor a digest: {error}"))
    }
}

/// Whether it is a version with an `x` for one of its numbers, but not for the first.
fn is_open_version(text: &str) -> bool {
    let numbers = text.strip_prefix('v').unwrap_or(text);
    let mut parts = numbers.split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(is_number)
        && parts.clone().any(|part| matches!(part, "x" | "X"))
        && parts.all(|part| is_number(part) || matches!(part, "x" | "X"))
}
