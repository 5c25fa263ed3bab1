//! Templates from what operators wrote.

use api::ServiceTemplate;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Container, Pod, PodSpec, PodTemplate, Service, ServiceSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    FUNCTION_CONTAINER, POD_KEY, Problem, SERVICE_KEY, Template, WRAPPER_CONTAINER, WRAPPER_PORT, inline,
};
use crate::yaml;

/// A ConfigMap has no more.
const LARGEST: usize = 1 << 20;
/// Enough to see what is wrong.
const MOST_WARNINGS: usize = 10;

pub(super) fn config_map(map: &ConfigMap) -> Result<Template, Problem> {
    let text = |key| map.data.as_ref().and_then(|data| data.get(key)).map(String::as_str);
    let mut warnings = Vec::new();
    let pod: Pod = decode(POD_KEY, "Pod", text(POD_KEY).ok_or(Problem::NoKey(POD_KEY))?, &mut warnings)?;
    let service: Service = match text(SERVICE_KEY) {
        Some(text) => decode(SERVICE_KEY, "Service", text, &mut warnings)?,
        None => {
            warnings
                .push(format!("there is no key {SERVICE_KEY:?}: services are made as without a template"));
            let metadata = inline::service_metadata();
            Service { metadata, spec: Some(inline::service()), ..Service::default() }
        }
    };
    let (pod_spec, function) = checked_pod(pod.spec)?;
    Ok(Template {
        version: map.metadata.resource_version.as_deref().unwrap_or_default().into(),
        pod_metadata: inherited(&pod.metadata),
        pod: pod_spec,
        function,
        service_metadata: inherited(&service.metadata),
        service: checked_service(service.spec, &mut warnings)?,
        warnings,
    })
}

pub(super) fn objects(
    pod: &PodTemplate,
    service: &ServiceTemplate,
    wrapper_image: &str,
) -> Result<Template, Problem> {
    let body = pod.template.clone().unwrap_or_default();
    let mut warnings = Vec::new();
    let (mut pod_spec, function) = checked_pod(body.spec)?;
    if let Some(container) = wrapper_container(&mut pod_spec) {
        container.image = Some(wrapper_image.to_owned());
    }
    Ok(Template {
        version: pod.metadata.resource_version.as_deref().unwrap_or_default().into(),
        pod_metadata: inherited(&body.metadata.unwrap_or_default()),
        pod: pod_spec,
        function,
        service_metadata: ObjectMeta::default(),
        service: checked_service(service.template.spec.clone(), &mut warnings)?,
        warnings,
    })
}

/// The one that brings the wrapper: by its name, or else the first.
fn wrapper_container(pod: &mut PodSpec) -> Option<&mut Container> {
    let containers = pod.init_containers.as_mut()?;
    let named = containers.iter().position(|container| container.name == WRAPPER_CONTAINER);
    containers.get_mut(named.unwrap_or(0))
}

/// The pod's other containers, and the function's.
fn checked_pod(pod: Option<PodSpec>) -> Result<(PodSpec, Container), Problem> {
    let mut pod = pod.ok_or(Problem::NoPod)?;
    let is_function = |container: &mut Container| container.name == FUNCTION_CONTAINER;
    let mut functions: Vec<Container> = pod.containers.extract_if(.., is_function).collect();
    if functions.len() > 1 {
        return Err(Problem::ManyFunctions(functions.len()));
    }
    let function = functions.pop().ok_or_else(|| Problem::NoFunction(names(&pod.containers)))?;
    if function.command.as_ref().is_none_or(Vec::is_empty) {
        return Err(Problem::NoCommand);
    }
    if function.args.iter().flatten().any(|argument| argument == "--") {
        return Err(Problem::Separator);
    }
    Ok((pod, function))
}

fn checked_service(service: Option<ServiceSpec>, warnings: &mut Vec<String>) -> Result<ServiceSpec, Problem> {
    let mut service = service.unwrap_or_else(|| {
        warnings.push("the service has no spec: services are made as without a template".to_owned());
        inline::service()
    });
    if let Some(kind @ "ExternalName") = service.type_.as_deref() {
        return Err(Problem::ServiceType(kind.to_owned()));
    }
    if !service.ports.iter().flatten().any(|port| port.port == i32::from(WRAPPER_PORT)) {
        return Err(Problem::NoPort);
    }
    // An address belongs to one service only; without any there would be none to reach the pod at.
    if service.cluster_ip.take().is_some_and(|address| !address.is_empty()) {
        warnings.push("the service's clusterIP is left out: each service gets its own".to_owned());
    }
    service.cluster_ips = None;
    Ok(service)
}

fn names(containers: &[Container]) -> String {
    if containers.is_empty() {
        return "no container at all".to_owned();
    }
    let names: Vec<_> = containers.iter().take(10).map(|container| format!("{:?}", container.name)).collect();
    names.join(", ")
}

/// What pods and services take over from a template's metadata.
fn inherited(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        ..ObjectMeta::default()
    }
}

/// Reads an object as leniently as people write: what is a boolean or a number where text is wanted is
/// taken as text, and unknown fields only make a warning.
fn decode<T: DeserializeOwned + Serialize>(
    key: &'static str,
    kind: &'static str,
    text: &str,
    warnings: &mut Vec<String>,
) -> Result<T, Problem> {
    if text.len() > LARGEST {
        return Err(Problem::TooLarge { key, size: text.len(), limit: LARGEST });
    }
    let object: T = yaml::read(text).map_err(|cause| Problem::Invalid { key, kind, cause })?;
    let given = yaml::read::<Value>(text);
    if let (Ok(given), Ok(understood)) = (given, serde_json::to_value(&object)) {
        let mut unknown = Vec::new();
        collect_unknown(&given, &understood, "", &mut unknown);
        let fields = unknown.iter().map(String::as_str);
        warnings.extend(
            // Its keys may be any text.
            fields.map(|field| {
                format!("{} under {key:?} is no field of a {kind} and passed over", field.escape_debug())
            }),
        );
    }
    Ok(object)
}

/// The fields that are given but did not come through.
fn collect_unknown(given: &Value, understood: &Value, path: &str, unknown: &mut Vec<String>) {
    match (given, understood) {
        (Value::Object(given), Value::Object(understood)) => {
            for (name, value) in given {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match understood.get(name) {
                    Some(understood) => collect_unknown(value, understood, &path, unknown),
                    None if value.is_null() => {}
                    None if unknown.len() < MOST_WARNINGS => unknown.push(path),
                    None => {}
                }
            }
        }
        (Value::Array(given), Value::Array(understood)) => {
            for (index, (given, understood)) in given.iter().zip(understood).enumerate() {
                collect_unknown(given, understood, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}
