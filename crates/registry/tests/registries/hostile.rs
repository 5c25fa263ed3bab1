//! Registries that are broken, overloaded or hostile: each gives its clear error, in time and in bounded memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use registry::Keychain;
use registry::RegistryErrorKind::{Invalid, TimedOut, Unavailable, Untrusted};
use tokio::time::Instant;

use crate::support::certificates::Authority;
use crate::support::http::{Announced, Reply, Request, Server, serve, serve_tls};
use crate::support::images::{DOCKER, Image, OCI, OCI_INDEX, digest, index};
use crate::support::{client, image, inspect, private, refusal, within};

/// A registry with one image, right in everything.
fn right(image: &Image, request: &Request) -> Reply {
    if request.target.contains("/blobs/") {
        Reply::ok(image.config.clone())
    } else {
        Reply::ok(image.manifest.clone()).with("Docker-Content-Digest", image.digest())
    }
}

fn name(server: &Server) -> String {
    format!("{}/functions/a:v1", server.host)
}

#[tokio::test]
async fn contents_that_do_not_match_their_digest_are_refused() {
    let ours = Image::new(OCI, "amd64");
    let server = serve(move |request| match request.target.as_str() {
        target if target.contains("/blobs/") => Reply::ok("{\"os\":\"linux\"}"),
        target if target.contains("lying") => {
            Reply::ok(ours.manifest.clone()).with("Docker-Content-Digest", digest(b"other"))
        }
        _ => right(&ours, request),
    })
    .await;
    refusal(&client(), &name(&server), Invalid, "configuration does not match its digest").await;
    let lying = format!("{}/functions/a:lying", server.host);
    refusal(&client(), &lying, Invalid, "manifest does not match its digest").await;
    let other = format!("{}/functions/a@{}", server.host, digest(b"other"));
    refusal(&client(), &other, Invalid, "manifest does not match its digest").await;
}

#[tokio::test]
async fn a_blob_that_breaks_off_is_asked_for_again_and_then_told() {
    let ours = Image::new(OCI, "amd64");
    let server = serve(move |request| {
        let mut reply = right(&ours, request);
        if request.target.contains("/blobs/") {
            reply.announced = Announced::Bytes(reply.body.len());
            reply.body.truncate(10);
        }
        reply
    })
    .await;
    let error = client().metadata(&image(&name(&server)), within(120)).await.unwrap_err();
    assert_eq!(error.kind(), Unavailable, "{error}");
    assert!(error.to_string().contains("broke off after 10 bytes"), "{error}");
    assert!(server.count("/blobs/") > 1);
}

#[tokio::test]
async fn bodies_are_bounded_before_they_are_kept() {
    let server = serve(|request| {
        if request.target.contains("endless") {
            return Reply {
                is_endless: true,
                announced: Announced::Nothing,
                ..Reply::ok(vec![b' '; 64 * 1024])
            };
        }
        // Whoever reads on finds out that there is nothing.
        Reply { announced: Announced::Bytes(20_000_000), ..Reply::ok("") }
    })
    .await;
    for (tag, part) in [("announced", "20000000 bytes"), ("endless", "more bytes than announced")] {
        refusal(&client(), &format!("{}/functions/a:{tag}", server.host), Invalid, part).await;
    }
    assert_eq!(server.count("/manifests/"), 2, "it is not asked for again");
}

#[tokio::test]
async fn a_configuration_said_to_be_huge_is_not_asked_for() {
    let ours = Image::new(OCI, "amd64");
    let huge = String::from_utf8(ours.manifest).unwrap().replace("\"size\":", "\"size\":9999999");
    let server = serve(move |_| Reply::ok(huge.clone())).await;
    refusal(&client(), &name(&server), Invalid, "more than the 8388608 allowed").await;
    assert_eq!(server.count("/blobs/"), 0);
}

#[tokio::test]
async fn a_slow_drip_ends_at_the_deadline() {
    let ours = Image::new(OCI, "amd64");
    let server =
        serve(move |request| Reply { drip: Some(Duration::from_millis(100)), ..right(&ours, request) }).await;
    let error = client().metadata(&image(&name(&server)), within(1)).await.unwrap_err();
    assert_eq!(error.kind(), TimedOut, "{error}");
    assert!(error.to_string().contains(&server.host), "{error}");
    assert_eq!(server.count("/blobs/"), 0, "nothing has come in full");
}

