//! `function-runner validate`: configuration checked offline.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use ::pods::pod_cache;
use flags::{Flags, Mistake, Mistakes};
use serde_json::Value;

use super::{complain, say};
use crate::{
    builtin::Offered,
    routing::{ConfigFile, Fault, Folder, LARGEST_FILE, Sources, Terms},
    settings,
};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    ConfigFile,
    PodCache,
    Objects,
}

pub(super) fn main(mut flags: Flags) -> Result<ExitCode, Mistakes> {
    let default_prefix = settings::read_prefix(&mut flags);
    let paths: Vec<PathBuf> = flags.arguments().iter().map(PathBuf::from).collect();
    if paths.is_empty() {
        let text = "name the files to check, such as config.yaml, or a folder of them".to_owned();
        flags.add(Mistake::Other(text));
    }
    let (paths, default_prefix) = flags.finish((paths, default_prefix))?;
    let mut validation = Validation { default_prefix, files: BTreeMap::new(), problems: 0 };
    for path in &paths {
        validation.check(path);
    }
    validation.check_together();
    Ok(if validation.problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Validation {
    default_prefix: String,
    /// Files with FunctionConfigs.
    files: BTreeMap<Arc<Path>, Arc<api::File>>,
    problems: usize,
}

impl Validation {
    fn check(&mut self, path: &Path) {
        if path.is_dir() {
            match Folder::names(path) {
                Ok(names) if names.is_empty() => self.problem(path, "there is no YAML or JSON file in it"),
                Ok(names) => names.iter().for_each(|name| self.check_file(name)),
                Err(error) => self.problem(path, &error.to_string()),
            }
        } else {
            self.check_file(path);
        }
    }

    fn check_file(&mut self, path: &Path) {
        let content = match files::read(path, LARGEST_FILE) {
            Ok((content, _)) => content,
            Err(error) => return self.problem(path, &error.to_string()),
        };
        let before = self.problems;
        let found = match form(&content) {
            Form::ConfigFile => self.check_config(path, &content),
            Form::PodCache => self.check_pod_cache(path, &content),
            Form::Objects => self.check_objects(path, &content),
        };
        match self.problems - before {
            0 => drop(say(&format!("{}: {found}", path.display()))),
            problems => complain(&format!("{}: {found}, {problems} problems", path.display())),
        }
    }

    fn check_config(&mut self, path: &Path, content: &[u8]) -> String {
        let file = match ConfigFile::parse(content) {
            Ok(file) => file,
            Err(cause) => {
                self.problem(path, &cause);
                return "a config.yaml".to_owned();
            }
        };
        // The executables are on another machine, as like as not.
        let (layer, problems) = file.layer(path, Path::new("functions"), &self.default_prefix);
        for problem in problems.iter().filter(|problem| !matches!(problem.fault, Fault::NotExecutable { .. }))
        {
            self.problem(path, &problem.to_string());
        }
        format!("a config.yaml with {} images", layer.executables.len())
    }

    fn check_pod_cache(&mut self, path: &Path, content: &[u8]) -> String {
        match pod_cache::parse(content) {
            Ok((entries, warnings)) => {
                for warning in &warnings {
                    self.problem(path, warning);
                }
                format!("a pod-cache-config with {} functions", entries.len())
            }
            Err(cause) => {
                self.problem(path, &cause);
                "a pod-cache-config".to_owned()
            }
        }
    }

    fn check_objects(&mut self, path: &Path, content: &[u8]) -> String {
        let file = api::File::parse(content, &self.default_prefix);
        for problem in file.problems.iter().chain(&file.unknown) {
            self.problem(path, &problem.to_string());
        }
        for remark in &file.remarks {
            say(&format!("{}: {remark}", path.display()));
        }
        let found = format!("{} FunctionConfigs", file.objects.len());
        self.files.insert(path.into(), Arc::new(file));
        found
    }

    /// What one object takes from another.
    fn check_together(&mut self) {
        let terms = Terms {
            builtins: Offered::Configured,
            functions: Some(PathBuf::from("functions")),
            pods: true,
            default_prefix: self.default_prefix.clone(),
            check: |_| Ok(()),
        };
        let sources = Sources { files: std::mem::take(&mut self.files), ..Sources::default() };
        for warning in sources.build(&terms).warnings {
            self.problems += 1;
            complain(&warning);
        }
    }

    fn problem(&mut self, path: &Path, problem: &str) {
        self.problems += 1;
        complain(&format!("{}: {problem}", path.display()));
    }
}

/// What a file is, by its content. What is nothing of all that is told to be no object.
fn form(content: &[u8]) -> Form {
    let text = std::str::from_utf8(content).unwrap_or_default();
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_default();
    match documents.as_slice() {
        [Value::Object(fields)] if fields.contains_key("functions") && !fields.contains_key("kind") => {
            Form::ConfigFile
        }
        // From image to time: at least one of both parts of a name is in each.
        [Value::Object(fields)]
            if !fields.is_empty() && fields.keys().all(|name| name.contains(['/', ':'])) =>
        {
            Form::PodCache
        }
        [Value::Array(_)] => Form::PodCache,
        _ => Form::Objects,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_content() {
        for (text, expected) in [
            ("functions: []", Form::ConfigFile),
            ("functions:\n", Form::ConfigFile),
            ("example.com/f:v1: 30m\n", Form::PodCache),
            ("- name: example.com/f:v1\n", Form::PodCache),
            ("[]", Form::PodCache),
            ("kind: FunctionConfig\n", Form::Objects),
            ("kind: X\nfunctions: []\n", Form::Objects),
            ("functions: []\n---\nfunctions: []\n", Form::Objects),
            ("{}", Form::Objects),
            ("", Form::Objects),
            ("a: [", Form::Objects),
        ] {
            assert_eq!(form(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(form(b"\xff"), Form::Objects);
    }
}
