//! One layer of an image: declared as files and folders, packed as a
//! compressed archive that is the same whenever its contents are.

use std::{
    collections::{BTreeMap, HashMap, btree_map, hash_map},
    fs,
    io::{self, Write as _},
    path::Path,
    sync::Arc,
};

use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

use crate::time::Timestamp;

/// A user and a group, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner(pub u32, pub u32);

const ROOT: Owner = Owner(0, 0);

#[derive(Debug, Clone)]
enum Entry {
    Folder { mode: u32, owner: Owner },
    File { mode: u32, content: Arc<[u8]> },
}

/// The files and folders that a layer adds. Paths are relative to the root of
/// the image; files belong to root, so that no program can change itself.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    title: &'static str,
    entries: BTreeMap<String, Entry>,
    /// Folders of the layers below, which must be named again as they are.
    below: BTreeMap<String, Entry>,
}

impl Layer {
    /// The first layer of an image.
    pub fn new(title: &'static str) -> Self {
        Self { title, ..Self::default() }
    }

    /// A layer on top of this one.
    #[must_use]
    pub fn above(&self, title: &'static str) -> Self {
        let mut below = self.below.clone();
        let folders = self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::Folder { .. }));
        below.extend(folders.map(|(path, entry)| (path.clone(), entry.clone())));
        Self { title, entries: BTreeMap::new(), below }
    }

    /// Adds a folder.
    #[must_use]
    pub fn folder(mut self, path: &str, mode: u32, owner: Owner) -> Self {
        self.add(path, Entry::Folder { mode, owner });
        self
    }

    /// Adds a file that everybody may read.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl Into<Arc<[u8]>>) -> Self {
        self.add(path, Entry::File { mode: 0o644, content: content.into() });
        self
    }

    /// Adds a file that everybody may run.
    #[must_use]
    pub fn program(mut self, path: &str, content: &Arc<[u8]>) -> Self {
        self.add(path, Entry::File { mode: 0o755, content: Arc::clone(content) });
        self
    }

    fn add(&mut self, path: &str, entry: Entry) {
        for (end, _) in path.match_indices('/') {
            let parent = &path[..end];
            if let btree_map::Entry::Vacant(vacant) = self.entries.entry(parent.to_owned()) {
                let known = self.below.get(parent).cloned();
                vacant.insert(known.unwrap_or(Entry::Folder { mode: 0o755, owner: ROOT }));
            }
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// Packs the layer. The same bytes under several paths are stored once, the
    /// other paths being hard links: unlike symbolic ones they stay whole when a
    /// folder is copied away.
    pub fn pack(&self, time: Timestamp) -> io::Result<Arc<Packed>> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut stored = HashMap::new();
        let mut unpacked = 0;
        for (path, entry) in &self.entries {
            let mut header = Header::new_ustar();
            header.set_mtime(time.seconds());
            match entry {
                Entry::Folder { mode, owner } => {
                    describe(&mut header, EntryType::Directory, *mode, *owner, 0);
                    archive.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
                Entry::File { mode, content } => match stored.entry((content, mode)) {
                    hash_map::Entry::Occupied(first) => {
                        describe(&mut header, EntryType::Link, *mode, ROOT, 0);
                        archive.append_link(&mut header, path, first.get())?;
                    }
                    hash_map::Entry::Vacant(vacant) => {
                        vacant.insert(path);
                        let size = content.len() as u64;
                        unpacked += size;
                        describe(&mut header, EntryType::Regular, *mode, ROOT, size);
                        archive.append_data(&mut header, path, &**content)?;
                    }
                },
            }
        }
        let archive = archive.into_inner()?;
        let mut compressor = GzBuilder::new().write(Vec::new(), Compression::best());
        compressor.write_all(&archive)?;
        let compressed = compressor.finish()?;
        Ok(Arc::new(Packed { title: self.title, diff_id: digest(&archive), archive, compressed, unpacked }))
    }
}

fn describe(header: &mut Header, kind: EntryType, mode: u32, Owner(user, group): Owner, size: u64) {
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(user.into());
    header.set_gid(group.into());
    header.set_size(size);
}

/// A layer as it is stored.
#[derive(Debug)]
pub struct Packed {
    /// What it is, for the history of the image.
    pub title: &'static str,
    /// The digest of the archive, by which the configuration knows it.
    pub diff_id: String,
    /// What is stored.
    pub compressed: Vec<u8>,
    /// The bytes of all files, each content counted once.
    pub unpacked: u64,
    archive: Vec<u8>,
}

impl Packed {
    /// Writes the files into a folder; their owners only where root does it.
    pub fn unpack(&self, folder: &Path) -> io::Result<()> {
        let mut archive = tar::Archive::new(&*self.archive);
        archive.set_preserve_permissions(true);
        archive.set_preserve_ownerships(std::os::unix::fs::chown(folder, Some(0), Some(0)).is_ok());
        for entry in archive.entries()? {
            let mut entry = entry?;
            // A hard link does not replace the file of a layer below by itself.
            let path = folder.join(entry.path()?);
            if path.is_file() {
                fs::remove_file(&path)?;
            }
            entry.unpack_in(folder)?;
        }
        Ok(())
    }
}

/// The digest of a blob, as images write it.
pub fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOMEBODY: Owner = Owner(5, 6);

    /// Path, kind, mode, owner and link of each entry.
    fn listed(packed: &Packed) -> Vec<String> {
        let mut archive = tar::Archive::new(&*packed.archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            let link = entry.link_name().unwrap().map(|to| format!(" = {}", to.display()));
            format!(
                "{} {:o} {}:{}{}",
                String::from_utf8_lossy(&entry.path_bytes()),
                header.mode().unwrap(),
                header.uid().unwrap(),
                header.gid().unwrap(),
                link.unwrap_or_default()
            )
        });
        entries.collect()
    }

    #[test]
    fn entries_are_sorted_and_the_same_bytes_are_stored_once() {
        let program: Arc<[u8]> = b"program".as_slice().into();
        let layer = Layer::new("test")
            .program("usr/bin/b", &program)
            .program("bin/a", &program)
            .file("etc/a", b"text".as_slice())
            .file("etc/b", b"program".as_slice())
            .folder("tmp", 0o1777, ROOT);
        let packed = layer.pack(Timestamp::default()).unwrap();
        let expected = [
            "bin/ 755 0:0",
            "bin/a 755 0:0",
            "etc/ 755 0:0",
            "etc/a 644 0:0",
            "etc/b 644 0:0",
            "tmp/ 1777 0:0",
            "usr/ 755 0:0",
            "usr/bin/ 755 0:0",
            "usr/bin/b 755 0:0 = bin/a",
        ];
        assert_eq!(listed(&packed), expected);
        assert_eq!(packed.unpacked, 18);
    }

    #[test]
    fn a_layer_above_names_the_folders_below_as_they_are() {
        let below = Layer::new("below").folder("home/me", 0o700, SOMEBODY);
        let above = below.above("above").file("home/me/x", b"x".as_slice());
        let packed = above.pack(Timestamp::default()).unwrap();
        assert_eq!(listed(&packed), ["home/ 755 0:0", "home/me/ 700 5:6", "home/me/x 644 0:0"]);
        let topmost = above.above("topmost").file("home/me/y", b"y".as_slice());
        assert!(listed(&topmost.pack(Timestamp::default()).unwrap())[1].starts_with("home/me/ 700 5:6"));
    }

    #[test]
    fn only_contents_and_the_given_time_make_a_difference() {
        let layer = |text: &'static str| Layer::new("test").file("a", text.as_bytes());
        let at = |seconds| Timestamp::from_source_date_epoch(Some(seconds)).unwrap();
        let first = layer("x").pack(at("1")).unwrap();
        let again = layer("x").pack(at("1")).unwrap();
        assert_eq!((&first.compressed, &first.diff_id), (&again.compressed, &again.diff_id));
        for other in [layer("y").pack(at("1")).unwrap(), layer("x").pack(at("2")).unwrap()] {
            assert_ne!(first.diff_id, other.diff_id);
        }
    }
}