#[tokio::test]
async fn redirects_are_bounded_and_take_no_credentials_along() {
    let server =
        serve(|request| Reply::status(307, "").with("Location", format!("{}x", request.target))).await;
    refusal(&client(), &name(&server), Invalid, "more than 5").await;
    assert_eq!(server.count("/manifests/"), 6);

    let ours = Image::new(DOCKER, "amd64");
    let config = ours.config.clone();
    let storage = serve(move |_| Reply::ok(config.clone())).await;
    let elsewhere = storage.host.clone();
    let registry = serve(move |request| match request.header("authorization") {
        None => Reply::status(401, "").with("WWW-Authenticate", "Basic realm=\"x\""),
        Some(_) if request.target.contains("/blobs/") => {
            Reply::status(302, "").with("Location", format!("http://user:secret@{elsewhere}/object"))
        }
        Some(_) => right(&ours, request),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    crate::support::docker_config(&file, &registry.host, "me", "my-password");
    inspect(&private(Keychain::file(file), None), &name(&registry)).await.unwrap();
    let requests = storage.requests.lock().unwrap().clone();
    assert!(!requests.is_empty() && requests.iter().all(|request| request.header("authorization").is_none()));

    let outward = serve(|_| Reply::status(302, "").with("Location", "ftp://x/")).await;
    refusal(&client(), &name(&outward), Invalid, "no HTTP address").await;
}

#[tokio::test]
async fn a_storm_of_429_is_weathered_or_told() {
    let ours = Image::new(OCI, "amd64");
    let count = AtomicUsize::new(0);
    let server = serve(move |request| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::status(429, "").with("Retry-After", "1"),
        1 => Reply::status(503, ""),
        _ => right(&ours, request),
    })
    .await;
    let begin = Instant::now();
    inspect(&client(), &name(&server)).await.expect("it passes");
    assert!(begin.elapsed() >= Duration::from_secs(1), "the registry's wish is respected");

    let words = r#"{"errors":[{"code":"TOOMANYREQUESTS","message":"pull rate\u001b[31m limit"}]}"#;
    let server = serve(move |_| Reply::status(429, words).with("Retry-After", "3600")).await;
    refusal(&client(), &name(&server), Unavailable, "TOOMANYREQUESTS: pull rate [31m limit").await;
    assert_eq!(server.count("/manifests/"), 1, "there is no use in waiting for what comes too late");

    let server = serve(|_| Reply::status(429, "")).await;
    let error = client().metadata(&image(&name(&server)), within(120)).await.unwrap_err();
    assert_eq!(error.kind(), Unavailable, "{error}");
    assert!(error.to_string().contains("(after 6 attempts)"), "{error}");
    assert_eq!(server.count("/manifests/"), 6);
}

#[tokio::test]
async fn a_registry_that_is_not_there_is_unavailable() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // A moment later somebody might listen, but nobody waits for long.
    let error = refusal(&client(), &format!("127.0.0.1:{port}/a:v1"), Unavailable, "refused").await;
    assert!(error.to_string().contains("(after 2 attempts)"), "{error}");
}

#[tokio::test]
async fn bad_certificates_are_told_apart() {
    let authority = Authority::new("authority");
    let folder = tempfile::tempdir().unwrap();
    authority.put(folder.path());
    let client = private(Keychain::none(), Some(folder.path()));
    for (certificate, part) in
        [(authority.expired(), "it has expired"), (authority.for_another_name(), "it is for another name")]
    {
        let server = serve_tls(&certificate, |_| Reply::ok("")).await;
        refusal(&client, &name(&server), Untrusted, part).await;
        assert!(server.requests.lock().unwrap().is_empty(), "nothing is asked of whom we do not trust");
    }
    let server = serve_tls(&Authority::new("other").server(), |_| Reply::ok("")).await;
    refusal(&client, &name(&server), Untrusted, "unknown authority").await;
}

#[tokio::test]
async fn images_that_cannot_run_here_are_refused() {
    let other = Image::new(OCI, "arm64");
    let windows = Image::with_config(OCI, "amd64", r#"{"os":"windows","architecture":"amd64"}"#);
    let chart = r#"{"schemaVersion":2,"config":{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":"x"}}"#;
    let evil = r#"{"schemaVersion":2,"config":{"digest":"sha256:../../../etc"}}"#;
    let itself = r#"{"manifests":[{"digest":"DIGEST"}]}"#;
    for (body, part) in [
        (index(OCI_INDEX, &[&other]), "no image for linux/amd64, only for: linux/arm64"),
        (br#"{"schemaVersion":2,"manifests":[]}"#.to_vec(), "only for: nothing"),
        (br#"{"schemaVersion":1}"#.to_vec(), "schema 1"),
        (windows.manifest.clone(), "image for windows/amd64"),
        (chart.into(), "helm"),
        (evil.into(), "wrong digest"),
        (itself.into(), "wrong digest"),
        (b"{}".to_vec(), "neither"),
        (b"<html>".to_vec(), "not one"),
        (Vec::new(), "not one"),
        (vec![0xff; 100], "not one"),
        ("[".repeat(100_000).into_bytes(), "not one"),
    ] {
        let config = windows.config.clone();
        let server = serve(move |request| {
            Reply::ok(if request.target.contains("/blobs/") { config.clone() } else { body.clone() })
        })
        .await;
        refusal(&client(), &name(&server), Invalid, part).await;
    }
}

#[tokio::test]
async fn a_registrys_words_are_harmless_and_hold_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    let server = serve(|request| match request.header("authorization") {
        None => Reply::status(401, "").with("WWW-Authenticate", "Basic realm=\"x\""),
        Some(header) => Reply::status(403, format!("no {header} hidden-word\n\u{7}{}", "x".repeat(100_000))),
    })
    .await;
    crate::support::docker_config(&file, &server.host, "me", "hidden-word");
    let client = private(Keychain::file(file), None);
    let error =
        refusal(&client, &name(&server), registry::RegistryErrorKind::Denied, "no Basic *** ***").await;
    assert!(error.said().unwrap().len() < 500);
}
