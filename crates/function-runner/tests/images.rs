//! The service's view of registries: constraints, memory, policy, and secrets that change while it runs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{ffi::OsString, path::Path, time::Duration};

use flags::Outcome;
use function_runner::{
    args,
    images::Images,
    settings::{Machine, Settings},
};
use registry::{Constraint, Reference, Trust};
use testing::registry::{
    FIRST_PASSWORD, RealRegistry, SECOND_PASSWORD,
    certificates::Authority,
    docker_config,
    images::{Image, OCI},
};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tonic::Code;
use wire::Failure;

/// The view of a service with these flags.
fn images(flags: &[String]) -> Images {
    match args::SERVER.parse(flags.iter().map(OsString::from)) {
        Outcome::Flags(flags) => Images::new(&Settings::read(flags, &Machine).unwrap().registries).unwrap(),
        Outcome::Help => panic!("{flags:?} asks for help"),
    }
}

fn private(auth: &Path, tls: Option<&Path>) -> Vec<String> {
    let mut flags = vec![
        "--enable-private-registries".to_owned(),
        format!("--registry-auth-secret-path={}", auth.display()),
        format!("--tls-secret-path={}", tls.unwrap_or(auth).display()),
    ];
    flags.extend(tls.map(|_| "--enable-private-registries-tls".to_owned()));
    flags
}

/// The image, and the digest of what it is.
async fn resolve(images: &Images, image: &str, tag: &str) -> Result<(String, String), Failure> {
    let image = Reference::parse(image).unwrap();
    let constraint = (!tag.is_empty()).then(|| Constraint::parse(tag).unwrap());
    let deadline = Instant::now() + Duration::from_mins(1);
    let found = images.resolve(&image, constraint.as_ref(), Some(deadline)).await?;
    Ok((found.reference.to_string(), found.digest.clone()))
}

async fn refusal(images: &Images, image: &str, tag: &str, code: Code, part: &str) {
    let failure = resolve(images, image, tag).await.unwrap_err();
    assert_eq!(failure.code(), code, "{failure}");
    assert!(failure.to_string().contains(part), "{part:?} is not in: {failure}");
}

#[tokio::test]
async fn a_constraint_means_the_highest_tag_and_what_is_known_needs_no_registry() {
    let registry = RealRegistry::open().await;
    let name = format!("{}/functions/f", registry.host);
    let pusher = registry.pusher();
    for (number, tag) in
        ["v0.4", "v0.4.1", "v0.4.10", "v0.5.0-rc.1", "v1.0.0", "main", "latest"].iter().enumerate()
    {
        let config = format!(r#"{{"os":"linux","architecture":"amd64","config":{{"User":"{number}"}}}}"#);
        pusher.image("functions/f", tag, &Image::with_config(OCI, "amd64", config)).await;
    }
    let images = images(&[]);
    let expected = [
        ("~0.4", "v0.4.10"),
        ("<1", "v0.4.10"),
        ("v0.4", "v0.4"),
        ("0.4", "v0.4.10"),
        (">=0.5.0-0 <0.6", "v0.5.0-rc.1"),
        ("*", "v1.0.0"),
    ];
    let mut digests = Vec::new();
    for (tag, found) in expected {
        let (reference, digest) = resolve(&images, &name, tag).await.unwrap();
        assert_eq!(reference, format!("{name}:{found}"), "{tag}");
        digests.push(digest);
    }
    assert_eq!(resolve(&images, &name, "").await.unwrap().0, name);
    assert_ne!(digests[0], digests[5]);
    let told = format!("none of the 7 tags of {name}, the newest version of which is v1.0.0, meets");
    refusal(&images, &name, "~7", Code::FailedPrecondition, &told).await;
    refusal(&images, &format!("{name}-x"), "~7", Code::FailedPrecondition, "NAME_UNKNOWN").await;
    refusal(&images, &format!("{name}:v9"), "", Code::FailedPrecondition, "MANIFEST_UNKNOWN").await;

    // Whoever asks again is answered from memory.
    drop(registry);
    for ((tag, found), digest) in expected.iter().zip(digests) {
        assert_eq!(resolve(&images, &name, tag).await.unwrap(), (format!("{name}:{found}"), digest));
    }
    refusal(&images, &format!("{name}:v1.0"), "", Code::Unavailable, "cannot be reached").await;
}

/// Stands before a registry and refuses to list tags.
async fn without_list(registry: &RealRegistry) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("localhost:{}", listener.local_addr().unwrap().port());
    let there = registry.host.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let there = there.clone();
            tokio::spawn(async move {
                let mut head = [0; 2000];
                let length = stream.peek(&mut head).await.unwrap_or_default();
                if String::from_utf8_lossy(&head[..length]).contains("/tags/list") {
                    let answer =
                        "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 4\r\n\r\nmine";
                    let _ = stream.write_all(answer.as_bytes()).await;
                    return;
                }
                let mut there = TcpStream::connect(there).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
            });
        }
    });
    host
}

#[tokio::test]
async fn a_registry_that_lists_no_tags_still_gives_the_very_tag() {
    let registry = RealRegistry::open().await;
    registry.pusher().image("functions/f", "v1.2.3", &Image::new(OCI, "amd64")).await;
    let name = format!("{}/functions/f", without_list(&registry).await);
    let images = images(&[]);
    assert_eq!(resolve(&images, &name, "v1.2.3").await.unwrap().0, format!("{name}:v1.2.3"));
    refusal(&images, &name, "v1.2", Code::FailedPrecondition, "tagged v1.2").await;
    refusal(&images, &name, "~1.2", Code::PermissionDenied, &format!("{name}:~1.2\" is refused")).await;
}

