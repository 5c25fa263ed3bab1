//! Which images a key is for, and which of several keys is used.

use serde_json::{Map, Value, json};

use crate::{Folder, image};

/// The key that is used, of entries with these keys.
async fn used(keys: &[&str], text: &str) -> Option<String> {
    let auths: Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), json!({"username": "u", "password": "p"}))).collect();
    let folder = Folder::with(&json!({ "auths": auths }));
    let login = folder.keychain().lookup(&image(text)).await.unwrap();
    login.map(|login| login.entry().to_owned())
}

#[tokio::test]
async fn one_key() {
    for (key, text, expected) in [
        // Those of the Kubernetes documentation.
        ("*.kubernetes.io", "kubernetes.io/app", false),
        ("*.kubernetes.io", "abc.kubernetes.io/app", true),
        ("*.*.kubernetes.io", "abc.kubernetes.io/app", false),
        ("*.*.kubernetes.io", "abc.def.kubernetes.io/app", true),
        ("prefix.*.io", "prefix.kubernetes.io/app", true),
        ("*-good.kubernetes.io", "prefix-good.kubernetes.io/app", true),
        ("my-registry.example/images", "my-registry.example/images", true),
        ("my-registry.example/images", "my-registry.example/images/my-image", true),
        ("my-registry.example/images", "my-registry.example/other", false),
        ("my-registry.example/images", "sub.my-registry.example/images/my-image", false),
        ("*.my-registry.example/images", "sub.my-registry.example/images/my-image", true),
        ("*.my-registry.example/images", "a.sub.my-registry.example/images/my-image", false),
        ("*.my-registry.example/images", "a.b.sub.my-registry.example/images/my-image", false),
        // Those of the kubelet's tests.
        ("prefix.kubernetes.*", "prefix.kubernetes.io/app", true),
        ("*.kubernetes.io/blah", "prefix.kubernetes.io/blah", true),
        ("prefix.*.io/foo", "prefix.kubernetes.io/foo/bar", true),
        ("*.kubernetes.io:1111/blah", "prefix.kubernetes.io:1111/blah", true),
        ("prefix.*.io:1111/foo", "prefix.kubernetes.io:1111/foo/bar", true),
        ("*kubernetes.io", "a.kubernetes.io/app", false),
        ("*kubernetes.io", "kubernetes.io/app", true),
        ("*.*.*.kubernetes.io", "a.b.c.kubernetes.io/app", true),
        ("kubernetes.io", "kubernetes.com/app", false),
        ("k*.io", "quay.io/app", false),
        ("*.kubernetes.io:1234/blah", "prefix.kubernetes.io:1111/blah", false),
        ("prefix.*.io/foo", "prefix.kubernetes.io:1111/foo/bar", false),
        ("bar.example.com/pong", "bar.example.com/pongz", true),
        ("bar.example.com/pong", "bar.example.com/ping", false),
        ("bar.example.com/pong/", "bar.example.com/pong/pang", true),
        ("bar.example.com/pong/", "bar.example.com/pongz", false),
        // Schemes, versions of the API, case.
        ("https://ghcr.io", "ghcr.io/app", true),
        ("http://ghcr.io/", "ghcr.io/app", true),
        ("https://ghcr.io/v1/", "ghcr.io/app", true),
        ("https://ghcr.io/v2", "ghcr.io/app", true),
        ("https://ghcr.io/v2/team", "ghcr.io/team/app", true),
        ("https://ghcr.io/v2/team", "ghcr.io/other/app", false),
        ("https://ghcr.io/v20", "ghcr.io/app", false),
        ("ftp://ghcr.io", "ghcr.io/app", false),
        ("GHCR.io", "ghcr.io/app", true),
        ("ghcr.io", "GHCR.IO/app", true),
        ("ghcr.io/Team", "ghcr.io/team/app", false),
        // Ports and addresses.
        ("localhost:5000", "localhost:5000/app", true),
        ("localhost", "localhost:5000/app", false),
        ("localhost:5000", "localhost/app", false),
        ("localhost:*", "localhost:5000/app", false),
        ("10.0.0.1:80", "10.0.0.1:80/app", true),
        ("10.0.0.*", "10.0.0.1/app", true),
        ("[::1]:5000", "[::1]:5000/app", true),
        ("[::1]", "[::1]:5000/app", false),
        ("[::1]", "[::1]/app", true),
        // Docker Hub by all its names, and what is not it.
        ("https://index.docker.io/v1/", "ubuntu", true),
        ("https://index.docker.io/v1/", "docker.io/owner/app", true),
        ("index.docker.io", "ubuntu:22.04", true),
        ("index.docker.io/v1/", "index.docker.io/ubuntu", true),
        ("docker.io", "owner/app", true),
        ("https://docker.io", "ubuntu", true),
        ("docker.io/library", "ubuntu", true),
        ("index.docker.io/owner", "owner/app", true),
        ("docker.io/owner", "ubuntu", false),
        ("registry-1.docker.io", "ubuntu", false),
        ("https://index.docker.io/v1/access-token", "ubuntu", false),
        ("docker.io", "ghcr.io/app", false),
        ("*.docker.io", "ubuntu", false),
        // Nonsense.
        ("", "ghcr.io/app", false),
        ("/", "ghcr.io/app", false),
        ("https://", "ghcr.io/app", false),
        (".", "ghcr.io/app", false),
        ("*", "ghcr.io/app", false),
        ("*.*", "ghcr.io/app", true),
        ("**.io", "ghcr.io/app", true),
        ("g*c*.io", "ghcr.io/app", true),
        ("g*h*h*.io", "ghcr.io/app", false),
        ("ghcr*ghcr.io", "ghcr.io/app", false),
        ("user@ghcr.io", "ghcr.io/app", false),
    ] {
        assert_eq!(used(&[key], text).await.is_some(), expected, "{key} {text}");
    }
}

