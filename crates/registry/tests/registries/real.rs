//! A real registry in its four shapes.

use std::sync::atomic::Ordering;

use registry::RegistryErrorKind::{Denied, Missing, Untrusted};
use registry::{Keychain, Options, Registry, Trust};
use testing::registry::{FIRST_PASSWORD as FIRST, SECOND_PASSWORD as SECOND};

use crate::support::certificates::{self, Authority};
use crate::support::images::{DOCKER, DOCKER_LIST, Image, OCI, OCI_INDEX, index};
use crate::support::tokens::TokenServer;
use crate::support::{
    RealRegistry, client, docker_config, image, inspect, options, private, refusal, within,
};

#[tokio::test]
async fn an_open_registry_tells_all_of_an_image() {
    let registry = RealRegistry::open().await;
    let (host, pusher, client) = (&registry.host, registry.pusher(), client());
    for (kind, index_kind) in [(OCI, OCI_INDEX), (DOCKER, DOCKER_LIST)] {
        let (ours, other) = (Image::new(kind, "amd64"), Image::new(kind, "arm64"));
        pusher.image("functions/a", "v1", &ours).await;
        pusher.image("functions/a", "other", &other).await;
        let list = index(index_kind, &[&other, &ours]);
        pusher.manifest("functions/a", "multi", index_kind, &list).await;
        let by_digest = format!("{host}/functions/a@{}", ours.digest());
        let by_index_digest = format!("{host}/functions/a:multi@{}", crate::support::images::digest(&list));
        for name in [
            &format!("{host}/functions/a:v1"),
            &format!("{host}/functions/a:multi"),
            &by_digest,
            &by_index_digest,
        ] {
            let found = inspect(&client, name).await.unwrap();
            assert_eq!(found.digest, ours.digest(), "{name}");
            assert_eq!(found.entrypoint, ["/bin/function", "amd64"]);
            assert_eq!(found.command, ["--flag"]);
            assert_eq!(found.user, "65532:65532");
            assert_eq!(found.environment, ["PATH=/bin", "A=b c"]);
            assert_eq!(found.working_dir, "/work");
            assert_eq!(found.platform.to_string(), "linux/amd64");
            assert_eq!((found.reference.as_given(), found.source.as_given()), (name.as_str(), name.as_str()));
            assert_eq!((found.credential, found.trust), (None, Trust::PlainHttp));
        }
    }
    let mut tags = client.tags(&image(&format!("{host}/functions/a")), within(10)).await.unwrap();
    tags.sort();
    assert_eq!(tags, ["multi", "other", "v1"]);
}

#[tokio::test]
async fn what_is_missing_is_told_in_the_registrys_words() {
    let registry = RealRegistry::open().await;
    let (host, client) = (&registry.host, client());
    registry.pusher().image("functions/a", "v1", &Image::new(OCI, "amd64")).await;
    let error = refusal(&client, &format!("{host}/functions/a:v9"), Missing, "tagged v9").await;
    assert!(error.said().unwrap().starts_with("MANIFEST_UNKNOWN"), "{error}");
    refusal(&client, &format!("{host}/functions/unknown:v1"), Missing, "functions/unknown").await;
    let absent = format!("sha256:{}", "0".repeat(64));
    refusal(&client, &format!("{host}/functions/a@{absent}"), Missing, &absent).await;
    let error = client.tags(&image(&format!("{host}/functions/unknown")), within(10)).await.unwrap_err();
    assert_eq!(error.kind(), Missing);
    assert!(error.said().unwrap().starts_with("NAME_UNKNOWN"), "{error}");
}

#[tokio::test]
async fn a_password_is_needed_and_may_change_while_running() {
    let registry = RealRegistry::password(FIRST.1).await;
    let name = format!("{}/functions/a:v1", registry.host);
    let config = registry.folder.path().join("config.json");
    let with_password = private(Keychain::file(config.clone()), None);
    refusal(&client(), &name, Denied, "wants credentials").await;
    refusal(&with_password, &name, Denied, "no entry").await;

    docker_config(&config, &registry.host, "me", "wrong-password");
    let error = refusal(&private(Keychain::file(config.clone()), None), &name, Denied, &registry.host).await;
    assert!(error.to_string().contains("refuses the credentials"), "{error}");
    assert!(!format!("{error} {error:?}").contains("wrong-password"), "{error:?}");

    docker_config(&config, &registry.host, "me", FIRST.0);
    let found = inspect(&with_password, &name).await.unwrap();
    assert_eq!(found.credential.as_deref(), Some(registry.host.as_str()));
    inspect(&with_password, &name).await.unwrap();

    // The registry looks at its file's time, in whole seconds on some file systems.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    std::fs::write(registry.folder.path().join("htpasswd"), SECOND.1).unwrap();
    refusal(&with_password, &name, Denied, "refuses the credentials").await;
    docker_config(&config, &registry.host, "me", SECOND.0);
    inspect(&with_password, &name).await.expect("the new password is used without a restart");
}