#[tokio::test]
async fn images_that_are_not_allowed_are_not_asked_for() {
    // Nobody listens there: whoever asks is told something else.
    let images = images(&["--allowed-images=localhost:1/org".to_owned()]);
    for tag in ["", "~1"] {
        let told = "localhost:1/organisation/f is not under --allowed-images (localhost:1/org)";
        refusal(&images, "localhost:1/organisation/f", tag, Code::PermissionDenied, told).await;
        refusal(&images, "localhost:1/org/f", tag, Code::Unavailable, "refused").await;
    }
}

#[tokio::test]
async fn a_password_changes_while_the_service_runs() {
    let registry = RealRegistry::password(FIRST_PASSWORD.1).await;
    let auth = registry.folder.path().join("config.json");
    let name = format!("{}/functions/a", registry.host);
    let images = images(&private(&auth, None));
    refusal(&images, &format!("{name}:v9"), "", Code::PermissionDenied, "there is no entry for it").await;
    docker_config(&auth, &registry.host, "me", FIRST_PASSWORD.0);
    // The file is looked at once a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let (_, digest) = resolve(&images, &format!("{name}:v1"), "").await.unwrap();
    std::fs::write(registry.folder.path().join("htpasswd"), SECOND_PASSWORD.1).unwrap();
    docker_config(&auth, &registry.host, "me", SECOND_PASSWORD.0);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    resolve(&images, &format!("{name}@{digest}"), "").await.expect("the new password is used");
    docker_config(&auth, &registry.host, "me", "wrong-password");
    std::fs::write(registry.folder.path().join("htpasswd"), FIRST_PASSWORD.1).unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let failure = resolve(&images, &format!("{name}:v2"), "").await.unwrap_err();
    assert_eq!(failure.code(), Code::PermissionDenied);
    assert!(failure.to_string().contains("refuses the credentials of the entry"), "{failure}");
    assert!(!failure.to_string().contains("wrong-password"), "{failure}");
}

#[tokio::test]
async fn an_authority_changes_while_the_service_runs() {
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let (one, two) = (RealRegistry::tls(&first.server()).await, RealRegistry::tls(&second.server()).await);
    let folder = tempfile::tempdir().unwrap();
    let images = images(&private(&folder.path().join("config.json"), Some(folder.path())));
    let name = |registry: &RealRegistry, tag: &str| format!("{}/functions/a:{tag}", registry.host);
    refusal(&images, &name(&one, "v0"), "", Code::FailedPrecondition, "neither ca.crt nor ca.pem").await;
    first.put(folder.path());
    resolve(&images, &name(&one, "v1"), "").await.unwrap();
    let told = "put the authority of the registry's certificate into ca.crt";
    refusal(&images, &name(&two, "v0"), "", Code::FailedPrecondition, told).await;
    second.put(folder.path());
    let image = Reference::parse(&name(&two, "v1")).unwrap();
    let found = images.resolve(&image, None, None).await.expect("the new authority is used");
    assert_eq!(found.trust, Trust::CustomAuthority);
}

#[tokio::test]
async fn what_cannot_be_read_is_told_at_the_start_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let cluster = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n\
                   contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n\
                   users: [{name: u, user: {}}]\n";
    std::fs::write(path("kubeconfig"), cluster).unwrap();
    std::fs::write(path("ca.crt"), "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n").unwrap();
    std::fs::create_dir(path("docker")).unwrap();
    std::fs::write(path("docker/config.json"), r#"{"auths": {"a.example": {"auth": 1}, "b.example": {}}}"#)
        .unwrap();
    std::fs::write(path("auth.json"), "{secret-text").unwrap();
    let server = |auth: &str, tls: &str| {
        testing::Server::of(env!("CARGO_BIN_EXE_function-runner"))
            .flags([format!("--kubeconfig={}", path("kubeconfig").display())])
            .flags(private(&path(auth), Some(&path(tls))))
            .variable("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")
            .variable("DOCKER_CONFIG", path("docker").to_str().unwrap())
            .start()
    };
    let log = server("auth.json", "").log();
    for part in [
        format!(
            "the Docker config file {} is malformed: it is not JSON at line 1",
            path("auth.json").display()
        ),
        format!("the entry \"a.example\" of the Docker config file {}", path("docker/config.json").display()),
        format!("{} is not a bundle of PEM certificates", path("ca.crt").display()),
    ] {
        assert!(log.lines().any(|line| line.contains(" WARN ") && line.contains(&part)), "{part}\n{log}");
    }
    assert!(!log.contains("secret-text") && !log.contains("b.example"), "{log}");

    std::fs::write(path("docker/config.json"), r#"{"credsStore": "none-such"}"#).unwrap();
    let log = server("none.json", "docker").log();
    for part in [
        format!("there is no Docker config file {}", path("none.json").display()),
        "the credential helper docker-credential-none-such".to_owned(),
        format!("there is neither ca.crt nor ca.pem in {}", path("docker").display()),
    ] {
        assert!(log.lines().any(|line| line.contains(" WARN ") && line.contains(&part)), "{part}\n{log}");
    }
}
