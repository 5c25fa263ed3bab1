//! What a caller gets: answers byte for byte, failures in the words of the
//! contract, and bounds on size and time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

use std::time::Duration;

use bytes::Bytes;
use testing::{Server, ServerBuilder, eventually, lines_of, resource_list, wait_until_gone};
use tonic::{Code, Status};
use tonic_types::StatusExt;
use wire::client::{CallOptions, Client};

/// A server of a function that is a shell script.
fn wrapper(script: &str) -> ServerBuilder {
    Server::of(env!("CARGO_BIN_EXE_wrapper-server")).rest(["--", "/bin/sh", "-c", script])
}

/// Calls a function that must fail.
async fn failure(server: &Server, image: &str) -> Status {
    let client = server.client().await;
    client.evaluate(image, resource_list(&["a"]), CallOptions::default()).await.unwrap_err()
}

/// A function that writes its process number to a file, and those of a child, of a child in a session of its
/// own and of one without parent and environment; all ignore being asked to end.
fn crowd(file: &std::path::Path) -> String {
    let file = file.display();
    format!(
        "trap '' TERM HUP INT
         one='echo $$ >> {file}; exec sleep 600'
         sh -c \"$one\" & setsid sh -c \"$one\" & (env -i setsid sh -c \"$one\" &)
         echo $$ >> {file}; echo started >&2; wait; sleep 600"
    )
}

#[tokio::test]
async fn an_answer_is_the_output_byte_for_byte_and_stderr_is_the_log() {
    let server = wrapper("cat; printf 'a word\\377' >&2").start();
    let client = server.client().await;
    for list in [
        resource_list(&["b", "a"]),
        Bytes::from_static(b"{\"kind\": \"ResourceList\",\n\"items\": [ ]}"),
        Bytes::from_static(b"# first\r\nkind:   ResourceList\r\nitems: &all []\r\nmore: *all # last"),
    ] {
        let answer = client.evaluate("", list.clone(), CallOptions::default()).await.unwrap();
        assert_eq!(answer.resource_list, list);
        assert_eq!(answer.log.as_ref(), b"a word\xff");
    }
}

#[tokio::test]
async fn a_failed_function_is_told_with_results_and_stderr() {
    let server = wrapper(
        "cat <<end; echo 'gone wrong' >&2; exit 3
kind: ResourceList
results:
- {message: too small, severity: error, resourceRef: {apiVersion: apps/v1, kind: Deployment, namespace: n, name: d},
   field: {path: spec.replicas}}
- message: by the way
end",
    )
    .start();
    let status = failure(&server, "example.com/fn:v1").await;
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(
        status.message(),
        "failed to evaluate function \"example.com/fn:v1\" with structured results: \
         [error] apps/v1/Deployment/n/d spec.replicas: too small\n\n[info]: by the way and stderr: gone wrong\n"
    );
    let info = status.get_details_error_info().unwrap();
    assert_eq!((&*info.reason, &*info.domain), ("FUNCTION_FAILED", "function-runner"));
    assert_eq!(info.metadata["exit"], "exit status 3");
}

#[tokio::test]
async fn a_function_that_says_nothing_is_told_by_its_exit() {
    for (script, expected) in [("cat; exit 7", "exit status 7"), ("cat; kill -9 $$", "signal: killed")] {
        let status = failure(&wrapper(script).start(), "x").await;
        assert_eq!(status.code(), Code::Internal);
        let text = "failed to evaluate function \"x\" with structured results:  and stderr: ".to_owned();
        assert_eq!(status.message(), text + expected);
    }
}

#[tokio::test]
async fn output_that_is_no_resource_list_is_a_failure() {
    for script in ["echo oops >&2", "echo oops >&2; echo 'kind: List'", "echo oops >&2; echo '{'"] {
        let status = failure(&wrapper(script).start(), "x").await;
        assert_eq!(status.code(), Code::Internal, "{script}");
        let start = "failed to parse the output of function \"x\" with stderr 'oops\n': ";
        assert!(status.message().starts_with(start), "{script}: {}", status.message());
        assert!(status.message().len() > start.len(), "{script}: {status:?}");
    }
}

