//! What a piece of configuration lays claim to: some images, by where they are and which versions.

use registry::{Constraint, Prefix, Reference};

/// Some images, and how whoever configured them wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The text to tell people of it.
    pub entry: String,
    /// Where the images are.
    pub place: Place,
    /// Which of the images there.
    pub versions: Versions,
}

/// Where images are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the repository of this full name.
    Repository(String),
    /// In repositories whose last part is this name, under a prefix or anywhere.
    Named {
        /// The last part.
        name: String,
        /// What the repository begins with.
        prefix: Option<Prefix>,
    },
}

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
}

impl Claim {
    /// Reads a reference that may have a constraint in place of its tag: `example.com/f:v1`,
    /// `example.com/f@sha256:…`, `example.com/f:~0.4`, `example.com/f:*`.
    pub fn parse(text: &str, default_prefix: &str) -> Result<Self, String> {
        let (image, versions) = match Reference::parse_with_prefix(text, default_prefix) {
            Ok(image) => {
                let versions = match (image.digest(), image.tag()) {
                    (Some(digest), _) => Versions::Digest(digest.to_owned()),
                    (None, tag) => Versions::parse(tag.unwrap_or("latest"))?,
                };
                (image, versions)
            }
            Err(error) => {
                // A colon before the last slash belongs to a port.
                let last_part = text.rfind('/').map_or(0, |slash| slash + 1);
                let colon = text.get(last_part..).and_then(|part| part.find(':')).map(|at| last_part + at);
                let Some((name, versions)) =
                    colon.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)))
                else {
                    return Err(error.to_string());
                };
                let image =
                    Reference::parse_with_prefix(name, default_prefix).map_err(|_| error.to_string())?;
                (image, Versions::parse(versions)?)
            }
        };
        Ok(Self { entry: text.to_owned(), place: Place::Repository(image.full_name().to_owned()), versions })
    }
}

impl Versions {
    /// Reads a tag, or a constraint in its place.
    ///
    /// What can be a tag is one, also `v0.4`, which as a constraint would mean more. The exception is a version
    /// with an open part, such as `1.x`: nobody means a tag by that.
    pub fn parse(text: &str) -> Result<Self, String> {
        if Reference::check_tag(text).is_ok() && !is_open_version(text) {
            return Ok(Self::Tag(text.to_owned()));
        }
        if text.trim() == "*" {
            return Ok(Self::AnyTag);
        }
        Constraint::parse(text).map(Self::Constraint).map_err(|error| format!("it is no tag either: {error}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn constraint(text: &str) -> Versions {
        Versions::Constraint(Constraint::parse(text).unwrap())
    }

    fn tag(text: &str) -> Versions {
        Versions::Tag(text.to_owned())
    }

    #[test]
    fn a_constraint_may_stand_in_place_of_a_tag() {
        for (text, name, versions) in [
            ("example.com/f:v1", "example.com/f", tag("v1")),
            ("example.com/f", "example.com/f", tag("latest")),
            ("example.com/f:v0.4", "example.com/f", tag("v0.4")),
            ("example.com/f:1", "example.com/f", tag("1")),
            ("example.com/f:1.2.3-rc.1", "example.com/f", tag("1.2.3-rc.1")),
            ("example.com/f:x", "example.com/f", tag("x")),
            ("example.com/f:1.x-slim", "example.com/f", tag("1.x-slim")),
            ("example.com/f:~0.4", "example.com/f", constraint("~0.4")),
            ("example.com/f:>=1.2 <2", "example.com/f", constraint(">=1.2 <2")),
            ("example.com/f:>=1.2, <2 || ^3", "example.com/f", constraint(">=1.2, <2 || ^3")),
            ("example.com/f:=v0.4", "example.com/f", constraint("=v0.4")),
            ("example.com/f:1.x", "example.com/f", constraint("1.x")),
            ("example.com/f:v1.2.X", "example.com/f", constraint("v1.2.X")),
            ("example.com/f:1.*", "example.com/f", constraint("1.*")),
            ("example.com/f:*", "example.com/f", Versions::AnyTag),
            ("localhost:5000/f:~1", "localhost:5000/f", constraint("~1")),
            ("f:~1", "example.org/fn/f", constraint("~1")),
            ("ubuntu:^1", "example.org/fn/ubuntu", constraint("^1")),
        ] {
            let claim = Claim::parse(text, "example.org/fn").unwrap();
            assert_eq!(claim.place, Place::Repository(name.to_owned()), "{text}");
            assert_eq!(claim.versions, versions, "{text}");
            assert_eq!(claim.entry, text);
        }
        let digest = format!("sha256:{}", "a".repeat(64));
        let claim = Claim::parse(&format!("example.com/f:v1@{digest}"), "").unwrap();
        assert_eq!(claim.versions, Versions::Digest(digest));
    }

    #[test]
    fn what_is_neither_is_told() {
        for (text, told) in [
            ("", "empty"),
            ("Not An Image", "' '"),
            ("example.com/f:", "comparison is missing"),
            ("example.com/f:not a tag", "invalid version constraint"),
            ("example.com/f:~0.4@sha256:1", "invalid version constraint"),
            ("example.com/UPPER:~1", "invalid image reference"),
            ("example.com/f:>=", "comparison is missing"),
            (&format!("example.com/f:{}", "~1 ".repeat(1000)), "more than 512"),
        ] {
            let error = Claim::parse(text, "example.org/fn").expect_err(text);
            assert!(error.contains(told) && error.len() < 1000, "{text}: {error}");
        }
    }
}
