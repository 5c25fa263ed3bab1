//! What an image says about itself: its manifest, its index of platforms, its configuration.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;

use crate::Reference;
use crate::error::{Trouble, clean};
use crate::trust::Trust;

/// The kinds of manifests we read, for `Accept`.
pub(crate) const MANIFEST_TYPES: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json";
/// Kinds of the configuration of container images. Other artifacts, such as charts, have others.
const CONFIGURATION_TYPES: [&str; 3] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
    "application/octet-stream",
];

/// Where an image runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Platform {
    /// The operating system: `linux`.
    pub os: String,
    /// The processor, by Go's names: `amd64`, `arm64`.
    pub architecture: String,
    /// Its variant, as `v7` of `arm`; empty for none.
    pub variant: String,
}

impl Platform {
    /// Linux on a processor.
    pub fn linux(architecture: &str) -> Self {
        Self { os: "linux".to_owned(), architecture: architecture.to_owned(), variant: String::new() }
    }
}

impl Default for Platform {
    /// Linux on the processor this program was built for.
    fn default() -> Self {
        Self::linux(match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "powerpc64" => "ppc64le",
            other => other,
        })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.os, self.architecture)?;
        if self.variant.is_empty() { Ok(()) } else { write!(formatter, "/{}", self.variant) }
    }
}

/// What is known of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The image as asked for.
    pub reference: Reference,
    /// The name it was read by: that of a mirror, if one answered.
    pub source: Reference,
    /// The digest of the manifest for our platform, not that of an index above it.
    pub digest: String,
    /// What is run.
    pub entrypoint: Vec<String>,
    /// Its arguments, or what is run if there is no entrypoint.
    pub command: Vec<String>,
    /// Who runs it; empty for root.
    pub user: String,
    /// Variables, as `NAME=value`.
    pub environment: Vec<String>,
    /// The folder it is run in; empty for `/`.
    pub working_dir: String,
    /// Where it runs.
    pub platform: Platform,
    /// The entry of the Docker config that was used; `None` for no credentials.
    pub credential: Option<String>,
    /// What vouched for the registry.
    pub trust: Trust,
}

/// A part of an image, by its digest.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: String,
    #[serde(default)]
    pub(crate) size: Option<u64>,
    platform: Option<DescribedPlatform>,
    #[serde(default)]
    annotations: Option<HashMap<String, String>>,
}

#[derive(Debug, Clone, Deserialize)]
struct DescribedPlatform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    variant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyManifest {
    schema_version: Option<u64>,
    config: Option<Descriptor>,
    manifests: Option<Vec<Descriptor>>,
}

/// What a manifest leads to.
#[derive(Debug)]
pub(crate) enum Manifest {
    /// An image, by its configuration.
    Image(Descriptor),
    /// A choice of images.
    Index(Vec<Descriptor>),
}

/// The configuration of an image, as far as we care.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    pub(crate) platform: Option<Platform>,
    pub(crate) run: Run,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Run {
    pub(crate) entrypoint: Option<Vec<String>>,
    pub(crate) cmd: Option<Vec<String>>,
    pub(crate) user: Option<String>,
    pub(crate) env: Option<Vec<String>>,
    pub(crate) working_dir: Option<String>,
}

#[derive(Deserialize)]
struct AnyConfiguration {
    os: Option<String>,
    architecture: Option<String>,
    variant: Option<String>,
    config: Option<Run>,
}

const PUSH_AGAIN: &str = "build and push the image again with a current tool";

impl Manifest {
    /// Reads a manifest. Its content tells its kind: media types get lost on the way through caches.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Trouble> {
        let manifest: AnyManifest = serde_json::from_slice(body).map_err(|error| {
            Trouble::invalid(format!("the manifest is not one: {}", cause(&error)), PUSH_AGAIN)
        })?;
        match manifest {
            AnyManifest { schema_version: Some(1), .. } => Err(Trouble::invalid(
                "the manifest has Docker's schema 1, which has no digests to check",
                PUSH_AGAIN,
            )),
            AnyManifest { manifests: Some(manifests), .. } => Ok(Self::Index(manifests)),
            AnyManifest { config: Some(config), .. } => {
                let is_known =
                    config.media_type.is_empty() || CONFIGURATION_TYPES.contains(&config.media_type.as_str());
                if !is_known {
                    let kind = clean(&config.media_type).unwrap_or_default();
                    return Err(Trouble::invalid(
                        format!("it is no container image but an artifact of the kind {kind}"),
                        "check the image's name and tag",
                    ));
                }
                Ok(Self::Image(config))
            }
            _ => {
                Err(Trouble::invalid("the manifest names neither a configuration nor platforms", PUSH_AGAIN))
            }
        }
    }
}

