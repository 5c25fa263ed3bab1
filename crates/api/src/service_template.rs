//! `ServiceTemplate`: what the Service of a function pod is made from.

use k8s_openapi::{
    Metadata, NamespaceResourceScope, Resource,
    api::core::v1::ServiceSpec,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceDefinition, CustomResourceDefinitionNames, CustomResourceDefinitionSpec,
        CustomResourceDefinitionVersion, CustomResourceSubresourceStatus, CustomResourceSubresources,
        CustomResourceValidation,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::schema::StructuralSchemaRewriter;
use schemars::{
    JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema, transform::AddNullable,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{API_VERSION, GROUP, VERSION};

/// What the Services of function pods are made from.
///
/// Its content stands beside the metadata, as in Kubernetes' own `PodTemplate`, not under `spec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceTemplate {
    /// Always `config.porch.kpt.dev/v1alpha1`.
    #[serde(default)]
    #[schemars(skip)]
    pub api_version: String,
    /// Always `ServiceTemplate`.
    #[serde(default)]
    #[schemars(skip)]
    pub kind: String,
    /// The object's own metadata.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The Service to be.
    pub template: ServiceTemplateBody,
}

/// A Service to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceTemplateBody {
    /// Its metadata, which is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub metadata: Option<ObjectMeta>,
    /// Its ports, selector and type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<ServiceSpec>,
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

impl ServiceTemplate {
    /// A template in a namespace.
    pub fn new(namespace: &str, name: &str, template: ServiceTemplateBody) -> Self {
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        Self { api_version: API_VERSION.to_owned(), kind: Self::KIND.to_owned(), metadata, template }
    }

    /// The definition of the kind. The derive macro for such makes one for kinds with a `spec` only.
    pub(crate) fn definition() -> CustomResourceDefinition {
        let generator = SchemaSettings::openapi3()
            .with(|settings| {
                settings.inline_subschemas = true;
                settings.meta_schema = None;
            })
            .with_transform(AddNullable::default())
            .with_transform(StructuralSchemaRewriter)
            .into_generator();
        let schema = serde_json::from_value(generator.into_root_schema_for::<Self>().into()).ok();
        let version = CustomResourceDefinitionVersion {
            name: VERSION.to_owned(),
            served: true,
            storage: true,
            schema: Some(CustomResourceValidation { open_api_v3_schema: schema }),
            subresources: Some(CustomResourceSubresources {
                status: Some(CustomResourceSubresourceStatus(json!({}))),
                ..CustomResourceSubresources::default()
            }),
            ..CustomResourceDefinitionVersion::default()
        };
        let names = CustomResourceDefinitionNames {
            kind: Self::KIND.to_owned(),
            plural: Self::URL_PATH_SEGMENT.to_owned(),
            singular: Some("servicetemplate".to_owned()),
            ..CustomResourceDefinitionNames::default()
        };
        let spec = CustomResourceDefinitionSpec {
            group: GROUP.to_owned(),
            names,
            scope: "Namespaced".to_owned(),
            versions: vec![version],
            ..CustomResourceDefinitionSpec::default()
        };
        let name = Some(format!("{}.{GROUP}", Self::URL_PATH_SEGMENT));
        CustomResourceDefinition {
            metadata: ObjectMeta { name, ..ObjectMeta::default() },
            spec,
            ..CustomResourceDefinition::default()
        }
    }
}

impl Resource for ServiceTemplate {
    const API_VERSION: &'static str = API_VERSION;
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = "ServiceTemplate";
    const VERSION: &'static str = VERSION;
    const URL_PATH_SEGMENT: &'static str = "servicetemplates";
    type Scope = NamespaceResourceScope;
}

impl Metadata for ServiceTemplate {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
