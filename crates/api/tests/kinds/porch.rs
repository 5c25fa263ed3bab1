//! Porch's own definitions and objects, where they are at hand.

use std::{collections::BTreeSet, fs, path::PathBuf};

use api::{File, definitions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use super::DEFAULT_PREFIX;

fn porch(file: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/porch/head").join(file);
    let text = fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("not tried, as it is not here: {}", path.display());
    }
    text
}

/// That whatever is valid under `theirs` is valid under `ours` and means the same.
fn assert_at_least_as_wide(path: &str, ours: &JSONSchemaProps, theirs: &JSONSchemaProps) {
    let is_either = |schema: &JSONSchemaProps| schema.x_kubernetes_int_or_string == Some(true);
    assert!(ours.type_ == theirs.type_ && is_either(ours) == is_either(theirs), "{path}: another type");
    assert_eq!(ours.default, theirs.default, "{path}: another default");
    assert_eq!(ours.nullable.unwrap_or(false), theirs.nullable.unwrap_or(false), "{path}: another null");
    assert!(ours.pattern.is_none() || ours.pattern == theirs.pattern, "{path}: another pattern");
    assert!(ours.format.is_none() || ours.format == theirs.format, "{path}: another format");
    assert!(ours.enum_.is_none() || ours.enum_ == theirs.enum_, "{path}: other values");
    for (ours, theirs) in [(ours.min_length, theirs.min_length), (ours.min_items, theirs.min_items)]
        .map(|(a, b)| (a.unwrap_or(0), b.unwrap_or(0)))
    {
        assert!(ours <= theirs, "{path}: asks for more");
    }
    let bounds = [ours.max_length, ours.max_items, ours.max_properties, ours.min_properties];
    assert!(
        bounds.iter().all(Option::is_none) && ours.minimum.is_none() && ours.maximum.is_none(),
        "{path}: bounds"
    );
    let required =
        |schema: &JSONSchemaProps| schema.required.iter().flatten().cloned().collect::<BTreeSet<_>>();
    assert!(required(ours).is_subset(&required(theirs)), "{path}: asks for {:?}", ours.required);
    let rules = |schema: &JSONSchemaProps| {
        let rules = schema.x_kubernetes_validations.iter().flatten();
        rules.map(|rule| rule.rule.clone()).collect::<BTreeSet<_>>()
    };
    assert!(rules(ours).is_subset(&rules(theirs)), "{path}: has rules of its own");
    assert_eq!(ours.x_kubernetes_map_type, theirs.x_kubernetes_map_type, "{path}: merged otherwise");
    let list_type = |schema: &JSONSchemaProps| {
        schema.x_kubernetes_list_type.clone().unwrap_or_else(|| "atomic".to_owned())
    };
    assert_eq!(list_type(ours), list_type(theirs), "{path}: merged otherwise");
    assert_eq!(
        ours.x_kubernetes_list_map_keys, theirs.x_kubernetes_list_map_keys,
        "{path}: merged otherwise"
    );

    for (name, theirs) in theirs.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        let ours = ours.properties.as_ref().and_then(|properties| properties.get(name));
        assert_at_least_as_wide(&path, ours.unwrap_or_else(|| panic!("{path} is missing")), theirs);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(theirs)) = &theirs.items {
        let Some(JSONSchemaPropsOrArray::Schema(ours)) = &ours.items else { panic!("{path}: no entries") };
        assert_at_least_as_wide(&format!("{path}[]"), ours, theirs);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(theirs)) = &theirs.additional_properties {
        let Some(JSONSchemaPropsOrBool::Schema(ours)) = &ours.additional_properties else {
            panic!("{path}: no fields of any name")
        };
        assert_at_least_as_wide(&format!("{path}.*"), ours, theirs);
    }
}

