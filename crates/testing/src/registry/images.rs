//! Images made for a test, and how they get into a registry.

use std::fmt::Write;

use serde_json::{Value, json};

/// A manifest of the Open Container Initiative.
pub const OCI: &str = "application/vnd.oci.image.manifest.v1+json";
/// An index of theirs.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// A manifest of Docker.
pub const DOCKER: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// An index of theirs.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// A manifest and the configuration it names.
#[derive(Debug, Clone)]
pub struct Image {
    /// Its media type.
    pub kind: &'static str,
    /// The manifest.
    pub manifest: Vec<u8>,
    /// The configuration.
    pub config: Vec<u8>,
    /// What it is for.
    pub architecture: String,
}

/// The digest of a content.
pub fn digest(content: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, content);
    hash.as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

impl Image {
    /// An image with entrypoint, command, user, variables and working folder.
    pub fn new(kind: &'static str, architecture: &str) -> Self {
        let config = json!({
            "os": "linux", "architecture": architecture, "rootfs": {"type": "layers", "diff_ids": []},
            "config": {
                "Entrypoint": ["/bin/function", architecture], "Cmd": ["--flag"], "User": "65532:65532",
                "Env": ["PATH=/bin", "A=b c"], "WorkingDir": "/work", "Labels": null,
            },
        });
        Self::with_config(kind, architecture, config.to_string())
    }

    /// An image of this configuration.
    pub fn with_config(kind: &'static str, architecture: &str, config: impl Into<Vec<u8>>) -> Self {
        let config = config.into();
        let config_kind = if kind == OCI {
            "application/vnd.oci.image.config.v1+json"
        } else {
            "application/vnd.docker.container.image.v1+json"
        };
        let manifest = json!({
            "schemaVersion": 2, "mediaType": kind, "layers": [],
            "config": {"mediaType": config_kind, "digest": digest(&config), "size": config.len()},
        });
        let manifest = manifest.to_string().into_bytes();
        Self { kind, manifest, config, architecture: architecture.to_owned() }
    }

    /// The digest of the manifest.
    pub fn digest(&self) -> String {
        digest(&self.manifest)
    }

    fn described(&self) -> Value {
        json!({
            "mediaType": self.kind, "digest": self.digest(), "size": self.manifest.len(),
            "platform": {"os": "linux", "architecture": self.architecture},
        })
    }
}

/// An index over images, with an attestation among them as build tools make it.
pub fn index(kind: &str, images: &[&Image]) -> Vec<u8> {
    let mut manifests: Vec<Value> = images.iter().map(|image| image.described()).collect();
    let mut attestation = manifests[0].clone();
    attestation["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
    manifests.insert(0, attestation);
    json!({"schemaVersion": 2, "mediaType": kind, "manifests": manifests}).to_string().into_bytes()
}

/// Puts images into an open registry.
#[derive(Debug)]
pub struct Pusher {
    client: reqwest::Client,
    host: String,
}

impl Pusher {
    /// For the open registry at this host.
    pub fn new(host: &str) -> Self {
        // A second test of this process finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { client: reqwest::Client::builder().no_proxy().build().unwrap(), host: host.to_owned() }
    }

    /// Puts an image there.
    pub async fn image(&self, repository: &str, tag: &str, image: &Image) {
        let uploads = format!("http://{}/v2/{repository}/blobs/uploads/", self.host);
        let begun = self.client.post(&uploads).send().await.unwrap();
        let place = begun.headers()["location"].to_str().unwrap().to_owned();
        let put = format!("{place}&digest={}", digest(&image.config));
        let done = self.client.put(put).body(image.config.clone()).send().await.unwrap();
        assert_eq!(done.status(), 201, "{}", done.text().await.unwrap());
        self.manifest(repository, tag, image.kind, &image.manifest).await;
    }

    /// Puts a manifest there that names what is there already.
    pub async fn manifest(&self, repository: &str, tag: &str, kind: &str, manifest: &[u8]) {
        let place = format!("http://{}/v2/{repository}/manifests/{tag}", self.host);
        let put = self.client.put(place).header("content-type", kind).body(manifest.to_vec());
        let done = put.send().await.unwrap();
        assert_eq!(done.status(), 201, "{}", done.text().await.unwrap());
    }
}
