//! What is wrong with a pod.

use k8s_openapi::api::core::v1::{
    ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, PodSpec, PodStatus,
};

use crate::template::FUNCTION_CONTAINER;

/// Longer texts of the cluster are cut.
const LONGEST_TEXT: usize = 1500;
/// Who ends sooner after the start does so again the next time.
const START_SECONDS: i64 = 10;

/// What keeps a pod from coming up, or what it died of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What sort of trouble it is.
    pub kind: TroubleKind,
    /// The whole of it, with the cluster's own words.
    pub text: String,
    /// Whether trying again soon is of no use.
    pub lasting: bool,
}

/// A sort of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// An image cannot be pulled.
    PullFailed,
    /// No node has room for the pod.
    Unschedulable,
    /// A container could not be made or started.
    CreateFailed,
    /// A container ended.
    Crashed {
        /// How, if it is known.
        exit_code: Option<i32>,
    },
    /// A container needed more memory than it may have.
    OutOfMemory,
    /// The node does not keep the pod.
    Evicted,
    /// Nothing is heard of the pod's node.
    NodeLost,
}

/// The trouble of a pod, if there is any.
pub(super) fn of(pod: &PodSpec, status: &PodStatus) -> Option<Trouble> {
    given_up(status)
        .or_else(|| containers(pod, status).into_iter().find_map(Container::trouble))
        .or_else(|| unscheduled(status))
        .or_else(|| ended(status))
}

/// The cluster gave the whole pod up, and says why.
fn given_up(status: &PodStatus) -> Option<Trouble> {
    let reason = status.reason.as_deref().unwrap_or_default();
    let kind = match (status.phase.as_deref(), reason) {
        (_, "NodeLost") | (Some("Unknown"), _) => TroubleKind::NodeLost,
        (Some("Failed"), reason) if !reason.is_empty() => TroubleKind::Evicted,
        _ => return None,
    };
    let said = words(&[reason, status.message.as_deref().unwrap_or_default()]);
    let text = match kind {
        TroubleKind::NodeLost => format!("nothing is heard of its node ({said})"),
        _ => format!("its node did not keep it: {said}"),
    };
    Some(Trouble { kind, text, lasting: false })
}

fn unscheduled(status: &PodStatus) -> Option<Trouble> {
    let condition = status.conditions.iter().flatten().find(|condition| condition.type_ == "PodScheduled")?;
    let reason =
        condition.reason.as_deref().filter(|reason| condition.status == "False" && !reason.is_empty())?;
    let said = words(&[reason, condition.message.as_deref().unwrap_or_default()]);
    // A node may be added, or another pod go.
    let text = format!("no node takes it: {said}");
    Some(Trouble { kind: TroubleKind::Unschedulable, text, lasting: false })
}

/// The pod has ended, and nobody says why.
fn ended(status: &PodStatus) -> Option<Trouble> {
    let phase = status.phase.as_deref().filter(|phase| matches!(*phase, "Failed" | "Succeeded"))?;
    let said = words(&[phase, status.message.as_deref().unwrap_or_default()]);
    let text = format!("it has ended: {said}");
    Some(Trouble { kind: TroubleKind::Crashed { exit_code: None }, text, lasting: false })
}

/// Containers in the order in which they can keep the pod from running.
fn containers<'a>(pod: &'a PodSpec, status: &'a PodStatus) -> Vec<Container<'a>> {
    let mut containers = Vec::new();
    for status in status.init_container_statuses.iter().flatten() {
        let spec = pod.init_containers.iter().flatten().find(|spec| spec.name == status.name);
        // An init container that is restarted always stays beside the others, as a sidecar.
        let is_sidecar = spec.is_some_and(|spec| spec.restart_policy.as_deref() == Some("Always"));
        let role = if is_sidecar { Role::Beside } else { Role::Before };
        containers.push(Container { role, status, spec });
    }
    for status in status.container_statuses.iter().flatten() {
        let spec = pod.containers.iter().find(|spec| spec.name == status.name);
        let role = if status.name == FUNCTION_CONTAINER { Role::Function } else { Role::Beside };
        containers.push(Container { role, status, spec });
    }
    containers.sort_by_key(|container| container.role);
    containers
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// It must end well before the function's container starts.
    Before,
    Function,
    Beside,
}

#[derive(Debug, Clone, Copy)]
struct Container<'a> {
    role: Role,
    status: &'a ContainerStatus,
    spec: Option<&'a k8s_openapi::api::core::v1::Container>,
}