#[tokio::test]
async fn tokens_are_asked_for_reused_and_renewed() {
    let tokens = TokenServer::start("me", "good-password").await;
    let registry = RealRegistry::tokens(&tokens.realm(), &tokens.certificate).await;
    let name = format!("{}/functions/a:v1", registry.host);
    let config = registry.folder.path().join("config.json");

    refusal(&client(), &name, Denied, "wants credentials").await;
    docker_config(&config, &registry.host, "me", "bad-password");
    let error =
        refusal(&private(Keychain::file(config.clone()), None), &name, Denied, "wrong password").await;
    assert!(!error.to_string().contains("bad-password"), "{error}");

    docker_config(&config, &registry.host, "me", "good-password");
    let client = private(Keychain::file(config), None);
    let before = tokens.server.count("/token");
    for _ in 0..3 {
        inspect(&client, &name).await.unwrap();
    }
    client.tags(&image(&name), within(10)).await.unwrap();
    assert_eq!(tokens.server.count("/token") - before, 1, "one token serves many questions");

    // A token the registry no longer takes is replaced once; another bad one is the end.
    let fresh = private(Keychain::file(registry.folder.path().join("config.json")), None);
    tokens.hands_out_old.store(true, Ordering::SeqCst);
    refusal(&fresh, &name, Denied, "refuses the credentials").await;
    tokens.hands_out_old.store(false, Ordering::SeqCst);
    inspect(&fresh, &name).await.expect("a bad token is not kept");
}

#[tokio::test]
async fn a_private_authority_is_trusted_and_may_change_while_running() {
    let (right, wrong) = (Authority::new("right"), Authority::new("wrong"));
    let registry = RealRegistry::tls(&right.server()).await;
    let name = format!("{}/functions/a:v1", registry.host);
    let folder = tempfile::tempdir().unwrap();
    let client = private(Keychain::none(), Some(folder.path()));

    refusal(&client, &name, Untrusted, "neither ca.crt nor ca.pem").await;
    std::fs::write(folder.path().join("ca.crt"), "not a certificate").unwrap();
    refusal(&client, &name, Untrusted, "ca.crt is not a bundle").await;
    wrong.put(folder.path());
    refusal(&client, &name, Untrusted, "unknown authority").await;
    right.put(folder.path());
    let found = inspect(&client, &name).await.expect("the new authority is used without a restart");
    assert_eq!(found.trust, Trust::CustomAuthority);
    let missing = format!("{}/functions/a:v9", registry.host);
    let error = refusal(&client, &missing, Missing, "tagged v9").await;
    assert!(error.said().unwrap().starts_with("MANIFEST_UNKNOWN"), "{error}");
    std::fs::write(folder.path().join("ca.crt"), format!("{}\n{}", wrong.pem, right.pem)).unwrap();
    inspect(&client, &name).await.expect("a bundle");

    // Without the authority there is no trust, though plain HTTP would be allowed for this host.
    refusal(&crate::support::client(), &name, Untrusted, "unknown authority").await;
    let insecure = Options { insecure_registries: vec![registry.host.clone()], ..options() };
    let found = inspect(&Registry::new(insecure).unwrap(), &name).await.unwrap();
    assert_eq!(found.trust, Trust::Unverified);
}

#[tokio::test]
async fn a_self_signed_certificate_is_trusted_if_it_is_the_very_one() {
    let server = certificates::self_signed_authority();
    let registry = RealRegistry::tls(&server).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), &server.certificate).unwrap();
    let client = private(Keychain::none(), Some(folder.path()));
    let found = inspect(&client, &format!("{}/functions/a:v1", registry.host)).await.unwrap();
    assert_eq!(found.trust, Trust::CustomAuthority);
    let port = registry.host.rsplit(':').next().unwrap();
    refusal(&client, &format!("127.0.0.1:{port}/functions/a:v1"), Untrusted, "another name").await;
    let another = certificates::self_signed_authority();
    std::fs::write(folder.path().join("ca.pem"), &another.certificate).unwrap();
    refusal(&client, &format!("{}/functions/a:v1", registry.host), Untrusted, "not trusted").await;
}

/// Runs itself again, because the system's roots are those of a variable that must be there from the start.
#[tokio::test]
async fn on_a_certificate_error_the_system_roots_are_tried() {
    const SELF: &str = "real::on_a_certificate_error_the_system_roots_are_tried";
    let folder = tempfile::tempdir().unwrap();
    let Ok(system) = std::env::var("TEST_SYSTEM_AUTHORITY") else {
        let (authority, file) = (Authority::new("system"), folder.path().join("system.pem"));
        let server = authority.server();
        std::fs::write(&file, &authority.pem).unwrap();
        let registry = RealRegistry::tls(&server).await;
        let output = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args([SELF, "--exact", "--nocapture"])
            .env("SSL_CERT_FILE", &file)
            .env("TEST_SYSTEM_AUTHORITY", &registry.host)
            .output()
            .await
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
        return;
    };
    Authority::new("other").put(folder.path());
    let client = private(Keychain::none(), Some(folder.path()));
    let found = inspect(&client, &format!("{system}/functions/a:v1")).await.unwrap();
    assert_eq!(found.trust, Trust::System);
    refusal(&client, &format!("{system}/functions/a:v9"), Missing, "tagged v9").await;
    // A broken authority is an error, whatever the system trusts.
    std::fs::write(folder.path().join("ca.crt"), "").unwrap();
    refusal(&client, &format!("{system}/functions/a:v1"), Untrusted, "holds no certificate").await;
}
