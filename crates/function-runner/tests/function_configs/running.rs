//! `--function-configs`, in a running service.

use std::{fs, path::Path};

use tempfile::TempDir;
use testing::{Functions, eventually};
use tonic::Code;
use wire::client::{CallOptions, Client};

use super::common::{EMPTY, PROGRAM, runner, within_patience};

fn config(name: &str, image: &str, path: &str, tag: &str) -> String {
    format!(
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: FunctionConfig\nmetadata: {{name: {name}}}\n\
         spec: {{image: {image}, prefixes: [example.com], binaryExecutor: {{path: {path}, tags: [{tag}]}}}}\n---\n"
    )
}

async fn code(client: &Client, image: &str) -> Code {
    let call = client.evaluate(image, EMPTY.into(), CallOptions::default());
    within_patience(call).await.map_or_else(|status| status.code(), |_| Code::Ok)
}

async fn becomes(client: &Client, image: &str, expected: Code) {
    let begun = std::time::Instant::now();
    while code(client, image).await != expected {
        assert!(begun.elapsed().as_secs() < 120, "{image} never becomes {expected:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_folder_is_followed_while_the_service_runs() {
    let functions = Functions::new().with_script("echo", "cat");
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("one.yaml"), config("one", "one", "echo", "v1")).unwrap();
    fs::write(file("broken.yaml"), "a: [").unwrap();
    fs::write(file(".hidden.yaml"), config("hidden", "hidden", "echo", "v1")).unwrap();
    let flag = format!("--function-configs={}", folder.path().display());
    let server = runner(&functions).flags([&flag]).start();
    let client = server.client().await;
    assert_eq!(code(&client, "example.com/one:v1").await, Code::Ok);
    assert_eq!(code(&client, "example.com/one:v2").await, Code::NotFound);
    assert_eq!(code(&client, "example.com/hidden:v1").await, Code::NotFound);
    // What config.yaml says is served beside.
    assert_eq!(code(&client, "example.com/echo:v1").await, Code::Ok);
    assert!(server.log().contains("broken.yaml") && server.log().contains("line 1"), "{}", server.log());

    fs::write(file("one.yaml"), config("one", "one", "echo", "v2")).unwrap();
    becomes(&client, "example.com/one:v2", Code::Ok).await;
    assert_eq!(code(&client, "example.com/one:v1").await, Code::NotFound);
    fs::write(file("broken.yaml"), config("mended", "mended", "echo", "'~1'")).unwrap();
    becomes(&client, "example.com/mended:v1.7.2", Code::Ok).await;
    // No YAML any more: what it was stays.
    fs::write(file("broken.yaml"), "a: [").unwrap();
    eventually("that is told", || server.log().contains("the FunctionConfigs it had before stay in force"));
    assert_eq!(code(&client, "example.com/mended:v1.7.2").await, Code::Ok);
    fs::remove_file(file("broken.yaml")).unwrap();
    becomes(&client, "example.com/mended:v1.7.2", Code::NotFound).await;
    assert_eq!(code(&client, "example.com/one:v2").await, Code::Ok);
    fs::remove_dir_all(folder.path()).unwrap();
    eventually("the loss is told", || server.log().contains("cannot read the folder of FunctionConfigs"));
    assert_eq!(code(&client, "example.com/one:v2").await, Code::Ok);
}

#[test]
fn a_folder_that_is_not_there_is_an_error_at_start() {
    for folder in ["/nonexistent", "Cargo.toml"] {
        let output = std::process::Command::new(PROGRAM)
            .args([&format!("--function-configs={folder}"), "--port=0", "--metrics-port=0"])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let expected = format!("cannot read the folder {folder} of --function-configs: ");
        assert!(output.status.code() == Some(1) && told.contains(&expected), "{told}");
    }
}

#[test]
fn eval_and_explain_know_them_too() {
    let functions = Functions::new().with_script("echo", "cat");
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("one.yaml"), config("object", "one", "echo", "v1")).unwrap();
    let flag = format!("--function-configs={}", folder.path().display());
    let output = std::process::Command::new(PROGRAM)
        .args(["explain", "example.com/one:v1", "--timeout=5s", &flag])
        .args(functions.flags())
        .env("DOCKER_CONFIG", "/nonexistent")
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let expected = format!(
        "yes: the entry \"example.com/one:v1\" of the FunctionConfig \"object\" in {}/one.yaml names the executable",
        folder.path().display()
    );
    assert!(output.status.success() && told.contains(&expected), "{told}");
    let mut child = std::process::Command::new(PROGRAM)
        .args(["eval", "--image=example.com/one:v1", &flag])
        .args(functions.flags())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), EMPTY.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout == EMPTY.as_bytes());
}
