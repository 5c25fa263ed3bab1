//! The Secret that lets the cluster pull private images, kept in step with a file.

mod error;
mod file;
mod object;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};
use tracing::{info, warn};

pub use error::{FileProblem, PullSecretError};
use file::CredentialsFile;
use object::Writer;

/// How long the Secret is taken to be as it was found.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);
/// How soon a changed file is noticed while nobody needs the Secret.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// Those who waited for an attempt that failed are not to try themselves, one after the other.
const SAME_FAILURE: Duration = Duration::from_secs(2);

/// Keeps a Secret in step with a file. A cheap handle: clones share what they know.
#[derive(Clone)]
pub struct PullSecret {
    shared: Arc<Shared>,
}

struct Shared {
    writer: Writer,
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    file: CredentialsFile,
    /// Whether anybody needed the Secret yet.
    is_needed: bool,
    /// What the Secret is to have: what the file had when it last made sense.
    content: Option<Arc<[u8]>>,
    /// What is wrong with the file now.
    problem: Option<FileProblem>,
    /// When the Secret was last found, or made, to have that content.
    checked: Option<Instant>,
    failed: Option<(Instant, PullSecretError)>,
}

impl PullSecret {
    /// The Secret of this name, with the content of this file, which need not be there yet.
    pub fn new(client: Client, namespace: &str, name: &str, path: PathBuf) -> Self {
        let writer = Writer::new(Api::<Secret>::namespaced(client, namespace), namespace, name);
        let state = State {
            file: CredentialsFile::new(path.clone()),
            is_needed: false,
            content: None,
            problem: None,
            checked: None,
            failed: None,
        };
        Self { shared: Arc::new(Shared { writer, path, state: Mutex::new(state) }) }
    }

    /// The Secret's name, once it is there and as the file is.
    ///
    /// Where it was so before, trouble with the file or the API server is no reason to do without it.
    pub async fn ensure(&self) -> Result<String, PullSecretError> {
        let shared = &*self.shared;
        // Held while writing: the others get what this one finds.
        let mut state = shared.state.lock().await;
        state.is_needed = true;
        state.look(&shared.path).await;
        let Some(content) = state.content.clone() else {
            let problem = state.problem.clone().unwrap_or(FileProblem::Empty);
            return Err(PullSecretError::File { path: shared.path.clone(), problem });
        };
        if state.checked.is_none_or(|checked| checked.elapsed() >= CHECK_INTERVAL) {
            state.write(&shared.writer, &content).await?;
        }
        Ok(shared.writer.name().to_owned())
    }

    /// Keeps the Secret in step with the file, from the first time it was needed on. Never ends.
    pub async fn follow(self) {
        loop {
            sleep(LOOK_INTERVAL).await;
            self.look_now().await;
        }
    }

    async fn look_now(&self) {
        let shared = &*self.shared;
        let mut state = shared.state.lock().await;
        if !state.is_needed {
            return;
        }
        state.look(&shared.path).await;
        // The one who needs it next hears of what goes wrong here.
        if let Some(content) = state.content.clone().filter(|_| state.checked.is_none()) {
            let _ = state.write(&shared.writer, &content).await;
        }
    }
}

impl State {
    /// Takes a change of the file in.
    async fn look(&mut self, path: &Path) {
        match self.file.look().await {
            None => {}
            Some(Ok(content)) => {
                if self.content.as_deref().is_some_and(|known| *known != *content) {
                    info!("{} has changed", path.display());
                }
                if self.content.as_deref() != Some(&*content) {
                    self.checked = None;
                    self.failed = None;
                }
                (self.content, self.problem) = (Some(content), None);
            }
            Some(Err(problem)) => {
                if self.content.is_some() {
                    warn!("{}: {problem}; what it said before stays in use", path.display());
                }
                self.problem = Some(problem);
            }
        }
    }

    async fn write(&mut self, writer: &Writer, content: &Arc<[u8]>) -> Result<(), PullSecretError> {
        if let Some((_, error)) = self.failed.as_ref().filter(|(when, _)| when.elapsed() < SAME_FAILURE) {
            return Err(error.clone());
        }
        match writer.put(content).await {
            Ok(()) => {
                (self.checked, self.failed) = (Some(Instant::now()), None);
                Ok(())
            }
            Err(error @ PullSecretError::Api { .. }) if self.checked.is_some() => {
                warn!("{error}; it is taken to be as it was");
                self.checked = Some(Instant::now());
                Ok(())
            }
            Err(error) => {
                self.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

/// Without the content.
impl fmt::Debug for PullSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.shared.writer.name();
        formatter.debug_struct("PullSecret").field("name", &name).finish_non_exhaustive()
    }
}
