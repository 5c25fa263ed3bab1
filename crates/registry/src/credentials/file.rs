//! The Docker config file, read again when it has changed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use files::Followed;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::config::Config;
use super::error::{KeychainError, Malformed};

/// How long what was read is taken for current without a look at the file.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
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

#[derive(Debug)]
struct Known {
    looked: Instant,
    file: Followed,
    content: Content,
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
        let looked = Instant::now();
        let (mut file, before) = match known.take() {
            Some(Known { file, content, .. }) => (file, content),
            None => (Followed::new(self.path.clone(), LARGEST_FILE), Ok(Arc::default())),
        };
        let look = spawn_blocking(move || {
            let content = look(&mut file, before, || thread::sleep(BEING_WRITTEN));
            (file, content)
        });
        match look.await {
            Ok((file, content)) => {
                *known = Some(Known { looked, file, content: content.clone() });
                content
            }
            // Only while the runtime ends.
            Err(error) => Err(unreadable(&self.path, io::Error::other(error.to_string()))),
        }
    }
}

/// What the file says now, given what it said before. A writer that empties the file before it fills it is
/// given the time to do so.
fn look(file: &mut Followed, before: Content, wait: impl FnOnce()) -> Content {
    let Some(answer) = file.look() else { return before };
    let looks_half_written =
        answer.as_ref().is_ok_and(|text| text.is_empty() || Config::parse(text).is_err());
    let content = read(file.path(), answer);
    if !looks_half_written || file.is_settled() {
        return content;
    }
    wait();
    file.look().map_or(content, |answer| read(file.path(), answer))
}

fn read(path: &Path, answer: io::Result<Vec<u8>>) -> Content {
    let malformed = |problem| KeychainError::Malformed { file: path.to_owned(), problem };
    match answer {
        Ok(text) => Config::parse(&text).map(Arc::new).map_err(malformed),
        // No file, no logins.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Arc::default()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(malformed(Malformed::TooLarge(LARGEST_FILE)))
        }
        Err(error) => Err(unreadable(path, error)),
    }
}

fn unreadable(path: &Path, error: io::Error) -> KeychainError {
    KeychainError::Unreadable { file: path.to_owned(), source: Arc::new(error) }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
            let mut file = Followed::new(path.clone(), LARGEST_FILE);
            let content = look(&mut file, Ok(Arc::default()), || fs::write(&path, whole).unwrap());
            assert_eq!(content.unwrap().entries_for(&image).count(), 1, "{half}");
            // What is known stands meanwhile.
            fs::write(&path, "").unwrap();
            let content = look(&mut file, Ok(Arc::default()), || panic!("it is known"));
            assert_eq!(content.unwrap().entries_for(&image).count(), 0);
        }
        fs::write(&path, whole).unwrap();
        let mut file = Followed::new(path, LARGEST_FILE);
        look(&mut file, Ok(Arc::default()), || panic!("it is whole")).unwrap();
    }
}
