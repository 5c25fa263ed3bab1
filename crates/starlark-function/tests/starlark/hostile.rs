//! Programs that would not end, in a process as the service starts one.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// Runs a program in a process of its own, which is killed at the deadline. Gives its exit code, if it ended
/// by itself, its stdout and stderr.
fn process(source: &str, deadline: Duration) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_starlark"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(list(source, &["kind: A\n"]).as_bytes()).unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let readers = (
        std::thread::spawn(move || read(&mut stdout)),
        std::thread::spawn(move || read(&mut stderr)),
    );
    let code = wait(&mut child, deadline);
    (code, readers.0.join().unwrap(), readers.1.join().unwrap())
}

fn read(stream: &mut impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    stream.take(1 << 20).read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn wait(child: &mut Child, deadline: Duration) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code().unwrap_or(-1));
        }
        if start.elapsed() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

const LONG: Duration = Duration::from_secs(120);

#[test]
fn a_process_does_what_the_function_does() {
    let (code, stdout, stderr) = process("print('hi')\nctx.resource_list['items'][0]['b'] = dict(ctx.environment)", LONG);
    assert_eq!((code, &*stderr), (Some(0), "hi\n"));
    assert!(stdout.ends_with("items:\n- kind: A\n  b: {}\n"), "{stdout}");
    let (code, stdout, stderr) = process("print('before')\nfail('x')", LONG);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("- message: 'program:2:1: fail: x'\n  severity: error\n"), "{stdout}");
    assert!(stderr.starts_with("before\nTraceback"), "{stderr}");
}

#[test]
fn an_endless_program_ends_at_the_deadline_of_its_process() {
    for source in ["print('started')\nwhile True:\n  pass", "def f():\n  for i in range(2147483647):\n    pass\nprint('started')\nf()"] {
        let start = Instant::now();
        let (code, stdout, stderr) = process(source, Duration::from_secs(3));
        assert_eq!((code, &*stdout, &*stderr), (None, "", "started\n"));
        assert!(start.elapsed() < LONG);
    }
}

#[test]
fn a_greedy_program_ends_before_it_takes_too_much() {
    for source in [
        "x = []\nwhile True:\n  x.append(str(len(x)) * 10000)",
        "x = 'y' * 1000\nwhile True:\n  x = x + x",
        "x = [0] * 2000000000",
        "x = 'y' * 2000000000\ny = x + x",
        "x = list(range(2147483647))",
        "x = sorted([1] * 500000000)",
    ] {
        let (code, stdout, stderr) = process(source, LONG);
        assert!(code.is_some_and(|code| code != 0), "{source}: {code:?} {stderr}");
        assert!(!stdout.contains("items:\n- kind: A\n") || stdout.contains("severity: error"), "{stdout}");
        assert!(stdout.contains("severity: error") || !stderr.is_empty(), "{source}: {stdout} {stderr}");
    }
}

#[test]
fn deep_programs_end() {
    let brackets = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let calls = "def f(x):\n  return f([x])\nf(1)".to_owned();
    let nested = "x = []\nfor i in range(1000000):\n  x = [x]\nprint(x == [x])\nctx.resource_list['items'] = [{'x': x}]".to_owned();
    let shown = "x = []\nfor i in range(1000000):\n  x = [x]\ny = str(x)".to_owned();
    let operators = format!("x = {}1", "-".repeat(200_000));
    for source in [brackets, calls, nested, shown, operators] {
        let (code, stdout, stderr) = process(&source, LONG);
        let start: String = source.chars().take(40).collect();
        // Some of them are still within what can be done, at least in an optimised build.
        let ended = match code {
            Some(0) => stdout.contains("\nitems:\n"),
            Some(_) => stdout.contains("severity: error") || stderr.contains("overflow"),
            None => false,
        };
        assert!(ended, "{start}: {code:?} {stdout} {stderr}");
    }
}

#[test]
fn garbage_is_no_program() {
    for source in ["\u{feff}x", "🦀", "'''", "\\", "%%%", "def", "x = \"\\", "\t x", "while", "while :", "while x:"] {
        failure(source, &[]);
    }
}
