//! The pure index from image references to executors.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use registry::{ImageKey, Reference};

/// A local executable that is a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The function's name, as operators wrote it: the key of fairness.
    pub function: String,
    /// The file to execute.
    pub path: PathBuf,
}

/// How an image can be run. Absent executors do not know the image.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// As a local executable.
    pub executable: Option<Arc<Executable>>,
}

/// From image to route, in constant time.
#[derive(Debug, Default)]
pub struct Index {
    routes: HashMap<ImageKey, Route>,
}

impl Index {
    /// Lets `executable` serve `image`. The first to claim an image keeps it;
    /// the one that has it already is returned to the second.
    pub fn add_executable(
        &mut self,
        image: &Reference,
        executable: Arc<Executable>,
    ) -> Result<(), Arc<Executable>> {
        let route = self.routes.entry(image.key()).or_default();
        match &route.executable {
            Some(first) => Err(first.clone()),
            None => {
                route.executable = Some(executable);
                Ok(())
            }
        }
    }

    /// How `image` can be run.
    pub fn lookup(&self, image: &Reference) -> Option<&Route> {
        self.routes.get(&image.key())
    }

    /// How many images are known.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether no image is known.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(text: &str) -> Reference {
        Reference::parse(text).unwrap()
    }

    fn executable(name: &str) -> Arc<Executable> {
        Arc::new(Executable { function: name.into(), path: name.into() })
    }

    #[test]
    fn tags_and_digests_are_exact() {
        let digest = format!("example.com/f@sha256:{}", "a".repeat(64));
        let mut index = Index::default();
        index.add_executable(&image("example.com/f:v1"), executable("one")).unwrap();
        index.add_executable(&image(&digest), executable("pinned")).unwrap();
        let found = |text: &str| {
            index.lookup(&image(text)).and_then(|r| r.executable.clone()).map(|e| e.function.clone())
        };
        assert_eq!(found("example.com/f:v1").as_deref(), Some("one"));
        assert_eq!(found(&digest).as_deref(), Some("pinned"));
        assert_eq!(found("example.com/f:v2"), None);
        assert_eq!(found("example.com/f"), None);
        assert_eq!(found("example.org/f:v1"), None);
    }

    #[test]
    fn no_tag_means_latest() {
        let mut index = Index::default();
        index.add_executable(&image("example.com/f"), executable("one")).unwrap();
        assert!(index.lookup(&image("example.com/f:latest")).is_some());
    }

    #[test]
    fn the_first_claim_wins_and_the_second_is_told() {
        let mut index = Index::default();
        index.add_executable(&image("example.com/f:v1"), executable("one")).unwrap();
        let first = index.add_executable(&image("example.com/f:v1"), executable("two")).unwrap_err();
        assert_eq!(first.function, "one");
        assert_eq!(index.len(), 1);
    }
}
