//! Logins for registries, from a Docker config file and the helper programs it names.

mod answers;
mod config;
mod error;
mod file;
mod helper;
mod key;
mod login;

use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use answers::Answers;
use config::Source;
pub use error::{BrokenEntry, HelperProblem, KeychainError, Malformed};
use file::ConfigFile;
use helper::Helper;
pub use login::{Login, Secret};

use crate::Reference;

/// Finds the login for an image. A cheap handle: clones share what they have read.
///
/// Asked are, until one has a login: the entries of `auths` and `credHelpers` whose keys are for the image,
/// the most specific key first, and for registries with no helper of their own the `credsStore`. An image
/// without a login is asked for anonymously; that is no error, and neither is a missing file.
///
/// The file is looked at, at most once a second, when a login is asked for, and read when it has changed.
#[derive(Clone)]
pub struct Keychain {
    shared: Option<Arc<Shared>>,
}

struct Shared {
    file: ConfigFile,
    answers: Answers,
    /// The helper programs that were found missing and told of.
    missing: Mutex<HashSet<String>>,
    /// Where helper programs are looked for, if not in `PATH`.
    helper_folders: Option<OsString>,
}

impl Keychain {
    /// One without any login.
    pub fn none() -> Self {
        Self { shared: None }
    }

    /// The logins of this file, which need not be there yet.
    pub fn file(path: PathBuf) -> Self {
        Self::new(path, None)
    }

    /// The logins of this file, with helper programs looked for in these folders, written as in `PATH`.
    pub fn file_with_helpers(path: PathBuf, folders: OsString) -> Self {
        Self::new(path, Some(folders))
    }

    /// The logins that Docker would use: of `config.json` in the folder named by `DOCKER_CONFIG`, or in
    /// `.docker` in the user's home.
    pub fn usual() -> Self {
        usual_path(env::var_os("DOCKER_CONFIG"), env::home_dir()).map_or_else(Self::none, Self::file)
    }

    fn new(path: PathBuf, helper_folders: Option<OsString>) -> Self {
        let (file, answers) = (ConfigFile::new(path), Answers::new());
        Self { shared: Some(Arc::new(Shared { file, answers, missing: Mutex::default(), helper_folders })) }
    }

    /// The file that is asked, if any.
    pub fn path(&self) -> Option<&Path> {
        self.shared.as_deref().map(|shared| shared.file.path())
    }

    /// The login for an image, `None` if it is to be asked for anonymously.
    ///
    /// A helper program that is not installed is passed over. It is an error only if no other login is found,
    /// and [one to do without](KeychainError::is_missing_helper): the image may be public.
    pub async fn lookup(&self, image: &Reference) -> Result<Option<Login>, KeychainError> {
        match &self.shared {
            Some(shared) => shared.lookup(image).await,
            None => Ok(None),
        }
    }

    /// What is wrong with the file as it is now: all of it, an entry, a helper program that is not installed. None
    /// is run. A missing file is not wrong.
    pub async fn check(&self) -> Vec<KeychainError> {
        match &self.shared {
            Some(shared) => shared.check().await,
            None => Vec::new(),
        }
    }

    /// Drops what is remembered of the file and of the helper programs' answers: a registry that refuses a
    /// login may accept the next.
    pub fn forget(&self) {
        if let Some(shared) = &self.shared {
            shared.file.forget();
            shared.answers.forget();
        }
    }
}

impl Shared {
    async fn lookup(&self, image: &Reference) -> Result<Option<Login>, KeychainError> {
        let config = self.file.content().await?;
        let server = key::server_address(image);
        let mut name_in_store = None;
        let mut has_helper = false;
        let mut missing = None;
        for entry in config.entries_for(image) {
            match entry.source.as_ref().map_err(|problem| self.broken(&entry.key, *problem))? {
                Source::Here(login) => return Ok(Some(login.clone().found_in(&entry.key))),
                Source::Helper(helper) => {
                    has_helper = true;
                    match self.ask(helper, server).await {
                        Ok(Some(login)) => {
                            let entry = format!("{} (credHelpers, {})", entry.key, helper.program());
                            return Ok(Some(login.found_in(&entry)));
                        }
                        Ok(None) => {}
                        Err(error) if error.is_missing_helper() => missing = Some(error),
                        Err(error) => return Err(error),
                    }
                }
                // The store knows the login by the name under which it was put there.
                Source::Store if !entry.is_glob() => {
                    name_in_store.get_or_insert(entry.key.as_str());
                }
                Source::Store => {}
            }
        }
        let Some(store) = config.store().filter(|_| !has_helper) else {
            return missing.map_or(Ok(None), Err);
        };
        let store = store.as_ref().map_err(|problem| self.broken("credsStore", *problem))?;
        let server = name_in_store.unwrap_or(server);
        let login = self.ask(store, server).await?;
        Ok(login.map(|login| login.found_in(&format!("{server} (credsStore, {})", store.program()))))
    }