#[tokio::test]
async fn a_function_that_crashes_is_told_by_its_end_and_its_last_words() {
    for (script, told) in [
        ("echo oops >&2; exit 4", "exit status 4 (oops\n)"),
        ("echo oops >&2; cat; echo ---; echo 'kind: ResourceList'; exit 4", "exit status 4 (oops\n)"),
        ("echo oops >&2; echo '{'; kill -6 $$", "signal: aborted (oops\n)"),
        ("kill -9 $$", "signal: killed ()"),
        ("exit 127", "exit status 127 ()"),
        // Some say on stdout what is wrong.
        ("echo Traceback; exit 1", "exit status 1 (Traceback\n)"),
    ] {
        let status = failure(&wrapper(script).start(), "x").await;
        assert_eq!(status.code(), Code::Internal, "{script}");
        assert_eq!(status.message(), format!("Failed to execute function \"x\": {told}"), "{script}");
        let info = status.get_details_error_info().unwrap();
        assert_eq!(info.reason, "FUNCTION_FAILED");
        assert!(told.starts_with(&info.metadata["exit"]), "{info:?}");
    }
    let status = failure(&wrapper("yes no resources | head -c 1000000; echo end; exit 1").start(), "x").await;
    assert!(
        status.message().ends_with("end\n)") && status.message().len() < 6000,
        "{:.300}",
        status.message()
    );
}

