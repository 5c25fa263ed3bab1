//! Where private folders are made.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::removal;

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
            match make_private(&probe).and_then(|()| fs::remove_dir(&probe)).and_then(|()| {
                // Functions are told this path while they work elsewhere.
                std::path::absolute(&candidate)
            }) {
                Ok(root) => {
                    let scratch = Self { root: root.into() };
                    scratch.tidy();
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

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes, in the background, what a killed predecessor left here.
    fn tidy(&self) {
        let root = self.root.clone();
        thread::spawn(move || {
            for stale in stale(&root) {
                match removal::remove(&stale) {
                    Ok(()) => {
                        tracing::debug!(folder = %stale.display(), "removed a folder that was left behind");
                    }
                    Err(error) => {
                        tracing::debug!(folder = %stale.display(), %error, "cannot remove a folder");
                    }
                }
            }
        });
    }
}

/// What the names of private folders begin with.
pub(crate) const PREFIX: &str = "function-";

/// A folder this young may be about to be locked.
const YOUNG: Duration = Duration::from_mins(1);

/// The private folder of one call. It is locked while the call runs, which tells it from one whose owner is
/// gone, whatever process namespace that was in.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
    _lock: Option<File>,
}

impl PrivateFolder {
    pub(crate) fn make(path: PathBuf) -> Result<Self, (PathBuf, io::Error)> {
        if let Err(error) = make_private(&path) {
            return Err((path, error));
        }
        // Without a lock it is as good a folder, only not as safe from a successor's tidying.
        let lock =
            File::open(&path).and_then(|file| file.try_lock().map(|()| file).map_err(io::Error::from)).ok();
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn into_path(self) -> PathBuf {
        self.path
    }

    /// The same folder under another name.
    pub(crate) fn renamed(mut self, path: &Path) -> io::Result<Self> {
        if let Err(error) = fs::rename(&self.path, path) {
            // It goes the way of all folders that are not wanted.
            let _ = fs::remove_dir(&self.path);
            return Err(error);
        }
        path.clone_into(&mut self.path);
        Ok(self)
    }

    /// Whether nothing tells that it has been used: it is empty, and only its owner may enter.
    pub(crate) fn is_as_new(&self) -> bool {
        let is_private = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| metadata.is_dir() && metadata.permissions().mode() & 0o7777 == 0o700);
        is_private && fs::read_dir(&self.path).is_ok_and(|mut entries| entries.next().is_none())
    }
}

/// Private folders that are old and that nobody has locked.
fn stale(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let is_stale = |path: &Path| {
        let old = fs::symlink_metadata(path)
            .ok()
            .filter(fs::Metadata::is_dir)
            .and_then(|metadata| metadata.modified().ok()?.elapsed().ok())
            .is_some_and(|age| age >= YOUNG);
        old && File::open(path).is_ok_and(|folder| folder.try_lock().is_ok())
    };
    let ours = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)));
    ours.map(|entry| entry.path()).filter(|path| is_stale(path)).collect()
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
    fn only_old_and_unlocked_folders_are_left_overs() {
        let root = env::temp_dir().join(format!("tidy-{}", crate::calls::random_name()));
        make_private(&root).unwrap();
        let make = |name: &str| PrivateFolder::make(root.join(name)).unwrap();
        let locked = make("function-locked-1");
        let young = make("function-young-1").into_path();
        let abandoned = make("function-abandoned-1").into_path();
        let other = make("other").into_path();
        let long_ago = std::time::SystemTime::now() - Duration::from_hours(1);
        for folder in [locked.path(), &abandoned, &other] {
            let times = fs::FileTimes::new().set_modified(long_ago);
            File::open(folder).unwrap().set_times(times).unwrap();
        }
        assert_eq!(stale(&root), std::slice::from_ref(&abandoned));
        Scratch::find([root.clone()]).unwrap();
        let begun = std::time::Instant::now();
        while abandoned.exists() {
            assert!(begun.elapsed() < Duration::from_secs(10), "not tidied");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(locked.path().exists() && young.exists() && other.exists());
        fs::remove_dir_all(root).unwrap();
    }

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
