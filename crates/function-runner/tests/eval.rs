//! `function-runner eval`: one function, for a person at a terminal.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use common::{EMPTY, PROGRAM, runner};
use tempfile::TempDir;
use testing::{Functions, Server, children_of, eventually, processes_with};

fn functions() -> Functions {
    Functions::new()
        .with_script("echo", "echo 'a word' >&2; cat")
        .with_script("fails", "cat; printf 'results:\\n- message: wrong\\n  severity: error\\n'; exit 4")
        .with_script("stuck", "(setsid sleep 300 >/dev/null 2>&1 &) ; sleep 300")
}

/// Runs `eval` over `input` with these flags and variables.
fn eval(flags: &[String], variables: &[(&str, &str)], input: &str) -> Output {
    let mut child = Command::new(PROGRAM)
        .arg("eval")
        .args(flags)
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn image(name: &str) -> String {
    format!("--image={}", common::image(name))
}

/// The flags of both ways to evaluate: here, and by asking a service.
fn ways(functions: &Functions, server: &Server) -> [Vec<String>; 2] {
    [functions.flags(), vec![format!("--address=127.0.0.1:{}", server.port())]]
}

fn with(flags: &[String], more: &[&str]) -> Vec<String> {
    flags.iter().cloned().chain(more.iter().map(|flag| (*flag).to_owned())).collect()
}

#[test]
fn the_result_goes_to_stdout_and_the_log_to_stderr_wherever_it_is_evaluated() {
    let functions = functions();
    let server = runner(&functions).start();
    let input = format!("# kept\n{EMPTY}");
    for flags in ways(&functions, &server) {
        let output = eval(&with(&flags, &[&image("echo")]), &[], &input);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), input);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "a word\n");
        assert_eq!(output.status.code(), Some(0), "{flags:?}");
    }
}

#[test]
fn a_failure_is_readable_and_exits_with_1() {
    let functions = functions();
    let server = runner(&functions).start();
    for flags in ways(&functions, &server) {
        // What a failed function wrote is there where it ran: a service answers with its message alone.
        let wrote = format!("{EMPTY}results:\n- message: wrong\n  severity: error\n");
        let wrote =
            if flags.iter().any(|flag| flag.starts_with("--address")) { String::new() } else { wrote };
        for (name, expected, wrote) in [
            (
                "fails",
                "Internal: failed to evaluate function \"example.com/fails:v1\" with structured results: \
                 [error]: wrong and stderr: \n",
                &*wrote,
            ),
            ("nobody", "NotFound: function \"example.com/nobody:v1\" not found\n", ""),
        ] {
            let output = eval(&with(&flags, &[&image(name)]), &[], EMPTY);
            assert_eq!(output.status.code(), Some(1));
            assert_eq!(String::from_utf8(output.stdout).unwrap(), wrote, "{flags:?}");
            assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
        }
        let output = eval(&with(&flags, &["--image=Not:An:Image"]), &[], EMPTY);
        assert_eq!(output.status.code(), Some(1));
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.starts_with("InvalidArgument: invalid image reference"), "{told}");
    }
}

#[test]
fn images_that_are_not_allowed_are_refused_here_too() {
    let functions = functions();
    let flags = with(&functions.flags(), &[&image("echo"), "--allowed-images=example.com/echo"]);
    assert_eq!(eval(&flags, &[], EMPTY).status.code(), Some(0));
    let flags = with(&functions.flags(), &[&image("echo"), "--allowed-images=example.com/ech,example.org"]);
    let output = eval(&flags, &[], EMPTY);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("PermissionDenied: image \"example.com/echo:v1\" is refused: "), "{told}");
    let output = eval(&with(&functions.flags(), &[&image("echo"), "--allowed-images=ech*"]), &[], EMPTY);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--allowed-images"));
}

