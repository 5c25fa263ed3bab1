//! The programs as `make build` leaves them, run from the files of the images.
//! Not inside them, which would take root.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

mod common;

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use common::{checkout, stand_ins};
use images::Order;

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
    let output = Command::new(root.join("server"))
        .args(["eval", "--image", image])
        .arg(format!("--config={}", root.join("config.yaml").display()))
        .arg(format!("--functions={}", root.join("functions").display()))
        .stdin(File::open(checkout().join("examples/resources.yaml")).unwrap())
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
