//! Configurations that were written for Porch's image find the functions in ours.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use function_runner::builtin;
use tempfile::TempDir;
use testing::{Server, eventually};
use tonic::Code;

use super::{call, common::PROGRAM, data, list, nowhere, package, text};

/// A file of Porch, if it is at hand.
#[allow(clippy::print_stdout, reason = "what is not tried is told")]
fn porch(file: &str) -> Option<PathBuf> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let path = checkout.parent().unwrap().join("shared/porch").join(file);
    if !path.is_file() {
        println!("{} is absent: it is not tried", path.display());
        return None;
    }
    Some(path)
}

/// The folder of functions as our image has it.
fn functions() -> TempDir {
    let folder = TempDir::new().unwrap();
    for name in builtin::all().iter().flat_map(builtin::Builtin::names) {
        symlink(PROGRAM, folder.path().join(name)).unwrap();
    }
    folder
}

async fn serves(server: &Server, cases: &[(&str, Result<&str, Code>)]) {
    let client = server.client().await;
    for (image, expected) in cases {
        let answer = call(&client, image, list(&data("namespace", "prod"))).await;
        match (answer, expected) {
            (Ok(answer), Ok(by)) => {
                assert!(text(&answer.resource_list).contains("namespace: prod"), "{image}");
                let line = format!("{image}\" evaluator=\"{by}\" code=Ok");
                eventually(&line, || server.log().contains(&line));
            }
            (Err(status), Err(code)) => assert_eq!(status.code(), *code, "{image}: {status}"),
            (answer, _) => panic!("{image}: {answer:?}"),
        }
    }
}

/// As the manifests of v1.5 start it in our image, with pods turned off: whatever the image's configuration lists is
/// answered, and nothing else.
#[tokio::test]
async fn a_stock_installation_without_pods_answers_what_the_original_answers() {
    for (generation, unlisted) in [
        ("v1.5.3", "gcr.io/kpt-fn/set-image:v0.1.1"),
        ("v1.5.8", "ghcr.io/kptdev/krm-functions-catalog/set-image:v0.1.1"),
    ] {
        let config = format!("../images/files/config-{generation}.yaml");
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join(config);
        let functions = functions();
        let flags = [
            format!("--config={}", config.display()),
            format!("--functions={}", functions.path().display()),
            "--pod-namespace=porch-fn-system".to_owned(),
            "--max-request-body-size=6291456".to_owned(),
            "--disable-runtimes=pod".to_owned(),
        ];
        let server = Server::of(PROGRAM).folder(functions.path()).flags(flags).start();
        let client = server.client().await;
        let listed = fs::read_to_string(config).unwrap();
        let (mut function, mut answered) = (None, 0);
        for line in listed.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("- function: ") {
                function = builtin::find(name);
            } else if let Some((image, function)) = line.strip_prefix("- ").zip(function) {
                let answer = call(&client, image, package(function.example())).await;
                assert!(answer.is_ok(), "{image}: {answer:?}");
                let line = format!("{image}\" evaluator=\"exec\" code=Ok");
                eventually(&line, || server.log().contains(&line));
                answered += 1;
            }
        }
        assert!(answered >= 18, "{generation}: {answered}");
        let refusal = call(&client, unlisted, list("{}")).await.unwrap_err();
        assert_eq!(refusal.code(), Code::NotFound, "{refusal}");
        assert!(refusal.message().starts_with(&format!("function \"{unlisted}\" not found")), "{refusal}");
    }
}

#[tokio::test]
async fn the_configuration_files_of_its_older_generations() {
    for generation in ["v1.5.3", "v1.5.8"] {
        let Some(config) = porch(&format!("{generation}/config.yaml")) else { return };
        let functions = functions();
        let flags =
            [format!("--config={}", config.display()), format!("--functions={}", functions.path().display())];
        let server = Server::of(PROGRAM).folder(functions.path()).flags(flags).start();
        let listed = fs::read_to_string(config).unwrap();
        let image = listed.lines().find_map(|line| {
            let image = line.trim().strip_prefix("- ")?;
            image.contains("/set-namespace:").then_some(image)
        });
        serves(&server, &[(image.unwrap(), Ok("exec"))]).await;
        // What our image has not is told, and looked for elsewhere.
        let missing = server.log();
        let missing = missing.lines().filter(|line| line.contains(" is missing"));
        for line in missing {
            let has = |function: &builtin::Builtin| line.contains(&format!("/{} is", function.name()));
            assert!(!builtin::all().iter().any(has), "{line}");
        }
    }
}

#[tokio::test]
async fn the_function_configs_of_its_newest() {
    let Some(objects) = porch("head/23-function-configurations.yaml") else { return };
    let (functions, folder) = (functions(), nowhere());
    fs::copy(objects, folder.path().join("objects.yaml")).unwrap();
    let flags = [
        format!("--function-configs={}", folder.path().display()),
        format!("--functions={}", functions.path().display()),
    ];
    let server = Server::of(PROGRAM).folder(functions.path()).flags(flags).start();
    serves(
        &server,
        &[
            ("set-namespace:v0.4.5", Ok("builtin")),
            ("ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4", Ok("builtin")),
            ("set-namespace:v0.4.2", Ok("exec")),
            // For pods, of which there are none here.
            ("set-namespace:v0.4.1", Err(Code::NotFound)),
        ],
    )
    .await;
}
