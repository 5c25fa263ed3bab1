//! The ways to a registry: mirrors, proxies, pages of tags, token servers.

use registry::RegistryErrorKind::{Denied, Invalid, Missing};
use registry::{Cache, CacheSettings, Keychain, Options, Proxies, Registry, TagSource};

use crate::support::http::{Reply, Request, serve};
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
    let mirrors = vec![(upstream.host.clone(), format!("{}/hub", mirror.host))];
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
    let exempt = proxied("other.example, invalid.local");
    exempt.metadata(&image("images.invalid.local:5000/a:v1"), within(2)).await.unwrap_err();
    assert_eq!(proxy.count(""), before, "neither went through the proxy");
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
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = serve(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
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
