//! The file with the credentials.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use files::Followed;
use serde_json::Value;
use tokio::{task::spawn_blocking, time::sleep};
use tracing::warn;

use super::FileProblem;

/// A Secret has no more.
const LARGEST: u64 = 1 << 20;
/// How long a writer may take that empties the file and then fills it.
const BEING_WRITTEN: Duration = Duration::from_millis(100);

type Content = Result<Arc<[u8]>, FileProblem>;

/// A Docker config that is read again when it has changed.
#[derive(Debug)]
pub(super) struct CredentialsFile {
    followed: Arc<Mutex<Followed>>,
}

impl CredentialsFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { followed: Arc::new(Mutex::new(Followed::new(path, LARGEST))) }
    }

    /// What it says, or what is wrong with it. `None` if that has not changed.
    pub(super) async fn look(&self) -> Option<Content> {
        let (content, is_settled) = self.look_once().await;
        match content {
            // It may be half of what is being written.
            Some(Err(FileProblem::Malformed { .. } | FileProblem::Empty)) if !is_settled => {
                sleep(BEING_WRITTEN).await;
                self.look_once().await.0.or(content)
            }
            content => content,
        }
    }

    async fn look_once(&self) -> (Option<Content>, bool) {
        let followed = self.followed.clone();
        let look = move || {
            let mut followed = followed.lock().unwrap_or_else(PoisonError::into_inner);
            (followed.look(), followed.is_settled())
        };
        // Fails only while the runtime ends.
        let (found, is_settled) = spawn_blocking(look).await.unwrap_or((None, true));
        let content = found.map(|found| match found {
            Ok(bytes) => checked(bytes),
            Err(error) => Err(FileProblem::Unreadable(error.to_string())),
        });
        (content, is_settled)
    }
}

/// The parser's own words stay here: they repeat what it stumbled over.
fn checked(bytes: Vec<u8>) -> Content {
    if bytes.trim_ascii().is_empty() {
        return Err(FileProblem::Empty);
    }
    let document: Value = serde_json::from_slice(&bytes)
        .map_err(|error| FileProblem::Malformed { line: error.line(), column: error.column() })?;
    let Value::Object(document) = document else { return Err(FileProblem::NotAnObject) };
    if !document.contains_key("auths") {
        warn!("the credentials for private registries have no \"auths\": the cluster can use no others");
    }
    Ok(bytes.into())
}
