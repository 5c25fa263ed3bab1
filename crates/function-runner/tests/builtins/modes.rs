//! `--builtin-functions`: what is offered, and what comes first.

use std::{fs, time::Duration};

use tempfile::TempDir;
use testing::{Functions, eventually};
use tonic::Code;
use wire::client::Client;

use super::{bare, call, common::runner, data, list, nowhere, text};

const CATALOG: &str = "ghcr.io/kptdev/krm-functions-catalog";

async fn code(client: &Client, image: &str) -> Code {
    call(client, image, list(&data("namespace", "prod")))
        .await
        .map_or_else(|status| status.code(), |_| Code::Ok)
}

async fn becomes(client: &Client, image: &str, expected: Code) {
    let begun = std::time::Instant::now();
    while code(client, image).await != expected {
        assert!(begun.elapsed().as_secs() < 120, "{image} never becomes {expected:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn object(name: &str, executors: &str) -> String {
    format!(
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: FunctionConfig\nmetadata: {{name: {name}}}\n\
         spec: {{image: {name}, prefixes: [example.com], {executors}}}\n---\n"
    )
}

#[tokio::test]
async fn with_nothing_configured_all_are_offered_by_any_name_and_tag() {
    let folder = nowhere();
    let digest = format!("{CATALOG}/set-namespace:v0.4@sha256:{}", "a".repeat(64));
    // Whatever runtimes there are.
    for disabled in ["", "exec", "pod", "exec,pod"] {
        let server = bare(folder.path()).flags([format!("--disable-runtimes={disabled}")]).start();
        let client = server.client().await;
        for image in [
            "set-namespace",
            "set-namespace:v0.1",
            "gcr.io/kpt-fn/set-namespace:v0.4.1",
            &format!("{CATALOG}/set-namespace"),
            &format!("{CATALOG}/set-namespace:unstable"),
            &digest,
        ] {
            assert_eq!(code(&client, image).await, Code::Ok, "{image}");
        }
        for image in ["example.com/set-namespace", "gatekeeper", "gcr.io/kpt-fn/more/set-namespace:v1"] {
            assert_eq!(code(&client, image).await, Code::NotFound, "{image}");
        }
        let log = server.log();
        assert!(log.contains("built-in functions offered=all"), "{log}");
        assert!(log.contains("neither a cluster nor any configuration is given"), "{log}");
        eventually("the call is logged", || server.log().contains("evaluator=\"builtin\" code=Ok"));
    }
}

#[tokio::test]
async fn a_constraint_in_place_of_the_tag_is_answered_too() {
    let folder = nowhere();
    let server = bare(folder.path()).start();
    let request = wire::proto::EvaluateFunctionRequest {
        resource_list: list(&data("namespace", "prod")).into(),
        image: "set-namespace:v0.1".to_owned(),
        tag: ">=0.4 <1".to_owned(),
    };
    let mut client =
        wire::proto::function_evaluator_client::FunctionEvaluatorClient::new(server.channel().await);
    let answer = client.evaluate_function(request).await.unwrap().into_inner();
    assert!(text(&answer.resource_list).contains("namespace: prod"));
}

#[tokio::test]
async fn what_is_allowed_is_asked_first() {
    let folder = nowhere();
    let server = bare(folder.path()).flags(["--allowed-images=gcr.io/kpt-fn"]).start();
    let client = server.client().await;
    assert_eq!(code(&client, "gcr.io/kpt-fn/set-namespace:v0.4.1").await, Code::Ok);
    assert_eq!(code(&client, "set-namespace").await, Code::PermissionDenied);
}

#[tokio::test]
async fn with_a_configuration_only_what_it_lists_is_offered() {
    let functions = Functions::new().with_script("echo", "cat");
    let server = runner(&functions).start();
    let client = server.client().await;
    assert_eq!(code(&client, "example.com/echo:v1").await, Code::Ok);
    let told = call(&client, "set-namespace:v0.4", list("")).await.unwrap_err();
    assert_eq!(told.code(), Code::NotFound);
    let expected = "the built-in function set-namespace is offered for images that the goExecutor of a \
                    FunctionConfig lists, or for this one too with --builtin-functions=all";
    assert!(told.message().ends_with(expected), "{told}");
    assert!(server.log().contains("built-in functions offered=configured reason=\"--config is given\""));

    let server = runner(&functions).flags(["--builtin-functions=off"]).start();
    let told = call(&server.client().await, "set-namespace:v0.4", list("")).await.unwrap_err();
    let expected = format!("function \"{CATALOG}/set-namespace:v0.4\" not found");
    assert_eq!((told.code(), told.message()), (Code::NotFound, expected.as_str()));
}

#[tokio::test]
async fn they_come_before_executables() {
    let both = format!("{CATALOG}/set-namespace:v0.4");
    let functions = Functions::new().with_script("echo", "cat");
    functions.write_executable("mine", "#!/bin/sh\necho 'the executable' >&2\ncat\n");
    let functions = functions.with_entry("mine", &[&both]).with_entry("gone", &["set-labels:v1"]);
    let input = list(&data("namespace", "prod"));
    let server = runner(&functions).flags(["--builtin-functions=all"]).start();
    let answer = call(&server.client().await, &both, input.clone()).await.unwrap();
    assert!(text(&answer.resource_list).contains("namespace: prod") && answer.log.is_empty());
    // Not offered, it is the executable's.
    let server = runner(&functions).start();
    let client = server.client().await;
    let answer = call(&client, &both, input.clone()).await.unwrap();
    assert_eq!((text(&answer.resource_list), text(&answer.log)), (&*input, "the executable\n"));
    // What was configured expressly is told.
    let told = call(&client, "set-labels:v1", input).await.unwrap_err();
    assert!(told.message().contains("functions/gone, which cannot be started"), "{told}");
}

#[tokio::test]
async fn function_configs_in_files_are_followed() {
    let functions = Functions::new().with_script("echo", "cat");
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("one.yaml");
    let flag = format!("--function-configs={}", folder.path().display());
    fs::write(&file, object("set-namespace", "goExecutor: {tags: [v1, '~2']}")).unwrap();
    let server = runner(&functions).flags([&flag]).start();
    let client = server.client().await;
    assert_eq!(code(&client, "example.com/set-namespace:v1").await, Code::Ok);
    assert_eq!(code(&client, "example.com/set-namespace:v2.3.4").await, Code::Ok);
    assert_eq!(code(&client, "example.com/set-namespace:v3").await, Code::NotFound);
    assert_eq!(code(&client, "gcr.io/kpt-fn/set-namespace:v1").await, Code::NotFound);

    // Another function, other tags; one that we do not have goes to its executable.
    let changed = [
        object("set-namespace", "goExecutor: {id: set-labels, tags: [v3]}"),
        object("scanner", "goExecutor: {id: scanner, tags: [v1]}, binaryExecutor: {path: echo, tags: [v1]}"),
    ];
    fs::write(&file, changed.concat()).unwrap();
    becomes(&client, "example.com/set-namespace:v3", Code::Ok).await;
    let answer = call(&client, "example.com/set-namespace:v3", list(&data("tier", "front"))).await.unwrap();
    assert!(text(&answer.resource_list).contains("tier: front"));
    assert_eq!(code(&client, "example.com/set-namespace:v1").await, Code::NotFound);
    assert_eq!(code(&client, "example.com/scanner:v1").await, Code::Ok);
    fs::remove_file(&file).unwrap();
    becomes(&client, "example.com/set-namespace:v3", Code::NotFound).await;

    // Of two objects the second is told.
    let first = object("set-labels", "goExecutor: {tags: [v1]}");
    fs::write(&file, first.clone() + &first.replace("{name: set-labels}", "{name: second}")).unwrap();
    eventually("the conflict is told", || server.log().contains("spec.goExecutor.tags: "));
}
