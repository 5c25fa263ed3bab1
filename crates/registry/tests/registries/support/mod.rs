//! What the tests share.

pub(crate) mod certificates;
pub(crate) mod http;
pub(crate) mod images;
pub(crate) mod real_registry;
pub(crate) mod tokens;

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use registry::{
    Keychain, Metadata, Options, Platform, PrivateOptions, Proxies, Reference, Registry, RegistryError,
    RegistryErrorKind,
};
use tokio::time::Instant;

/// Asks no proxy and knows no credentials.
pub(crate) fn options() -> Options {
    Options {
        keychain: Keychain::none(),
        private: None,
        insecure_registries: Vec::new(),
        mirrors: Vec::new(),
        platform: Platform::linux("amd64"),
        proxies: Proxies::none(),
    }
}

pub(crate) fn client() -> Registry {
    Registry::new(options()).unwrap()
}

pub(crate) fn private(keychain: Keychain, ca_folder: Option<&Path>) -> Registry {
    let private = PrivateOptions { keychain, ca_folder: ca_folder.map(Path::to_owned) };
    Registry::new(Options { private: Some(private), ..options() }).unwrap()
}

pub(crate) fn image(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

pub(crate) fn within(seconds: u64) -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(seconds))
}

pub(crate) async fn inspect(client: &Registry, text: &str) -> Result<Metadata, RegistryError> {
    client.metadata(&image(text), within(20)).await
}

/// The error of an image that must not be read, checked for what every error must have.
pub(crate) async fn refusal(
    client: &Registry,
    text: &str,
    kind: RegistryErrorKind,
    part: &str,
) -> RegistryError {
    let error = inspect(client, text).await.expect_err(text);
    let message = error.to_string();
    assert_eq!(error.kind(), kind, "{message}");
    assert!(message.contains(part), "{part:?} is not in: {message}");
    assert!(message.contains(text) && !error.remedy().is_empty(), "{message}");
    assert!(message.len() < 2000 && !message.chars().any(char::is_control), "{message:?}");
    error
}

/// A Docker config with one entry.
pub(crate) fn docker_config(file: &Path, registry: &str, user: &str, password: &str) {
    let auth = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    std::fs::write(file, serde_json::json!({"auths": {registry: {"auth": auth}}}).to_string()).unwrap();
}