#[tokio::test]
async fn a_function_that_cannot_be_started_is_told_with_its_file() {
    for (entrypoint, cause) in [
        ("/no/such/file", "No such file"),
        ("no-such-program", "No such file"),
        ("/etc/passwd", "Permission denied"),
        ("/tmp", "Permission denied"),
        ("/etc/passwd", "chmod +x is missing"),
        ("no-such-program", "no such program in PATH"),
    ] {
        let server = Server::of(env!("CARGO_BIN_EXE_wrapper-server")).rest(["--", entrypoint]).start();
        let status = failure(&server, "x").await;
        assert_eq!(status.code(), Code::Internal);
        let message = status.message();
        assert!(message.starts_with("Failed to execute function \"x\": "), "{message}");
        assert!(
            message.contains(entrypoint) && message.contains(cause) && message.ends_with(" ()"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn any_image_is_taken_and_shown_shortened() {
    let server = wrapper("cat; if grep -q . /dev/null; then :; fi; exit 1").start();
    let huge = "é".repeat(500_000);
    for image in ["", "not a reference !!", "UPPER/case:@", "new\nline", &huge] {
        let status = failure(&server, image).await;
        assert_eq!(status.code(), Code::Internal, "{image:.20}");
        let shown = if image.len() < 100 {
            format!("function {image:?} with")
        } else {
            "(1000000 bytes)\" with".into()
        };
        assert!(status.message().contains(&shown), "{:.200}", status.message());
        assert!(status.message().len() < 2000);
    }
}

#[tokio::test]
async fn a_long_failure_fits_the_message_and_keeps_its_end() {
    let server = wrapper("cat; seq 1 200000 >&2; echo 'the last words' >&2; exit 1").start();
    let status = failure(&server, "x").await;
    assert_eq!(status.code(), Code::Internal);
    let message = status.message();
    assert!(message.len() < 32 * 1024 && message.len() > 8 * 1024, "{}", message.len());
    assert!(
        message.starts_with("failed to evaluate function \"x\" with structured results: "),
        "{message:.200}"
    );
    assert!(message.contains("bytes cut]") && message.ends_with("200000\nthe last words\n"));
}

#[tokio::test]
async fn the_log_is_kept_to_a_mebibyte_with_a_note_of_what_was_cut() {
    let server = wrapper("seq 1 1000000 >&2; cat").start();
    let list = resource_list(&["a"]);
    let answer = server.client().await.evaluate("x", list, CallOptions::default()).await.unwrap();
    let log = String::from_utf8(answer.log.to_vec()).unwrap();
    assert!(log.len() <= 1024 * 1024 && log.len() > 1_000_000, "{}", log.len());
    assert!(log.ends_with("\n999999\n1000000\n"));
    assert!(log.lines().next().unwrap().contains("cut"), "{log:.200}");
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_before_the_function_runs() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let script = format!("touch {}; cat", ran.display());
    let server = wrapper(&script).flags(["--max-request-body-size=10000"]).start();
    let client = Client::new(server.channel().await, 1_000_000);
    let status = client.evaluate("", vec![b' '; 10_001].into(), CallOptions::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    for part in ["--max-request-body-size", "10000 bytes", "10004 bytes"] {
        assert!(status.message().contains(part), "{part}: {}", status.message());
    }
    assert!(!ran.exists());
    // The largest message that is allowed: three bytes are its field's own.
    let list = [&b"kind: ResourceList\n#"[..], &[b'x'; 9_977]].concat();
    let status = client.evaluate("", list.into(), CallOptions::default()).await.unwrap_err();
    assert!(ran.exists(), "{status:?}");
    assert!(status.message().contains("standard output"), "{status:?}");
}

#[tokio::test]
async fn the_default_limit_lets_nearly_six_mebibytes_through_both_ways() {
    let server = wrapper("cat").start();
    let list = Bytes::from([&b"kind: ResourceList\n#"[..], &vec![b'x'; 6 * 1024 * 1024 - 200]].concat());
    let answer = server.client().await.evaluate("x", list.clone(), CallOptions::default()).await.unwrap();
    assert!(answer.resource_list == list);
}

#[tokio::test]
async fn a_flood_of_output_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("processes");
    let script = format!(
        "sh -c 'echo $$ >> {0}; exec sleep 600' & echo $$ >> {0}; echo started >&2; while :; do echo kind; done",
        file.display()
    );
    let server = wrapper(&script).flags(["--max-request-body-size=100000"]).start();
    let status = failure(&server, "x").await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    for part in ["function \"x\" was not answered", "99936 bytes", "--max-request-body-size", "started"] {
        assert!(status.message().contains(part), "{part}: {}", status.message());
    }
    wait_until_gone(&lines_of(&file, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_is_answered_by_the_server_and_ends_every_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("processes");
    let server = wrapper(&crowd(&file)).start();
    let options = CallOptions { timeout: Some(Duration::from_secs(8)), ..CallOptions::default() };
    let status = server.client().await.evaluate("x", resource_list(&["a"]), options).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    let message = status.message();
    assert!(message.starts_with("function evaluation timed out for x: "), "{message}");
    assert!(message.contains("deadline") && message.ends_with("stderr so far: started\n"), "{message}");
    wait_until_gone(&lines_of(&file, 4));
    eventually("the call's line", || server.log().contains("code=DeadlineExceeded"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("processes");
    let server = wrapper(&crowd(&file)).start();
    let client = server.client().await;
    let call =
        tokio::spawn(
            async move { client.evaluate("x", resource_list(&["a"]), CallOptions::default()).await },
        );
    let processes = lines_of(&file, 4);
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    wait_until_gone(&processes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_gone_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("processes");
    let server = wrapper(&crowd(&file)).start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = runtime.spawn({
        let channel = wire::client::endpoint(&format!("127.0.0.1:{}", server.port())).unwrap();
        async move {
            let client = Client::new(channel.connect().await.unwrap(), 10_000);
            client.evaluate("x", resource_list(&["a"]), CallOptions::default()).await
        }
    });
    let processes = lines_of(&file, 4);
    // With its runtime the client's connection ends.
    runtime.shutdown_background();
    assert!(client.await.is_err());
    wait_until_gone(&processes);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_run_at_once_and_each_gets_its_own_answer() {
    const CALLS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    // Nobody is answered before everybody has started.
    let script = format!(
        "cat; echo $$ >> {0}; until [ $(wc -l < {0}) -ge {CALLS} ]; do sleep 0.1; done",
        folder.path().join("started").display()
    );
    let server = wrapper(&script).start();
    let client = server.client().await;
    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let (client, list) = (client.clone(), resource_list(&[&format!("number-{number}")]));
            tokio::spawn(async move {
                let answer = client.evaluate("x", list.clone(), CallOptions::default()).await;
                assert_eq!(answer.unwrap().resource_list, list);
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}
