//! The images as they are on disk. Needs neither root nor any tool.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

mod common;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use common::{checkout, digests, stand_in, stand_ins};
use function_runner::builtin;
use images::{catalogue::FUNCTIONS, layer, time::Timestamp};
use serde_json::Value;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn blob(layout: &Path, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().unwrap();
    let bytes = fs::read(layout.join("blobs").join(digest.replace(':', "/"))).unwrap();
    assert_eq!(layer::digest(&bytes), digest);
    assert_eq!(descriptor["size"], bytes.len());
    bytes
}

#[test]
fn built_twice_they_have_the_same_digests() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = images::build(&stand_ins(first.path())).unwrap();
    let other = images::build(&stand_ins(second.path())).unwrap();
    assert_eq!(digests(&one), digests(&other));
    assert_eq!(one.len(), 7);
    // Into the folder where they are already, too.
    assert_eq!(digests(&images::build(&stand_ins(first.path())).unwrap()), digests(&one));
    let order = images::Order {
        time: Timestamp::from_source_date_epoch(Some("1")).unwrap(),
        ..stand_ins(first.path())
    };
    assert_ne!(digests(&images::build(&order).unwrap()), digests(&one));
}

#[test]
fn several_may_build_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let order = images::Order { rootfs: None, ..stand_ins(folder.path()) };
    std::thread::scope(|scope| {
        let builds = [(); 4].map(|()| scope.spawn(|| digests(&images::build(&order).unwrap())));
        let built = builds.map(|build| build.join().unwrap());
        assert!(built.iter().all(|digests| *digests == built[0]));
    });
}

#[test]
fn each_is_a_whole_layout_with_both_tags() {
    let folder = tempfile::tempdir().unwrap();
    let order = stand_ins(folder.path());
    for image in images::build(&order).unwrap() {
        let layout = order.out.join(image.name);
        assert_eq!(json(&layout.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
        let index = json(&layout.join("index.json"));
        let manifests = index["manifests"].as_array().unwrap();
        let tags: Vec<_> =
            manifests.iter().map(|each| &each["annotations"]["org.opencontainers.image.ref.name"]).collect();
        assert_eq!(tags, ["latest", env!("CARGO_PKG_VERSION")]);
        let mut blobs = BTreeSet::new();
        for descriptor in manifests {
            assert_eq!(descriptor["digest"], *image.digest);
            assert_eq!(descriptor["platform"]["architecture"], "amd64");
            let manifest: Value = serde_json::from_slice(&blob(&layout, descriptor)).unwrap();
            let config: Value = serde_json::from_slice(&blob(&layout, &manifest["config"])).unwrap();
            assert_eq!(config["architecture"], "amd64");
            assert_eq!(config["config"]["User"], "10001:10001");
            assert!(config["config"]["Env"][0].as_str().unwrap().ends_with(":/bin"));
            let crashes = image.name == "test-function-crashing";
            assert_eq!(config["config"]["Cmd"].as_array().unwrap().len(), usize::from(crashes));
            let labels = &config["config"]["Labels"];
            assert_eq!(labels["org.opencontainers.image.title"], image.name);
            assert_eq!(labels["org.opencontainers.image.revision"], "0123456789abcdef");
            let layers = manifest["layers"].as_array().unwrap();
            assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), layers.len());
            assert_eq!(config["history"].as_array().unwrap().len(), layers.len());
            blobs.extend(layers.iter().chain([&manifest["config"], descriptor]).map(|each| {
                let _ = blob(&layout, each);
                each["digest"].as_str().unwrap().trim_start_matches("sha256:").to_owned()
            }));
        }
        let stored: BTreeSet<_> = fs::read_dir(layout.join("blobs/sha256"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(stored, blobs);
    }
}

#[test]
fn what_is_no_longer_needed_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let order = stand_ins(folder.path());
    let count = || fs::read_dir(order.out.join("set-owner/blobs/sha256")).unwrap().count();
    images::build(&order).unwrap();
    let before = count();
    fs::write(order.programs.join("set-owner"), stand_in("another")).unwrap();
    fs::write(order.out.join("set-owner/blobs/sha256/left.new"), "by a build that was cut short").unwrap();
    images::build(&order).unwrap();
    assert_eq!(count(), before);
}

/// Fails unless all paths are the same file, which everybody may run.
fn assert_one_program(root: &Path, paths: &[&str], text: &str) {
    let places: BTreeSet<_> = paths
        .iter()
        .map(|path| {
            let path = root.join(path);
            let metadata = fs::symlink_metadata(&path).unwrap();
            assert!(metadata.is_file(), "{} is no plain file", path.display());
            assert_eq!(metadata.permissions().mode() & 0o7777, 0o755, "{}", path.display());
            assert_eq!(fs::read(&path).unwrap(), stand_in(text), "{}", path.display());
            metadata.ino()
        })
        .collect();
    assert_eq!(places.len(), 1, "{paths:?} are stored more than once");
}

#[test]
fn the_files_are_where_all_generations_of_manifests_look() {
    let folder = tempfile::tempdir().unwrap();
    let order = stand_ins(folder.path());
    images::build(&order).unwrap();
    let rootfs = order.rootfs.unwrap();
    for name in ["function-runner", "function-runner-example"] {
        let root = rootfs.join(name);
        let mut services = vec!["home/nonroot/server".to_owned(), "server".to_owned()];
        for place in ["home/nonroot/functions", "functions"] {
            services.extend(FUNCTIONS.iter().map(|function| format!("{place}/{function}")));
        }
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        assert_one_program(&root, &services, "function-runner");
        let probes = ["home/nonroot/grpc-health-probe", "grpc-health-probe"];
        assert_one_program(&root, &probes, "wrapper-server");
        for place in ["home/nonroot", ""] {
            let config = fs::read_to_string(root.join(place).join("config.yaml")).unwrap();
            assert_eq!(config.contains("example.com/set-owner:v1"), name.ends_with("-example"));
        }
    }
    let functions = ["home/nonroot/functions/set-owner", "functions/set-owner"];
    assert_one_program(&rootfs.join("function-runner-example"), &functions, "set-owner");
    let tools = [
        "bin/cp",
        "bin/sh",
        "home/nonroot/wrapper-server/grpc-health-probe",
        "home/nonroot/wrapper-server/wrapper-server",
        "wrapper-server/grpc-health-probe",
        "wrapper-server/wrapper-server",
    ];
    assert_one_program(&rootfs.join("wrapper-server"), &tools, "wrapper-server");
    assert_one_program(&rootfs.join("set-owner"), &["set-owner"], "set-owner");
}

#[test]
fn the_service_offers_every_function_it_has_as_an_executable() {
    let all = builtin::all();
    let mut names: Vec<_> = all.iter().flat_map(builtin::Builtin::names).collect();
    names.sort_unstable();
    assert_eq!(names, FUNCTIONS);
}

/// Name and images of each function of a configuration.
fn configured(text: &str) -> BTreeSet<(String, BTreeSet<String>)> {
    let content: Value = serde_saphyr::from_str(text).unwrap();
    let entries = content["functions"].as_array().unwrap().iter();
    let entry = |entry: &Value| {
        let images = entry["images"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&entry["function"]), images.map(text).collect())
    };
    entries.map(entry).collect()
}

