//! The folder of `--function-configs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use files::Followed;
use tracing::{info, warn};

use super::LARGEST_FILE;

/// More files are not read: no sensible folder has as many, and all are looked at again and again.
const MOST_FILES: usize = 5000;

/// The files of a folder whose names say that they are YAML or JSON. Folders in it, and files with a dot before
/// their names, are passed over.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    default_prefix: String,
    files: BTreeMap<Arc<Path>, Watched>,
    /// Why it cannot be read, as told last.
    trouble: Option<String>,
}

#[derive(Debug)]
struct Watched {
    file: Followed,
    content: Option<Arc<api::File>>,
    is_broken: bool,
}

impl Folder {
    /// A folder that was not looked at yet.
    pub fn new(path: PathBuf, default_prefix: String) -> Self {
        Self { path, default_prefix, files: BTreeMap::new(), trouble: None }
    }

    /// Whether it can be read.
    pub fn check(&self) -> io::Result<()> {
        Self::names(&self.path).map(drop)
    }

    /// Looks at the folder: what is in its files, if that changed.
    ///
    /// What cannot be read, or is no YAML any more, is in force as it was before.
    pub fn look(&mut self) -> Option<BTreeMap<Arc<Path>, Arc<api::File>>> {
        let mut has_changed = false;
        match Self::names(&self.path) {
            Ok(names) => {
                let before = self.files.len();
                self.files.retain(|path, _| names.contains(path));
                has_changed |= self.files.len() != before;
                for path in names {
                    self.files.entry(path.clone()).or_insert_with(|| Watched {
                        file: Followed::new(path.to_path_buf(), LARGEST_FILE),
                        content: None,
                        is_broken: false,
                    });
                }
                self.tell(None);
            }
            Err(error) => self.tell(Some(error.to_string())),
        }
        for watched in self.files.values_mut() {
            has_changed |= watched.look(&self.default_prefix);
        }
        let content =
            |(path, watched): (&Arc<Path>, &Watched)| Some((path.clone(), watched.content.clone()?));
        has_changed.then(|| self.files.iter().filter_map(content).collect())
    }

    /// Whether something in the folder is not in force as it is there.
    pub fn is_broken(&self) -> bool {
        self.trouble.is_some() || self.files.values().any(|watched| watched.is_broken)
    }

    /// The files of a folder that are looked at, in order.
    pub fn names(folder: &Path) -> io::Result<BTreeSet<Arc<Path>>> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let extension = path.extension().and_then(OsStr::to_str);
            if !is_hidden && matches!(extension, Some("yaml" | "yml" | "json")) && !path.is_dir() {
                names.insert(path.into());
            }
            if names.len() > MOST_FILES {
                return Err(io::Error::other(format!("it has more than {MOST_FILES} files")));
            }
        }
        Ok(names)
    }

    /// Everything only once.
    fn tell(&mut self, trouble: Option<String>) {
        if let Some(cause) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            let path = self.path.display();
            warn!(%path, cause, "cannot read the folder of FunctionConfigs; what was read before stays in force");
        }
        self.trouble = trouble;
    }
}

impl Watched {
    /// Whether what is in force is another than before.
    fn look(&mut self, default_prefix: &str) -> bool {
        let Some(read) = self.file.look() else { return false };
        let path = self.file.path().display();
        let content = match read {
            Ok(content) => api::File::parse(&content, default_prefix),
            Err(cause) => {
                warn!(%path, %cause, "cannot read FunctionConfigs");
                self.is_broken = true;
                return false;
            }
        };
        for problem in content.problems.iter().chain(&content.unknown) {
            warn!(%path, "{problem}");
        }
        for remark in &content.remarks {
            info!(%path, "{remark}");
        }
        self.is_broken = !content.problems.is_empty();
        if content.is_malformed && self.content.is_some() {
            warn!(%path, "the file is broken; the FunctionConfigs it had before stay in force");
            return false;
        }
        info!(%path, objects = content.objects.len(), "FunctionConfigs read");
        self.content = Some(Arc::new(content));
        true
    }
}
