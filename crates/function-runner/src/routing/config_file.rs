//! `config.yaml`: which images the executables of the functions folder serve.
//!
//! ```yaml
//! functions:
//!   - function: set-namespace        # a file in the functions folder
//!     images:
//!       - example.com/set-namespace:v0.4       # this tag
//!       - example.com/set-namespace:~0.5       # any tag that meets a constraint
//! ```
//!
//! The file must parse as a whole; an entry that cannot be served is reported
//! and left out, and the others are served. Keys that are not known are reported
//! and passed over: other releases may know them.

use std::{
    collections::HashSet,
    fmt, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};
use serde_saphyr::Spanned;

use super::{Claim, Executable, LARGEST_FILE, Layer, Origin};

/// A parsed `config.yaml`.
#[derive(Debug, Default)]
pub struct ConfigFile {
    functions: Vec<Spanned<Entry>>,
    unknown: Vec<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
struct Content<E> {
    #[serde(default = "Option::default")]
    functions: Option<Vec<E>>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(default)]
    function: Option<Spanned<String>>,
    #[serde(default)]
    images: Option<Vec<Spanned<String>>>,
}

/// The keys of a mapping, and where they are.
#[derive(Debug)]
struct Keys(Vec<Spanned<String>>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Keys;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) = map.next_key()? {
                    keys.push(key);
                    map.next_value::<IgnoredAny>()?;
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Reader)
    }
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

/// What is wrong where.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.fault)
    }
}

/// Why an entry of the file is not, or may not be, served.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
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
    /// A key means nothing to us.
    UnknownKey {
        /// The key.
        key: String,
    },
    /// An entry does not say which executable it is about.
    NoFunction,
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

impl fmt::Display for Fault {
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
            Self::UnknownKey { key } => {
                write!(formatter, "the key {key:?} is not known and is passed over")
            }
            Self::NoFunction => formatter.write_str("an entry is left out: it has no key \"function\""),
            Self::NoImages { function } => {
                write!(formatter, "function {function:?} lists no images and is never called")
            }
            Self::NotExecutable { path, cause } => write!(
                formatter,
                "the executable {} {cause}: calls for its images go on to the next runtime until it can be executed",
                path.display().to_string().escape_debug()
            ),
        }
    }
}

impl ConfigFile {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, ConfigFileError> {
        Self::of(path, files::read(path, LARGEST_FILE).map(|(content, _)| content))
    }

    /// What reading the file gave.
    pub(super) fn of(path: &Path, read: io::Result<Vec<u8>>) -> Result<Self, ConfigFileError> {
        let content = read.map_err(|source| ConfigFileError::Read { path: path.to_owned(), source })?;
        Self::parse(&content).map_err(|cause| ConfigFileError::Parse { path: path.to_owned(), cause })
    }

    /// Parses the file's content; an empty file lists no functions.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        let content: Content<Spanned<Entry>> = read(text)?;
        // What is said about keys is for people: odd ones are no reason to refuse what could be read.
        let mut unknown = read::<Keys>(text).map_or_else(|_| Vec::new(), |keys| keys.0);
        unknown.retain(|key| key.value != "functions");
        let entries = read::<Content<Keys>>(text).ok().and_then(|content| content.functions);
        for mut keys in entries.into_iter().flatten() {
            keys.0.retain(|key| !["function", "images"].contains(&key.value.as_str()));
            unknown.append(&mut keys.0);
        }
        Ok(Self { functions: content.functions.unwrap_or_default(), unknown })
    }

    /// What can be served from `functions`, and what is wrong with the rest.
    pub fn layer(&self, path: &Path, functions: &Path, default_prefix: &str) -> (Layer, Vec<Problem>) {
        let mut layer = Layer::default();
        let origin = Origin::File(path.into());
        let mut problems: Vec<Problem> = self.unknown.iter().map(unknown_key).collect();
        let mut checked = HashSet::new();
        for Spanned { value: Entry { function, images }, referenced, .. } in &self.functions {
            let Some(function) = function else {
                problems.push(Problem { line: referenced.line(), fault: Fault::NoFunction });
                continue;
            };
            let (line, function) = (function.referenced.line(), &function.value);
            if !stays_inside(function) {
                problems.push(Problem { line, fault: Fault::NotAFileName { function: function.clone() } });
                continue;
            }
            let executable = Arc::new(Executable {
                function: function.clone(),
                path: functions.join(function),
                origin: origin.clone(),
            });
            if checked.insert(executable.path.clone())
                && let Err(cause) = executable.check()
            {
                let path = executable.path.clone();
                problems.push(Problem { line, fault: Fault::NotExecutable { path, cause } });
            }
            let images = images.as_deref().unwrap_or_default();
            if images.is_empty() {
                problems.push(Problem { line, fault: Fault::NoImages { function: function.clone() } });
            }
            for Spanned { value: image, referenced, .. } in images {
                let line = referenced.line();
                let claim = match Claim::parse(image, default_prefix) {
                    Ok(claim) => claim,
                    Err(cause) => {
                        let fault = Fault::InvalidImage { function: function.clone(), cause };
                        problems.push(Problem { line, fault });
                        continue;
                    }
                };
                if let Err(first) = layer.executables.add(&claim, executable.clone()) {
                    let fault = Fault::Duplicate {
                        image: claim.entry,
                        first: first.function.clone(),
                        second: function.clone(),
                    };
                    problems.push(Problem { line, fault });
                }
            }
        }
        (layer, problems)
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()))
}

fn unknown_key(key: &Spanned<String>) -> Problem {
    Problem { line: key.referenced.line(), fault: Fault::UnknownKey { key: key.value.clone() } }
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
