//! Where private folders are made.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder in which the private folders of calls can be made. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    root: Arc<Path>,
}

impl Scratch {
    /// The first candidate in which a folder can really be made.
    pub fn find(candidates: impl IntoIterator<Item = PathBuf>) -> Result<Self, NoScratch> {
        let mut tried = Vec::new();
        for candidate in candidates {
            let probe = candidate.join(format!("function-probe-{}", crate::calls::random_name()));
            match make_private(&probe).and_then(|()| std::fs::remove_dir(&probe)).and_then(|()| {
                // Functions are told this path while they work elsewhere.
                std::path::absolute(&candidate)
            }) {
                Ok(root) => return Ok(Self { root: root.into() }),
                Err(error) => tried.push((candidate, error)),
            }
        }
        Err(NoScratch { tried })
    }

    /// The usual candidates: `$TMPDIR`, `/tmp`, `/dev/shm`.
    pub fn candidates() -> Vec<PathBuf> {
        let named = env::var_os("TMPDIR").filter(|value| !value.is_empty()).map(PathBuf::from);
        named.into_iter().chain(["/tmp".into(), "/dev/shm".into()]).collect()
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Makes a folder only this user can enter.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// No candidate takes private folders.
#[derive(Debug, thiserror::Error)]
#[error(
    "no place for private folders (tried {}); mount a writable folder and name it in TMPDIR",
    list(tried)
)]
pub struct NoScratch {
    /// Each candidate and why it was not taken.
    pub tried: Vec<(PathBuf, io::Error)>,
}

fn list(tried: &[(PathBuf, io::Error)]) -> String {
    let each: Vec<_> = tried.iter().map(|(path, error)| format!("{}: {error}", path.display())).collect();
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_usable_candidate_is_taken() {
        let good = env::temp_dir();
        let scratch = Scratch::find(["/nonexistent".into(), "/proc".into(), good.clone()]).unwrap();
        assert_eq!(scratch.root(), good);
    }

    #[test]
    fn the_error_lists_what_was_tried() {
        let error = Scratch::find(["/nonexistent".into(), "/proc".into(), "/dev/null".into()]).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.tried.len(), 3);
        for part in ["/nonexistent: No such file", "/proc: ", "/dev/null: Not a directory", "TMPDIR"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
