//! The program linked under the name of a function is that function.

use std::{
    io::Read as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use function_runner::builtin;
use testing::{Functions, eventually};
use wire::client::CallOptions;

use super::{
    call,
    common::{PROGRAM, runner},
    data, list, nowhere, package, program, run, text,
};

fn link(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    symlink(PROGRAM, &path).unwrap();
    path
}

#[test]
fn it_reads_stdin_writes_stdout_and_tells_by_its_exit() {
    let folder = nowhere();
    let set_namespace = link(folder.path(), "set-namespace");
    let output = run(&mut Command::new(&set_namespace), &list(&data("namespace", "prod")));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("namespace: prod") && output.stderr.is_empty(), "{output:?}");
    // Flags are none of its business.
    let output = run(Command::new(&set_namespace).arg("--help"), &list(&data("namespace", "prod")));
    assert!(text(&output.stdout).contains("namespace: prod"), "{output:?}");

    let output = run(&mut Command::new(&set_namespace), &list(&data("other", "x")));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("severity: error"), "{output:?}");
    let output = run(&mut Command::new(&set_namespace), "not a list");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(text(&output.stderr).starts_with("failed to evaluate function: "), "{output:?}");

    let starlark = link(folder.path(), "starlark");
    let output = run(&mut Command::new(starlark), &list(&program("print(\"hello\")")));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), "hello\n"));
}

#[tokio::test]
async fn under_a_name_that_is_none_it_says_so_and_serves_nothing() {
    let folder = nowhere();
    let output = run(&mut Command::new(link(folder.path(), "kubeval")), &list(&data("a", "b")));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        text(&output.stderr).starts_with("kubeval: there is no built-in function of this name"),
        "{output:?}"
    );
    // As an executable too, whatever kind of link it is.
    let functions = Functions::new().with_program("kubeval", Path::new(PROGRAM));
    let server = runner(&functions).start();
    let client = server.client().await;
    let told =
        client.evaluate("example.com/kubeval:v1", list(&data("a", "b")).into(), CallOptions::default());
    let told = told.await.unwrap_err();
    assert!(told.message().contains("exit status 2 (kubeval: there is no built-in function"), "{told}");
}

#[test]
fn every_name_is_a_function_and_no_other() {
    let folder = nowhere();
    for function in builtin::all() {
        for name in function.names() {
            let path = link(folder.path(), name);
            let output = run(&mut Command::new(path), &package(function.example()));
            assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        }
    }
    for other in ["set-project", "server", "function-runner", "set-namespace-v9"] {
        let output = run(Command::new(link(folder.path(), other)).arg("--version"), "");
        assert!(text(&output.stdout).starts_with("function-runner "), "{other}: {output:?}");
    }
}

#[test]
fn streams_that_fail_are_told_and_nothing_panics() {
    let folder = nowhere();
    let path = link(folder.path(), "set-namespace");
    // Stdin is a folder, which cannot be read.
    let here = std::fs::File::open(folder.path()).unwrap();
    let output = Command::new(&path).stdin(here).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("failed to evaluate function: cannot read stdin: "), "{output:?}");

    // Stdout is a pipe that nobody reads.
    let mut input = list(&data("namespace", "prod"));
    while input.len() < 300_000 {
        input.push_str("- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: x}\n");
    }
    let mut child = Command::new(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(told.contains("cannot write stdout: ") && !told.contains("panicked"), "{told}");
}

#[tokio::test]
async fn it_is_an_executable_for_configurations_that_point_to_one() {
    let mut functions = Functions::new();
    for name in ["set-namespace", "starlark"] {
        link(&functions.folder(), name);
        functions = functions.with_entry(name, &[&format!("example.com/{name}:v1")]);
    }
    // A name that is not among ours goes on to the next runtime.
    let functions = functions.with_entry("not-ours", &["example.com/not-ours:v1"]);
    let server = runner(&functions).start();
    let client = server.client().await;
    let answer =
        call(&client, "example.com/set-namespace:v1", list(&data("namespace", "prod"))).await.unwrap();
    assert!(text(&answer.resource_list).contains("namespace: prod"));
    let answer = call(&client, "example.com/starlark:v1", list(&program("print(1)"))).await.unwrap();
    assert_eq!(text(&answer.log), "1\n");
    let told = call(&client, "example.com/not-ours:v1", list("")).await.unwrap_err();
    assert_eq!(told.code(), tonic::Code::NotFound, "{told}");
    eventually("the call is logged", || server.log().contains("evaluator=\"exec\" code=Ok"));
}

#[test]
fn the_hidden_argument_takes_the_names_of_functions_only() {
    for arguments in [&["as-function"][..], &["as-function", "nobody"], &["as-function", ""]] {
        let output = run(Command::new(PROGRAM).args(arguments), "");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        assert!(text(&output.stderr).contains("no such built-in function"), "{output:?}");
    }
}
