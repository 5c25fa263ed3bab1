//! Functions as executables: what they get, what they return, and what is left of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{fs, path::Path, time::Duration};

use bytes::Bytes;
use common::{EMPTY, call, call_within, runner, within_patience};
use proptest::prelude::*;
use tempfile::TempDir;
use testing::{Functions, Server, children_of, eventually, processes_with, resource_list};
use tonic::Code;

#[tokio::test]
async fn output_is_returned_byte_for_byte() {
    let functions = Functions::new().with_script("echo", "cat");
    let server = runner(&functions).start();
    let client = server.client().await;
    for list in [
        "# a comment\napiVersion: config.kubernetes.io/v1\nitems:   # order kept\n- {b: 1, a: 2}\nkind: ResourceList",
        "kind: ResourceList\r\napiVersion: config.kubernetes.io/v1\r\nitems: []\r\n",
        "\u{feff}---\nkind: \"ResourceList\"\napiVersion: config.kubernetes.io/v1\nitems:\n- text: |+\n    x\n\n\n...\n",
        "{\"kind\":\"ResourceList\", \"apiVersion\":\"config.kubernetes.io/v1\",\n\"items\":[{\"x\":1e3}]}\n\n",
        "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nitems: [&a {n: 012}, *a] # é\n",
    ] {
        let answer = call(&client, "echo", list.into()).await.unwrap();
        assert_eq!(answer.resource_list, list.as_bytes());
    }
    let large = resource_list(&vec!["x"; 60_000]);
    assert!(large.len() > 3_500_000);
    assert_eq!(call(&client, "echo", large.clone()).await.unwrap().resource_list, large);
}

#[tokio::test]
async fn input_may_be_ignored_or_left_half_way() {
    let answer = format!("cat <<'END'\n{EMPTY}END");
    let functions = Functions::new()
        .with_script("ignores", &answer)
        .with_script("closes", &format!("exec <&-\n{answer}"))
        .with_script("leaves", &format!("head -c 10 >/dev/null\n{answer}"))
        .with_script(
            "floods",
            &format!("{answer}\nhead -c 300000 /dev/zero | tr '\\0' x >&2\ncat >/dev/null"),
        );
    let server = runner(&functions).start();
    let client = server.client().await;
    for name in ["ignores", "closes", "leaves", "floods"] {
        let answer = call(&client, name, resource_list(&vec!["x"; 40_000])).await.unwrap();
        assert_eq!(answer.resource_list, EMPTY, "{name}");
        assert_eq!(answer.log.len(), if name == "floods" { 300_000 } else { 0 });
    }
}