#[test]
fn whatever_is_valid_under_porchs_definitions_is_valid_under_ours() {
    let files = ["crd-functionconfigs.yaml", "crd-servicetemplates.yaml"];
    for (ours, file) in definitions().into_iter().zip(files) {
        let Some(text) = porch(file) else { continue };
        let theirs: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(ours.metadata.name, theirs.metadata.name);
        let (mut ours, mut theirs) = (ours.spec, theirs.spec);
        assert_eq!((&ours.group, &ours.scope), (&theirs.group, &theirs.scope));
        // The API server makes up a name for lists, which is the same.
        theirs.names.list_kind = None;
        assert_eq!(ours.names, theirs.names);
        assert_eq!((ours.versions.len(), theirs.versions.len()), (1, 1));
        let (ours, theirs) = (ours.versions.remove(0), theirs.versions.remove(0));
        assert_eq!((&ours.name, ours.served, ours.storage), (&theirs.name, theirs.served, theirs.storage));
        assert_eq!(ours.subresources, theirs.subresources);
        for column in theirs.additional_printer_columns.iter().flatten() {
            assert!(ours.additional_printer_columns.as_ref().unwrap().contains(column), "{column:?}");
        }
        let ours = ours.schema.unwrap().open_api_v3_schema.unwrap();
        let mut theirs = theirs.schema.unwrap().open_api_v3_schema.unwrap();
        // Every object has these, whether a definition tells or not.
        for name in ["apiVersion", "kind", "metadata"] {
            theirs.properties.as_mut().unwrap().remove(name).unwrap();
        }
        assert_at_least_as_wide(&ours.type_.clone().unwrap(), &ours, &theirs);
    }
}

#[test]
fn porchs_objects_are_understood() {
    let Some(text) = porch("23-function-configurations.yaml") else { return };
    let file = File::parse(text.as_bytes(), DEFAULT_PREFIX);
    assert_eq!((file.problems, file.remarks), (Vec::new(), Vec::new()));
    assert_eq!(file.objects.len(), text.matches("kind: FunctionConfig").count());
    for object in &file.objects {
        let rules = object.rules.as_ref().unwrap();
        assert_eq!(rules.image, object.name);
        // "" and the default prefix mean the same.
        let places: Vec<_> = rules.places.iter().map(|prefix| prefix.as_ref().unwrap().to_string()).collect();
        assert_eq!(places, [DEFAULT_PREFIX], "{}", object.name);
        let pod = rules.pod.as_ref().unwrap();
        assert_eq!(pod.time_to_live.unwrap().as_secs(), 1800);
        assert_eq!(pod.versions.len(), 1);
    }
    let set_namespace = file.objects.iter().find(|object| object.name == "set-namespace").unwrap();
    let rules = set_namespace.rules.as_ref().unwrap();
    assert_eq!(rules.first_name("").unwrap().as_given(), format!("{DEFAULT_PREFIX}/set-namespace"));
    let tags = |rules: &[api::TagRule]| rules.iter().map(|rule| rule.text.clone()).collect::<Vec<_>>();
    assert_eq!(tags(&rules.pod.as_ref().unwrap().versions), ["v0.4.1"]);
    let binary = rules.binary.as_ref().unwrap();
    assert_eq!(
        (binary.path.to_str().unwrap(), tags(&binary.versions)),
        ("set-namespace", vec!["v0.4.2".into()])
    );
    let go = rules.go.as_ref().unwrap();
    assert_eq!((&*go.id, tags(&go.versions)), ("set-namespace", vec!["v0.4".into(), "v0.4.5".into()]));
}

#[test]
fn porchs_other_objects_are_passed_over() {
    let Some(text) = porch("22-function-templates.yaml") else { return };
    let file = File::parse(text.as_bytes(), DEFAULT_PREFIX);
    assert!(file.problems.is_empty() && file.objects.is_empty());
    let remarks: Vec<_> = file.remarks.iter().map(ToString::to_string).collect();
    assert_eq!(
        remarks,
        [
            "line 15: an object of kind \"PodTemplate\" in \"v1\" is passed over",
            "line 63: an object of kind \"ServiceTemplate\" in \"config.porch.kpt.dev/v1alpha1\" is passed over",
        ]
    );
}
