//! Digests: the names of contents that can be checked.

use std::fmt::Write;

use ring::digest::{Algorithm, SHA256, SHA512, digest};

use crate::error::Trouble;

/// The digest of a content, as registries name it.
pub(super) fn of(content: &[u8]) -> String {
    with(&SHA256, "sha256", content)
}

/// Whether a content is what its digest says.
pub(super) fn verify(expected: &str, content: &[u8], what: &str) -> Result<(), Trouble> {
    let actual = match expected.split_once(':') {
        Some(("sha512", _)) => with(&SHA512, "sha512", content),
        _ => of(content),
    };
    if actual == expected {
        return Ok(());
    }
    Err(Trouble::invalid(
        format!(
            "the {what} does not match its digest: expected {expected}, but the {} bytes have {actual}",
            content.len()
        ),
        "something between here and the registry changes images, or the registry's storage is damaged: push the \
         image again",
    ))
}

fn with(algorithm: &'static Algorithm, name: &str, content: &[u8]) -> String {
    digest(algorithm, content).as_ref().iter().fold(format!("{name}:"), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn contents_are_checked() {
        assert_eq!(of(b""), EMPTY);
        verify(EMPTY, b"", "manifest").unwrap();
        let long = with(&SHA512, "sha512", b"a");
        assert_eq!(long.len(), 7 + 128);
        verify(&long, b"a", "manifest").unwrap();
        let error = verify(EMPTY, b"x", "manifest").unwrap_err();
        assert!(error.problem.contains(EMPTY) && error.problem.contains(&of(b"x")), "{error:?}");
        for wrong in ["", "sha256:", "md5:abc", &EMPTY.to_uppercase(), &long] {
            assert!(verify(wrong, b"x", "manifest").is_err(), "{wrong}");
        }
    }
}
