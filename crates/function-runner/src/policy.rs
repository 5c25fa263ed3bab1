//! What a request may ask for, decided before any executor or registry hears of it.

use registry::{AllowedImages, Reference};
use wire::Failure;

use crate::{evaluate::Asked, images};

/// How requests are read, and which images they may name.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Put before image references without a "/".
    pub default_prefix: String,
    /// The images that may be run, by whatever executor.
    pub allowed: AllowedImages,
}

impl Policy {
    /// What a request asks for, if it may. An empty `tag` is none.
    pub fn admit(&self, image: &str, tag: &str) -> Result<Asked, Failure> {
        let image = Reference::parse_with_prefix(image, &self.default_prefix)
            .map_err(|error| Failure::InvalidImage { cause: error.to_string() })?;
        self.allowed.check(&image).map_err(|refusal| images::failure(&refusal))?;
        if tag.is_empty() { Ok(Asked::from(image)) } else { Asked::tagged(&image, tag) }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn images_are_judged_by_their_full_names() {
        let policy = Policy {
            default_prefix: "ghcr.io/org".to_owned(),
            allowed: AllowedImages::new(vec![
                "ghcr.io/org".parse().unwrap(),
                "docker.io/library".parse().unwrap(),
            ]),
        };
        for image in ["f", "f:v1", "ghcr.io/org/f", "docker.io/ubuntu", "index.docker.io/library/ubuntu:v1"] {
            policy.admit(image, "").unwrap();
            policy.admit(image, "~1").unwrap();
        }
        for image in ["ghcr.io/organisation/f", "me/f", "ghcr.io/f", "localhost/ghcr.io/org/f"] {
            for tag in ["", "~1", "not a tag"] {
                let failure = policy.admit(image, tag).unwrap_err();
                assert_eq!(failure.code(), Code::PermissionDenied, "{image} {tag}: {failure}");
                let text = failure.to_string();
                assert!(text.starts_with(&format!("image {image:?} is refused: ")), "{text}");
                assert!(text.contains("--allowed-images (ghcr.io/org, docker.io/library)"), "{text}");
            }
        }
        assert_eq!(policy.admit("Not An Image", "").unwrap_err().code(), Code::InvalidArgument);
    }
}
