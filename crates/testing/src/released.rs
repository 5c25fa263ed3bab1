//! The programs as `make build` leaves them.

use std::path::{Path, PathBuf};

/// The folder of this checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// A released program. The variable `RELEASED_PROGRAMS` names another folder to take it from, for whoever writes
/// a test and does not want to wait for a release.
pub fn released(name: &str) -> PathBuf {
    let folder = std::env::var_os("RELEASED_PROGRAMS").map(PathBuf::from);
    let path = folder.unwrap_or_else(|| checkout().join("target/release")).join(name);
    assert!(path.exists(), "there is no {}: run `make build` first", path.display());
    path
}
