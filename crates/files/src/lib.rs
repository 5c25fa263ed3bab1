//! Files that change while we run: what tells one state from another, and reading that neither hangs nor takes
//! more memory than meant.

mod followed;
mod stamp;

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

pub use followed::Followed;
pub use stamp::Stamp;

/// The content of a regular file of at most `limit` bytes, and the state it was read in: taken before the
/// content, so that a later change shows.
pub fn read(path: &Path, limit: u64) -> io::Result<(Vec<u8>, Stamp)> {
    // Opening a pipe could take for ever, and a device may have no end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let file = File::open(path)?;
    let stamp = Stamp::from(&file.metadata()?);
    let mut content = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than the {limit} bytes allowed"),
        ));
    }
    Ok((content, stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let kind = |path: &Path| read(path, 5).unwrap_err().kind();
        assert_eq!(kind(&file), io::ErrorKind::NotFound);
        for (content, fits) in [("", true), ("12345", true), ("123456", false)] {
            fs::write(&file, content).unwrap();
            match read(&file, 5) {
                Ok((bytes, _)) => assert!(fits && bytes == content.as_bytes(), "{content}"),
                Err(error) => assert!(!fits && error.kind() == io::ErrorKind::FileTooLarge, "{error}"),
            }
        }
        assert_eq!(read(&file, u64::MAX).unwrap().0, b"123456");
        // A hole of eight gigabytes is not read, nor is room made for it.
        File::options().write(true).open(&file).unwrap().set_len(1 << 33).unwrap();
        assert_eq!(kind(&file), io::ErrorKind::FileTooLarge);
        assert_eq!(kind(folder.path()), io::ErrorKind::InvalidInput);
        assert_eq!(kind(Path::new("/dev/zero")), io::ErrorKind::InvalidInput);
    }
}
