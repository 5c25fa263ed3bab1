//! A file that is read again when it has changed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::config::Config;
use super::error::{KeychainError, Malformed};

/// How long what was read is taken for current without a look at the file.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A file that changed this short a time before it was read may change again without a trace in its stamp.
const UNSETTLED: Duration = Duration::from_secs(2);
/// A Kubernetes Secret has at most 1 MiB.
const LARGEST_FILE: u64 = 4 << 20;
/// How long a writer may take that empties the file and then fills it.
const BEING_WRITTEN: Duration = Duration::from_millis(100);

type Content = Result<Arc<Config>, KeychainError>;

#[derive(Debug)]
pub(super) struct ConfigFile {
    path: PathBuf,
    known: Mutex<Option<Known>>,
    forgotten: AtomicBool,
}

#[derive(Debug, Clone)]
struct Known {
    looked: Instant,
    /// None if the file was not there, could not be read, or may change unseen.
    stamp: Option<Stamp>,
    content: Content,
}

/// Two different contents of a path do not have the same stamp. Taken behind links: the files of a mounted
/// Kubernetes Secret are links to links, of which one is swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Also when a file was replaced by one of the same age and size.
    changed: (i64, i64),
}

impl ConfigFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, known: Mutex::new(None), forgotten: AtomicBool::new(false) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the next look read the file, whether it seems changed or not.
    pub(super) fn forget(&self) {
        self.forgotten.store(true, Ordering::SeqCst);
    }

    /// What the file says now, or said less than a second ago.
    pub(super) async fn content(&self) -> Content {
        // Held while reading: the others get what this one reads.
        let mut known = self.known.lock().await;
        if self.forgotten.swap(false, Ordering::SeqCst) {
            *known = None;
        }
        if let Some(known) = known.as_ref().filter(|known| known.looked.elapsed() < LOOK_INTERVAL) {
            return known.content.clone();
        }
        let (path, before) = (self.path.clone(), known.clone());
        let looked = Instant::now();
        let look = spawn_blocking(move || look(&path, before.as_ref())).await;
        let (stamp, content) = look.unwrap_or_else(|error| {
            // Only while the runtime ends.
            (None, Err(unreadable(&self.path, io::Error::other(error.to_string()))))
        });
        *known = Some(Known { looked, stamp, content: content.clone() });
        content
    }
}

fn look(path: &Path, before: Option<&Known>) -> (Option<Stamp>, Content) {
    match read_if_changed(path, before) {
        Ok(answer) => answer,
        // No file, no logins.
        Err(error) if error.kind() == io::ErrorKind::NotFound => (None, Ok(Arc::default())),
        Err(error) => (None, Err(unreadable(path, error))),
    }
}

fn read_if_changed(path: &Path, before: Option<&Known>) -> io::Result<(Option<Stamp>, Content)> {
    let metadata = fs::metadata(path)?;
    // Opening a pipe could take forever.
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let stamp = Stamp::of(&metadata);
    if let Some(before) = before.filter(|before| before.stamp == Some(stamp)) {
        return Ok((before.stamp, before.content.clone()));
    }
    let (stamp, content) = read_whole(path, || thread::sleep(BEING_WRITTEN))?;
    let content =
        content.map(Arc::new).map_err(|problem| KeychainError::Malformed { file: path.to_owned(), problem });
    Ok((stamp.is_settled().then_some(stamp), content))
}

/// Gives a writer that empties the file before it fills it the time to do so.
fn read_whole(path: &Path, wait: impl FnOnce()) -> io::Result<(Stamp, Result<Config, Malformed>)> {
    let (stamp, content) = read(path)?;
    let looks_half_written = match &content {
        Ok(_) => stamp.size == 0,
        Err(problem) => !matches!(problem, Malformed::TooLarge(_)),
    };
    if !looks_half_written || stamp.is_settled() {
        return Ok((stamp, content));
    }
    wait();
    read(path)
}

/// The stamp is that of the opened file, taken before its content: a later change shows.
fn read(path: &Path) -> io::Result<(Stamp, Result<Config, Malformed>)> {
    let file = File::open(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    let mut content = Vec::new();
    let length = file.take(LARGEST_FILE + 1).read_to_end(&mut content)?;
    if length as u64 > LARGEST_FILE {
        return Ok((stamp, Err(Malformed::TooLarge(LARGEST_FILE))));
    }
    Ok((stamp, Config::parse(&content)))
}

fn unreadable(path: &Path, error: io::Error) -> KeychainError {
    KeychainError::Unreadable { file: path.to_owned(), source: Arc::new(error) }
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the next change will be seen: the times of files are coarse.
    fn is_settled(&self) -> bool {
        let changed = UNIX_EPOCH + Duration::from_secs(u64::try_from(self.changed.0).unwrap_or_default());
        SystemTime::now().duration_since(changed).is_ok_and(|age| age > UNSETTLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;

    #[test]
    fn waits_for_a_file_that_is_being_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let whole = r#"{"auths": {"example.com": {"auth": "dTpw"}}}"#;
        let image = Reference::parse("example.com/app").unwrap();
        for half in ["", r#"{"auths": {"exam"#] {
            fs::write(&path, half).unwrap();
            let (_, content) = read_whole(&path, || fs::write(&path, whole).unwrap()).unwrap();
            assert_eq!(content.unwrap().entries_for(&image).count(), 1, "{half}");
        }
        read_whole(&path, || panic!("it is whole")).unwrap().1.unwrap();
    }
}
