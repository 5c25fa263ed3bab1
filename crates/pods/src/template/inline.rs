//! The template that is used where there is no other.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Capabilities, Container, EmptyDirVolumeSource, EnvVar, PodSecurityContext, PodSpec,
        ResourceRequirements, SeccompProfile, SecurityContext, ServicePort, ServiceSpec, Volume, VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use super::{FUNCTION_CONTAINER, WRAPPER_CONTAINER, WRAPPER_PORT};

/// The version of pods made from this template. It changes only with the template: all pods are replaced then.
pub const INLINE_VERSION: &str = "inline-v1";

const TOOLS: &str = "wrapper-server-tools";
const TOOLS_FOLDER: &str = "/wrapper-server-tools";
const SCRATCH: &str = "tmp";

/// Longer than any call takes (Porch waits for 291 seconds), so that a pod that has to go can finish its calls.
const TERMINATION_GRACE_SECONDS: i64 = 300;

pub(super) fn pod_metadata() -> ObjectMeta {
    ObjectMeta::default()
}

pub(super) fn pod(wrapper_image: &str) -> PodSpec {
    PodSpec {
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        init_containers: Some(vec![copy_wrapper_server(wrapper_image)]),
        // A pod whose wrapper ended has lost its calls and is replaced under another name, so that a
        // restarted one only costs time, and hides what the first one died of.
        restart_policy: Some("Never".to_owned()),
        security_context: Some(PodSecurityContext {
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
        volumes: Some(vec![empty_folder(TOOLS), empty_folder(SCRATCH)]),
        ..PodSpec::default()
    }
}

/// There is no readiness probe. It would only decide when the Service leads to its one pod, whose wrapper
/// is up a moment after its container and is asked by the runner itself, and it would cut that pod off
/// when a function leaves no time to answer it.
pub(super) fn function() -> Container {
    Container {
        name: FUNCTION_CONTAINER.to_owned(),
        image: Some("replaced-by-the-function".to_owned()),
        command: Some(vec![format!("{TOOLS_FOLDER}/wrapper-server")]),
        env: Some(vec![
            variable("OTEL_METRICS_EXPORTER", "prometheus"),
            variable("OTEL_TRACES_EXPORTER", "none"),
            variable("OTEL_EXPORTER_PROMETHEUS_HOST", "0.0.0.0"),
        ]),
        volume_mounts: Some(vec![mount(TOOLS, TOOLS_FOLDER), mount(SCRATCH, "/tmp")]),
        ..confined()
    }
}

fn copy_wrapper_server(image: &str) -> Container {
    let command = ["cp", "-a", "/home/nonroot/wrapper-server/.", TOOLS_FOLDER];
    Container {
        name: WRAPPER_CONTAINER.to_owned(),
        image: Some(image.to_owned()),
        command: Some(command.map(str::to_owned).to_vec()),
        // Any wrapper will do: it is not worth asking the registry at each start whether `latest` moved.
        image_pull_policy: Some("IfNotPresent".to_owned()),
        volume_mounts: Some(vec![mount(TOOLS, TOOLS_FOLDER)]),
        ..confined()
    }
}

/// Nothing a function needs, nothing more. Images of any user run: the user is theirs to choose.
fn confined() -> Container {
    Container {
        resources: Some(ResourceRequirements {
            requests: Some(BTreeMap::from([
                ("cpu".to_owned(), Quantity("10m".to_owned())),
                ("memory".to_owned(), Quantity("16Mi".to_owned())),
            ])),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            ..SecurityContext::default()
        }),
        // Our rights do not reach to the logs; with this, what a container said last is in its status.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

pub(super) fn service() -> ServiceSpec {
    let port = i32::from(WRAPPER_PORT);
    ServiceSpec {
        ports: Some(vec![ServicePort {
            port,
            protocol: Some("TCP".to_owned()),
            target_port: Some(IntOrString::Int(port)),
            ..ServicePort::default()
        }]),
        // The way to the pod is laid while it starts: the runner asks until the wrapper answers.
        publish_not_ready_addresses: Some(true),
        type_: Some("ClusterIP".to_owned()),
        ..ServiceSpec::default()
    }
}

fn variable(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.to_owned()), ..EnvVar::default() }
}

fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

fn empty_folder(name: &str) -> Volume {
    Volume { name: name.to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }
}
