//! Prefixes of image names, by whole parts: where images come from, as operators write it.

use std::fmt;
use std::str::FromStr;

use crate::Reference;
use crate::error::{RegistryError, RegistryErrorKind};
use crate::reference::{DOCKER_HUB, DOCKER_HUB_OF_OLD, shown};

/// How many prefixes an error lists.
const SHOWN_PREFIXES: usize = 5;

/// The beginning of image names: a registry and any parts of the path below it. Exists only if valid.
///
/// - `ghcr.io/org`, with or without a slash at its end, begins `ghcr.io/org/a` and `ghcr.io/org/a/b`, but not
///   `ghcr.io/organisation/a`: parts are whole.
/// - A star leaves the last part open: `ghcr.io/org/set-*` begins `ghcr.io/org/set-labels`.
/// - Names are compared in full: official images of Docker Hub are under `docker.io/library`. The case of the
///   registry does not count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// In one case.
    registry: String,
    /// With a slash before each part; empty for the whole registry.
    path: String,
    is_open: bool,
}

/// A text that is no prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{prefix} is no prefix of images: {cause}; right ones look like ghcr.io/kptdev, or like ghcr.io/kptdev/set-* \
     for part of a name"
)]
pub struct InvalidPrefix {
    /// In quotes, shortened when long.
    prefix: String,
    cause: String,
}

impl InvalidPrefix {
    /// What is wrong.
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

impl Prefix {
    /// Reads a prefix.
    pub fn parse(text: &str) -> Result<Self, InvalidPrefix> {
        Self::read(text).map_err(|cause| InvalidPrefix { prefix: shown(text), cause })
    }

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        let (stem, is_open) = match text.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (text.strip_suffix('/').unwrap_or(text), false),
        };
        if is_open && !stem.contains('/') {
            return Err("only the path after a registry may end in a star".to_owned());
        }
        // A name that begins so, as the rules are those of names.
        let example = format!("{stem}{}", if is_open { "a" } else { "/a" });
        let image = Reference::parse(&example).map_err(|error| error.problem().to_string())?;
        if image.tag().is_some() || image.digest().is_some() {
            return Err("tags and digests are not part of it".to_owned());
        }
        let (registry, path) = stem.split_at(stem.find('/').unwrap_or(stem.len()));
        let registry = if registry == DOCKER_HUB_OF_OLD { DOCKER_HUB } else { registry };
        // Without a dot, a port or "localhost" the first part would be an owner on Docker Hub.
        if registry != image.registry() {
            return Err(format!("it does not begin with a registry; did you mean {DOCKER_HUB}/{stem}?"));
        }
        // What is a registry by its capitals only keeps them: without, it would be an owner on Docker Hub as well.
        let lower = registry.to_ascii_lowercase();
        let is_known = Reference::parse(&format!("{lower}/a")).is_ok_and(|image| image.registry() == lower);
        let registry = if is_known { lower } else { registry.to_ascii_uppercase() };
        Ok(Self { registry, path: path.to_owned(), is_open })
    }

    /// Whether the image's name begins so.
    pub fn covers(&self, image: &Reference) -> bool {
        self.rest(image).is_some()
    }

    /// What follows the prefix in the image's name, without the slash between them.
    pub fn rest<'a>(&self, image: &'a Reference) -> Option<&'a str> {
        if !image.registry().eq_ignore_ascii_case(&self.registry) {
            return None;
        }
        let path = image.full_name().get(image.registry().len()..)?;
        self.rest_of_path(path)
    }

    fn rest_of_path<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix(self.path.as_str())?;
        if self.is_open || rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    /// Whether there are names that begin in both ways.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.registry == other.registry
            && (self.rest_of_path(&other.path).is_some() || other.rest_of_path(&self.path).is_some())
    }

    /// Greater is more specific.
    pub fn length(&self) -> usize {
        self.registry.len() + self.path.len()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}{}", self.registry, self.path, if self.is_open { "*" } else { "" })
    }
}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// The images that may be used: those under one of some prefixes, or all where there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedImages(Vec<Prefix>);

