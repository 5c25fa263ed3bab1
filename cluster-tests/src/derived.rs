//! An image of `make images` with one more program in it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};

/// Makes a layout of what is in another and a program, which takes the place of one that is there. Tells a tag that
/// changes with the content.
pub(crate) fn layout(base: &Path, name: &str, program: &Path, place: &str) -> (PathBuf, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Gone with the cluster; of each process and call its own.
    let cluster = PathBuf::from(env::var_os("CLUSTER_DIR").expect("inside the cluster"));
    let unique = format!("{name}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = cluster.join("images").join(unique);
    run("mkdir", &["-p", text(&folder)]);
    run("cp", &["-r", &format!("{}/.", base.display()), text(&folder)]);
    let root = folder.join("root");
    run("install", &["-D", "-m", "755", text(program), text(&root.join(place))]);
    let tar = folder.join("layer.tar");
    let owner = ["--owner=0", "--group=0", "--mtime=@0", "--sort=name"];
    let files = ["-C", text(&root), "-cf", text(&tar), place];
    run("tar", &[&owner[..], &files[..]].concat());

    let index = read(&folder.join("index.json"));
    let mut manifest = read(&blob(&folder, &index["manifests"][0]["digest"]));
    let mut config = read(&blob(&folder, &manifest["config"]["digest"]));
    let layer = store(&folder, &fs::read(&tar).unwrap(), "layer.v1.tar");
    push(&mut config["rootfs"]["diff_ids"], layer["digest"].clone());
    push(&mut config["history"], json!({"created_by": "another program"}));
    push(&mut manifest["layers"], layer);
    manifest["config"] = store(&folder, config.to_string().as_bytes(), "config.v1+json");
    let manifest = store(&folder, manifest.to_string().as_bytes(), "manifest.v1+json");
    let tag = manifest["digest"].as_str().unwrap().trim_start_matches("sha256:")[..12].to_owned();
    fs::write(folder.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string())
        .unwrap();
    (folder, tag)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn read(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap()
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().expect("a list").push(item);
}

fn blob(folder: &Path, digest: &Value) -> PathBuf {
    folder.join("blobs").join(digest.as_str().expect("a digest").replace(':', "/"))
}

/// Stores content under its digest; its descriptor.
fn store(folder: &Path, content: &[u8], kind: &str) -> Value {
    let file = folder.join("content");
    fs::write(&file, content).unwrap();
    let digest = run("sha256sum", &[text(&file)]);
    let digest = Value::from(format!("sha256:{}", digest.split(' ').next().unwrap()));
    fs::rename(&file, blob(folder, &digest)).unwrap();
    let kind = format!("application/vnd.oci.image.{kind}");
    json!({"mediaType": kind, "digest": digest, "size": content.len()})
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