/// The manifest of an index that fits the platform best.
pub(crate) fn choose<'a>(manifests: &'a [Descriptor], wanted: &Platform) -> Result<&'a Descriptor, Trouble> {
    let fits = |platform: &&DescribedPlatform| {
        platform.os == wanted.os && platform.architecture == wanted.architecture
    };
    let candidates = || {
        manifests
            .iter()
            .filter(|manifest| !is_attestation(manifest))
            .filter_map(|manifest| Some((manifest, manifest.platform.as_ref().filter(fits)?)))
    };
    let variant = |platform: &DescribedPlatform| platform.variant.clone().unwrap_or_default();
    // The very variant, else the plainest, else the first: within an architecture they mostly run.
    let chosen = candidates()
        .find(|(_, platform)| variant(platform) == wanted.variant)
        .or_else(|| candidates().find(|(_, platform)| variant(platform).is_empty()))
        .or_else(|| candidates().next())
        .map(|(manifest, _)| manifest);
    // An index that says nothing of platforms and has one entry leaves no choice.
    let only = match manifests {
        [only] if only.platform.is_none() => Some(only),
        _ => None,
    };
    chosen.or(only).ok_or_else(|| {
        let mut offered: Vec<String> = manifests
            .iter()
            .filter(|manifest| !is_attestation(manifest))
            .filter_map(|manifest| manifest.platform.as_ref())
            .map(|platform| format!("{}/{}", platform.os, platform.architecture))
            .collect();
        offered.sort();
        offered.dedup();
        let offered = clean(&offered.join(", ")).unwrap_or_else(|| "nothing".to_owned());
        Trouble::invalid(
            format!("it has no image for {wanted}, only for: {offered}"),
            format!("build and push the image for {wanted} as well"),
        )
    })
}

/// Build tools put their attestations among the platforms.
fn is_attestation(manifest: &Descriptor) -> bool {
    manifest
        .annotations
        .as_ref()
        .is_some_and(|annotations| annotations.contains_key("vnd.docker.reference.type"))
}

impl Configuration {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Trouble> {
        let configuration: AnyConfiguration = serde_json::from_slice(body).map_err(|error| {
            Trouble::invalid(format!("the image's configuration is not one: {}", cause(&error)), PUSH_AGAIN)
        })?;
        let platform = configuration.os.filter(|os| !os.is_empty()).map(|os| Platform {
            os,
            architecture: configuration.architecture.unwrap_or_default(),
            variant: configuration.variant.unwrap_or_default(),
        });
        Ok(Self { platform, run: configuration.config.unwrap_or_default() })
    }
}

/// Parse errors may repeat what they found.
fn cause(error: &serde_json::Error) -> String {
    clean(&error.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(platform: &str) -> Descriptor {
        let mut parts = platform.split('/');
        let mut part = || parts.next().unwrap_or_default();
        let platform = serde_json::json!({"os": part(), "architecture": part(), "variant": part()});
        serde_json::from_value(serde_json::json!({"digest": platform.to_string(), "platform": platform}))
            .unwrap()
    }

    fn chosen(offered: &[&str], wanted: &Platform) -> Option<String> {
        let manifests: Vec<Descriptor> = offered.iter().map(|platform| described(platform)).collect();
        let found = choose(&manifests, wanted).ok()?;
        let place = manifests.iter().position(|manifest| manifest.digest == found.digest)?;
        Some(offered[place].to_owned())
    }

    #[test]
    fn the_best_platform_is_chosen() {
        let arm = |variant: &str| Platform { variant: variant.to_owned(), ..Platform::linux("arm") };
        for (offered, wanted, expected) in [
            (
                &["windows/amd64", "linux/arm64", "linux/amd64"][..],
                Platform::linux("amd64"),
                Some("linux/amd64"),
            ),
            (&["linux/arm/v6", "linux/arm/v7"], arm("v7"), Some("linux/arm/v7")),
            (&["linux/arm/v6", "linux/arm"], arm("v7"), Some("linux/arm")),
            (&["linux/arm64/v8"], Platform::linux("arm64"), Some("linux/arm64/v8")),
            (&["windows/amd64", "unknown/unknown"], Platform::linux("amd64"), None),
            (&[], Platform::linux("amd64"), None),
        ] {
            assert_eq!(chosen(offered, &wanted).as_deref(), expected, "{wanted} of {offered:?}");
        }
    }

    #[test]
    fn an_only_entry_without_platform_is_taken() {
        let bare: Descriptor =
            serde_json::from_str(r#"{"digest":"d","platform":null,"annotations":null}"#).unwrap();
        assert_eq!(choose(std::slice::from_ref(&bare), &Platform::linux("amd64")).unwrap().digest, "d");
        assert!(choose(&[bare.clone(), bare], &Platform::linux("amd64")).is_err());
    }

    #[test]
    fn nothing_but_the_digest_is_needed() {
        for config in ["{}", r#"{"config":null}"#, r#"{"config":{"Entrypoint":null,"Cmd":null,"Env":null}}"#]
        {
            let configuration = Configuration::parse(config.as_bytes()).unwrap();
            assert!(configuration.platform.is_none() && configuration.run.entrypoint.is_none(), "{config}");
        }
        for config in ["", "[]", r#"{"config":{"Entrypoint":"/bin/sh"}}"#, r#"{"config":{"Cmd":[1]}}"#] {
            assert!(Configuration::parse(config.as_bytes()).is_err(), "{config}");
        }
    }
}
