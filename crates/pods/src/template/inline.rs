//! The templates that are used where there is no other: the original's, and a stricter one.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Capabilities, Container, EmptyDirVolumeSource, EnvVar, ExecAction, PodSecurityContext, PodSpec,
        Probe, ResourceRequirements, SeccompProfile, SecurityContext, ServicePort, ServiceSpec, Volume,
        VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use super::{FUNCTION_CONTAINER, PodSecurity, WRAPPER_CONTAINER, WRAPPER_PORT};

const TOOLS: &str = "wrapper-server-tools";
const TOOLS_FOLDER: &str = "/wrapper-server-tools";
const SCRATCH: &str = "tmp";

/// Longer than any call takes (Porch waits for 291 seconds), so that a pod that has to go can finish its calls.
const TERMINATION_GRACE_SECONDS: i64 = 300;

/// What the original writes on its Services, whoever reads it.
const UPSTREAM: (&str, &str) =
    ("internal.kpt.dev/upstream-identifier", "|Service|porch-system|function-runner");

impl PodSecurity {
    /// The version of pods made from this template. It changes only with the template: all pods are replaced then.
    /// That of the original's pods is the original's, so that those it left are up to date.
    pub fn version(self) -> &'static str {
        match self {
            Self::Porch => "inline-v1",
            Self::Restricted => "inline-restricted-v1",
        }
    }

    pub(super) fn pod(self, wrapper_image: &str) -> PodSpec {
        let pod = PodSpec {
            init_containers: Some(vec![self.copy_wrapper_server(wrapper_image)]),
            volumes: Some(vec![empty_folder(TOOLS)]),
            ..PodSpec::default()
        };
        match self {
            Self::Porch => pod,
            Self::Restricted => restricted_pod(pod),
        }
    }

    pub(super) fn function(self) -> Container {
        let function = Container {
            name: FUNCTION_CONTAINER.to_owned(),
            image: Some("replaced-by-the-function".to_owned()),
            command: Some(vec![format!("{TOOLS_FOLDER}/wrapper-server")]),
            env: Some(vec![
                variable("OTEL_METRICS_EXPORTER", "prometheus"),
                variable("OTEL_TRACES_EXPORTER", "none"),
                variable("OTEL_EXPORTER_PROMETHEUS_HOST", "0.0.0.0"),
            ]),
            volume_mounts: Some(vec![mount(TOOLS, TOOLS_FOLDER)]),
            ..Container::default()
        };
        match self {
            Self::Porch => Container { readiness_probe: Some(health_probe()), ..function },
            // No probe: it would only decide when the Service leads to its one pod, whose wrapper is up a moment
            // after its container and is asked by the runner itself.
            Self::Restricted => Container {
                volume_mounts: Some(vec![mount(TOOLS, TOOLS_FOLDER), mount(SCRATCH, "/tmp")]),
                ..confined(function)
            },
        }
    }

    fn copy_wrapper_server(self, image: &str) -> Container {
        let command = ["cp", "-a", "/home/nonroot/wrapper-server/.", TOOLS_FOLDER];
        let container = Container {
            name: WRAPPER_CONTAINER.to_owned(),
            image: Some(image.to_owned()),
            command: Some(command.map(str::to_owned).to_vec()),
            volume_mounts: Some(vec![mount(TOOLS, TOOLS_FOLDER)]),
            ..Container::default()
        };
        match self {
            Self::Porch => container,
            Self::Restricted => Container {
                // Any wrapper will do: it is not worth asking the registry at each start whether `latest` moved.
                image_pull_policy: Some("IfNotPresent".to_owned()),
                ..confined(container)
            },
        }
    }
}

fn restricted_pod(mut pod: PodSpec) -> PodSpec {
    pod.volumes.get_or_insert_default().push(empty_folder(SCRATCH));
    PodSpec {
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
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
        ..pod
    }
}

/// All that a function needs, nothing more. Images of any user run: the user is theirs to choose.
fn confined(container: Container) -> Container {
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
        ..container
    }
}

fn health_probe() -> Probe {
    let address = format!("localhost:{WRAPPER_PORT}");
    let command = vec![format!("{TOOLS_FOLDER}/grpc-health-probe"), "-addr".to_owned(), address];
    Probe { exec: Some(ExecAction { command: Some(command) }), ..Probe::default() }
}

pub(super) fn service_metadata() -> ObjectMeta {
    let (name, value) = UPSTREAM;
    ObjectMeta {
        annotations: Some(BTreeMap::from([(name.to_owned(), value.to_owned())])),
        ..ObjectMeta::default()
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
