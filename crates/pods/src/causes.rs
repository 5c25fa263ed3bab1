//! A pod's trouble as the failure of the calls that wait for it.

use wire::Failure;

use crate::observe::{Trouble, TroubleKind};

impl Trouble {
    /// What a caller is told.
    pub(crate) fn failure(&self, image: &str) -> Failure {
        let (image, cause) = (image.to_owned(), self.text.clone());
        match self.kind {
            TroubleKind::PullFailed if self.lasting && is_denial(&cause) => {
                Failure::ImageDenied { image, cause }
            }
            TroubleKind::PullFailed if self.lasting => Failure::ImageMissing { image, cause },
            TroubleKind::OutOfMemory => Failure::Exhausted {
                image,
                cause: format!(
                    "its pod ran out of memory: {cause}; give it more with resources.limits.memory"
                ),
                stderr: String::new(),
            },
            _ if self.lasting => Failure::Unusable { cause: format!("its pod cannot run: {cause}") },
            _ => Failure::Unavailable { cause: format!("its pod is not ready: {cause}") },
        }
    }
}

/// Whether a registry's words mean that the image is kept from us.
fn is_denial(words: &str) -> bool {
    let words = words.to_lowercase();
    [
        "denied",
        "unauthorized",
        "forbidden",
        "authentication required",
        "no basic auth",
        "authorization failed",
    ]
    .iter()
    .any(|sign| words.contains(sign))
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn code(kind: TroubleKind, text: &str, lasting: bool) -> Code {
        let failure = Trouble { kind, text: text.to_owned(), lasting }.failure("example.com/f:v1");
        assert!(failure.to_string().contains(text), "{failure}");
        failure.code()
    }

    #[test]
    fn each_trouble_has_the_code_that_says_what_to_do() {
        use TroubleKind::{Crashed, OutOfMemory, PullFailed, Unschedulable};
        assert_eq!(code(PullFailed, "manifest unknown: not found", true), Code::FailedPrecondition);
        assert_eq!(
            code(PullFailed, "pull access denied, repository does not exist", true),
            Code::PermissionDenied
        );
        assert_eq!(code(PullFailed, "i/o timeout", false), Code::Unavailable);
        assert_eq!(code(Unschedulable, "0/1 nodes are available", false), Code::Unavailable);
        assert_eq!(code(Crashed { exit_code: Some(1) }, "exit code 1", true), Code::FailedPrecondition);
        assert_eq!(code(OutOfMemory, "OOMKilled", true), Code::ResourceExhausted);
    }
}