#[tokio::test]
async fn the_most_specific_key() {
    let keys = [
        "example.com",
        "example.com/team",
        "example.com/team/app",
        "*.example.com",
        "sub.example.com",
        "*.example.com/team",
        "su*.example.com/team",
        "a.io",
        "a.io*",
        "b.io/team",
        "b.io*/team",
        "https://index.docker.io/v1/",
        "docker.io/owner",
    ];
    for (text, expected) in [
        ("example.com/x", Some("example.com")),
        ("example.com/team/x", Some("example.com/team")),
        ("example.com/team/app", Some("example.com/team/app")),
        ("example.com/team/app/x", Some("example.com/team/app")),
        // A host without wildcards goes before any path, as in the kubelet.
        ("sub.example.com/team/x", Some("sub.example.com")),
        ("sum.example.com/team/x", Some("su*.example.com/team")),
        ("sum.example.com/x", Some("*.example.com")),
        ("other.example.com/team/x", Some("*.example.com/team")),
        ("a.io/x", Some("a.io")),
        ("b.io/team/x", Some("b.io/team")),
        ("ubuntu", Some("https://index.docker.io/v1/")),
        ("owner/app", Some("docker.io/owner")),
        ("example.org/x", None),
    ] {
        assert_eq!(used(&keys, text).await.as_deref(), expected, "{text}");
    }
}

#[tokio::test]
async fn the_plainest_of_equal_keys() {
    let mut keys = vec!["https://index.docker.io/v1/", "index.docker.io", "docker.io", "http://docker.io"];
    for expected in ["docker.io", "index.docker.io", "http://docker.io", "https://index.docker.io/v1/"] {
        assert_eq!(used(&keys, "ubuntu").await.as_deref(), Some(expected));
        keys.retain(|key| *key != expected);
    }
}

#[tokio::test]
async fn wildcards_take_no_exponential_time() {
    let key = format!("{}b.io", "a*".repeat(2000));
    let text = format!("{}.io/app", "a".repeat(200));
    assert_eq!(used(&[&key], &text).await, None);
}
