//! What the tests share.

pub(crate) mod dns;
pub(crate) mod http;
pub(crate) mod tokens;

use std::path::Path;
use std::time::Duration;

use registry::{
    AllowedImages, Keychain, Metadata, Options, Platform, PrivateOptions, Proxies, Reference, Registry,
    RegistryError, RegistryErrorKind, Resolver,
};
pub(crate) use testing::registry::{RealRegistry, certificates, docker_config, images};
use tokio::time::Instant;

/// Asks no proxy and knows no credentials.
pub(crate) fn options() -> Options {
    Options {
        keychain: Keychain::none(),
        private: None,
        insecure_registries: Vec::new(),
        mirrors: Vec::new(),
        allowed: AllowedImages::default(),
        platform: Platform::linux("amd64"),
        proxies: Proxies::none(),
        resolver: Resolver::default(),
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
    client.metadata(&image(text), within(120)).await
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
