//! `functions`, `doc`, `eval` and `explain`.

use std::{fs, path::Path, process::Command};

use function_runner::builtin;
use serde_json::{Value, json};
use testing::Functions;

use super::{PROGRAM, data, list, nowhere, run, text};

/// The program in a folder, where no configuration of the machine counts.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(folder).env("DOCKER_CONFIG", "/nonexistent");
    command
}

fn listed(folder: &Path, flags: &[&str]) -> Value {
    let flags = [&["functions", "--output=json", "--pod-cache-config=/nonexistent"], flags].concat();
    let output = run(&mut command(folder, &flags), "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn functions_lists_all_with_nothing_configured() {
    let folder = nowhere();
    let list = listed(folder.path(), &[]);
    let functions = list["functions"].as_array().unwrap();
    let names: usize = builtin::all().iter().map(|function| function.names().count()).sum();
    assert_eq!(functions.len(), 2 * names);
    for function in builtin::all() {
        for prefix in ["ghcr.io/kptdev/krm-functions-catalog", "gcr.io/kpt-fn"] {
            let row = json!({
                "executor": "builtin", "image": format!("{prefix}/{}", function.name()),
                "runsAs": function.name(), "source": "--builtin-functions=all",
            });
            assert!(functions.contains(&row), "{row} is not in {list:#}");
        }
    }
    assert_eq!(list["builtinFunctions"]["offered"], "all");
    assert_eq!(list["otherImages"]["executor"], Value::Null);
    let output = run(&mut command(folder.path(), &["functions", "--pod-cache-config=/nonexistent"]), "");
    let told = text(&output.stdout);
    assert!(told.starts_with("EXECUTOR   IMAGE "), "{told}");
    assert!(
        told.contains("\nBuilt-in functions: all, as neither a cluster nor any configuration is given.\n")
    );
    assert!(told.ends_with("\nNo other image runs: no cluster is configured (--kubeconfig, KUBECONFIG or an in-cluster account).\n"), "{told}");
    assert!(told.lines().all(|line| line == line.trim_end()), "{told}");
}

#[test]
fn functions_lists_what_is_configured_by_executor() {
    let functions = Functions::new().with_script("echo", "cat").with_entry("gone", &["example.com/gone:~1"]);
    let objects = nowhere();
    let object = "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: FunctionConfig\nmetadata: {name: object}\n\
                  spec:\n  image: set-namespace\n  prefixes: [example.com]\n  goExecutor: {tags: [v1]}\n  \
                  podExecutor: {tags: ['*']}\n";
    fs::write(objects.path().join("object.yaml"), object).unwrap();
    let objects_flag = format!("--function-configs={}", objects.path().display());
    let mut flags = functions.flags();
    flags.push(objects_flag);
    flags.push("--allowed-images=example.com".to_owned());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let folder = nowhere();
    let list = listed(folder.path(), &flags);
    let source = format!("the FunctionConfig \"object\" in {}/object.yaml", objects.path().display());
    let file = |name: &str| functions.folder().join(name).display().to_string();
    let config = functions.config().display().to_string();
    assert_eq!(
        list["functions"],
        json!([
            { "executor": "builtin", "image": "example.com/set-namespace:v1", "runsAs": "set-namespace", "source": source },
            { "executor": "exec", "image": "example.com/echo:v1", "runsAs": file("echo"), "source": config },
            { "executor": "exec", "image": "example.com/gone:~1", "runsAs": file("gone"), "source": config, "problem": "is missing" },
        ])
    );
    assert_eq!(
        list["builtinFunctions"],
        json!({ "offered": "configured", "reason": "--function-configs is given" })
    );
    assert_eq!(list["allowedImages"], json!(["example.com"]));

    // With a cluster, though it is out of reach, pods are listed too.
    let all = [&["functions"], flags.as_slice()].concat();
    let mut command = command(folder.path(), &all);
    command.stdin(std::process::Stdio::null());
    let output = command
        .env("KUBECONFIG", "/nonexistent/kubeconfig")
        .env("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")
        .output()
        .unwrap();
    let told = text(&output.stdout);
    assert!(output.status.success() && told.ends_with("\nAny other image runs in a pod.\n"), "{output:?}");
    assert!(
        told.lines().any(|line| line.starts_with("pod ") && line.contains("example.com/set-namespace:*")),
        "{told}"
    );
    assert!(told.contains("those of the cluster are not considered"), "{told}");
    assert!(told.contains("gone, which is missing"), "{told}");
}

#[test]
fn functions_tells_all_mistakes() {
    let folder = nowhere();
    let output = run(
        &mut command(folder.path(), &["functions", "--output=xml", "--builtin-functions=some", "stray"]),
        "",
    );
    let told = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    // What follows the first word that is no flag is one mistake more.
    for expected in [
        "--output \"xml\"",
        "--builtin-functions \"some\": must be one of off, configured, all, auto",
        "\"stray\"",
    ] {
        assert!(told.contains(expected), "{expected} is not in {told}");
    }
}

#[test]
fn doc_shows_what_a_function_takes() {
    let folder = nowhere();
    for function in builtin::all() {
        let output = run(&mut command(folder.path(), &["doc", function.name()]), "");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told = text(&output.stdout);
        assert!(told.starts_with(&format!("{}: {}\n\n", function.name(), function.summary())), "{told}");
        assert!(told.contains(function.usage().trim_end()), "{told}");
        for line in function.example().lines() {
            assert!(told.contains(&format!("\n  {line}").trim_end().to_owned()), "{line} is not in {told}");
        }
    }
}

#[test]
fn doc_names_the_functions_there_are() {
    let folder = nowhere();
    let names: Vec<_> = builtin::all().iter().map(builtin::Builtin::name).collect();
    let long = "x".repeat(100_000);
    for (arguments, problem) in [
        (&["doc"][..], "name the function to show"),
        (&["doc", "set-nothing"], "\"set-nothing\" is no built-in function"),
        (&["doc", ""], "\"\" is no built-in function"),
        (&["doc", "\u{1b}[31m"], "\"\\u{1b}[31m\" is no built-in function"),
        (&["doc", &long], "is no built-in function"),
        (&["doc", "set-labels", "set-image"], "one function is shown at a time; what is \"set-image\"?"),
    ] {
        let output = run(&mut command(folder.path(), arguments), "");
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
        let list = format!("; there are: {}", names.join(", "));
        assert!(told.contains(problem) && told.contains(&list) && told.len() < 1000, "{told}");
    }
    let output = run(&mut command(folder.path(), &["doc", "--help"]), "");
    assert!(
        output.status.success() && text(&output.stdout).contains("function-runner doc NAME"),
        "{output:?}"
    );
}

#[test]
fn eval_runs_them_on_a_bare_machine() {
    let folder = nowhere();
    for image in ["set-namespace", "set-namespace:v0.4.1", "gcr.io/kpt-fn/set-namespace:v0.2"] {
        let input = list(&data("namespace", "prod"));
        let output = run(&mut command(folder.path(), &["eval", "--image", image]), &input);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(text(&output.stdout).contains("namespace: prod") && output.stderr.is_empty(), "{output:?}");
    }
    let input =
        list("apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata: {name: x}\nsource: print(7)");
    let output = run(&mut command(folder.path(), &["eval", "--image=starlark"]), &input);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), "7\n"));
    // A file of the folder is a configuration.
    fs::write(folder.path().join("config.yaml"), "functions: []\n").unwrap();
    let input = list(&data("namespace", "prod"));
    let output = run(&mut command(folder.path(), &["eval", "--image=set-namespace"]), &input);
    assert!(text(&output.stderr).contains("or for this one too with --builtin-functions=all"), "{output:?}");
    let all = ["eval", "--image=set-namespace", "--builtin-functions=all"];
    assert!(run(&mut command(folder.path(), &all), &input).status.success());
}

