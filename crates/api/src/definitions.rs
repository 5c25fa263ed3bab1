//! The definitions of the kinds, as clusters are told of them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::{FunctionConfig, ServiceTemplate};

/// How Kubernetes writes quantities.
pub(crate) const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The definitions of all kinds.
pub fn definitions() -> [CustomResourceDefinition; 2] {
    let mut definitions = [FunctionConfig::crd(), ServiceTemplate::definition()];
    for version in definitions.iter_mut().flat_map(|definition| &mut definition.spec.versions) {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            schema.title = None;
            // Porch's definition asks for no spec either.
            schema.required.take_if(|required| required == &["spec"]);
            complete("", schema);
        }
    }
    definitions
}

/// Adds what the types of Kubernetes do not tell of themselves: defaults, the form of quantities, and how lists
/// and maps are merged. Removes that values may be null, which the API server would else keep in place of a
/// default.
fn complete(name: &str, schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    if let Some(description) = &mut schema.description
        && !["\n\n", "\n "].iter().any(|paragraph| description.contains(paragraph))
    {
        *description = description.replace('\n', " ");
    }
    match name {
        "claims" => keyed(schema, &["name"]),
        "conditions" | "executors" => keyed(schema, &["type"]),
        "ports" => keyed(schema, &["port", "protocol"]),
        "protocol" => schema.default = Some(JSON(json!("TCP"))),
        "configMapKeyRef" | "configMapRef" | "fieldRef" | "fileKeyRef" | "resourceFieldRef"
        | "secretKeyRef" | "secretRef" | "selector" => {
            schema.x_kubernetes_map_type = Some("atomic".to_owned());
        }
        "divisor" => schema.pattern = Some(QUANTITY.to_owned()),
        _ => {}
    }
    for (property, schema) in schema.properties.iter_mut().flatten() {
        match (name, property.as_str()) {
            ("configMapKeyRef" | "configMapRef" | "secretKeyRef" | "secretRef", "name") => {
                schema.default = Some(JSON(json!("")));
            }
            ("fileKeyRef", "optional") => schema.default = Some(JSON(json!(false))),
            _ => {}
        }
        complete(property, schema);
    }
    if let (Some(required), Some(properties)) = (&mut schema.required, &schema.properties) {
        required.retain(|name| properties.get(name).is_none_or(|property| property.default.is_none()));
    }
    schema.required.take_if(|required| required.is_empty());
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        complete("", items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        if matches!(name, "limits" | "requests") {
            values.pattern = Some(QUANTITY.to_owned());
        }
        complete("", values);
    }
}

/// Entries of the list are told apart, and merged, by these fields.
fn keyed(schema: &mut JSONSchemaProps, keys: &[&str]) {
    schema.x_kubernetes_list_type = Some("map".to_owned());
    schema.x_kubernetes_list_map_keys = Some(keys.iter().copied().map(str::to_owned).collect());
}
