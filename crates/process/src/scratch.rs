//! Where private folders are made.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::instance::{self, Instance};

/// A place in which the private folders of calls can be made: a folder of our own in the first candidate that
/// takes one. Cheap to clone; the folder goes with the last clone.
#[derive(Clone, Debug)]
pub struct Scratch {
    place: Arc<Path>,
    current: Arc<Mutex<Arc<Instance>>>,
}

impl Scratch {
    /// The first candidate in which a folder can really be made. What killed predecessors left in it is removed
    /// in the background.
    pub fn find(candidates: impl IntoIterator<Item = PathBuf>) -> Result<Self, NoScratch> {
        let mut tried = Vec::new();
        for candidate in candidates {
            // Functions are told this path while they work elsewhere.
            let made = std::path::absolute(&candidate)
                .and_then(|place| Instance::make(&place).map(|instance| (place, instance)));
            match made {
                Ok((place, instance)) => {
                    let scratch =
                        Self { place: place.into(), current: Arc::new(Mutex::new(Arc::new(instance))) };
                    let place = scratch.place.clone();
                    std::thread::spawn(move || instance::tidy(&place));
                    return Ok(scratch);
                }
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

    /// The candidate that was taken.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The folder of our own; a new one where a function has removed, moved or closed the last one, so that
    /// this costs no other calls than those that run meanwhile.
    pub(crate) fn instance(&self) -> io::Result<Arc<Instance>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if !current.is_in_place() {
            *current = Arc::new(Instance::make(&self.place)?);
        }
        Ok(current.clone())
    }
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
        assert_eq!(scratch.place(), good);
        let own = scratch.instance().unwrap().path().to_owned();
        assert!(own.starts_with(&good) && own.is_dir());
        let clone = scratch.clone();
        drop(scratch);
        assert!(own.exists());
        drop(clone);
        assert!(!own.exists());
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
