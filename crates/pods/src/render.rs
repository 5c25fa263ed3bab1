//! Makes the objects of the cluster from a template.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, LocalObjectReference, Pod, PodSpec, Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{
    settings::{ContainerOverrides, Overrides},
    template::{PodSecurity, Template},
};

/// The label that leads from a service to its pod. Its value is the pod's id.
pub const IMAGE_LABEL: &str = "fn.kpt.dev/image";
/// The annotation with the version of the template a pod was made from.
pub const TEMPLATE_VERSION: &str = "fn.kpt.dev/template-version";
/// The annotation with the version of the settings a pod was made with.
pub const SETTINGS_VERSION: &str = "fn.kpt.dev/settings-version";
/// The annotation with the time, in seconds since 1970, until which a pod is kept.
pub const RECLAIM_AFTER: &str = "fn.kpt.dev/reclaim-after";
/// The label with a Service's own name, by a convention of many tools.
const NAME_LABEL: &str = "app.kubernetes.io/name";
/// Who makes and changes our objects, as the API server records it.
pub const FIELD_MANAGER: &str = "krm-function-runner";

/// Lets the cluster be made smaller: pods that go are made again elsewhere.
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// The pod that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct PodRequest<'a> {
    /// Its id.
    pub id: &'a str,
    /// Whether it is called as its id is, or the API server adds something to that.
    pub exact_name: bool,
    /// Where it is to be.
    pub namespace: &'a str,
    /// The function's image.
    pub image: &'a str,
    /// The function's command: entrypoint and arguments of the image.
    pub arguments: &'a [String],
    /// What replaces parts of the template.
    pub overrides: &'a Overrides,
    /// What to write on the pod, apart from the template's version.
    pub annotations: &'a BTreeMap<String, String>,
    /// The largest message the wrapper takes, in bytes.
    pub max_message: usize,
    /// Where the wrapper listens.
    pub port: u16,
    /// The secret to pull the image with.
    pub pull_secret: Option<&'a str>,
}

/// The pod for a function.
pub fn pod(template: &Template, request: &PodRequest<'_>) -> Pod {
    let mut metadata = template.pod_metadata.clone();
    metadata.namespace = Some(request.namespace.to_owned());
    if request.exact_name {
        metadata.name = Some(request.id.to_owned());
    } else {
        metadata.generate_name = Some(format!("{}-", request.id));
    }
    label(&mut metadata, IMAGE_LABEL, request.id);
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.entry(SAFE_TO_EVICT.to_owned()).or_insert_with(|| "true".to_owned());
    annotations.insert(TEMPLATE_VERSION.to_owned(), template.version.to_string());
    annotations.extend(request.annotations.iter().map(|(name, value)| (name.clone(), value.clone())));

    let mut pod = template.pod.clone();
    if let Some(secret) = request.pull_secret {
        add_pull_secret(&mut pod, secret);
    }
    pod.containers.insert(0, function(template, request));
    override_pod(&mut pod, request.overrides, &*template.version == PodSecurity::Restricted.version());
    Pod { metadata, spec: Some(pod), status: None }
}

/// The service for the pod of this id.
pub fn service(template: &Template, id: &str, namespace: &str) -> Service {
    let mut metadata = template.service_metadata.clone();
    metadata.name = Some(id.to_owned());
    metadata.namespace = Some(namespace.to_owned());
    label(&mut metadata, NAME_LABEL, id);
    let mut service = template.service.clone();
    service.selector.get_or_insert_default().insert(IMAGE_LABEL.to_owned(), id.to_owned());
    Service { metadata, spec: Some(service), status: None }
}

fn label(metadata: &mut ObjectMeta, name: &str, value: &str) {
    metadata.labels.get_or_insert_default().insert(name.to_owned(), value.to_owned());
}

fn function(template: &Template, request: &PodRequest<'_>) -> Container {
    let mut container = template.function.clone();
    container.image = Some(request.image.to_owned());
    let arguments = container.args.get_or_insert_default();
    // No other flags: the wrapper of another release may be in the template's image.
    arguments.extend(["--port".to_owned(), request.port.to_string()]);
    arguments.extend(["--max-request-body-size".to_owned(), request.max_message.to_string()]);
    arguments.push("--".to_owned());
    arguments.extend_from_slice(request.arguments);
    container
}

fn add_pull_secret(pod: &mut PodSpec, name: &str) {
    let secrets = pod.image_pull_secrets.get_or_insert_default();
    if !secrets.iter().any(|secret| secret.name == name) {
        secrets.push(LocalObjectReference { name: name.to_owned() });
    }
}

fn override_pod(pod: &mut PodSpec, overrides: &Overrides, is_ours: bool) {
    let Overrides { service_account, security_context, init_container, container } = overrides;
    if let Some(account) = service_account.as_ref().filter(|account| !account.is_empty()) {
        pod.service_account_name = Some(account.clone());
        // The same field under its old name, which must not say something else.
        pod.service_account = None;
        if is_ours {
            // Nobody said in a template that the account's token is not to be used.
            pod.automount_service_account_token = None;
        }
    }
    if let Some(context) = security_context {
        pod.security_context = Some(context.clone());
    }
    if let Some(first) = pod.init_containers.as_mut().and_then(|containers| containers.first_mut()) {
        override_container(first, init_container);
    }
    if let Some(function) = pod.containers.first_mut() {
        override_container(function, container);
    }
}

fn override_container(container: &mut Container, overrides: &ContainerOverrides) {
    let ContainerOverrides { resources, env, env_from } = overrides;
    if let Some(resources) = resources {
        let target = container.resources.get_or_insert_default();
        replace(&mut target.requests, resources.requests.as_ref());
        replace(&mut target.limits, resources.limits.as_ref());
        replace(&mut target.claims, resources.claims.as_ref());
    }
    replace(&mut container.env, env.as_ref());
    replace(&mut container.env_from, env_from.as_ref());
}

fn replace<T: Clone>(target: &mut Option<T>, replacement: Option<&T>) {
    if let Some(replacement) = replacement {
        *target = Some(replacement.clone());
    }
}