impl AllowedImages {
    /// Those under these prefixes; all without any.
    pub fn new(prefixes: Vec<Prefix>) -> Self {
        Self(prefixes)
    }

    /// Whether every image may be used.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// The prefixes, none if every image may be used.
    pub fn prefixes(&self) -> &[Prefix] {
        &self.0
    }

    /// The first prefix that allows the image, `None` if none does or none is needed.
    pub fn allowing(&self, image: &Reference) -> Option<&Prefix> {
        self.0.iter().find(|prefix| prefix.covers(image))
    }

    /// Whether the image may be used.
    pub fn check(&self, image: &Reference) -> Result<(), RegistryError> {
        if self.is_everything() || self.allowing(image).is_some() {
            return Ok(());
        }
        let mut listed: Vec<String> = self.0.iter().take(SHOWN_PREFIXES).map(ToString::to_string).collect();
        if let Some(more) = self.0.len().checked_sub(SHOWN_PREFIXES).filter(|more| *more > 0) {
            listed.push(format!("and {more} more"));
        }
        Err(RegistryError::new(
            RegistryErrorKind::Denied,
            image.as_given(),
            format!("{} is not under --allowed-images ({})", image.full_name(), listed.join(", ")),
            "use an image from there, or have its prefix added to the flag",
        ))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn covers(prefix: &str, image: &str) -> bool {
        Prefix::parse(prefix).unwrap().covers(&Reference::parse(image).unwrap())
    }

    #[test]
    fn a_registry_by_its_capitals_is_one_however_it_is_printed() {
        let prefix = Prefix::parse("Mirror/hub").unwrap();
        assert_eq!(Prefix::parse(&prefix.to_string()), Ok(prefix.clone()));
        assert_eq!(Prefix::parse("mIRROR/hub"), Ok(prefix));
        assert!(covers("Mirror/hub", "MIRROR/hub/a") && !covers("Mirror/hub", "mirror/hub/a"));
    }

    #[test]
    fn parts_are_whole_unless_a_star_leaves_the_last_one_open() {
        for (prefix, covered, others) in [
            (
                "ghcr.io/org",
                &["ghcr.io/org/x:v1", "ghcr.io/org/a/b", "ghcr.io/org:v1", "GHCR.io/org/x"][..],
                &["ghcr.io/organisation/x", "ghcr.io/or/x", "ghcr.io/x/org", "ghcr.io:443/org/x", "org/x"][..],
            ),
            ("ghcr.io/org/", &["ghcr.io/org/x"], &["ghcr.io/organisation/x", "ghcr.io/org-x/y"]),
            (
                "ghcr.io/org/set",
                &["ghcr.io/org/set:v1", "ghcr.io/org/set/x"],
                &["ghcr.io/org/set-labels", "ghcr.io/org/sets/x"],
            ),
            (
                "ghcr.io/org/set-*",
                &["ghcr.io/org/set-labels:v1", "ghcr.io/org/set-a/b"],
                &["ghcr.io/org/set:v1", "ghcr.io/org/sets", "ghcr.io/org/a/set-x"],
            ),
            ("ghcr.io/*", &["ghcr.io/x", "ghcr.io/a/b"], &["ghcr.io.evil.example/x"]),
            ("ghcr.io", &["ghcr.io/x"], &["ghcr.io.evil.example/x", "evil.example/ghcr.io/x", "x"]),
            (
                "docker.io/library",
                &["ubuntu", "docker.io/ubuntu", "index.docker.io/library/ubuntu"],
                &["me/ubuntu"],
            ),
            ("index.docker.io/me", &["me/x", "docker.io/me/x"], &["ubuntu", "men/x"]),
            ("localhost:5000/a", &["localhost:5000/a/b"], &["localhost:5001/a/b", "localhost/a/b"]),
            ("[::1]:5000", &["[::1]:5000/a"], &["localhost:5000/a"]),
        ] {
            for image in covered {
                assert!(covers(prefix, image), "{prefix} does not cover {image}");
            }
            for image in others {
                assert!(!covers(prefix, image), "{prefix} covers {image}");
            }
        }
    }

    #[test]
    fn what_is_no_prefix_is_told_with_a_right_one() {
        for (text, cause) in [
            ("", "empty"),
            ("*", "star"),
            ("ghcr.io*", "star"),
            ("ghcr", "did you mean docker.io/ghcr?"),
            ("kptdev/set-labels", "did you mean docker.io/kptdev/set-labels?"),
            ("ghcr.io/org/set-", "set-"),
            ("ghcr.io/org/fn:v1", "fn:v1"),
            ("ghcr.io/org/fn:v*", "tags and digests"),
            ("ghcr.io/org//x", "empty part"),
            ("ghcr.io/org//", "empty part"),
            ("ghcr.io/Org", "capital"),
            ("https://ghcr.io/org", "scheme"),
            ("ghcr.io/a b", "' '"),
            ("ghcr.io/*/x", "*"),
        ] {
            let error = Prefix::parse(text).expect_err(text).to_string();
            assert!(error.contains(cause) && error.contains("right ones look like"), "{text}: {error}");
        }
        let long = Prefix::parse(&"x".repeat(100_000)).unwrap_err().to_string();
        assert!(long.len() < 1000, "{long}");
    }

    #[test]
    fn overlaps_are_seen_from_both_sides() {
        for (one, other, expected) in [
            ("m.example/hub", "m.example/hub/org", true),
            ("m.example", "m.example/hub", true),
            ("m.example/hub", "m.example/hub", true),
            ("m.example/h*", "m.example/hub/org", true),
            ("m.example/hub/s*", "m.example/hub", true),
            ("m.example/hub", "m.example/hubs", false),
            ("m.example/hub", "n.example/hub", false),
        ] {
            let (one, other) = (Prefix::parse(one).unwrap(), Prefix::parse(other).unwrap());
            assert_eq!((one.overlaps(&other), other.overlaps(&one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn a_refusal_names_the_image_and_what_is_allowed() {
        let prefixes = |count: usize| {
            AllowedImages::new(
                (0..count).map(|n| Prefix::parse(&format!("r.example/p{n}")).unwrap()).collect(),
            )
        };
        let image = Reference::parse("ubuntu").unwrap();
        AllowedImages::default().check(&image).unwrap();
        let error = prefixes(2).check(&image).unwrap_err();
        assert_eq!(error.kind(), RegistryErrorKind::Denied);
        for part in
            ["\"ubuntu\"", "docker.io/library/ubuntu", "(r.example/p0, r.example/p1)", "--allowed-images"]
        {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert!(prefixes(100).check(&image).unwrap_err().to_string().contains("r.example/p4, and 95 more)"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
            let _ = Prefix::parse(&text);
        }

        #[test]
        fn what_a_prefix_shows_is_the_same_prefix(text in "[a-z]{1,3}\\.io(/[a-z]{1,4}){0,3}[*/]?") {
            if let Ok(prefix) = Prefix::parse(&text) {
                prop_assert_eq!(Prefix::parse(&prefix.to_string()).unwrap(), prefix);
            }
        }

        #[test]
        fn a_name_is_covered_by_all_its_whole_beginnings_and_by_no_other(
            parts in prop::collection::vec("[a-z]{1,3}(-[a-z]{1,2})?", 1..4),
            cut in 1_usize..40,
        ) {
            let name = format!("r.example/{}", parts.join("/"));
            let image = Reference::parse(&name).unwrap();
            let text = name.get(..cut.min(name.len())).unwrap();
            if let Ok(prefix) = Prefix::parse(text) {
                let ends_whole = cut >= name.len() || text.ends_with('/') || name.get(cut..=cut) == Some("/");
                prop_assert_eq!(prefix.covers(&image), ends_whole, "{} of {}", text, name);
            }
        }
    }
}
