//! Real registries: Debian's `docker-registry`, images to put into it, certificates and credentials for it.

pub mod certificates;
pub mod images;
mod server;

use std::path::Path;

use base64::Engine;

pub use server::RealRegistry;

/// A password, and the line of `htpasswd -B` that lets user `me` in with it.
pub const FIRST_PASSWORD: (&str, &str) =
    ("first-password", "me:$2y$04$abcdefghijklmnopqrstuuT2j8U6U5rBY6aIOMzZiJOWuJPYKLLOe\n");
/// Another password of the same user.
pub const SECOND_PASSWORD: (&str, &str) =
    ("second-password", "me:$2y$04$abcdefghijklmnopqrstuukluLair1GoPMg9PQfjHAu2MGkeVdhk2\n");

/// Writes a Docker config with one entry.
pub fn docker_config(file: &Path, registry: &str, user: &str, password: &str) {
    let auth = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    std::fs::write(file, serde_json::json!({"auths": {registry: {"auth": auth}}}).to_string()).unwrap();
}
