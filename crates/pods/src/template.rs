//! What function pods and their services are made from.
//!
//! A [`Template`] exists only if it is usable: it has one container for the function, that container
//! starts the wrapper server, and the service leads to it.

mod error;
mod inline;
mod read;
pub mod source;

use std::sync::Arc;

use api::ServiceTemplate;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Container, PodSpec, PodTemplate, PodTemplateSpec, ServiceSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

pub use error::{Problem, TemplateError};

/// The container that runs the function.
pub const FUNCTION_CONTAINER: &str = "function";
/// The init container that brings the wrapper server.
pub const WRAPPER_CONTAINER: &str = "copy-wrapper-server";
/// Where the wrapper server listens.
pub const WRAPPER_PORT: u16 = 9446;
/// The key of a ConfigMap that holds the pod.
pub const POD_KEY: &str = "template";
/// The key of a ConfigMap that holds the service.
pub const SERVICE_KEY: &str = "serviceTemplate";

/// What function pods may do where no template says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PodSecurity {
    /// What the pods of the original may.
    #[default]
    Porch,
    /// No more than a function needs.
    Restricted,
}

/// What function pods and their services are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Pods of another version are replaced.
    pub version: Arc<str>,
    /// What an operator should know about the template: it is used all the same.
    pub warnings: Vec<String>,
    /// Labels and annotations of pods.
    pub(crate) pod_metadata: ObjectMeta,
    /// The pod without the function's container.
    pub(crate) pod: PodSpec,
    /// The function's container, which comes first.
    pub(crate) function: Container,
    /// Labels and annotations of services.
    pub(crate) service_metadata: ObjectMeta,
    /// The service, but for its selector.
    pub(crate) service: ServiceSpec,
}

impl Template {
    /// The template that is used where there is no other.
    pub fn inline(wrapper_image: &str, security: PodSecurity) -> Self {
        Self {
            version: security.version().into(),
            warnings: Vec::new(),
            pod_metadata: ObjectMeta::default(),
            pod: security.pod(wrapper_image),
            function: security.function(),
            service_metadata: inline::service_metadata(),
            service: inline::service(),
        }
    }

    /// The template in a ConfigMap: a Pod under `template`, and a Service under `serviceTemplate`.
    ///
    /// Fields that Kubernetes does not know are passed over with a warning, and so is a missing service.
    pub fn from_config_map(map: &ConfigMap) -> Result<Self, TemplateError> {
        let origin = format!(
            "ConfigMap {}/{}",
            map.metadata.namespace.as_deref().unwrap_or_default(),
            map.metadata.name.as_deref().unwrap_or_default()
        );
        read::config_map(map).map_err(|problem| TemplateError { origin, problem })
    }

    /// The template in objects of their own. The wrapper's image is the given one, whatever they say.
    pub fn from_objects(
        pod: &PodTemplate,
        service: &ServiceTemplate,
        wrapper_image: &str,
    ) -> Result<Self, TemplateError> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let pod_name = pod.metadata.name.as_deref().unwrap_or_default();
        let service_name = service.metadata.name.as_deref().unwrap_or_default();
        let origin =
            format!("PodTemplate {namespace}/{pod_name} and ServiceTemplate {namespace}/{service_name}");
        read::objects(pod, service, wrapper_image).map_err(|problem| TemplateError { origin, problem })
    }

    /// The pod as a template of Kubernetes' own, for an operator to edit.
    pub(crate) fn to_pod_template(&self) -> PodTemplateSpec {
        let (mut pod, mut function) = (self.pod.clone(), self.function.clone());
        // The API server would choose one by the image that is there now, which is no function's.
        function.image_pull_policy.get_or_insert_with(|| "IfNotPresent".to_owned());
        pod.containers.insert(0, function);
        PodTemplateSpec { metadata: Some(self.pod_metadata.clone()), spec: Some(pod) }
    }
}
