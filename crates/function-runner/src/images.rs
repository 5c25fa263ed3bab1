//! What is known of images: the service's one view of registries, shared by all who need it.

use std::{borrow::Cow, sync::Arc};

use registry::{
    Cache, CacheSettings, Constraint, Metadata, Reference, Registry, RegistryError, RegistryErrorKind,
    SetupError, TagSource, choose, highest,
};
use tokio::time::Instant;
use wire::Failure;

use crate::{evaluate::Asked, settings::RegistrySettings};

/// How many repositories' tags are kept: a list of them may be long.
const MOST_TAG_LISTS: usize = 100;

/// Registries behind their caches. A clone shares both.
#[derive(Debug, Clone)]
pub struct Images {
    registry: Registry,
    metadata: Cache<Registry>,
    tags: Cache<TagSource>,
}

impl Images {
    /// A view that has asked nothing yet.
    pub fn new(settings: &RegistrySettings) -> Result<Self, SetupError> {
        let registry = Registry::new(settings.options())?;
        let cache = CacheSettings { refresh_interval: settings.refresh_interval, ..CacheSettings::default() };
        Ok(Self {
            metadata: Cache::new(registry.clone(), cache),
            tags: Cache::new(
                TagSource(registry.clone()),
                CacheSettings { capacity: MOST_TAG_LISTS, ..cache },
            ),
            registry,
        })
    }

    /// Warns of credentials and certificates for registries that cannot be read, before a call needs them.
    pub async fn warn_of_unreadable(&self) {
        for problem in self.registry.check().await {
            tracing::warn!("calls that need it will fail: {problem}");
        }
    }

    /// What an image says about itself. With a constraint, the image is meant whose tag is that very text, or
    /// else the highest version that meets it.
    ///
    /// Whoever asks again is answered from memory; what may have changed since is looked up behind their back.
    pub async fn resolve(
        &self,
        image: &Reference,
        constraint: Option<&Constraint>,
        deadline: Option<Instant>,
    ) -> Result<Arc<Metadata>, Failure> {
        let image = match constraint {
            Some(constraint) => Cow::Owned(self.choose(image, constraint, deadline).await?),
            None => Cow::Borrowed(image),
        };
        self.metadata.get(&image, deadline).await.map_err(|error| failure(&error))
    }

    async fn choose(
        &self,
        image: &Reference,
        constraint: &Constraint,
        deadline: Option<Instant>,
    ) -> Result<Reference, Failure> {
        let asked =
            || Asked { image: image.without_version(), constraint: Some(constraint.clone()) }.to_string();
        let tags = match self.tags.get(image, deadline).await {
            Ok(tags) => tags,
            // Some registries keep the list to themselves and still give the image of a tag.
            Err(error) if error.kind().is_definite() => {
                return image.with_tag(constraint.as_given()).map_err(|_| failure(&error.about(&asked())));
            }
            Err(error) => return Err(failure(&error.about(&asked()))),
        };
        let names = || tags.iter().map(String::as_str);
        // That the text is a constraint is known.
        let chosen = choose(constraint.as_given(), names()).ok().flatten();
        chosen.and_then(|tag| image.with_tag(tag).ok()).ok_or_else(|| {
            let newest = Constraint::parse("*").ok().and_then(|any| highest(&any, names()));
            let newest = newest.map(|tag| format!(", the newest version of which is {tag},")).unwrap_or_default();
            Failure::ImageMissing {
                image: asked(),
                cause: format!(
                    "none of the {} tags of {}{newest} meets the constraint; check it, or push such a version",
                    tags.len(),
                    image.full_name()
                ),
            }
        })
    }
}

/// What a caller is told of trouble with a registry: its words and the remedy, under the code that fits.
pub(crate) fn failure(error: &RegistryError) -> Failure {
    let (image, cause) = (error.image().to_owned(), error.explanation());
    match error.kind() {
        RegistryErrorKind::Missing => Failure::ImageMissing { image, cause },
        RegistryErrorKind::Denied => Failure::ImageDenied { image, cause },
        RegistryErrorKind::Invalid | RegistryErrorKind::Untrusted => {
            Failure::Unusable { cause: error.to_string() }
        }
        RegistryErrorKind::Unavailable => Failure::Unavailable { cause: error.to_string() },
        RegistryErrorKind::TimedOut => Failure::TimedOut { image, cause, stderr: String::new() },
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn every_kind_of_trouble_has_its_code_and_keeps_its_remedy() {
        for (kind, code) in [
            (RegistryErrorKind::Missing, Code::FailedPrecondition),
            (RegistryErrorKind::Denied, Code::PermissionDenied),
            (RegistryErrorKind::Invalid, Code::FailedPrecondition),
            (RegistryErrorKind::Untrusted, Code::FailedPrecondition),
            (RegistryErrorKind::Unavailable, Code::Unavailable),
            (RegistryErrorKind::TimedOut, Code::DeadlineExceeded),
        ] {
            let failure = failure(&RegistryError::new(kind, "example.com/f:v1", "it is broken", "mend it"));
            assert_eq!(failure.code(), code);
            let text = failure.to_string();
            assert!(text.contains("example.com/f:v1") && text.ends_with("it is broken; mend it"), "{text}");
        }
    }
}
