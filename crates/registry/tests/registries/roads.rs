//! The ways to a registry: mirrors, proxies, pages of tags, token servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use registry::RegistryErrorKind::{Denied, Invalid, Missing, Untrusted};
use registry::{
    AllowedImages, Cache, CacheSettings, Keychain, Options, PrivateOptions, Proxies, Registry, TagSource,
    Trust,
};

use crate::support::certificates::Authority;
use crate::support::http::{Reply, Request, serve, serve_tls, tunnel};
use crate::support::images::{Image, OCI};
use crate::support::{client, image, inspect, options, private, refusal, within};

fn right(image: &Image, request: &Request) -> Reply {
    Reply::ok(if request.target.contains("/blobs/") { image.config.clone() } else { image.manifest.clone() })
}

#[tokio::test]
async fn a_mirror_is_asked_first_and_the_registry_when_it_fails() {
    let ours = Image::new(OCI, "amd64");
    let served = ours.clone();
    let mirror = serve(move |request| {
        let is_here = request.target.starts_with("/v2/hub/functions/a/");
        if is_here { right(&served, request) } else { Reply::status(404, "not here") }
    })
    .await;
    let served = ours.clone();
    let upstream = serve(move |request| {
        if request.target.contains("missing") { Reply::status(404, "") } else { right(&served, request) }
    })
    .await;
    let mirrors = vec![format!("{}={}/hub", upstream.host, mirror.host).parse().unwrap()];
    let client = Registry::new(Options { mirrors, ..options() }).unwrap();
    let found = inspect(&client, &format!("{}/functions/a:v1", upstream.host)).await.unwrap();
    assert_eq!(found.source.as_given(), format!("{}/hub/functions/a:v1", mirror.host));
    assert_eq!(found.reference.as_given(), format!("{}/functions/a:v1", upstream.host));
    assert_eq!(upstream.count("/"), 0);

    let found = inspect(&client, &format!("{}/functions/b:v1", upstream.host)).await.unwrap();
    assert_eq!(found.source.as_given(), format!("{}/functions/b:v1", upstream.host));
    let missing = format!("{}/functions/missing:v1", upstream.host);
    refusal(&client, &missing, Missing, &format!("the mirror {}/hub/functions/missing", mirror.host)).await;
}

#[tokio::test]
async fn proxies_are_used_but_not_for_this_machine() {
    let ours = Image::new(OCI, "amd64");
    let served = ours.clone();
    let proxy = serve(move |request| right(&served, request)).await;
    let direct = serve(move |request| right(&ours, request)).await;
    let address = format!("http://{}", proxy.host);
    let proxied = |except: &str| {
        let (address, except) = (address.clone(), except.to_owned());
        let proxies = Proxies::from_variables(move |name| match name {
            "HTTP_PROXY" | "https_proxy" => Some(address.clone()),
            "NO_PROXY" => Some(except.clone()),
            _ => None,
        });
        Registry::new(Options { proxies, ..options() }).unwrap()
    };
    // Names that only the proxy can find.
    inspect(&proxied(""), "images.invalid.local:5000/functions/a:v1").await.expect("by the proxy");
    assert!(proxy.count("http://images.invalid.local:5000/v2/functions/a/manifests/v1") > 0);
    let before = proxy.count("");
    inspect(&proxied(""), &format!("{}/functions/a:v1", direct.host)).await.unwrap();
    for except in ["other.example, invalid.local", "images.invalid.local:5000", ".local:1, x:y", "*"] {
        let error =
            proxied(except).metadata(&image("images.invalid.local:5000/a:v1"), within(1)).await.unwrap_err();
        assert_eq!(proxy.count(""), before, "{except}: {error}");
    }
    inspect(&proxied("nvalid.local, images.invalid"), "images.invalid.local:5000/functions/a:v1")
        .await
        .unwrap();
}

#[tokio::test]
async fn https_goes_through_a_tunnel_of_the_proxy() {
    let (ours, authority) = (Image::new(OCI, "amd64"), Authority::new("authority"));
    let registry = serve_tls(&authority.for_another_name(), move |request| right(&ours, request)).await;
    let proxy = tunnel(registry.host.replace("localhost", "127.0.0.1")).await;
    let folder = tempfile::tempdir().unwrap();
    authority.put(folder.path());
    let address = format!("http://me:proxy-password@{}", proxy.host);
    let proxies = Proxies::from_variables(|name| (name == "HTTPS_PROXY").then(|| address.clone()));
    let private = PrivateOptions { keychain: Keychain::none(), ca_folder: Some(folder.path().to_owned()) };
    let client = Registry::new(Options { private: Some(private), proxies, ..options() }).unwrap();
    let found = inspect(&client, "elsewhere.example/functions/a:v1").await.unwrap();
    assert_eq!(found.trust, Trust::CustomAuthority, "the certificate is the registry's, not the proxy's");
    let requests = proxy.requests.lock().unwrap().clone();
    assert!(requests.iter().all(|request| request.target == "elsewhere.example:443"), "{requests:?}");
    assert!(requests[0].header("proxy-authorization").unwrap().starts_with("Basic "));
    assert!(
        registry
            .requests
            .lock()
            .unwrap()
            .iter()
            .all(|request| request.header("proxy-authorization").is_none())
    );
}