#[test]
fn explain_tells_that_they_come_first() {
    let folder = nowhere();
    let flags = ["--timeout=1s", "--pod-cache-config=/nonexistent", "--output=json"];
    let explain = |more: &[&str]| {
        let output = run(&mut command(folder.path(), &[&["explain"], more, &flags[..]].concat()), "");
        (output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    // Nobody answers there: what a built-in function runs needs no registry.
    let prefix = "--default-image-prefix=localhost:1/functions";
    let (code, told) = explain(&["set-namespace:v0.4", prefix]);
    assert_eq!((code, &told["executor"]), (Some(0), &json!("builtin")));
    assert_eq!(
        told["builtin"],
        json!({
            "runs": true, "function": "set-namespace", "entry": "localhost:1/functions/set-namespace",
            "reason": "the entry \"localhost:1/functions/set-namespace\" of --builtin-functions=all names the built-in function set-namespace",
        })
    );
    assert_eq!(told["exec"]["reason"], "it is not asked, as builtin comes first");
    for (flag, reason) in [
        ("--builtin-functions=off", "they are turned off by --builtin-functions"),
        (
            "--builtin-functions=configured",
            "no FunctionConfig lists it under goExecutor, and nothing else is offered as --builtin-functions says so",
        ),
    ] {
        let (code, told) = explain(&["set-namespace:v0.4", prefix, flag]);
        assert_eq!((code, &told["builtin"]["reason"]), (Some(1), &json!(reason)));
    }
    let (_, told) = explain(&["set-nothing", prefix]);
    assert_eq!(told["builtin"]["reason"], "none has its name");
    let output = run(
        &mut command(
            folder.path(),
            &["explain", "set-labels", prefix, "--timeout=1s", "--pod-cache-config=/nonexistent"],
        ),
        "",
    );
    assert!(text(&output.stdout).contains("the built-in function set-labels\n"), "{output:?}");
}
