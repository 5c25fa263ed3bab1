//! `function-runner validate`.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

use super::common::PROGRAM;

const FINE: &str = "\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: FunctionConfig
metadata:
  name: one
spec:
  image: one
  podExecutor:
    tags: [v1]
";

fn validate(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("validate").args(arguments).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn what_is_fine_is_told_to_be_fine() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("objects.yaml"), FINE).unwrap();
    fs::write(folder.path().join("config.yaml"), "functions: [{function: f, images: [example.com/f:v1]}]")
        .unwrap();
    fs::write(folder.path().join("cache.yaml"), "example.com/f:v1: 30m\n").unwrap();
    fs::write(folder.path().join("notes.txt"), "{{{").unwrap();
    fs::write(folder.path().join("other.yaml"), "apiVersion: v1\nkind: ConfigMap\n").unwrap();
    let output = validate(folder.path(), &["objects.yaml", "config.yaml", "cache.yaml"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        text(&output.stdout),
        "objects.yaml: 1 FunctionConfigs\nconfig.yaml: a config.yaml with 1 images\ncache.yaml: a pod-cache-config with 1 functions\n"
    );
    let output = validate(folder.path(), &["."]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout).lines().count(), 5, "{output:?}");
    assert!(
        text(&output.stdout)
            .contains("./other.yaml: line 1: an object of kind \"ConfigMap\" in \"v1\" is passed over")
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let folder = TempDir::new().unwrap();
    let other = FINE
        .replace("tags: [v1]", "tags: [v1]\n    timeToLive: soon\n    colour: red")
        .replace("name: one", "name: two");
    for (name, content, told) in [
        (
            "objects.yaml",
            format!("{FINE}---\n{other}"),
            vec![
                "objects.yaml: line 18: FunctionConfig \"two\": spec.podExecutor.timeToLive: \"soon\": not a duration",
                "objects.yaml: line 19: FunctionConfig \"two\": spec.podExecutor.colour: is not known to this release",
                "objects.yaml: 2 FunctionConfigs, 2 problems",
                "the FunctionConfig \"two\" in objects.yaml, line 10: spec.podExecutor.tags: the FunctionConfig \"one\" in objects.yaml configures …/one:v1 already",
            ],
        ),
        ("syntax.yaml", "a: [1\n".to_owned(), vec!["syntax.yaml: line 1: "]),
        (
            "config.yaml",
            "functions:\n- function: f\n  images:\n  - example.com/f:v1\n  - not an image\n".to_owned(),
            vec![
                "config.yaml: line 5: an image of function \"f\" is left out: ",
                "config.yaml: a config.yaml with 1 images, 1 problems",
            ],
        ),
        ("config2.yaml", "functions:\n- functio: f\n".to_owned(), vec!["config2.yaml: ", "line 2"]),
        (
            "cache.yaml",
            "- name: example.com/f:v1\n  timeToLive: soon\n".to_owned(),
            vec!["cache.yaml: line 2, example.com/f:v1: timeToLive \"soon\" is left to the flags"],
        ),
        ("nothing.yaml", "a: 1\n".to_owned(), vec!["nothing.yaml: line 1: this is no object of Kubernetes"]),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
        let output = validate(folder.path(), &[name]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        for told in told {
            assert!(text(&output.stderr).contains(told), "{told:?} is not in {}", text(&output.stderr));
        }
    }
    let empty = TempDir::new().unwrap();
    for (arguments, code, told) in [
        (&["missing.yaml"][..], 1, "missing.yaml: No such file"),
        (&["."], 1, "there is no YAML or JSON file in it"),
        (&[], 2, "name the files to check"),
        (&["--default-image-prefix=/", "."], 2, "default-image-prefix"),
    ] {
        let output = validate(empty.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output.stderr).contains(told), "{output:?}");
    }
}

#[test]
fn porchs_own_files_are_fine() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/porch");
    if !shared.is_dir() {
        return;
    }
    for file in [
        "head/23-function-configurations.yaml",
        "head/22-function-templates.yaml",
        "v1.5.3/config.yaml",
        "v1.5.8/config.yaml",
    ] {
        let output = validate(&shared, &[file]);
        assert!(output.status.success(), "{file}: {output:?}");
    }
}
