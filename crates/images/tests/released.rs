//! The programs as `make build` leaves them, run from the files of the images.
//! Not inside them, which would take root.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where its set-up fails"
)]

mod common;

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use common::{checkout, stand_ins};
use function_runner::builtin;
use images::{Order, catalogue};

/// The files of all images, made of the released programs.
fn unpacked(folder: &Path) -> PathBuf {
    let programs = Path::new(env!("CARGO_BIN_EXE_images")).parent().unwrap().with_file_name("release");
    let program = programs.join("function-runner");
    assert!(program.exists(), "there is no {}: run `make build` first", program.display());
    let order = Order { programs, ..stand_ins(folder) };
    images::build(&order).unwrap();
    order.rootfs.unwrap()
}

/// Calls the example function with the files of one layout.
fn evaluate(root: &Path, image: &str) -> (bool, String) {
    evaluate_over(root, image, File::open(checkout().join("examples/resources.yaml")).unwrap())
}

fn evaluate_over(root: &Path, image: &str, input: File) -> (bool, String) {
    let output = Command::new(root.join("server"))
        .args(["eval", "--image", image])
        .arg(format!("--config={}", root.join("config.yaml").display()))
        .arg(format!("--functions={}", root.join("functions").display()))
        .stdin(input)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn they_work_from_both_layouts() {
    let folder = tempfile::tempdir().unwrap();
    let root = unpacked(folder.path());
    for place in ["home/nonroot", ""] {
        let (good, text) =
            evaluate(&root.join("function-runner-example").join(place), "example.com/set-owner:v1");
        assert!(good && text.contains("example.com/owner: team-a"), "{text}");
        let (good, text) = evaluate(&root.join("function-runner").join(place), "example.com/set-owner:v1");
        assert!(!good && text.contains("not found"), "{text}");
    }
    for place in ["home/nonroot/wrapper-server", "wrapper-server"] {
        let tools = folder.path().join("tools").join(place);
        fs::create_dir_all(&tools).unwrap();
        let wrapper = root.join("wrapper-server");
        // As the init container does it, with the `cp` of the image.
        let copied = Command::new(wrapper.join("bin/cp"))
            .args(["-a", &format!("{}/.", wrapper.join(place).display())])
            .arg(&tools)
            .status()
            .unwrap();
        assert!(copied.success());
        for name in ["wrapper-server", "grpc-health-probe"] {
            assert!(fs::symlink_metadata(tools.join(name)).unwrap().is_file());
            let help = Command::new(tools.join(name)).arg("--help").output().unwrap();
            assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains(name));
        }
        let once = |name| fs::metadata(tools.join(name)).unwrap().ino();
        assert_eq!(once("wrapper-server"), once("grpc-health-probe"), "copied twice");
    }
}

/// What every function finds something to do on.
const ITEMS: &str = r#"items:
- apiVersion: kpt.dev/v1
  kind: Kptfile
  metadata:
    name: example
    annotations:
      internal.config.kubernetes.io/path: Kptfile
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings
    annotations:
      config.kubernetes.io/local-config: "true"
  data: {image: httpd}
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: the-deployment
  spec:
    replicas: 4 # kpt-set: ${nginx-replicas}
    template:
      spec:
        containers:
        - name: web
          image: nginx:1.16.1
"#;

/// A list with a functionConfig that the function understands.
fn input_for(folder: &Path, function: &str) -> File {
    let builtin = builtin::find(function).unwrap_or_else(|| panic!("{function} is no function"));
    let config: String = builtin.example().lines().flat_map(|line| ["  ", line, "\n"]).collect();
    let path = folder.join(function);
    let head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n";
    fs::write(&path, format!("{head}functionConfig:\n{config}{ITEMS}")).unwrap();
    File::open(path).unwrap()
}

#[test]
fn every_image_that_porchs_answer_is_answered_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let root = unpacked(folder.path()).join("function-runner");
    for (place, count, unlisted) in [
        ("home/nonroot", 30, "ghcr.io/kptdev/krm-functions-catalog/set-image:v0.1.1"),
        ("", 25, "gcr.io/kpt-fn/set-image:v0.1.1"),
    ] {
        let root = root.join(place);
        let text = fs::read_to_string(root.join("config.yaml")).unwrap();
        let mut function = "";
        let mut answered = 0;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("- function: ") {
                function = name;
            } else if let Some(image) = line.strip_prefix("- ") {
                let (good, text) = evaluate_over(&root, image, input_for(folder.path(), function));
                assert!(good && text.contains("kind: ResourceList"), "{image}: {text}");
                answered += 1;
            }
        }
        assert_eq!(answered, count);
        let (good, text) = evaluate(&root, unlisted);
        assert!(!good && text.contains("not found"), "{text}");
    }
}

#[test]
fn every_executable_is_a_function() {
    for function in catalogue::FUNCTIONS {
        assert!(builtin::find(function).is_some(), "{function}");
    }
}

#[test]
fn a_customised_template_may_copy_by_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let image = unpacked(folder.path()).join("wrapper-server");
    let tools = folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let script = format!("cp -a {}/. {}", image.join("wrapper-server").display(), tools.display());
    let copied = Command::new(image.join("bin/sh")).args(["-c", &script]).output().unwrap();
    assert!(copied.status.success(), "{copied:?}");
    for name in ["wrapper-server", "grpc-health-probe"] {
        assert!(tools.join(name).is_file(), "{name}");
    }
}
