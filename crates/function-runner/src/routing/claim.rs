//! What a piece of configuration lays claim to: some images, by where they are and which versions.

use api::Versions;
use registry::{Prefix, Reference};

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

impl Claim {
    /// The very image of a reference.
    pub fn exact(image: &Reference) -> Self {
        let versions = match (image.digest(), image.tag()) {
            (Some(digest), _) => Versions::Digest(digest.to_owned()),
            (None, tag) => Versions::Tag(tag.unwrap_or("latest").to_owned()),
        };
        let place = Place::Repository(image.full_name().to_owned());
        Self { entry: image.as_given().to_owned(), place, versions }
    }

    /// The images of a name under a prefix or anywhere; `tag` is how the versions were written.
    pub fn named(name: &str, prefix: Option<&Prefix>, tag: &str, versions: &Versions) -> Self {
        let place = prefix.map_or_else(|| "…".to_owned(), ToString::to_string);
        let separator = match versions {
            Versions::All => "",
            Versions::Digest(_) => "@",
            Versions::Tag(_) | Versions::Constraint(_) | Versions::AnyTag => ":",
        };
        Self {
            entry: format!("{place}/{name}{separator}{tag}"),
            place: Place::Named { name: name.to_owned(), prefix: prefix.cloned() },
            versions: versions.clone(),
        }
    }

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

#[cfg(test)]
mod tests {
    use registry::Constraint;

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
