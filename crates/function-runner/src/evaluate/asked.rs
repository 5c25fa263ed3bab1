//! What a call asks for: an image, and perhaps which of its versions will do.

use std::fmt;

use registry::{Constraint, Reference};
use wire::Failure;

/// An image and an optional constraint on its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The image. Where the constraint is no tag as well, it has neither tag nor digest.
    pub image: Reference,
    /// Which tag is meant: one of exactly this text if there is one, else the highest version that meets it.
    pub constraint: Option<Constraint>,
}

impl Asked {
    /// An image with the tag, or the constraint, of a request in place of its own tag and digest.
    ///
    /// What can be read as a constraint is one; as a tag it is tried first. What is only a tag, such as
    /// `latest`, is that tag.
    pub fn tagged(image: &Reference, tag: &str) -> Result<Self, Failure> {
        match (image.with_tag(tag), Constraint::parse(tag)) {
            (Ok(image), constraint) => Ok(Self { image, constraint: constraint.ok() }),
            (Err(_), Ok(constraint)) => {
                Ok(Self { image: image.without_version(), constraint: Some(constraint) })
            }
            (Err(_), Err(error)) => Err(Failure::InvalidImage {
                cause: format!(
                    "the tag of the request for {image} is neither a tag nor a version constraint: {error}"
                ),
            }),
        }
    }
}

impl From<Reference> for Asked {
    fn from(image: Reference) -> Self {
        Self { image, constraint: None }
    }
}

/// As configuration would spell it: `example.com/f:~0.4`.
impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.constraint {
            Some(constraint) if self.image.tag().is_none() => {
                write!(formatter, "{}:{constraint}", self.image)
            }
            _ => write!(formatter, "{}", self.image),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn a_tag_is_a_tag_a_constraint_or_both() {
        let digest = format!("example.com/f@sha256:{}", "a".repeat(64));
        for given in ["example.com/f", "example.com/f:v9", &digest] {
            let image = Reference::parse(given).unwrap();
            for (tag, shown, is_constraint) in [
                ("latest", "example.com/f:latest", false),
                ("main", "example.com/f:main", false),
                ("v0.4", "example.com/f:v0.4", true),
                ("1.x", "example.com/f:1.x", true),
                ("~0.4", "example.com/f:~0.4", true),
                (">=1.2 <2", "example.com/f:>=1.2 <2", true),
                ("*", "example.com/f:*", true),
            ] {
                let asked = Asked::tagged(&image, tag).unwrap();
                assert_eq!((asked.to_string().as_str(), asked.constraint.is_some()), (shown, is_constraint));
                assert_eq!(asked.image.digest(), None);
            }
        }
    }

    #[test]
    fn what_is_neither_is_an_invalid_argument() {
        let image = Reference::parse("example.com/f:v1").unwrap();
        for tag in
            [" ", "not a tag", "v1@sha256:1", ">=", "\u{1b}[31m", &"x".repeat(100_000), "~1 ~2 ~", "../v1"]
        {
            let failure = Asked::tagged(&image, tag).unwrap_err();
            assert_eq!(failure.code(), Code::InvalidArgument, "{tag}");
            let text = failure.to_string();
            assert!(text.contains("neither a tag nor a version constraint") && text.len() < 1000, "{text}");
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }
}