/// The variables a function is given, as it sees them at its start.
async fn environment(server: &Server) -> Vec<String> {
    let answer = call(&server.client().await, "environment", EMPTY.into()).await.unwrap();
    String::from_utf8(answer.log.to_vec()).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn where_memory_runs_out_the_kernel_takes_functions_first() {
    let functions = Functions::new().with_script("score", "cat\ncat /proc/self/oom_score_adj >&2");
    let server = runner(&functions).start();
    let answer = call(&server.client().await, "score", EMPTY.into()).await.unwrap();
    assert_eq!(answer.log, "1000\n");
}

#[tokio::test]
async fn functions_see_a_clean_environment_and_what_is_let_through() {
    let functions = Functions::new().with_script("environment", "tr '\\0' '\\n' < /proc/$$/environ >&2; cat");
    let secret = |builder: testing::ServerBuilder| {
        builder.variable("API_TOKEN", "secret").variable("REGION", "north").variable("LC_ALL", "C")
    };
    let server = secret(runner(&functions)).start();
    let mut names: Vec<String> =
        environment(&server).await.iter().map(|line| line.split('=').next().unwrap().to_owned()).collect();
    // The last one marks the processes of a call, so that they can be found.
    names.retain(|name| !["LC_CTYPE", "LANGUAGE", "FUNCTION_CALL"].contains(&name.as_str()));
    names.sort();
    assert_eq!(names, ["HOME", "LANG", "LC_ALL", "PATH", "TMPDIR"]);
    let server = secret(runner(&functions)).flags(["--exec-env=REGION,NO_SUCH_VARIABLE"]).start();
    let variables = environment(&server).await;
    assert!(variables.contains(&"REGION=north".to_owned()), "{variables:?}");
    assert!(
        !variables.iter().any(|line| line.contains("secret") || line.contains("NO_SUCH")),
        "{variables:?}"
    );
}

#[tokio::test]
async fn functions_work_in_a_private_empty_folder_that_is_removed() {
    let scratch = TempDir::new().unwrap();
    let functions = Functions::new().with_script(
        "folder",
        "pwd >&2; echo \"$HOME\" >&2; echo \"$TMPDIR\" >&2; ls -A >&2; stat -c %a . >&2\n\
         mkdir -p deep/er; touch deep/er/file; chmod 500 deep/er; cat",
    );
    let server = runner(&functions).variable("TMPDIR", scratch.path().to_str().unwrap()).start();
    let client = server.client().await;
    let (first, second) =
        tokio::join!(call(&client, "folder", EMPTY.into()), call(&client, "folder", EMPTY.into()));
    let folders: Vec<String> = [first, second]
        .map(|answer| {
            let log = String::from_utf8(answer.unwrap().log.to_vec()).unwrap();
            let lines: Vec<_> = log.lines().collect();
            // Working folder, home and temporary folder are one, there is nothing in it, and it is private.
            assert_eq!((lines.len(), lines[0], lines[0], lines[3]), (4, lines[1], lines[2], "700"), "{log}");
            lines[0].to_owned()
        })
        .into();
    assert_ne!(folders[0], folders[1]);
    assert!(folders.iter().all(|folder| Path::new(folder).starts_with(scratch.path())), "{folders:?}");
    eventually("the folders are removed", || is_empty(scratch.path()));
}

/// Whether there is nothing but the service's own folder, and in that nothing but its lock.
fn is_empty(folder: &Path) -> bool {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    entries(folder).flat_map(|own| entries(&own.path())).all(|entry| entry.file_name() == ".lock")
}

#[tokio::test]
async fn functions_inherit_no_descriptors() {
    let functions = Functions::new().with_script("descriptors", "ls -l /proc/self/fd >&2; cat");
    let launcher = ["/bin/sh", "-c", "exec 7</etc/passwd 9>/dev/null; exec \"$@\"", "launcher"];
    let server = runner(&functions).under(launcher).start();
    let inherited = fs::read_link(format!("/proc/{}/fd/7", server.process())).unwrap();
    assert_eq!(inherited, Path::new("/etc/passwd"), "the service itself has it");
    let answer = call(&server.client().await, "descriptors", EMPTY.into()).await.unwrap();
    let log = String::from_utf8(answer.log.to_vec()).unwrap();
    let links = log.lines().filter_map(|line| line.split_once(" -> ")?.0.rsplit(' ').next());
    let numbers: Vec<_> = links.collect();
    // The fourth is the folder that is being listed.
    assert_eq!(numbers, ["0", "1", "2", "3"], "{log}");
    assert_eq!(log.matches("pipe:[").count() + log.matches("socket:[").count(), 3, "{log}");
}

/// Functions that try to outlive their call; each tells in `$STARTED` when it is on its way.
const CLINGING: [(&str, &str); 5] = [
    ("plain", "sleep 300"),
    ("deaf", "trap '' TERM INT HUP; sleep 300; sleep 300"),
    ("session", "setsid sleep 300 & wait"),
    ("daemon", "(setsid sh -c 'trap \"\" TERM; (sleep 300 &) ; sleep 300' &) ; sleep 300"),
    ("crowd", "for i in 1 2 3 4 5; do (sleep 300 | sleep 300) & done; wait"),
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_cancelled_or_late_function() {
    let started = TempDir::new().unwrap();
    let scratch = TempDir::new().unwrap();
    let mut functions = Functions::new();
    for (name, script) in CLINGING {
        functions = functions.with_script(name, &format!("{{ {script}; }} & echo >> $STARTED/{name}; wait"));
    }
    let server = runner(&functions)
        .flags(["--exec-env=STARTED", "--max-concurrent-executions=20"])
        .variable("STARTED", started.path().to_str().unwrap())
        .variable("TMPDIR", scratch.path().to_str().unwrap())
        .start();
    let client = server.client().await;
    let begin = |name: &'static str, late: bool| {
        let client = client.clone();
        tokio::spawn(async move {
            let timeout = Duration::from_secs(if late { 3 } else { 300 });
            call_within(&client, name, EMPTY.into(), timeout).await.unwrap_err()
        })
    };
    let late: Vec<_> = CLINGING.iter().map(|(name, _)| begin(name, true)).collect();
    let cancelled: Vec<_> = CLINGING.iter().map(|(name, _)| begin(name, false)).collect();
    for (name, _) in CLINGING {
        let file = started.path().join(name);
        eventually("both calls started", || fs::read(&file).unwrap_or_default().len() == 2);
    }
    assert!(children_of(server.process()).len() >= 10);
    for call in cancelled {
        call.abort();
    }
    for call in late {
        assert_eq!(within_patience(call).await.unwrap().code(), Code::DeadlineExceeded);
    }
    // The service is the parent of all that lost theirs: no child, no orphan, no zombie.
    eventually("no process is left", || children_of(server.process()).is_empty());
    assert_eq!(processes_with(started.path().to_str().unwrap()), [server.process()]);
    eventually("no folder is left", || is_empty(scratch.path()));
}

#[tokio::test]
async fn what_a_function_leaves_running_after_its_end_is_ended_too() {
    let functions = Functions::new()
        .with_script("leaves", "cat; setsid sleep 300 >/dev/null 2>&1 & (sleep 300 >/dev/null 2>&1 &)");
    let server = runner(&functions).start();
    let answer = call(&server.client().await, "leaves", EMPTY.into()).await;
    assert!(answer.is_ok(), "{answer:?}");
    eventually("no process is left", || children_of(server.process()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_calls_leaves_no_process_no_folder_and_no_wrong_answer() {
    const CALLS: usize = 200;
    let scratch = TempDir::new().unwrap();
    let functions = Functions::new()
        .with_script("echo", "cat > kept; cat kept")
        .with_script("abandoned", "(setsid sleep 300 &) ; sleep 300")
        .with_script("late", "trap '' TERM; sleep 300 & wait; sleep 300");
    let server = runner(&functions)
        .flags(["--max-concurrent-executions=40"])
        .variable("TMPDIR", scratch.path().to_str().unwrap())
        .start();
    let client = server.client().await;
    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                let input = resource_list(&[&format!("call-{number}")]);
                match number % 3 {
                    0 => {
                        let answer = call(&client, "echo", input.clone()).await.unwrap();
                        assert_eq!(answer.resource_list, input);
                    }
                    1 => {
                        // Some are cancelled on their way in, some while they wait, some while they run.
                        let patience = Duration::from_millis(5 * u64::try_from(number).unwrap());
                        let abandoned = call(&client, "abandoned", input);
                        assert!(tokio::time::timeout(patience, abandoned).await.is_err());
                    }
                    _ => {
                        let late = call_within(&client, "late", input, Duration::from_millis(1500)).await;
                        // On a busy machine the client's own clock may be first, which says Cancelled.
                        let code = late.unwrap_err().code();
                        assert!(matches!(code, Code::DeadlineExceeded | Code::Cancelled), "{code:?}");
                    }
                }
            })
        })
        .collect();
    for call in calls {
        within_patience(call).await.unwrap();
    }
    eventually("no process is left", || children_of(server.process()).is_empty());
    eventually("no folder is left", || is_empty(scratch.path()));
    let ended = |code: &str| server.log().matches(&format!(" code={code} ")).count();
    eventually("every good call is logged", || ended("Ok") == CALLS.div_ceil(3));
    let known: usize = ["Ok", "Cancelled", "DeadlineExceeded"].map(ended).iter().sum();
    assert_eq!(server.log().matches(" call function=").count(), known, "calls ended otherwise");
    assert!(call(&client, "echo", Bytes::from(EMPTY)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_one_function_does_not_starve_another() {
    const FLOOD: usize = 30;
    let functions = Functions::new().with_script("slow", "sleep 0.1; cat").with_script("quick", "cat");
    let server = runner(&functions).flags(["--max-concurrent-executions=1"]).metrics().start();
    let client = server.client().await;
    let flood: Vec<_> = (0..FLOOD)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { call(&client, "slow", EMPTY.into()).await.unwrap() })
        })
        .collect();
    eventually("the flood waits", || {
        let metrics = server.metrics();
        let waiting =
            metrics.lines().find_map(|line| line.strip_prefix("function_runner_executions_queued "));
        waiting.is_some_and(|count| count.parse::<f64>().unwrap() >= 20.0)
    });
    call(&client, "quick", EMPTY.into()).await.unwrap();
    let overtaken = flood.iter().filter(|call| !call.is_finished()).count();
    assert!(overtaken >= 10, "only {overtaken} of the flood were still waiting");
    for call in flood {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn a_long_log_keeps_its_end_and_tells_what_was_cut() {
    let script = "cat; yes 'a line of the log' | head -c 3000000 >&2; echo 'the last words' >&2";
    let functions = Functions::new().with_script("chatty", script);
    let server = runner(&functions).start();
    let answer = call(&server.client().await, "chatty", EMPTY.into()).await.unwrap();
    assert_eq!(answer.resource_list, EMPTY);
    let log = String::from_utf8(answer.log.to_vec()).unwrap();
    assert!(log.ends_with("the last words\n"), "{:?}", log.get(log.len() - 40..));
    assert!((1_000_000..1_100_000).contains(&log.len()), "{}", log.len());
    assert!(log.lines().next().unwrap().contains("bytes"), "{:?}", log.lines().next());
}

#[test]
fn no_bytes_as_output_disturb_the_service() {
    let functions = Functions::new().with_script("echo", "cat");
    let server = runner(&functions).start();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let client = runtime.block_on(server.client());
    let words = prop::sample::select(vec![
        "kind: ResourceList\n",
        "items:\n",
        "results:\n",
        "- ",
        "  ",
        "\n",
        "\r\n",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "|",
        "'",
        "\"",
        "#",
        ": ",
        "---\n",
        "...\n",
        "\u{feff}",
        "\0",
        "\t",
        "é",
        "!!binary ",
        "items: ",
    ]);
    let text = prop::collection::vec(words, 0..20).prop_map(|words| words.concat().into_bytes());
    let output = prop_oneof![text, prop::collection::vec(any::<u8>(), 0..300)];
    let cases = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(cases, |(output in output)| {
        match runtime.block_on(call(&client, "echo", output.clone().into())) {
            Ok(answer) => prop_assert_eq!(&*answer.resource_list, &*output),
            Err(status) => {
                prop_assert_eq!(status.code(), Code::Internal, "{}", status);
                let words = "failed to parse the output of function \"example.com/echo:v1\" with stderr '': ";
                prop_assert!(status.message().starts_with(words), "{}", status);
            }
        }
    });
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
