//! The definitions that clusters are told.

use std::{fs, path::PathBuf};

use api::{FunctionConfig, FunctionConfigSpec, definitions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

#[allow(dead_code, unreachable_pub, reason = "of a program, only its files are of interest")]
#[path = "../../examples/generate.rs"]
mod generate;

#[test]
fn the_generated_files_are_up_to_date() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let mut names = Vec::new();
    for (name, text) in generate::files().unwrap() {
        let there = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(there == text, "deploy/crds/{name} is out of date: run `make generate`");
        // What is written is what was meant.
        let read: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        let meant =
            definitions().into_iter().find(|definition| name.starts_with(&definition.spec.names.plural));
        assert_eq!(Some(read), meant, "{name}");
        names.push(name);
    }
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut there: Vec<_> = files.filter(|name| name != "kustomization.yaml").collect();
    there.sort();
    assert_eq!(there, names, "files that nothing generates");
}

/// All schemas within a schema, with the way to them.
fn all<'a>(path: &str, schema: &'a JSONSchemaProps, found: &mut Vec<(String, &'a JSONSchemaProps)>) {
    found.push((path.to_owned(), schema));
    for (name, property) in schema.properties.iter().flatten() {
        all(&format!("{path}.{name}"), property, found);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        all(&format!("{path}[]"), items, found);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        all(&format!("{path}.*"), values, found);
    }
}

#[test]
fn the_schemas_keep_the_api_servers_rules() {
    for definition in definitions() {
        let kind = definition.spec.names.kind.clone();
        let schema = definition.spec.versions[0].schema.clone().unwrap().open_api_v3_schema.unwrap();
        let mut found = Vec::new();
        all(&kind, &schema, &mut found);
        assert!(found.len() > 30, "{kind}");
        for (path, schema) in found {
            assert!(
                schema.type_.is_some() || schema.x_kubernetes_int_or_string == Some(true),
                "{path} has no type"
            );
            let combined = [&schema.any_of, &schema.all_of, &schema.one_of];
            assert!(combined.iter().all(|list| list.is_none()) && schema.not.is_none(), "{path} is combined");
            assert!(schema.ref_path.is_none() && schema.definitions.is_none(), "{path} refers elsewhere");
            assert_ne!(schema.nullable, Some(true), "{path}");
            // A field that is told by its value must be there.
            for key in schema.x_kubernetes_list_map_keys.iter().flatten() {
                let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items else { panic!("{path}") };
                let is_required = items.required.iter().flatten().any(|name| name == key);
                let has_default = items.properties.as_ref().unwrap()[key].default.is_some();
                assert!(is_required || has_default, "{path}: {key}");
            }
        }
    }
}

#[test]
fn people_see_what_is_in_force() {
    let [definition, _] = definitions();
    let version = &definition.spec.versions[0];
    let columns: Vec<_> =
        version.additional_printer_columns.iter().flatten().map(|column| &*column.name).collect();
    assert_eq!(
        columns,
        ["Server Applied", "FnRunner Applied", "Controller Applied", "Ready", "Reason", "Message"]
    );
    let root = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    let spec = &root.properties.as_ref().unwrap()["spec"];
    let rules = spec.x_kubernetes_validations.as_ref().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].rule, "has(self.podExecutor) || has(self.binaryExecutor) || has(self.goExecutor)");
    assert!(rules[0].message.as_ref().unwrap().contains("at least one"));
    let pod = &spec.properties.as_ref().unwrap()["podExecutor"].properties.as_ref().unwrap();
    assert_eq!(pod["timeToLive"].default.as_ref().unwrap().0, "30m");
    // Nothing of ours is asked for.
    assert!(spec.properties.as_ref().unwrap()["podExecutor"].required.is_none());
}

#[test]
fn the_type_writes_no_more_than_it_was_given() {
    let spec = FunctionConfigSpec { image: "f".to_owned(), ..FunctionConfigSpec::default() };
    let object = serde_json::to_value(FunctionConfig::new("f", spec)).unwrap();
    let expected = serde_json::json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "FunctionConfig",
        "metadata": { "name": "f" },
        "spec": { "image": "f" },
    });
    assert_eq!(object, expected);
}
