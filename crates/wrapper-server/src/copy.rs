//! `cp`, as far as an init container needs it: `cp -a DIR/. DST`. Function
//! images and their volumes belong to all sorts of users, so what may not be
//! kept of owner, mode and times is let go without a word.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs::{self, File, FileTimes, Metadata, OpenOptions, Permissions},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink},
    },
    path::{Path, PathBuf},
    process::ExitCode,
};

use crate::log;

const USAGE: &str = "usage: cp [-aRrpdfPv] SOURCE… DESTINATION";

pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    if run(arguments) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether all was copied; what was not is told.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> bool {
    match parse(arguments) {
        Err(mistake) => {
            log::say(&format!("cp: {mistake}\n{USAGE}"));
            false
        }
        Ok((options, sources, destination)) => {
            let mut copy = Copy { options, links: HashMap::new(), targets: HashSet::new(), failed: false };
            for source in &sources {
                copy.place(source, &destination, sources.len() > 1);
            }
            !copy.failed
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Options {
    recursive: bool,
    preserve: bool,
    verbose: bool,
}

fn parse(arguments: impl Iterator<Item = OsString>) -> Result<(Options, Vec<PathBuf>, PathBuf), String> {
    let mut options = Options::default();
    let mut paths = Vec::new();
    let mut only_paths = false;
    for argument in arguments {
        match argument.as_bytes() {
            b"--" if !only_paths => only_paths = true,
            b"--archive" if !only_paths => options = Options { recursive: true, preserve: true, ..options },
            [b'-', letters @ ..] if !only_paths && !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'a' => options = Options { recursive: true, preserve: true, ..options },
                        b'r' | b'R' => options.recursive = true,
                        b'p' => options.preserve = true,
                        b'v' => options.verbose = true,
                        // Links are copied as links and obstacles are replaced in any case.
                        b'd' | b'f' | b'P' => {}
                        _ => return Err(format!("unknown option {}", argument.display())),
                    }
                }
            }
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    let destination = paths.pop().ok_or("nothing to copy")?;
    if paths.is_empty() {
        return Err(format!("nothing to copy to {}", destination.display()));
    }
    Ok((options, paths, destination))
}

struct Copy {
    options: Options,
    /// Files with several names, and where the first of them went.
    links: HashMap<(u64, u64), PathBuf>,
    /// The folders copied into: to copy one of them would never end.
    targets: HashSet<(u64, u64)>,
    failed: bool,
}

impl Copy {
    /// Copies a source to, or into, the destination.
    fn place(&mut self, source: &Path, destination: &Path, must_be_folder: bool) {
        let target = if destination.is_dir() {
            // `DIR/.` and `DIR/..` have no name of their own: their content goes in.
            let ends_in_dots =
                source.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').find(|part| !part.is_empty());
            match source.file_name() {
                Some(name) if ends_in_dots != Some(b".") => destination.join(name),
                _ => destination.to_owned(),
            }
        } else if must_be_folder {
            self.fail(&destination.display().to_string(), &io::ErrorKind::NotADirectory.into());
            return;
        } else {
            destination.to_owned()
        };
        self.entry(source, &target);
    }

    fn entry(&mut self, source: &Path, target: &Path) {
        // Named on the command line or found in a folder: a link is copied as a link.
        let metadata = if source.as_os_str().as_bytes().ends_with(b"/.") {
            fs::metadata(source)
        } else {
            fs::symlink_metadata(source)
        };
        let copied = metadata.and_then(|metadata| {
            let kind = metadata.file_type();
            if kind.is_dir() {
                self.folder(source, target, &metadata)
            } else if kind.is_symlink() {
                link(source, target)
            } else if kind.is_file() {
                self.file(source, target, &metadata)
            } else {
                Err(io::Error::new(io::ErrorKind::Unsupported, "neither a file, a folder nor a link"))
            }
        });
        match copied {
            Err(error) => self.fail(&format!("{} to {}", source.display(), target.display()), &error),
            Ok(()) if self.options.verbose => {
                log::say(&format!("{} -> {}", source.display(), target.display()));
            }
            Ok(()) => {}
        }
    }

    fn folder(&mut self, source: &Path, target: &Path, metadata: &Metadata) -> io::Result<()> {
        if !self.options.recursive {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "a folder, and neither -r nor -a is given",
            ));
        }
        if self.targets.contains(&identity(metadata)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a folder cannot be copied into itself"));
        }
        // A folder that is there already keeps what it is: often a volume's root.
        let made = match fs::DirBuilder::new().mode(0o700 | metadata.mode() & 0o777).create(target) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && target.is_dir() => false,
            Err(error) => return Err(error),
        };
        self.targets.insert(identity(&fs::metadata(target)?));
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            self.entry(&entry.path(), &target.join(entry.file_name()));
        }
        if made && self.options.preserve {
            let _ = File::open(target).map(|folder| keep_attributes(&folder, target, metadata));
        }
        Ok(())
    }

    /// Writes beside the target and renames: a program that is being executed
    /// cannot be written to, and half a program must never be executed.
    fn file(&mut self, source: &Path, target: &Path, metadata: &Metadata) -> io::Result<()> {
        let identity = identity(metadata);
        let aside = aside(target);
        let _ = fs::remove_file(&aside);
        match self.links.get(&identity) {
            Some(first) if metadata.nlink() > 1 && fs::hard_link(first, &aside).is_ok() => {}
            _ => self.content(source, &aside, metadata)?,
        }
        settle(&aside, target)?;
        if metadata.nlink() > 1 {
            self.links.entry(identity).or_insert_with(|| target.to_owned());
        }
        Ok(())
    }

    fn content(&self, source: &Path, target: &Path, metadata: &Metadata) -> io::Result<()> {
        let mut from = File::open(source)?;
        let mut to =
            OpenOptions::new().write(true).create_new(true).mode(metadata.mode() & 0o7777).open(target)?;
        io::copy(&mut from, &mut to).inspect_err(|_| {
            let _ = fs::remove_file(target);
        })?;
        if self.options.preserve {
            keep_attributes(&to, target, metadata);
        }
        Ok(())
    }

    fn fail(&mut self, what: &str, error: &io::Error) {
        log::say(&format!("cp: {what}: {error}"));
        self.failed = true;
    }
}

fn link(source: &Path, target: &Path) -> io::Result<()> {
    let aside = aside(target);
    let _ = fs::remove_file(&aside);
    symlink(fs::read_link(source)?, &aside)?;
    settle(&aside, target)
}

/// Puts what was written aside in its place.
fn settle(aside: &Path, target: &Path) -> io::Result<()> {
    let renamed = fs::rename(aside, target);
    // It is still there when that failed, and when both were names of one file.
    let _ = fs::remove_file(aside);
    renamed
}

/// A name beside the target that nothing else has.
fn aside(target: &Path) -> PathBuf {
    target.with_file_name(format!(".cp-{}", std::process::id()))
}

/// What tells a file or folder from all others.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Keeps owner, mode and times where that is allowed.
fn keep_attributes(file: &File, path: &Path, metadata: &Metadata) {
    let _ = chown(path, Some(metadata.uid()), Some(metadata.gid()));
    let _ = file.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777));
    if let Ok(modified) = metadata.modified() {
        let accessed = metadata.accessed().unwrap_or(modified);
        let _ = file.set_times(FileTimes::new().set_modified(modified).set_accessed(accessed));
    }
}
