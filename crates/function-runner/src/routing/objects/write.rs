//! One write to one object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, ValidationDirective},
};
use pods::{in_time, render::FIELD_MANAGER};
use serde_json::{Value, json};

use super::{FINALIZER, Opinion, Seen};

/// What is to be written. Whoever wrote in between wins: the version that was seen is part of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    /// To the finalizers.
    Finalizers(Value),
    /// To the status.
    Status {
        patch: Value,
        /// Whether it has fields that Porch's own definition of the kind does not have.
        has_additions: bool,
    },
}

/// What became of it.
#[derive(Debug)]
pub(super) enum Written {
    /// It is there; the object has this version now.
    Done { resource_version: String },
    /// It is there, but for the fields that the definition of the kind does not have.
    Pruned { resource_version: String },
    /// Nothing was written, as the definition of the kind does not have our fields.
    Unknown,
    /// The object was changed by somebody else.
    Overtaken,
    /// There is no such object any more.
    Gone,
    /// We have no right to write to any.
    Forbidden(kube::Error),
    /// It did not work, for now or for ever.
    Failed(kube::Error),
}

impl Change {
    /// What is to be written next, if anything is.
    pub(super) fn next(
        seen: &Seen,
        opinion: Option<&Opinion>,
        has_additions: bool,
        now: &Time,
    ) -> Option<Self> {
        let is_ours = |finalizer: &&String| *finalizer == FINALIZER;
        let is_held = seen.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
        let metadata = |finalizers: Vec<&str>| {
            Self::Finalizers(json!({
                "metadata": { "resourceVersion": seen.resource_version, "finalizers": finalizers },
            }))
        };
        let others = seen.finalizers.iter().filter(|finalizer| !is_ours(finalizer)).map(String::as_str);
        if seen.is_going {
            return is_held.then(|| metadata(others.collect()));
        }
        if !is_held {
            return Some(metadata(others.chain([FINALIZER]).collect()));
        }
        let status = opinion?.missing_in(seen, has_additions, now)?;
        let patch = json!({ "metadata": { "resourceVersion": seen.resource_version }, "status": status });
        Some(Self::Status { patch, has_additions })
    }

    /// Writes it.
    pub(super) async fn write(self, api: &Api<DynamicObject>, name: &str) -> Written {
        let mut params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let (outcome, has_additions) = match &self {
            Self::Finalizers(patch) => (in_time(api.patch(name, &params, &Patch::Merge(patch))).await, false),
            Self::Status { patch, has_additions } => {
                if *has_additions {
                    // Rather nothing than a part.
                    params.field_validation = Some(ValidationDirective::Strict);
                }
                (in_time(api.patch_status(name, &params, &Patch::Merge(patch))).await, *has_additions)
            }
        };
        match outcome {
            Ok(object) => {
                let resource_version = object.metadata.resource_version.unwrap_or_default();
                // Old API servers do not say what they leave out.
                if has_additions && object.data["status"]["conditions"].is_null() {
                    Written::Pruned { resource_version }
                } else {
                    Written::Done { resource_version }
                }
            }
            Err(kube::Error::Api(status)) => match status.code {
                400 | 422 if has_additions && status.message.contains("unknown field") => Written::Unknown,
                409 => Written::Overtaken,
                404 => Written::Gone,
                403 if is_about_rights(&status.message) => Written::Forbidden(kube::Error::Api(status)),
                _ => Written::Failed(kube::Error::Api(status)),
            },
            Err(error) => Written::Failed(error),
        }
    }
}

/// Whether a refusal is by our role, and not by an admission policy or webhook, which may refuse one object and
/// not another: authorizers say `… is forbidden: User "…" cannot patch resource "…"`.
fn is_about_rights(message: &str) -> bool {
    message.contains("cannot patch resource") || message.contains("cannot update resource")
}
