//! `config.yaml`: which images the executables of the functions folder serve.
//!
//! ```yaml
//! functions:
//!   - function: set-namespace        # a file in the functions folder
//!     images:
//!       - example.com/set-namespace:v0.4
//! ```
//!
//! The file must parse as a whole; an entry that cannot be served is reported
//! and left out, and the others are served.

use std::{
    collections::HashSet,
    fmt, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use registry::Reference;
use serde::Deserialize;

use super::{Executable, Index};

/// Larger files are refused: no sensible configuration comes near.
const LARGEST: u64 = 4 * 1024 * 1024;

/// A parsed `config.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    #[serde(default)]
    functions: Option<Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    function: String,
    #[serde(default)]
    images: Option<Vec<String>>,
}

/// Why the whole file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not what we expect.
    #[error("{} is not a valid configuration: {cause}; expected functions: [{{function: NAME, images: [REFERENCE, …]}}]", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong where.
        cause: String,
    },
}

impl ConfigFileError {
    /// Whether the file is simply not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Why an entry of the file is not, or may not be, served.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// The name leads out of the functions folder, or is none.
    NotAFileName {
        /// The entry's name.
        function: String,
    },
    /// An image is not a valid reference.
    InvalidImage {
        /// The entry's name.
        function: String,
        /// What is wrong with which reference.
        cause: String,
    },
    /// Two entries claim one image; the first has it.
    Duplicate {
        /// The image.
        image: String,
        /// Who serves it.
        first: String,
        /// Who does not.
        second: String,
    },
    /// An entry without images serves nothing.
    NoImages {
        /// The entry's name.
        function: String,
    },
    /// The executable cannot be executed now; calls for it look elsewhere.
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAFileName { function } => write!(
                formatter,
                "function {function:?} is left out: its name must be a path inside the functions folder, without \"..\""
            ),
            Self::InvalidImage { function, cause } => {
                write!(formatter, "an image of function {function:?} is left out: {cause}")
            }
            Self::Duplicate { image, first, second } => write!(
                formatter,
                "image {image} is listed twice: function {first:?} serves it, its entry under {second:?} is left out"
            ),
            Self::NoImages { function } => {
                write!(formatter, "function {function:?} lists no images and is never called")
            }
            Self::NotExecutable { path, cause } => write!(
                formatter,
                "the executable {} {cause}: calls for its images go on to the next runtime until it can be executed",
                path.display()
            ),
        }
    }
}

impl ConfigFile {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, ConfigFileError> {
        let failed = |source| ConfigFileError::Read { path: path.to_owned(), source };
        let metadata = fs::metadata(path).map_err(failed)?;
        // A pipe or a device would block or never end.
        if !metadata.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
        }
        if metadata.len() > LARGEST {
            let cause = format!("it has {} bytes, more than {LARGEST}", metadata.len());
            return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, cause)));
        }
        let bytes = fs::read(path).map_err(failed)?;
        Self::parse(&bytes).map_err(|cause| ConfigFileError::Parse { path: path.to_owned(), cause })
    }

    /// Parses the file's content; an empty file lists no functions.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()))
    }

    /// The index of what can be served from `functions`, and what is wrong
    /// with the rest.
    pub fn index(&self, functions: &Path, default_prefix: &str) -> (Index, Vec<Problem>) {
        let mut index = Index::default();
        let mut problems = Vec::new();
        let mut checked = HashSet::new();
        for Entry { function, images } in self.functions.iter().flatten() {
            if !stays_inside(function) {
                problems.push(Problem::NotAFileName { function: function.clone() });
                continue;
            }
            let path = functions.join(function);
            if checked.insert(path.clone())
                && let Err(cause) = check_executable(&path)
            {
                problems.push(Problem::NotExecutable { path: path.clone(), cause });
            }
            let executable = Arc::new(Executable { function: function.clone(), path });
            let images = images.as_deref().unwrap_or_default();
            if images.is_empty() {
                problems.push(Problem::NoImages { function: function.clone() });
            }
            for image in images {
                match Reference::parse_with_prefix(image, default_prefix) {
                    Err(error) => {
                        problems.push(Problem::InvalidImage {
                            function: function.clone(),
                            cause: error.to_string(),
                        });
                    }
                    Ok(reference) => {
                        if let Err(first) = index.add_executable(&reference, executable.clone()) {
                            problems.push(Problem::Duplicate {
                                image: reference.as_given().to_owned(),
                                first: first.function.clone(),
                                second: function.clone(),
                            });
                        }
                    }
                }
            }
        }
        (index, problems)
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Whether a name, taken as a path, cannot lead out of the folder it is in.
fn stays_inside(name: &str) -> bool {
    let mut components = Path::new(name).components().peekable();
    components.peek().is_some()
        && !name.contains('\0')
        && components.all(|component| matches!(component, Component::Normal(_)))
}

/// Whether the file can be executed by somebody; the kernel has the last word.
fn check_executable(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be inspected ({error})"),
    })?;
    if !metadata.is_file() {
        return Err("is not a file".to_owned());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("is not executable (chmod +x is missing)".to_owned());
    }
    Ok(())
}
