use super::*;

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  project-id: foo\n";
const KPTFILE: &str = "apiVersion: kpt.dev/v1\nkind: Kptfile # mine\nmetadata:\n  name: package\n";
const BUCKET: &str =
    "apiVersion: storage.cnrm.cloud.google.com/v1beta1\nkind: StorageBucket\nmetadata:\n  name: b\n";

fn at(resource: &str, path: &str) -> String {
    let annotation = format!("  annotations:\n    internal.config.kubernetes.io/path: {path}\n");
    resource.replacen("metadata:\n", &format!("metadata:\n{annotation}"), 1)
}

#[test]
fn a_kptfile_without_setters_gets_them() {
    let mutators = "pipeline:\n  mutators:\n  - image: gcr.io/kpt-fn/apply-setters:v0.2\n    configMap:\n      project-id: foo\n";
    becomes("set-project-id", CONFIG, &[KPTFILE], &[&format!("{KPTFILE}{mutators}")]);
    let other = format!("{KPTFILE}pipeline:\n  mutators:\n  - image: set-labels # first\n");
    let after = format!(
        "{other}  - image: gcr.io/kpt-fn/apply-setters:v0.2\n    configMap:\n      project-id: foo\n"
    );
    becomes("set-project-id", CONFIG, &[&other], &[&after]);
}

#[test]
fn setters_are_set_where_they_are_missing_or_empty() {
    let kptfile = |setters: &str| {
        format!(
            "{KPTFILE}pipeline:\n  mutators:\n  - image: example.com/apply-setters:v1\n    configMap:\n{setters}"
        )
    };
    let before = kptfile("      a: b # stays\n");
    becomes("set-project-id", CONFIG, &[&before], &[&format!("{before}      project-id: foo\n")]);
    becomes(
        "set-project-id",
        CONFIG,
        &[&kptfile("      project-id: \"\" # here\n")],
        &[&kptfile("      project-id: \"foo\" # here\n")],
    );
    let present = kptfile("      project-id: bar\n");
    becomes("set-project-id", CONFIG, &[&present], &[&present]);
}

#[test]
fn setters_may_be_in_a_file_beside_the_kptfile() {
    let pipeline = "pipeline:\n  mutators:\n  - image: apply-setters\n    configPath: setters.yaml\n";
    let root = at(&format!("{KPTFILE}{pipeline}"), "Kptfile");
    let sub = at(&format!("{KPTFILE}{pipeline}"), "sub/Kptfile");
    let setters = |path: &str| at("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: setters\n", path);
    let (in_root, in_sub) = (setters("setters.yaml"), setters("sub/setters.yaml"));
    let data = "data:\n  project-id: foo\n";
    becomes(
        "set-project-id",
        CONFIG,
        &[&root, &sub, &in_root, &format!("{in_sub}data:\n  project-id: bar\n")],
        &[&root, &sub, &format!("{in_root}{data}"), &format!("{in_sub}data:\n  project-id: bar\n")],
    );
    let said = failure("set-project-id", CONFIG, &[&root]);
    assert_eq!(
        said,
        "failed to set project-id setter: error updating Kptfile: failed to find setter file: file setters.yaml \
         doesn't exist, please ensure the file specified in \"configPath\" exists and retry\n"
    );
}

#[test]
fn resources_of_config_connector_get_the_annotation() {
    let present = format!(
        "{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters\n    configMap: {{project-id: x}}\n"
    );
    let with =
        |value: &str| format!("{BUCKET}  annotations:\n    cnrm.cloud.google.com/project-id: {value}\n");
    let core = BUCKET.replace("storage.cnrm", "core.cnrm");
    let other = BUCKET.replace("storage.cnrm.cloud.google.com/v1beta1", "v1");
    becomes(
        "set-project-id",
        CONFIG,
        &[&present, BUCKET, &with("bar"), &core, &other],
        &[&present, &with("foo"), &with("bar"), &core, &other],
    );
}

#[test]
fn what_cannot_be_done_is_told() {
    let said = failure("set-project-id", CONFIG, &[BUCKET]);
    assert!(said.contains("unable to find Kptfile, please include --include-meta-resources"), "{said}");
    for config in
        ["apiVersion: v1\nkind: ConfigMap\n", "apiVersion: v1\nkind: ConfigMap\ndata: {project-id: ''}\n"]
    {
        let said = failure("set-project-id", config, &[KPTFILE]);
        assert_eq!(said, "`data.project-id` of the functionConfig must not be empty\n");
    }
    let nothing = format!("{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters\n");
    let said = failure("set-project-id", CONFIG, &[&nothing]);
    assert!(said.contains("unable to find `ConfigMap` or `configPath`"), "{said}");
    for odd in ["pipeline: x\n", "pipeline:\n  mutators: x\n"] {
        let said = failure("set-project-id", CONFIG, &[&format!("{KPTFILE}{odd}")]);
        assert!(said.contains("expected a "), "{said}");
    }
}

#[test]
fn older_names_are_the_same_functions() {
    for (name, older) in [("apply-setters", "apply-setters-v1"), ("set-namespace", "set-namespace-v3")] {
        assert_eq!(functions::find(older).unwrap().name, name);
    }
}
