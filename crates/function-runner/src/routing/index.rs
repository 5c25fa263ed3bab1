//! What is configured, by image: one table for each executor.

use std::{fs, io, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

use super::Table;

/// A local executable that is a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The function's name, as operators wrote it: the key of fairness.
    pub function: String,
    /// The file to execute.
    pub path: PathBuf,
}

impl Executable {
    /// Whether the file can be executed by somebody; the kernel has the last word.
    pub fn check(&self) -> Result<(), String> {
        let metadata = fs::metadata(&self.path).map_err(|error| match error.kind() {
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
}

/// Who serves which images. An executor does not know what is not in its table.
#[derive(Debug, Default)]
pub struct Index {
    /// Local executables.
    pub executables: Table<Arc<Executable>>,
}
