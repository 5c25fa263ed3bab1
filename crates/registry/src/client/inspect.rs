//! What an image says about itself: from its name over index and manifest to its configuration, each checked
//! against its digest.

use std::sync::PoisonError;

use super::fetch::{Session, Wanted};
use super::{Inquiry, digest};
use crate::Reference;
use crate::error::Trouble;
use crate::metadata::{Configuration, Descriptor, MANIFEST_TYPES, Manifest, Metadata, Platform, choose};
use crate::trust::Trust;

const LARGEST_MANIFEST: usize = 4 * 1024 * 1024;
const LARGEST_CONFIGURATION: usize = 8 * 1024 * 1024;
/// An index of indexes exists; more has not been seen.
const DEEPEST_INDEX: usize = 3;

/// The question for an image's metadata.
pub(super) struct Inspection<'a> {
    /// The image as the caller calls it.
    pub(super) image: &'a Reference,
    /// Where it is to run.
    pub(super) platform: &'a Platform,
}

impl Inquiry for Inspection<'_> {
    type Answer = Metadata;

    async fn put(&self, session: &Session<'_>) -> Result<Metadata, Trouble> {
        let (digest, config) = self.manifest(session).await?;
        let configuration = configuration(session, &config).await?;
        let platform = configuration.platform.unwrap_or_else(|| self.platform.clone());
        if platform.os != self.platform.os {
            return Err(Trouble::invalid(
                format!("it is an image for {platform}, not for {}", self.platform),
                format!("build and push the image for {}", self.platform),
            ));
        }
        let used = session.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let run = configuration.run;
        Ok(Metadata {
            reference: self.image.clone(),
            source: session.image.clone(),
            digest,
            entrypoint: run.entrypoint.unwrap_or_default(),
            command: run.cmd.unwrap_or_default(),
            user: run.user.unwrap_or_default(),
            environment: run.env.unwrap_or_default(),
            working_dir: run.working_dir.unwrap_or_default(),
            platform,
            credential: used.credential,
            trust: used.trust.unwrap_or(Trust::System),
        })
    }
}

impl Inspection<'_> {
    /// The manifest for our platform: its digest and the configuration it names.
    async fn manifest(&self, session: &Session<'_>) -> Result<(String, Descriptor), Trouble> {
        let image = &session.image;
        let (mut named, what) = match image.digest() {
            Some(digest) => (digest.to_owned(), format!("manifest {digest}")),
            None => {
                let tag = image.tag().unwrap_or("latest");
                (tag.to_owned(), format!("manifest tagged {tag}"))
            }
        };
        let mut expected = image.digest().map(str::to_owned);
        for depth in 0..=DEEPEST_INDEX {
            let fetched = session
                .get(&Wanted {
                    path: &format!("manifests/{named}"),
                    accept: MANIFEST_TYPES,
                    limit: LARGEST_MANIFEST,
                    what: if depth == 0 { &what } else { "manifest for our platform" },
                    is_named_by_caller: depth == 0,
                })
                .await?;
            let announced =
                fetched.headers.get("docker-content-digest").and_then(|value| value.to_str().ok());
            // What a tag stands for can only be checked against what the registry says of it.
            let digest = match expected.as_deref().or(announced.filter(|digest| is_digest(session, digest))) {
                Some(expected) => {
                    digest::verify(expected, &fetched.body, "manifest")?;
                    expected.to_owned()
                }
                None => digest::of(&fetched.body),
            };
            match Manifest::parse(&fetched.body)? {
                Manifest::Image(config) => return Ok((digest, config)),
                Manifest::Index(manifests) => {
                    let chosen = choose(&manifests, self.platform)?;
                    check_digest(session, &chosen.digest)?;
                    named.clone_from(&chosen.digest);
                    expected = Some(chosen.digest.clone());
                }
            }
        }
        Err(Trouble::invalid(
            format!("its indexes are more than {DEEPEST_INDEX} deep"),
            "push the image with one index over its platforms",
        ))
    }
}

async fn configuration(session: &Session<'_>, config: &Descriptor) -> Result<Configuration, Trouble> {
    check_digest(session, &config.digest)?;
    if let Some(size) = config.size.filter(|size| *size > LARGEST_CONFIGURATION as u64) {
        return Err(Trouble::invalid(
            format!("its configuration has {size} bytes, more than the {LARGEST_CONFIGURATION} allowed"),
            "check the image; no sound one needs as much",
        ));
    }
    let fetched = session
        .get(&Wanted {
            path: &format!("blobs/{}", config.digest),
            accept: "*/*",
            limit: LARGEST_CONFIGURATION,
            what: "configuration",
            is_named_by_caller: false,
        })
        .await?;
    digest::verify(&config.digest, &fetched.body, "configuration")?;
    Configuration::parse(&fetched.body)
}

fn is_digest(session: &Session<'_>, digest: &str) -> bool {
    session.image.with_digest(digest).is_ok()
}

/// A digest becomes part of an address: it must be one.
fn check_digest(session: &Session<'_>, digest: &str) -> Result<(), Trouble> {
    session.image.with_digest(digest).map(|_| ()).map_err(|error| {
        Trouble::invalid(
            format!("the image names a wrong digest: {}", error.problem()),
            "push the image again",
        )
    })
}
