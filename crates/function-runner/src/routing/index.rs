//! What is configured, by image.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use pods::settings::FunctionSettings;
use registry::{Constraint, Reference};

use super::{Match, Origin, Table};
use crate::{builtin::Builtin, evaluate::Asked};

/// A built-in function for some images.
#[derive(Debug, Clone)]
pub struct BuiltinFunction {
    /// The function.
    pub function: Builtin,
    /// Who says so.
    pub origin: Origin,
}

/// A local executable that is a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The function's name, as operators wrote it: the key of fairness.
    pub function: String,
    /// The file to execute.
    pub path: PathBuf,
    /// Who says so.
    pub origin: Origin,
}

impl Executable {
    /// Whether the file can be executed by somebody; the kernel has the last word.
    pub fn check(&self) -> Result<(), String> {
        check_executable(&self.path)
    }
}

/// Whether a file can be executed by somebody; the kernel has the last word.
pub fn check_executable(path: &Path) -> Result<(), String> {
    process::obstacle(path).map_or(Ok(()), Err)
}

/// What somebody says about the pods of some images.
#[derive(Debug, Clone, PartialEq)]
pub struct PodFunction {
    /// What is said.
    pub settings: Arc<FunctionSettings>,
    /// Who says so.
    pub origin: Origin,
}

/// What sources of one rank say. An executor does not know what is not in its table.
#[derive(Debug, Default)]
pub struct Layer {
    /// Built-in functions.
    pub builtins: Table<Arc<BuiltinFunction>>,
    /// Local executables.
    pub executables: Table<Arc<Executable>>,
    /// Settings of pods.
    pub pods: Table<Arc<PodFunction>>,
    /// The same by the names of objects, for images that no object lays claim to: the original looks at nothing
    /// else.
    pub pods_by_name: HashMap<String, Arc<PodFunction>>,
}

/// A function that is to have a pod before anybody calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmUp {
    /// Its image.
    pub asked: Asked,
    /// Whether its pods are kept for ever, so that it is worth to try until there are some.
    pub is_kept: bool,
}

/// Who serves which images, and how.
#[derive(Debug, Default)]
pub struct Index {
    /// What sources say; those that win first.
    pub layers: Vec<Layer>,
    /// Functions that are to have a pod before anybody calls; each once.
    pub warm_ups: Vec<WarmUp>,
}

impl Index {
    /// The built-in function that serves an image. With a constraint, the image's highest tag is meant that is
    /// known and meets it.
    pub fn builtin(
        &self,
        image: &Reference,
        constraint: Option<&Constraint>,
    ) -> Option<Match<'_, Arc<BuiltinFunction>>> {
        self.layers.iter().find_map(|layer| layer.builtins.find(image, constraint))
    }

    /// The executable that serves an image, in the same way.
    pub fn executable(
        &self,
        image: &Reference,
        constraint: Option<&Constraint>,
    ) -> Option<Match<'_, Arc<Executable>>> {
        self.layers.iter().find_map(|layer| layer.executables.find(image, constraint))
    }

    /// What is said about the pods of an image.
    pub fn pod(&self, image: &Reference) -> Option<&Arc<PodFunction>> {
        let find = |image: &Reference| self.layers.iter().find_map(|layer| layer.pods.find(image, None));
        // What is said about a tag holds as well where a digest tells which image that is.
        let tag = image.digest().and(image.tag());
        find(image)
            .or_else(|| find(&image.with_tag(tag?).ok()?))
            .map(|found| found.value)
            .or_else(|| self.layers.iter().find_map(|layer| layer.pods_by_name.get(image.name())))
    }

    /// How many claims executables lay to images.
    pub fn executables(&self) -> usize {
        self.layers.iter().map(|layer| layer.executables.len()).sum()
    }
}
