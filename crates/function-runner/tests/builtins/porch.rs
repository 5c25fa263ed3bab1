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

use super::{call, common::PROGRAM, data, list, nowhere, text};

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
    for function in builtin::all() {
        symlink(PROGRAM, folder.path().join(function.name())).unwrap();
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
