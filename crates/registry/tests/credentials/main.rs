//! Logins from Docker config files: which entry is used, helper programs, rotation, and that no secret shows.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are not seen as tests")]

mod entries;
mod helpers;
mod keys;
mod rotation;
mod secrets;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use registry::{Keychain, KeychainError, Login, Reference};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a config file and helper programs, gone with the test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn with(config: &Value) -> Self {
        let folder = Self::new();
        folder.write(config.to_string());
        folder
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("config.json")
    }

    fn write(&self, content: impl AsRef<[u8]>) {
        fs::write(self.file(), content).unwrap();
    }

    /// Adds a shell script as the helper program of this name.
    fn script(&self, name: &str, script: &str) {
        let path = self.0.path().join(format!("docker-credential-{name}"));
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Helpers are found here, and what scripts use elsewhere.
    fn keychain(&self) -> Keychain {
        let folders: OsString = self.0.path().into();
        Keychain::file_with_helpers(self.file(), folders)
    }

    async fn lookup(&self, text: &str) -> Result<Option<Login>, KeychainError> {
        self.keychain().lookup(&image(text)).await
    }
}

fn image(text: &str) -> Reference {
    Reference::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// `user:password` of a basic login.
fn basic(login: Option<Login>) -> Option<String> {
    match login {
        Some(Login::Basic { username, password }) => Some(format!("{username}:{}", password.reveal())),
        Some(other) => panic!("{other:?} is not basic"),
        None => None,
    }
}