impl Container<'_> {
    fn trouble(self) -> Option<Trouble> {
        let state = self.status.state.as_ref();
        let last = self.status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        let waiting = state.and_then(|state| state.waiting.as_ref());
        let mut trouble = waiting
            .and_then(|waiting| self.waits(waiting))
            .or_else(|| {
                state.and_then(|state| state.terminated.as_ref()).or(last).and_then(|it| self.ended(it))
            })
            .or_else(|| waiting.and_then(|waiting| self.loops(waiting)))
            .or_else(|| self.restarted())?;
        // One that was started again may do better, save for the function's: its calls are lost.
        let runs = state.is_some_and(|state| state.running.is_some());
        trouble.lasting &= self.role == Role::Function || (self.role == Role::Before && !runs);
        Some(trouble)
    }

    /// It waits for something that failed.
    fn waits(self, waiting: &ContainerStateWaiting) -> Option<Trouble> {
        let reason = waiting.reason.as_deref()?;
        let message = waiting.message.as_deref().unwrap_or_default();
        let said = words(&[reason, message]);
        let name = &self.status.name;
        let (kind, text, lasting) = match reason {
            "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" | "ImageInspectError" => {
                let text =
                    format!("the image {:?} of container {name:?} cannot be pulled: {said}", self.image());
                (TroubleKind::PullFailed, text, is_refusal(message))
            }
            "ErrImageNeverPull" | "InvalidImageName" | "SignatureValidationFailed" => {
                let text =
                    format!("the image {:?} of container {name:?} cannot be used: {said}", self.image());
                (TroubleKind::PullFailed, text, true)
            }
            "CreateContainerConfigError"
            | "CreateContainerError"
            | "RunContainerError"
            | "PreCreateHookError"
            | "PreStartHookError"
            | "PostStartHookError" => {
                let text = format!("container {name:?} cannot be started: {said}");
                (TroubleKind::CreateFailed, text, !may_pass(message))
            }
            _ => return None,
        };
        Some(Trouble { kind, text, lasting })
    }

    /// It has ended although it should not.
    fn ended(self, end: &ContainerStateTerminated) -> Option<Trouble> {
        if end.exit_code == 0 && self.role != Role::Function {
            return None;
        }
        let name = &self.status.name;
        let reason = end.reason.as_deref().unwrap_or_default();
        let message = end.message.as_deref().unwrap_or_default();
        let said = words(&[reason, message]);
        Some(match reason {
            "OOMKilled" => {
                let limit = self.memory_limit().map_or_else(
                    || "it has no limit of its own, so the node was short of memory".to_owned(),
                    |limit| format!("its limit is {limit}"),
                );
                let text = format!("container {name:?} ran out of memory ({limit})");
                Trouble { kind: TroubleKind::OutOfMemory, text, lasting: ended_at_once(end) }
            }
            "StartError" | "ContainerCannotRun" => {
                let text = format!("container {name:?} cannot be started: {said}");
                Trouble { kind: TroubleKind::CreateFailed, text, lasting: !may_pass(message) }
            }
            "ContainerStatusUnknown" => {
                let text = format!("nothing is known of the end of container {name:?}: {said}");
                Trouble { kind: TroubleKind::NodeLost, text, lasting: false }
            }
            _ => {
                let code = end.exit_code;
                let signal = if code > 128 { format!(" (signal {})", code - 128) } else { String::new() };
                let text = format!("container {name:?} ended with exit code {code}{signal}: {said}");
                let kind = TroubleKind::Crashed { exit_code: Some(code) };
                Trouble { kind, text, lasting: ended_at_once(end) }
            }
        })
    }

    /// It is not started again for a while, and how it ended is not told.
    fn loops(self, waiting: &ContainerStateWaiting) -> Option<Trouble> {
        let reason = waiting.reason.as_deref().filter(|reason| *reason == "CrashLoopBackOff")?;
        let said = words(&[reason, waiting.message.as_deref().unwrap_or_default()]);
        let text = format!("container {:?} ends again and again: {said}", self.status.name);
        Some(Trouble { kind: TroubleKind::Crashed { exit_code: None }, text, lasting: true })
    }

    /// It was started again, and nothing is told of why.
    fn restarted(self) -> Option<Trouble> {
        if self.role != Role::Function || self.status.restart_count <= 0 {
            return None;
        }
        let text = format!("container {:?} was started again", self.status.name);
        Some(Trouble { kind: TroubleKind::Crashed { exit_code: None }, text, lasting: false })
    }

    fn image(&self) -> &str {
        let wanted = self.spec.and_then(|spec| spec.image.as_deref());
        wanted.unwrap_or(&self.status.image)
    }

    fn memory_limit(&self) -> Option<&str> {
        let limits = self.spec?.resources.as_ref()?.limits.as_ref()?;
        limits.get("memory").map(|limit| limit.0.as_str())
    }
}

/// Whether a container ended too soon after its start for a call to be the reason.
fn ended_at_once(end: &ContainerStateTerminated) -> bool {
    let (Some(started), Some(finished)) = (&end.started_at, &end.finished_at) else { return true };
    finished.0.as_second().saturating_sub(started.0.as_second()) < START_SECONDS
}

/// Whether a registry refused, rather than had trouble.
fn is_refusal(message: &str) -> bool {
    const REFUSALS: [&str; 13] = [
        "not found",
        "manifest unknown",
        "name unknown",
        "does not exist",
        "unauthorized",
        "not authorized",
        "authorization failed",
        "authentication required",
        "no basic auth credentials",
        "denied",
        "forbidden",
        "invalid",
        "no match for platform",
    ];
    !may_pass(message) && contains_any(message, &REFUSALS)
}

/// Whether an error is of the kind that passes.
fn may_pass(message: &str) -> bool {
    const PASSING: [&str; 17] = [
        "timeout",
        "timed out",
        "deadline exceeded",
        "dial tcp",
        "connection refused",
        "connection reset",
        "no route to host",
        "no such host",
        "network is unreachable",
        "temporar",
        "try again",
        "too many requests",
        "toomanyrequests",
        "internal server error",
        "bad gateway",
        "service unavailable",
        "unexpected eof",
    ];
    contains_any(message, &PASSING)
}

/// Looks at a message without the references and paths in it, which may be called anything.
fn contains_any(message: &str, phrases: &[&str]) -> bool {
    let words: Vec<_> = message.split_whitespace().filter(|word| !word.contains('/')).collect();
    let plain = words.join(" ").to_lowercase();
    phrases.iter().any(|phrase| plain.contains(phrase))
}

/// What the cluster says, on one line and not too long.
fn words(parts: &[&str]) -> String {
    let parts: Vec<_> =
        parts.iter().map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let parts: Vec<_> = parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    let text = parts.join(": ").replace(char::is_control, " ");
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