#[tokio::test]
async fn a_token_server_needs_the_same_trust_as_the_registry() {
    let (right_authority, wrong_authority) = (Authority::new("right"), Authority::new("wrong"));
    let folder = tempfile::tempdir().unwrap();
    right_authority.put(folder.path());
    let file = folder.path().join("config.json");
    for (authority, is_trusted) in [(&right_authority, true), (&wrong_authority, false)] {
        let tokens = serve_tls(&authority.server(), |_| Reply::ok(r#"{"token":"given"}"#)).await;
        let (realm, ours) =
            (format!("Bearer realm=\"https://{}/token\"", tokens.host), Image::new(OCI, "amd64"));
        let registry =
            serve_tls(&right_authority.server(), move |request| match request.header("authorization") {
                Some("Bearer given") => right(&ours, request),
                _ => Reply::status(401, "").with("WWW-Authenticate", realm.clone()),
            })
            .await;
        crate::support::docker_config(&file, &registry.host, "me", "my-password");
        let client = private(Keychain::file(file.clone()), Some(folder.path()));
        let name = format!("{}/functions/a:v1", registry.host);
        if is_trusted {
            let found = inspect(&client, &name).await.unwrap();
            assert_eq!(found.credential.as_deref(), Some(registry.host.as_str()));
            assert!(tokens.requests.lock().unwrap()[0].header("authorization").is_some());
        } else {
            refusal(&client, &name, Untrusted, &tokens.host).await;
            assert!(tokens.requests.lock().unwrap().is_empty(), "no password goes to whom we do not trust");
        }
    }
}

/// Counts warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn public_images_do_without_a_credential_helper_that_is_not_installed() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let ours = Image::new(OCI, "amd64");
    let server = serve(move |request| {
        let challenge = || {
            let realm = format!("Bearer realm=\"http://{}/token\"", request.header("host").unwrap());
            Reply::status(401, "").with("WWW-Authenticate", realm)
        };
        match (request.target.as_str(), request.header("authorization")) {
            (target, None) if target.starts_with("/token") => Reply::ok(r#"{"token":"anyones"}"#),
            (target, Some("Bearer anyones")) if !target.contains("private") => right(&ours, request),
            _ => challenge(),
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    let name = |repository: &str| format!("{}/{repository}/a:v1", server.host);
    for config in [
        serde_json::json!({"credsStore": "absent"}),
        serde_json::json!({"credHelpers": {&server.host: "absent"}}),
    ] {
        std::fs::write(&file, config.to_string()).unwrap();
        let client = private(Keychain::file_with_helpers(file.clone(), folder.path().into()), None);
        let before = warnings.0.load(Ordering::SeqCst);
        for repository in ["public", "other"] {
            let found = inspect(&client, &name(repository)).await.unwrap();
            assert_eq!(found.credential, None);
        }
        refusal(&client, &name("private"), Denied, "docker-credential-absent").await;
        assert_eq!(warnings.0.load(Ordering::SeqCst) - before, 1, "{config}");
    }
    // Another login is used where there is one.
    let config = serde_json::json!({
        "credHelpers": {&server.host: "absent"}, "auths": {&server.host: {"registrytoken": "anyones"}},
    });
    std::fs::write(&file, config.to_string()).unwrap();
    let client = private(Keychain::file_with_helpers(file, folder.path().into()), None);
    let found = inspect(&client, &name("public")).await.unwrap();
    assert_eq!(found.credential.as_deref(), Some(server.host.as_str()));
}

#[tokio::test]
async fn images_that_are_not_allowed_are_not_asked_for_anywhere() {
    let ours = Image::new(OCI, "amd64");
    let (served, mirrored) = (ours.clone(), ours);
    let upstream = serve(move |request| right(&served, request)).await;
    let mirror = serve(move |request| right(&mirrored, request)).await;
    let client = |allowed: &[String]| {
        let mirrors = vec![format!("{}={}/hub", upstream.host, mirror.host).parse().unwrap()];
        let allowed = AllowedImages::new(allowed.iter().map(|prefix| prefix.parse().unwrap()).collect());
        Registry::new(Options { mirrors, allowed, ..options() }).unwrap()
    };
    let name = format!("{}/functions/a:v1", upstream.host);
    let elsewhere = client(&["elsewhere.example".to_owned(), format!("{}/hub", mirror.host)]);
    refusal(&elsewhere, &name, Denied, "is not under --allowed-images (elsewhere.example").await;
    elsewhere.tags(&image(&name), within(5)).await.unwrap_err();
    assert_eq!((upstream.count(""), mirror.count("")), (0, 0));
    // The name an image has at a mirror must be allowed too, or the mirror is passed over.
    let only_upstream = client(&[format!("{}/functions", upstream.host)]);
    assert_eq!(inspect(&only_upstream, &name).await.unwrap().source.as_given(), name);
    assert_eq!(mirror.count(""), 0);
    let both = client(&[format!("{}/functions", upstream.host), format!("{}/hub/functions", mirror.host)]);
    let source = inspect(&both, &name).await.unwrap().source;
    assert_eq!(source.as_given(), format!("{}/hub/functions/a:v1", mirror.host));
}

#[tokio::test]
async fn a_wrong_proxy_is_told_without_its_password() {
    let proxies =
        Proxies::from_variables(|name| (name == "HTTP_PROXY").then(|| "http://u:hidden@[".to_owned()));
    assert!(!format!("{proxies:?}").contains("hidden"));
    let error = Registry::new(Options { proxies, ..options() }).unwrap_err().to_string();
    assert!(error.contains("HTTP_PROXY") && !error.contains("hidden"), "{error}");
}

#[tokio::test]
async fn tags_come_in_pages_and_are_kept() {
    let server = serve(|request| {
        let (path, query) = request.target.split_once('?').unwrap();
        match query {
            "n=1000" => Reply::ok(r#"{"name":"a","tags":["v1","not a tag","v2"]}"#)
                .with("Link", format!("<{path}?last=v2&n=1000>; rel=\"next\"")),
            "last=v2&n=1000" => Reply::ok(r#"{"tags":["v3"]}"#)
                .with("Link", "<http://elsewhere.example/stolen?last=v3&n=1000>; rel=\"next\""),
            "last=v3&n=1000" => Reply::ok(r#"{"tags":null}"#),
            _ => Reply::status(400, ""),
        }
    })
    .await;
    let cache = Cache::new(TagSource(client()), CacheSettings::default());
    for tag in ["v1", "other"] {
        let tags =
            cache.get(&image(&format!("{}/functions/a:{tag}", server.host)), within(10)).await.unwrap();
        assert_eq!(*tags, ["v1", "v2", "v3"]);
    }
    assert_eq!(server.count("/tags/list"), 3, "asked once");
}

#[tokio::test]
async fn pages_without_end_are_an_error() {
    let count = AtomicUsize::new(0);
    let server = serve(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        Reply::ok(r#"{"tags":["v1"]}"#).with("Link", format!("<?last={number}>; rel=next"))
    })
    .await;
    let error = client().tags(&image(&format!("{}/a", server.host)), within(20)).await.unwrap_err();
    assert_eq!(error.kind(), Invalid, "{error}");
    assert!(server.count("/tags/list") <= 500);
}

#[tokio::test]
async fn a_token_server_that_misbehaves_is_told() {
    for (status, body, part) in [
        (200, "{}", "holds no token"),
        (200, "garbage", "not the JSON"),
        (200, r#"{"token":"a\nb"}"#, "no header may hold"),
        (404, "", "answers 404"),
    ] {
        let server = serve(move |request| {
            if request.target.starts_with("/token") {
                return Reply::status(status, body);
            }
            let realm = format!("Bearer realm=\"http://{}/token\"", request.header("host").unwrap());
            Reply::status(401, "").with("WWW-Authenticate", realm)
        })
        .await;
        refusal(&client(), &format!("{}/functions/a:v1", server.host), Invalid, part).await;
    }
    let server =
        serve(|_| Reply::status(401, "").with("WWW-Authenticate", "Bearer realm=\"ftp://h/\"")).await;
    refusal(&client(), &format!("{}/functions/a:v1", server.host), Invalid, "no HTTP address").await;
    let server = serve(|_| Reply::status(401, "").with("WWW-Authenticate", "Negotiate")).await;
    refusal(&client(), &format!("{}/functions/a:v1", server.host), Denied, "wants credentials").await;
}

#[tokio::test]
async fn an_identity_token_is_exchanged() {
    let ours = Image::new(OCI, "amd64");
    let server = serve(move |request| {
        if request.target.starts_with("/token") {
            assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
            return Reply::ok(r#"{"access_token":"exchanged"}"#);
        }
        if request.header("authorization") == Some("Bearer exchanged") {
            return right(&ours, request);
        }
        let realm = format!("Bearer realm=\"http://{}/token\"", request.header("host").unwrap());
        Reply::status(401, "").with("WWW-Authenticate", realm)
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    let config = serde_json::json!({"auths": {&server.host: {"identitytoken": "refresh"}}});
    std::fs::write(&file, config.to_string()).unwrap();
    let found =
        inspect(&private(Keychain::file(file), None), &format!("{}/functions/a:v1", server.host)).await;
    assert_eq!(found.unwrap().credential.as_deref(), Some(server.host.as_str()));
}