#[test]
fn a_long_error_of_a_service_arrives_whole() {
    let functions = Functions::new().with_script(
        "chatty",
        "cat; yes 'words: 100% {of} \"it\"' | head -c 900000 >&2; echo the end >&2; exit 1",
    );
    let server = runner(&functions).start();
    for flags in ways(&functions, &server) {
        let output = eval(&with(&flags, &[&image("chatty")]), &[], EMPTY);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.starts_with("Internal: failed to evaluate function"), "{told}");
        assert!(told.ends_with("the end\n\n") && told.contains(" bytes cut] …"), "{told}");
    }
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    let output = eval(&["--imagee=x".to_owned(), "--timeout=-1s".to_owned()], &[], EMPTY);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    for expected in [
        "3 mistakes",
        "--imagee: unknown flag; did you mean --image?",
        r#"--timeout "-1s": must be a duration"#,
        "--image",
        "function-runner eval --help",
    ] {
        assert!(told.contains(expected), "{expected:?} is not in:\n{told}");
    }
}

#[test]
fn input_that_is_no_resource_list_is_told_before_anything_runs() {
    let functions = functions();
    for (input, expected) in [
        ("", "is empty"),
        ("kind: ConfigMap\n", "\"ConfigMap\", not ResourceList"),
        ("{[", "not valid YAML"),
        ("kind: ResourceList\n---\nkind: ResourceList\n", "second document"),
    ] {
        let output = eval(&with(&functions.flags(), &[&image("echo")]), &[], input);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.starts_with("function-runner eval: standard input is not a ResourceList: "), "{told}");
        assert!(told.contains(expected) && told.contains("under items:"), "{told}");
        // These words are for whoever typed the command, not for the author of a function.
        assert!(!told.contains("the output") && !told.contains("the function must"), "{told}");
    }
    let flags = with(&functions.flags(), &[&image("echo"), "--max-request-body-size=100"]);
    let output = eval(&flags, &[], &format!("{EMPTY}# {}\n", "x".repeat(100)));
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("larger than 100 bytes") && told.contains("--max-request-body-size"), "{told}");
}

#[test]
fn an_address_where_nobody_answers_is_a_clear_error() {
    // Bound but not listening: nobody else can take the port, and nobody answers.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let output = eval(&[image("echo"), format!("--address=127.0.0.1:{port}")], &[], EMPTY);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let start = format!("function-runner: no function runner answers at 127.0.0.1:{port}");
    assert!(told.starts_with(&start) && told.contains("refused"), "{told}");
    let output = eval(&[image("echo"), "--address=not an address".to_owned()], &[], EMPTY);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains(r#"--address "not an address" is not HOST:PORT"#), "{told}");
}

#[test]
fn the_trace_of_the_caller_is_passed_on() {
    let functions = functions();
    let server = runner(&functions).start();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let flags = [image("echo"), format!("--address=[::1]:{}", server.port())];
    let output = eval(&flags, &[("TRACEPARENT", &parent)], EMPTY);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    eventually("the trace is logged", || server.log().contains(&format!("trace=\"{trace}\"")));
    // What is no trace is left out.
    assert_eq!(eval(&flags, &[("TRACEPARENT", "nonsense")], EMPTY).status.code(), Some(0));
}

#[test]
fn the_timeout_ends_it_and_leaves_no_process() {
    let functions = functions();
    let scratch = TempDir::new().unwrap();
    let mark = scratch.path().to_str().unwrap();
    let server = runner(&functions).start();
    for flags in ways(&functions, &server) {
        let output = eval(&with(&flags, &[&image("stuck"), "--timeout=2s"]), &[("TMPDIR", mark)], EMPTY);
        assert_eq!(output.status.code(), Some(1));
        let told = String::from_utf8(output.stderr).unwrap();
        let start = "DeadlineExceeded: function evaluation timed out for example.com/stuck:v1: ";
        assert!(told.starts_with(start) && told.contains("while the function was running"), "{told}");
        eventually("no process is left", || {
            processes_with(mark).is_empty() && children_of(server.process()).is_empty()
        });
        assert!(std::fs::read_dir(scratch.path()).unwrap().next().is_none());
    }
}
