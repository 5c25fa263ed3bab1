//! Where a piece of configuration comes from.

use std::{fmt, path::Path, sync::Arc};

/// Where a piece of configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A file of an older form.
    File(Arc<Path>),
    /// A FunctionConfig in a file.
    FileObject {
        /// The file.
        file: Arc<Path>,
        /// The object's name.
        name: Arc<str>,
    },
    /// A FunctionConfig of the cluster.
    Object(Arc<str>),
    /// All built-in functions are offered.
    EveryBuiltin,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::FileObject { file, name } => {
                write!(formatter, "the FunctionConfig {name:?} in {}", file.display())
            }
            Self::Object(name) => write!(formatter, "the FunctionConfig {name:?}"),
            Self::EveryBuiltin => formatter.write_str("--builtin-functions=all"),
        }
    }
}
