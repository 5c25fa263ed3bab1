//! Programs that would not end, in a process as the service starts one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

fn spawn(source: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_starlark"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(list(source, &["kind: A\n"]).as_bytes()).unwrap();
    child
}

/// Runs a program in a process of its own, which is killed at the deadline. Gives its exit code, if it ended
/// by itself, its stdout and stderr.
fn process(source: &str, deadline: Duration) -> (Option<i32>, String, String) {
    let mut child = spawn(source);
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let readers =
        (std::thread::spawn(move || read(&mut stdout)), std::thread::spawn(move || read(&mut stderr)));
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

const LONG: Duration = Duration::from_mins(10);

#[test]
fn a_process_does_what_the_function_does() {
    let (code, stdout, stderr) =
        process("print('hi')\nctx.resource_list['items'][0]['b'] = dict(ctx.environment)", LONG);
    assert_eq!((code, &*stderr), (Some(0), "hi\n"));
    assert!(stdout.ends_with("items:\n- kind: A\n  b: {}\n"), "{stdout}");
    let (code, stdout, stderr) = process("print('before')\nfail('x')", LONG);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("- message: 'fail: x'\n  severity: error\n"), "{stdout}");
    assert_eq!(stderr, "before\nfailed to evaluate function: error: function failure\n");
}

/// Starts a program in a process of its own, and waits until it has printed its first line.
fn start(source: &str) -> Child {
    let mut child = spawn(source);
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    child
}

#[test]
fn an_endless_program_runs_until_it_is_killed() {
    for body in [
        "while True:\n  pass",
        "def f():\n  for i in range(2147483647):\n    pass\nf()",
        "x = 3\nwhile True:\n  x = x * x",
    ] {
        let mut child = start(&format!("print('started')\n{body}"));
        assert_eq!(wait(&mut child, Duration::from_secs(1)), None, "{body}");
    }
}

#[test]
fn a_process_has_limits() {
    let mut child = start("print('started')\nwhile True:\n  pass");
    std::thread::sleep(Duration::from_secs(1));
    let about = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    let (limits, status) = (about("limits"), about("status"));
    child.kill().unwrap();
    child.wait().unwrap();
    let limit =
        |name: &str| limits.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    assert_eq!((limit("Max data size"), limit("Max core file size")), (Some("3221225472"), Some("0")));
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
    let peak: usize = peak.unwrap().parse().unwrap();
    assert!(peak < 100_000, "{peak} kB");
}

#[test]
fn a_greedy_program_ends_before_it_takes_too_much() {
    for source in [
        "x = []\nwhile True:\n  x.append(str(len(x)) * 10000)",
        "x = [0]\nwhile True:\n  x = x + x",
        "x = 'y' * 1000\nwhile True:\n  x = x + x",
        "x = [dict([(i, i) for i in range(100000)])]\nwhile True:\n  x.append(dict(x[0]))",
        "x = [0] * 2000000000",
        "x = 'y' * 2000000000\ny = x + x",
        "x = list(range(2147483647))",
        "x = sorted([1] * 500000000)",
        "x = 1 << 1000000000",
        "x = ('%1000s' % 'x').replace(' ', 'y' * 10000000)",
    ] {
        let (code, stdout, stderr) = process(source, LONG);
        assert!(code.is_some_and(|code| code != 0), "{source}: {code:?} {stderr}");
        let told = stdout.contains("severity: error")
            || ["the program needs more memory than it may have\n", "memory allocation of "]
                .iter()
                .any(|words| stderr.contains(words));
        assert!(told && !stderr.contains("panicked"), "{source}: {stdout} {stderr}");
    }
}

#[test]
fn deep_expressions_are_refused_and_those_that_are_not_do_no_harm() {
    let pieces = ["[", "f(", "{1:", "-", "not ", "1+", "x.", "f()", "x[0]", "1 if 2 else ", "lambda a, b: "];
    let programs = |times: usize| {
        let closing = |piece: &str| match piece.chars().last() {
            Some('[') => "]",
            Some('(') => ")",
            Some(':') => "}",
            _ => "",
        };
        let expression = move |piece: &str| {
            let (open, close) = (piece.repeat(times), closing(piece).repeat(times));
            format!("def g(x, f):\n  return {open}1{close}")
        };
        let elif = format!("if ctx:\n  pass\n{}", "elif ctx:\n  pass\n".repeat(times));
        pieces.iter().map(|piece| expression(piece)).chain([elif]).collect::<Vec<_>>()
    };
    for program in programs(10_000).iter().chain(&programs(1_000_000)) {
        let message = failure(program, &[]);
        assert!(message.starts_with("program:"), "{message}");
        assert!(message.ends_with(": expressions are nested more than 5000 levels deep"), "{message}");
    }
    for program in programs(1_600) {
        run(&program, &[]);
    }
    let blocks: String = (0..1_000).flat_map(|depth| [" ".repeat(depth), "if ctx:\n".to_owned()]).collect();
    assert_eq!(prints(&format!("{blocks}{}print('deep')", " ".repeat(1_000))), ["deep"]);
}

#[test]
fn deep_values_end() {
    let nested = "x = []\nfor i in range(1000000):\n  x = [x]\n";
    for (use_of_it, expected) in [
        ("print(x == [x])", "severity: error"),
        ("ctx.resource_list['items'] = [{'x': x}]", "nested more than 480 levels deep"),
    ] {
        let (code, stdout, stderr) = process(&format!("{nested}{use_of_it}"), LONG);
        assert_eq!(code, Some(1), "{stdout} {stderr}");
        assert!(stdout.contains(expected), "{stdout}");
    }
    // The interpreter has no limit for this: it is done, or the stack is not enough.
    let (code, stdout, stderr) = process(&format!("{nested}y = str(x)"), LONG);
    let ended =
        if code == Some(0) { stdout.contains("\nitems:\n") } else { stderr.contains("overflowed its stack") };
    assert!(ended, "{code:?} {stdout} {stderr}");
}

#[test]
fn a_lot_is_printed_also_if_nobody_reads_it() {
    for source in ["print('x' * 100000000)", "for i in range(100000):\n  print('x' * 100)"] {
        let (code, stdout, stderr) = process(source, LONG);
        assert_eq!(code, Some(0), "{source}");
        assert!(stdout.ends_with("items:\n- kind: A\n") && stderr.starts_with("xxxx"), "{source}");
    }
}

#[test]
fn a_long_program_is_only_long() {
    let program = "x = 1 + 2 # comment\nwhile False: x = 2\n".repeat(20_000);
    assert_eq!(prints(&format!("{program}print(x)")), ["3"]);
    let message = failure(&format!("{program}fail('here')"), &[]);
    assert_eq!(message, "fail: here");
}

#[test]
fn long_messages_are_cut() {
    let message = failure("fail('ä' * 1000000)", &[]);
    assert!(message.starts_with("fail: ää") && message.ends_with("ä..."));
    assert!(message.len() < 10_000, "{}", message.len());
}

#[test]
fn garbage_is_no_program() {
    for source in
        ["\u{feff}x", "🦀", "'''", "\\ x", "%%%", "def", "x = \"\\", "\t x", "while", "while :", "while x:"]
    {
        failure(source, &[]);
    }
}
