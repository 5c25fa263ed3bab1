//! Images of a registry that wants a password and has a certificate of its own authority.

use std::{env, fs, path::Path, path::PathBuf};

use cluster_tests::{digest_tag, on_cluster, push_as};
use k8s_openapi::api::core::v1::{Pod, Secret};
use tempfile::TempDir;
use testing::registry::{FIRST_PASSWORD, SECOND_PASSWORD, docker_config};
use tonic::Code;

use super::Lab;

const REGISTRY: &str = "registry.test:5443";
const USER: &str = "me";

/// The folder with the certificate of the registry's authority.
fn trust() -> PathBuf {
    PathBuf::from(env::var_os("CLUSTER_DIR").expect("inside the cluster")).join("private/trust")
}

/// The flags to use the registry with the Docker configuration in a folder.
fn private(folder: &Path) -> Vec<String> {
    vec![
        "--enable-private-registries".to_owned(),
        format!("--registry-auth-secret-path={}", folder.join("config.json").display()),
        "--registry-auth-secret-name=pull-secret".to_owned(),
        "--enable-private-registries-tls=true".to_owned(),
        format!("--tls-secret-path={}", trust().display()),
    ]
}

/// An image that no node has yet: whoever runs it has to pull it. What the open
/// registry has, the other has too.
async fn image(tag: &str) -> String {
    let tag = format!("{tag}-{}", digest_tag("test-function"));
    push_as("test-function", &tag).await.replace("localhost:5000", REGISTRY)
}

#[test]
#[ignore = "needs the cluster: make test"]
fn an_image_of_a_private_registry_is_run_with_its_pull_secret() {
    on_cluster("private-registry", async |space| {
        let image = image("private").await;
        let folder = TempDir::new().unwrap();
        docker_config(&folder.path().join("config.json"), REGISTRY, USER, FIRST_PASSWORD.0);
        let lab = Lab::start_as(&space, |builder| builder.flags(private(folder.path()))).await;
        let name = lab.pod_of_call(&image, &[]).await;
        let pod = space.api::<Pod>().get(&name).await.unwrap();
        let secrets = pod.spec.unwrap().image_pull_secrets.unwrap_or_default();
        assert_eq!(secrets.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["pull-secret"]);
        let secret = space.api::<Secret>().get("pull-secret").await.unwrap();
        assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/dockerconfigjson"));
        let content = secret.data.unwrap().remove(".dockerconfigjson").expect("its one key").0;
        assert_eq!(content, fs::read(folder.path().join("config.json")).unwrap());
        let log = lab.runner.log();
        assert!(!log.contains(FIRST_PASSWORD.0), "the password is in the log: {log}");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn an_image_we_have_no_right_to_is_told_with_the_registrys_words() {
    on_cluster("image-denied", async |space| {
        let image = image("denied").await;
        let folder = TempDir::new().unwrap();
        docker_config(&folder.path().join("config.json"), REGISTRY, USER, SECOND_PASSWORD.0);
        let lab = Lab::start_as(&space, |builder| builder.flags(private(folder.path()))).await;
        let refusal = lab.call(&image, &[]).await.unwrap_err();
        assert_eq!(refusal.code(), Code::PermissionDenied, "{refusal}");
        assert!(refusal.message().contains(&image), "{refusal}");
        assert!(refusal.message().contains("authentication required"), "{refusal}");
        assert!(!refusal.message().contains(SECOND_PASSWORD.0), "{refusal}");
        assert_eq!(lab.witness.seen().ever.len(), 0, "no pod is made for it");
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn an_image_the_node_has_no_right_to_is_told_before_the_wait_is_over() {
    on_cluster("pull-denied", async |space| {
        let image = image("pull-denied").await;
        // The runner's own configuration is not the cluster's: nobody gives the node the password.
        let folder = TempDir::new().unwrap();
        docker_config(&folder.path().join("config.json"), REGISTRY, USER, FIRST_PASSWORD.0);
        let lab = Lab::start_as(&space, |builder| {
            let variable = builder.variable("DOCKER_CONFIG", folder.path().to_str().unwrap());
            variable.flags([format!("--insecure-registries={REGISTRY}")])
        })
        .await;
        // Without a deadline of the caller: it would take --pod-ready-timeout, a minute, to time out.
        let input = cluster_tests::order(&[]);
        let options = wire::client::CallOptions::default();
        let refusal = lab.client.evaluate(&image, input, options).await.unwrap_err();
        assert_eq!(refusal.code(), Code::PermissionDenied, "{refusal}");
        assert!(refusal.message().contains(&image), "{refusal}");
        assert!(refusal.message().contains("401 Unauthorized"), "{refusal}");
        lab.left_nothing().await;
        lab.was_refused_nothing();
    });
}
