//! Mirrors: other places where images of a registry are asked for first.

use super::connection::SetupError;
use crate::Reference;

/// Prefixes of image names and what stands in for them.
#[derive(Debug, Clone, Default)]
pub(super) struct Mirrors(Vec<(String, String)>);

impl Mirrors {
    pub(super) fn new(mirrors: &[(String, String)]) -> Result<Self, SetupError> {
        let mut checked = Vec::with_capacity(mirrors.len());
        for (prefix, mirror) in mirrors {
            let wrong =
                |cause: String| SetupError::Mirror { prefix: prefix.clone(), mirror: mirror.clone(), cause };
            let bare = |text: &str| text.trim().trim_end_matches('/').to_owned();
            let (from, to) = (bare(prefix), bare(mirror));
            if from.is_empty() || to.is_empty() {
                return Err(wrong("one side is empty".to_owned()));
            }
            for side in [&from, &to] {
                let name = Reference::parse(&format!("{side}/name"))
                    .map_err(|error| wrong(error.problem().to_string()))?;
                // Without a dot, a port or "localhost" the first part would be an owner on Docker Hub.
                let names_registry = side
                    .split('/')
                    .next()
                    .is_some_and(|first| first == name.registry() || first == "index.docker.io");
                if !names_registry || name.tag().is_some() {
                    return Err(wrong(format!("{side:?} does not begin with a registry")));
                }
            }
            let from =
                from.strip_prefix("index.").filter(|rest| rest.starts_with("docker.io")).unwrap_or(&from);
            checked.push((from.to_owned(), to));
        }
        // The most specific prefix first; those alike in the order given.
        checked.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Ok(Self(checked))
    }

    /// The names an image has at its mirrors, in the order to ask them: those of the longest prefix.
    pub(super) fn of(&self, image: &Reference) -> Vec<Reference> {
        let rest_after = |prefix: &str| image.full_name().strip_prefix(prefix)?.strip_prefix('/');
        let Some((longest, _)) = self.0.iter().find(|(prefix, _)| rest_after(prefix).is_some()) else {
            return Vec::new();
        };
        self.0
            .iter()
            .filter(|(prefix, _)| prefix == longest)
            .filter_map(|(prefix, mirror)| {
                let name = format!("{mirror}/{}", rest_after(prefix)?);
                let version = match (image.digest(), image.tag()) {
                    (Some(digest), _) => format!("@{digest}"),
                    (None, tag) => format!(":{}", tag.unwrap_or("latest")),
                };
                Reference::parse(&format!("{name}{version}")).ok()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirrors(list: &[(&str, &str)]) -> Result<Mirrors, SetupError> {
        Mirrors::new(&list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>())
    }

    #[test]
    fn the_longest_prefix_wins_at_a_boundary() {
        let mirrors = mirrors(&[
            ("docker.io", "m.example/hub"),
            ("ghcr.io/kptdev/", "one.example:5000"),
            ("ghcr.io", "m.example/ghcr"),
            ("ghcr.io/kptdev", "two.example/x/"),
            ("index.docker.io/me", "mine.example"),
        ])
        .unwrap();
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
        assert_eq!(of("quay.io/a/b:v1"), [""; 0]);
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(of(&format!("ghcr.io/x/y:v1@{digest}")), [format!("m.example/ghcr/x/y@{digest}")]);
    }

    #[test]
    fn what_is_no_registry_is_refused() {
        for (prefix, mirror) in [
            ("", "m.example"),
            ("ghcr.io", ""),
            ("ghcr.io", "http://m.example"),
            ("ghcr", "m.example"),
            ("ghcr.io", "mirror"),
            ("ghcr.io", "m.example/UPPER"),
            ("ghcr.io", "m.example/a b"),
        ] {
            let error = mirrors(&[(prefix, mirror)]).unwrap_err();
            assert!(error.to_string().contains("write it as"), "{error}");
        }
    }
}
