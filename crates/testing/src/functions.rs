//! Functions made of shell scripts, and the configuration that offers them.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tempfile::TempDir;

/// A functions folder with its `config.yaml`, gone with the test.
#[derive(Debug)]
pub struct Functions {
    folder: TempDir,
    config: String,
}

impl Default for Functions {
    fn default() -> Self {
        Self::new()
    }
}

impl Functions {
    /// An empty folder, and a configuration of no functions.
    pub fn new() -> Self {
        let functions = Self { folder: TempDir::new().unwrap(), config: "functions:\n".to_owned() };
        fs::create_dir(functions.folder()).unwrap();
        functions.write_config(&functions.config);
        functions
    }

    /// Adds a shell script as the function `name`, served as the image
    /// `example.com/NAME:v1`.
    #[must_use]
    pub fn with_script(self, name: &str, script: &str) -> Self {
        self.write_executable(name, &format!("#!/bin/sh\n{script}\n"));
        self.with_entry(name, &[&format!("example.com/{name}:v1")])
    }

    /// Adds an executable that exists already.
    #[must_use]
    pub fn with_program(self, name: &str, program: &Path) -> Self {
        fs::hard_link(program, self.folder().join(name))
            .or_else(|_| fs::copy(program, self.folder().join(name)).map(drop))
            .unwrap();
        self.with_entry(name, &[&format!("example.com/{name}:v1")])
    }

    /// Adds an entry of the configuration, whether its file exists or not.
    #[must_use]
    pub fn with_entry(mut self, name: &str, images: &[&str]) -> Self {
        writeln!(self.config, "  - function: {name}\n    images:").unwrap();
        for image in images {
            writeln!(self.config, "      - {image}").unwrap();
        }
        self.write_config(&self.config);
        self
    }

    /// The folder of the executables.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("functions")
    }

    /// The configuration file.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("config.yaml")
    }

    /// Replaces the configuration file.
    pub fn write_config(&self, text: &str) {
        let aside = self.folder.path().join("config.new");
        fs::write(&aside, text).unwrap();
        fs::rename(aside, self.config()).unwrap();
    }

    /// Writes an executable file. The name appears when it is whole and
    /// closed, or executing it could find it still open for writing.
    pub fn write_executable(&self, name: &str, content: &str) {
        let aside = self.folder.path().join(format!("{name}.new"));
        let mut file =
            fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o755).open(&aside).unwrap();
        file.write_all(content.as_bytes()).unwrap();
        drop(file);
        fs::rename(aside, self.folder().join(name)).unwrap();
    }

    /// The flags that make a function runner offer these functions.
    pub fn flags(&self) -> Vec<String> {
        vec![
            format!("--functions={}", self.folder().display()),
            format!("--config={}", self.config().display()),
        ]
    }
}

/// A ResourceList of ConfigMaps with these names.
pub fn resource_list(names: &[&str]) -> Bytes {
    let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n".to_owned();
    for name in names {
        writeln!(text, "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: {name} # kept").unwrap();
    }
    text.into()
}
