//! Images made for a test, and how they get into a registry.

use std::fmt::Write;

use base64::Engine;
use serde_json::{Value, json};

pub(crate) const OCI: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const DOCKER: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(crate) const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// A manifest and the configuration it names.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) kind: &'static str,
    pub(crate) manifest: Vec<u8>,
    pub(crate) config: Vec<u8>,
    pub(crate) architecture: String,
}

pub(crate) fn digest(content: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, content);
    hash.as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

impl Image {
    pub(crate) fn new(kind: &'static str, architecture: &str) -> Self {
        let config = json!({
            "os": "linux", "architecture": architecture, "rootfs": {"type": "layers", "diff_ids": []},
            "config": {
                "Entrypoint": ["/bin/function", architecture], "Cmd": ["--flag"], "User": "65532:65532",
                "Env": ["PATH=/bin", "A=b c"], "WorkingDir": "/work", "Labels": null,
            },
        });
        Self::with_config(kind, architecture, config.to_string())
    }

    pub(crate) fn with_config(kind: &'static str, architecture: &str, config: impl Into<Vec<u8>>) -> Self {
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

    pub(crate) fn digest(&self) -> String {
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
pub(crate) fn index(kind: &str, images: &[&Image]) -> Vec<u8> {
    let mut manifests: Vec<Value> = images.iter().map(|image| image.described()).collect();
    let mut attestation = manifests[0].clone();
    attestation["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
    manifests.insert(0, attestation);
    json!({"schemaVersion": 2, "mediaType": kind, "manifests": manifests}).to_string().into_bytes()
}

/// Puts images into an open registry.
pub(crate) struct Pusher {
    client: reqwest::Client,
    host: String,
}

impl Pusher {
    pub(crate) fn new(host: &str) -> Self {
        // A second test of this process finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { client: reqwest::Client::builder().no_proxy().build().unwrap(), host: host.to_owned() }
    }

    pub(crate) async fn image(&self, repository: &str, tag: &str, image: &Image) {
        let uploads = format!("http://{}/v2/{repository}/blobs/uploads/", self.host);
        let begun = self.client.post(&uploads).send().await.unwrap();
        let place = begun.headers()["location"].to_str().unwrap().to_owned();
        let put = format!("{place}&digest={}", digest(&image.config));
        let done = self.client.put(put).body(image.config.clone()).send().await.unwrap();
        assert_eq!(done.status(), 201, "{}", done.text().await.unwrap());
        self.manifest(repository, tag, image.kind, &image.manifest).await;
    }

    pub(crate) async fn manifest(&self, repository: &str, tag: &str, kind: &str, manifest: &[u8]) {
        let place = format!("http://{}/v2/{repository}/manifests/{tag}", self.host);
        let put = self.client.put(place).header("content-type", kind).body(manifest.to_vec());
        let done = put.send().await.unwrap();
        assert_eq!(done.status(), 201, "{}", done.text().await.unwrap());
    }
}

pub(crate) fn base64url(content: impl AsRef<[u8]>) -> String {
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(content)
}
