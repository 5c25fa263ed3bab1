//! Mirrors: other places where images of a registry are asked for first.

use std::str::FromStr;

use crate::{Prefix, Reference};

/// A prefix of image names and what stands in for it: `docker.io=mirror.example/hub`. Exists only if valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    prefix: Prefix,
    place: Prefix,
}

/// A text that names no mirror.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{mirror:?} is no mirror: {cause}; write it as docker.io=mirror.example/hub")]
pub struct InvalidMirror {
    mirror: String,
    cause: String,
}

impl Mirror {
    /// Where the mirror's images are.
    pub fn place(&self) -> &Prefix {
        &self.place
    }

    /// The name an image has there, `None` if the mirror is not for it.
    fn name_of(&self, image: &Reference) -> Option<Reference> {
        let name = format!("{}/{}", self.place, self.prefix.rest(image).filter(|rest| !rest.is_empty())?);
        let version = match (image.digest(), image.tag()) {
            (Some(digest), _) => format!("@{digest}"),
            (None, tag) => format!(":{}", tag.unwrap_or("latest")),
        };
        Reference::parse(&format!("{name}{version}")).ok()
    }
}

impl FromStr for Mirror {
    type Err = InvalidMirror;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shown = text.chars().take(200).collect::<String>();
        let wrong = |cause: String| InvalidMirror { mirror: shown.clone(), cause };
        let (prefix, place) = text.split_once('=').ok_or_else(|| wrong("there is no = in it".to_owned()))?;
        let side = |text: &str| {
            if text.contains('*') {
                return Err(wrong("both sides must be whole names, without a star".to_owned()));
            }
            Prefix::parse(text.trim()).map_err(|error| wrong(format!("{:?}: {}", text.trim(), error.cause())))
        };
        Ok(Self { prefix: side(prefix)?, place: side(place)? })
    }
}

/// All mirrors: the most specific prefix first, those alike in the order given.
#[derive(Debug, Clone, Default)]
pub(super) struct Mirrors(Vec<Mirror>);

impl Mirrors {
    pub(super) fn new(mut mirrors: Vec<Mirror>) -> Self {
        mirrors.sort_by_key(|mirror| std::cmp::Reverse(mirror.prefix.length()));
        Self(mirrors)
    }

    /// The names an image has at its mirrors, in the order to ask them: those of the longest prefix.
    pub(super) fn of(&self, image: &Reference) -> Vec<Reference> {
        let Some(longest) = self.0.iter().find(|mirror| mirror.name_of(image).is_some()) else {
            return Vec::new();
        };
        self.0
            .iter()
            .filter(|mirror| mirror.prefix == longest.prefix)
            .filter_map(|mirror| mirror.name_of(image))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins_at_a_boundary() {
        let mirrors = [
            "docker.io=m.example/hub",
            "ghcr.io/kptdev/=one.example:5000",
            "ghcr.io=m.example/ghcr",
            " ghcr.io/kptdev = two.example/x/ ",
            "index.docker.io/me=mine.example",
        ];
        let mirrors = Mirrors::new(mirrors.iter().map(|text| text.parse().unwrap()).collect());
        let of = |text: &str| -> Vec<String> {
            mirrors
                .of(&Reference::parse(text).unwrap())
                .iter()
                .map(|image| image.as_given().to_owned())
                .collect()
        };
        assert_eq!(of("ubuntu"), ["m.example/hub/library/ubuntu:latest"]);
        assert_eq!(of("docker.io/me/a:v1"), ["mine.example/a:v1"]);
        assert_eq!(of("ghcr.io/kptdev/a/b:v1"), ["one.example:5000/a/b:v1", "two.example/x/a/b:v1"]);
        assert_eq!(of("ghcr.io/kptdevs/a:v1"), ["m.example/ghcr/kptdevs/a:v1"]);
        assert_eq!(
            of("ghcr.io/kptdev:v1"),
            ["m.example/ghcr/kptdev:v1"],
            "nothing follows the longer prefix"
        );
        assert_eq!(of("quay.io/a/b:v1"), [""; 0]);
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(of(&format!("ghcr.io/x/y:v1@{digest}")), [format!("m.example/ghcr/x/y@{digest}")]);
    }

    #[test]
    fn what_is_no_mirror_is_refused() {
        for text in [
            "",
            "=",
            "ghcr.io",
            "=m.example",
            "ghcr.io=",
            "ghcr.io=http://m.example",
            "ghcr=m.example",
            "ghcr.io=mirror",
            "ghcr.io=m.example/UPPER",
            "ghcr.io=m.example/a b",
            "ghcr.io/*=m.example",
            "ghcr.io=m.example/x:v1",
            "ghcr.io=a.example=b.example",
        ] {
            let error = text.parse::<Mirror>().expect_err(text);
            assert!(error.to_string().contains("write it as"), "{error}");
        }
    }
}