#[test]
fn the_configurations_list_what_porchs_list() {
    let folder = tempfile::tempdir().unwrap();
    let order = stand_ins(folder.path());
    images::build(&order).unwrap();
    let root = order.rootfs.unwrap().join("function-runner");
    for (place, generation, functions, images) in [("home/nonroot", "v1.5.8", 10, 30), ("", "v1.5.3", 12, 25)]
    {
        let text = fs::read_to_string(root.join(place).join("config.yaml")).unwrap();
        let ours = configured(&text);
        assert_eq!(ours.len(), functions, "{generation}");
        assert_eq!(ours.iter().map(|(_, images)| images.len()).sum::<usize>(), images, "{generation}");
        for (function, _) in &ours {
            assert!(root.join(place).join("functions").join(function).is_file(), "{generation}: {function}");
        }
        let theirs = checkout().join("../shared/porch").join(generation).join("config.yaml");
        match fs::read_to_string(&theirs) {
            Ok(text) => assert_eq!(ours, configured(&text), "{generation}"),
            Err(_) => println!("{} is absent: it is not compared", theirs.display()),
        }
    }
}

/// Every executable that head's objects name is in the image, so that none of them is told an error.
#[test]
fn the_executables_of_porchs_objects_are_there() {
    let objects = checkout().join("../shared/porch/head/23-function-configurations.yaml");
    let Ok(text) = fs::read_to_string(&objects) else {
        println!("{} is absent: it is not tried", objects.display());
        return;
    };
    let paths: Vec<_> = text.lines().filter_map(|line| line.trim().strip_prefix("path: ")).collect();
    assert_eq!(paths.len(), 10, "{paths:?}");
    for path in paths {
        assert!(FUNCTIONS.contains(&path), "{path}");
    }
}

#[test]
fn all_have_users_authorities_and_a_place_for_temporary_files() {
    let folder = tempfile::tempdir().unwrap();
    let order = stand_ins(folder.path());
    for image in images::build(&order).unwrap() {
        let root = order.rootfs.as_ref().unwrap().join(image.name);
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        assert!(read("etc/passwd").contains("nonroot:x:10001:10001:nonroot:/home/nonroot:"));
        assert!(read("etc/group").contains("nonroot:x:10001:"));
        assert!(read("etc/ssl/certs/ca-certificates.crt").contains("BEGIN CERTIFICATE"));
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("tmp"), mode("home/nonroot"), mode("etc")), (0o1777, 0o755, 0o755));
    }
}

#[test]
fn programs_for_different_machines_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let order = stand_ins(folder.path());
    let mut other = stand_in("for arm64");
    other[18] = 183;
    fs::write(order.programs.join("set-owner"), other).unwrap();
    let error = images::build(&order).unwrap_err().to_string();
    assert!(error.contains("different machines"), "{error}");
}
