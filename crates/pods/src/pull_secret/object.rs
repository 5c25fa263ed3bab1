//! The Secret in the cluster.

use std::time::Duration;

use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, api::PostParams};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::PullSecretError;
use crate::{
    render::FIELD_MANAGER,
    trouble::{Meaning, in_time, meaning, words},
};

/// What the cluster pulls with.
const KIND: &str = "kubernetes.io/dockerconfigjson";
const KEY: &str = ".dockerconfigjson";

const CREATE: &str = "create";

/// How long it is tried, and the pause before the second time; it doubles.
const LONGEST: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct Writer {
    api: Api<Secret>,
    namespace: String,
    name: String,
}

/// An attempt that did not do.
struct Setback {
    what: &'static str,
    error: kube::Error,
}

impl Writer {
    pub(super) fn new(api: Api<Secret>, namespace: &str, name: &str) -> Self {
        Self { api, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sees to it that the Secret is there and has this content. Nothing is written where that is so.
    pub(super) async fn put(&self, content: &[u8]) -> Result<(), PullSecretError> {
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let Setback { what, error } = match self.put_once(content).await {
                Ok(outcome) => return outcome,
                Err(setback) => setback,
            };
            let may_pass = match meaning(&error) {
                // Several replicas write at once: whoever comes second looks at what the first has done.
                Meaning::Exists | Meaning::Conflict | Meaning::Passing => true,
                // What cannot be created because something is missing lacks its namespace.
                Meaning::Missing => what != CREATE,
                Meaning::Refused => false,
            };
            if !may_pass || begun.elapsed() + pause > LONGEST {
                let (secret, cause) = (self.full_name(), words(&error));
                return Err(PullSecretError::Api { what, secret, cause, may_pass });
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    async fn put_once(&self, content: &[u8]) -> Result<Result<(), PullSecretError>, Setback> {
        let failed = |what| move |error| Setback { what, error };
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let Some(there) = in_time(self.api.get_opt(&self.name)).await.map_err(failed("read"))? else {
            let secret = self.object(content);
            in_time(self.api.create(&params, &secret)).await.map_err(failed(CREATE))?;
            info!("made Secret {} for the cluster to pull private images with", self.full_name());
            return Ok(Ok(()));
        };
        let kind = there.type_.as_deref().unwrap_or("Opaque");
        if kind != KIND {
            return Ok(Err(PullSecretError::Foreign { secret: self.full_name(), kind: kind.to_owned() }));
        }
        if there.data.as_ref().and_then(|data| data.get(KEY)).is_some_and(|known| known.0 == content) {
            return Ok(Ok(()));
        }
        if there.immutable == Some(true) {
            warn!(
                "Secret {} cannot be changed, so it is used as it is, not as our file is",
                self.full_name()
            );
            return Ok(Ok(()));
        }
        // With the version that was read: a change in between makes a conflict.
        let changed = with_content(there, content);
        in_time(self.api.replace(&self.name, &params, &changed)).await.map_err(failed("update"))?;
        info!("brought Secret {} in step with our file", self.full_name());
        Ok(Ok(()))
    }

    fn object(&self, content: &[u8]) -> Secret {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        let secret = Secret { metadata, type_: Some(KIND.to_owned()), ..Secret::default() };
        with_content(secret, content)
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// The Secret with another content. Whoever looks after it besides, by label or owner, its other keys are theirs.
fn with_content(mut secret: Secret, content: &[u8]) -> Secret {
    secret.data.get_or_insert_default().insert(KEY.to_owned(), ByteString(content.to_vec()));
    secret
}
