//! One file, looked at again and again.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{Stamp, read};

/// A file that is read again when it has changed. Somebody has to look: file notification easily misses a
/// mounted ConfigMap, which changes by a link far up the path, and a look costs next to nothing.
pub struct Followed {
    path: PathBuf,
    limit: u64,
    found: Option<Found>,
}

/// What the last look found.
struct Found {
    /// `None` while the file can change without its stamp telling.
    stamp: Option<Stamp>,
    content: Result<Vec<u8>, (io::ErrorKind, String)>,
}

impl Followed {
    /// A file of at most `limit` bytes, not looked at yet. It need not be there.
    pub fn new(path: PathBuf, limit: u64) -> Self {
        Self { path, limit, found: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at the file: its content, or why there is none. `None` if that is what the last look found.
    ///
    /// A file that was just emptied is being written, by somebody who will fill it in a moment; what it held
    /// before stands until then.
    pub fn look(&mut self) -> Option<io::Result<Vec<u8>>> {
        if let Some(known) = self.found.as_ref().and_then(|found| found.stamp)
            && Stamp::of(&self.path).is_ok_and(|stamp| stamp == known)
        {
            return None;
        }
        let (content, stamp) = match read(&self.path, self.limit) {
            Ok((content, stamp)) => (Ok(content), stamp.is_settled().then_some(stamp)),
            Err(error) => (Err((error.kind(), error.to_string())), None),
        };
        if let Some(found) = &mut self.found {
            let is_being_written = stamp.is_none() && content.as_ref().is_ok_and(Vec::is_empty);
            if found.content == content {
                found.stamp = stamp;
                return None;
            }
            if is_being_written {
                return None;
            }
        }
        let answer = content.clone().map_err(|(kind, text)| io::Error::new(kind, text));
        self.found = Some(Found { stamp, content });
        Some(answer)
    }

    /// Whether it has been as it is for a while. Content that makes no sense may else be half of what is being
    /// written.
    pub fn is_settled(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.stamp.is_some())
    }
}

/// Without the content, which may be secret.
impl fmt::Debug for Followed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Followed").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::symlink,
        thread,
        time::Duration,
    };

    use super::*;

    /// The content of a look that found something new.
    fn new(followed: &mut Followed) -> String {
        String::from_utf8(followed.look().expect("it changed").unwrap()).unwrap()
    }

    #[test]
    fn every_change_is_seen_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut followed = Followed::new(path.clone(), 100);
        assert_eq!(followed.look().unwrap().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(followed.look().is_none(), "it is still missing");
        // One after the other, faster than the times of files tell.
        for content in ["one", "two", "six"] {
            fs::write(&path, content).unwrap();
            assert_eq!(new(&mut followed), content);
            assert!(followed.look().is_none());
        }
        fs::write(&path, "six").unwrap();
        assert!(followed.look().is_none(), "the same content is no change");
        fs::write(&path, "x".repeat(101)).unwrap();
        assert_eq!(followed.look().unwrap().unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(followed.look().unwrap().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(followed.look().is_none());
    }

    #[test]
    fn a_settled_file_is_known_by_its_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let mut followed = Followed::new(path.clone(), 100);
        assert_eq!(new(&mut followed), "one");
        assert!(!followed.is_settled());
        thread::sleep(Duration::from_millis(3100));
        assert!(followed.look().is_none() && followed.is_settled());
        // The same size and age: the time of the change, which nobody can set, tells.
        let age = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "two").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(age).unwrap();
        assert_eq!(new(&mut followed), "two");
    }

    #[test]
    fn a_file_that_is_being_written_keeps_its_content_until_it_is_clear_that_it_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let mut followed = Followed::new(path.clone(), 100);
        assert_eq!(new(&mut followed), "one");
        fs::write(&path, "").unwrap();
        assert!(followed.look().is_none());
        fs::write(&path, "two").unwrap();
        assert_eq!(new(&mut followed), "two");
        fs::write(&path, "").unwrap();
        thread::sleep(Duration::from_millis(3100));
        assert_eq!(new(&mut followed), "", "it stayed empty");
        assert_eq!(new(&mut Followed::new(path, 100)), "", "nothing was known before");
    }

    #[test]
    fn a_mounted_file_is_followed_through_its_links() {
        let mount = tempfile::tempdir().unwrap();
        let publish = |state: &str| {
            fs::create_dir(mount.path().join(state)).unwrap();
            fs::write(mount.path().join(state).join("file"), state).unwrap();
            symlink(state, mount.path().join("..new")).unwrap();
            fs::rename(mount.path().join("..new"), mount.path().join("..data")).unwrap();
        };
        publish("..one");
        symlink("..data/file", mount.path().join("file")).unwrap();
        let mut followed = Followed::new(mount.path().join("file"), 100);
        assert_eq!(new(&mut followed), "..one");
        publish("..two");
        assert_eq!(new(&mut followed), "..two");
    }
}
