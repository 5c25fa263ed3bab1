//! An image on disk: an OCI layout, which skopeo and others read.

use std::{collections::BTreeSet, fs, io, path::Path};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::{
    catalogue::{Image, PATH, USER, VERSION},
    layer::digest,
    time::Timestamp,
};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// The name of the image.
    pub name: &'static str,
    /// The digest of its manifest.
    pub digest: String,
    /// What a registry stores of it, in bytes.
    pub compressed: usize,
    /// What a node stores of it, in bytes.
    pub unpacked: u64,
}

/// Writes the image into its folder. What was there stays readable until the
/// new index takes its place; then what it does not need is removed.
pub fn write(
    image: &Image,
    architecture: &str,
    revision: Option<&str>,
    time: Timestamp,
    folder: &Path,
) -> anyhow::Result<Written> {
    let mut blobs = Blobs::open(folder)?;
    let layers = image.layers.iter().map(|layer| blobs.add(LAYER, &layer.compressed));
    let layers = layers.collect::<io::Result<Vec<_>>>()?;
    let labels = labels(image, revision, time);
    let config = config(image, architecture, &labels, time);
    let config = blobs.add(CONFIG, config.to_string().as_bytes())?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": layers,
        "annotations": labels,
    });
    let mut manifest = blobs.add(MANIFEST, manifest.to_string().as_bytes())?;
    manifest["platform"] = json!({ "architecture": architecture, "os": "linux" });
    let digest = manifest["digest"].as_str().unwrap_or_default().to_owned();

    let tagged = ["latest", VERSION].map(|tag| {
        let mut manifest = manifest.clone();
        manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
        manifest
    });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": tagged });
    replace(&folder.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    replace(&folder.join("index.json"), index.to_string().as_bytes())?;
    blobs.remove_others()?;

    let unpacked = image.layers.iter().map(|layer| layer.unpacked).sum();
    Ok(Written { name: image.name, digest, compressed: blobs.size, unpacked })
}

fn labels(image: &Image, revision: Option<&str>, time: Timestamp) -> Value {
    let mut labels = Map::new();
    let mut label = |name: &str, value: &str| {
        labels.insert(format!("org.opencontainers.image.{name}"), value.into());
    };
    label("created", &time.to_string());
    label("description", image.description);
    label("licenses", env!("CARGO_PKG_LICENSE"));
    if let Some(revision) = revision {
        label("revision", revision);
    }
    label("title", image.name);
    label("version", VERSION);
    Value::Object(labels)
}

fn config(image: &Image, architecture: &str, labels: &Value, time: Timestamp) -> Value {
    let created = time.to_string();
    let ports: Map<_, _> = image.ports.iter().map(|port| (format!("{port}/tcp"), json!({}))).collect();
    let diff_ids: Vec<_> = image.layers.iter().map(|layer| &layer.diff_id).collect();
    let history = image.layers.iter().map(|layer| json!({ "created": created, "created_by": layer.title }));
    json!({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": USER,
            "ExposedPorts": ports,
            "Env": [format!("PATH={PATH}")],
            "Entrypoint": [image.entrypoint],
            "Cmd": image.arguments,
            "WorkingDir": image.folder,
            "Labels": labels,
        },
        "rootfs": { "type": "layers", "diff_ids": diff_ids },
        "history": history.collect::<Vec<_>>(),
    })
}

/// The blobs of a layout.
struct Blobs<'a> {
    folder: &'a Path,
    names: BTreeSet<String>,
    size: usize,
}

impl<'a> Blobs<'a> {
    fn open(folder: &'a Path) -> io::Result<Self> {
        fs::create_dir_all(folder.join("blobs/sha256"))?;
        Ok(Self { folder, names: BTreeSet::new(), size: 0 })
    }

    /// Writes a blob and describes it.
    fn add(&mut self, kind: &str, bytes: &[u8]) -> io::Result<Value> {
        let digest = digest(bytes);
        let name = digest.trim_start_matches("sha256:").to_owned();
        replace(&self.folder.join("blobs/sha256").join(&name), bytes)?;
        if self.names.insert(name) {
            self.size += bytes.len();
        }
        Ok(json!({ "mediaType": kind, "digest": digest, "size": bytes.len() }))
    }

    /// Removes the blobs of what was here before.
    fn remove_others(&self) -> anyhow::Result<()> {
        let folder = self.folder.join("blobs/sha256");
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if !entry.file_name().to_str().is_some_and(|name| self.names.contains(name)) {
                fs::remove_file(entry.path()).with_context(|| entry.path().display().to_string())?;
            }
        }
        Ok(())
    }
}

/// Writes a file so that nobody ever sees half of it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)?;
    fs::rename(new, path)
}