    async fn ask(&self, helper: &Helper, server: &str) -> Result<Option<Login>, KeychainError> {
        let answer = self.answers.get(helper, server, &self.helper_folders()).await;
        let answer = answer.map_err(|problem| self.helpless(helper, server, problem));
        if let Err(error) = &answer
            && error.is_missing_helper()
            && self.missing.lock().unwrap_or_else(PoisonError::into_inner).insert(helper.program().to_owned())
        {
            tracing::warn!(cause = %error, "images whose login it may have are asked for anonymously");
        }
        answer
    }

    async fn check(&self) -> Vec<KeychainError> {
        let config = match self.file.content().await {
            Ok(config) => config,
            Err(error) => return vec![error],
        };
        let folders = self.helper_folders();
        let missing = |helper: &Helper, server: &str| {
            let is_missing = helper.find(&folders).is_none();
            is_missing.then(|| self.helpless(helper, server, HelperProblem::Missing))
        };
        let entries = config.entries().iter().filter_map(|entry| match &entry.source {
            Ok(Source::Helper(helper)) => missing(helper, &entry.key),
            Ok(Source::Here(_) | Source::Store) => None,
            Err(problem) => Some(self.broken(&entry.key, *problem)),
        });
        let store = config.store().and_then(|store| match store {
            Ok(helper) => missing(helper, "any registry"),
            Err(problem) => Some(self.broken("credsStore", *problem)),
        });
        entries.chain(store).collect()
    }

    /// Where helper programs are looked for.
    fn helper_folders(&self) -> OsString {
        self.helper_folders.clone().or_else(|| env::var_os("PATH")).unwrap_or_default()
    }

    fn broken(&self, entry: &str, problem: BrokenEntry) -> KeychainError {
        KeychainError::Entry { file: self.path(), entry: entry.to_owned(), problem }
    }

    fn helpless(&self, helper: &Helper, server: &str, problem: HelperProblem) -> KeychainError {
        let (program, server) = (helper.program().to_owned(), server.to_owned());
        KeychainError::Helper { file: self.path(), program, server, problem }
    }

    fn path(&self) -> PathBuf {
        self.file.path().to_owned()
    }
}

impl fmt::Debug for Keychain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keychain").field("file", &self.path()).finish_non_exhaustive()
    }
}

/// The logins for an image that are in the file itself.
#[cfg(feature = "fuzzing")]
pub(crate) fn logins(content: &[u8], image: &Reference) -> Result<Vec<Login>, Malformed> {
    let config = config::Config::parse(content)?;
    let here = |entry: &config::Entry| match &entry.source {
        Ok(Source::Here(login)) => Some(login.clone().found_in(&entry.key)),
        _ => None,
    };
    Ok(config.entries_for(image).filter_map(here).collect())
}

/// Empty variables are as good as none.
fn usual_path(docker_config: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let folder = match docker_config.filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => home.filter(|home| !home.as_os_str().is_empty())?.join(".docker"),
    };
    Some(folder.join("config.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_file() {
        for (docker_config, home, expected) in [
            (Some("/d"), Some("/h"), Some("/d/config.json")),
            (Some("/d"), None, Some("/d/config.json")),
            (Some(""), Some("/h"), Some("/h/.docker/config.json")),
            (None, Some("/h"), Some("/h/.docker/config.json")),
            (None, Some(""), None),
            (None, None, None),
        ] {
            let path = usual_path(docker_config.map(Into::into), home.map(Into::into));
            assert_eq!(path.as_deref(), expected.map(Path::new), "{docker_config:?} {home:?}");
        }
    }
}
