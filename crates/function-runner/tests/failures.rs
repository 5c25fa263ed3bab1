//! Functions that fail: the code, the words and the details a caller gets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use common::{EMPTY, call, call_within, image, runner};
use testing::{Functions, eventually};
use tonic::{Code, Status};
use tonic_types::StatusExt;
use wire::client::Client;

/// A script that answers with `output`, says `stderr` and exits with `code`.
fn script(output: &str, stderr: &str, code: i32) -> String {
    format!("cat >/dev/null\ncat <<'END'\n{output}END\nprintf '%s' '{stderr}' >&2\nexit {code}")
}

const RESULTS: &str = "\
- message: too few
  severity: error
  resourceRef: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}
  field: {path: spec.replicas}
- message: by the way
";

fn with_results(results: &str) -> String {
    format!("{EMPTY}results:\n{results}")
}

fn wrapped_results() -> String {
    let items = format!("  {}", RESULTS.trim_end().replace('\n', "\n  "));
    with_results(&format!("  items:\n{items}\n"))
}

/// The reason and the metadata of the `google.rpc.ErrorInfo` beside a message.
fn error_info(status: &Status) -> (String, std::collections::HashMap<String, String>) {
    let info = status.get_details_error_info().unwrap_or_else(|| panic!("no details: {status:?}"));
    assert_eq!(info.domain, wire::DOMAIN);
    (info.reason, info.metadata)
}

#[tokio::test]
async fn a_failed_function_is_told_with_its_results_and_stderr() {
    let functions = Functions::new()
        .with_script("listed", &script(&with_results(RESULTS), "boom", 3))
        .with_script("wrapped", &script(&wrapped_results(), "boom", 1))
        .with_script("bare", &script(EMPTY, "boom", 1))
        .with_script("silent", &script(EMPTY, "", 7))
        .with_script("killed", &format!("{}kill -KILL $$", script(EMPTY, "", 0).replace("exit 0", "")));
    let server = runner(&functions).start();
    let client = server.client().await;
    let results = "[error] apps/v1/Deployment/shop/web spec.replicas: too few\n\n[info]: by the way";
    for (name, exit, results, stderr) in [
        ("listed", "exit status 3", results, "boom"),
        ("wrapped", "exit status 1", results, "boom"),
        ("bare", "exit status 1", "", "boom"),
        ("silent", "exit status 7", "", "exit status 7"),
        ("killed", "signal: killed", "", "signal: killed"),
    ] {
        let status = call(&client, name, EMPTY.into()).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal);
        let image = image(name);
        assert_eq!(
            status.message(),
            format!(
                "failed to evaluate function {image:?} with structured results: {results} and stderr: {stderr}"
            )
        );
        let (reason, metadata) = error_info(&status);
        assert_eq!(reason, "FUNCTION_FAILED");
        assert_eq!((&metadata["image"], &*metadata["exit"]), (&image, exit));
    }
}

#[tokio::test]
async fn output_that_is_no_resource_list_is_a_failure() {
    let functions = Functions::new()
        .with_script("empty", "cat >/dev/null; echo noise >&2")
        .with_script("garbage", &script("{[\n", "boom", 0))
        .with_script("other", &script("apiVersion: v1\nkind: Pod\n", "", 0))
        .with_script("several", &script(&format!("{EMPTY}---\n{EMPTY}"), "", 0))
        .with_script("binary", r"cat >/dev/null; printf '\377\376\000\001'");
    let server = runner(&functions).start();
    let client = server.client().await;
    for (name, stderr, cause) in [
        ("empty", "noise\n", "the output is empty"),
        ("garbage", "boom", "the output is not valid YAML at line "),
        ("other", "", r#"the output's kind is "Pod", not ResourceList"#),
        ("several", "", "the output has a second document at line "),
        ("binary", "", "the output is "),
    ] {
        let status = call(&client, name, EMPTY.into()).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal);
        let start = format!(
            "failed to parse the output of function {:?} with stderr '{stderr}': {cause}",
            image(name)
        );
        assert!(status.message().starts_with(&start), "{start:?} does not start {:?}", status.message());
        assert_eq!(error_info(&status).0, "OUTPUT_NOT_A_RESOURCE_LIST");
    }
}

#[tokio::test]
async fn a_function_that_crashes_is_told_by_its_end_and_its_last_words() {
    let functions = Functions::new()
        .with_script("crashed", &script("", "panic: nil", 2))
        .with_script("broke-off", &script("kind: Resou\n", "panic: nil", 2))
        .with_script("killed", "kill -9 $$")
        .with_script("talks", "echo Traceback; exit 1");
    let server = runner(&functions).start();
    let client = server.client().await;
    for (name, exit, words) in [
        ("crashed", "exit status 2", "panic: nil"),
        ("broke-off", "exit status 2", "panic: nil"),
        ("killed", "signal: killed", ""),
        ("talks", "exit status 1", "Traceback\n"),
    ] {
        let status = call(&client, name, EMPTY.into()).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal);
        let expected = format!("Failed to execute function {:?}: {exit} ({words})", image(name));
        assert_eq!(status.message(), expected);
        let (reason, metadata) = error_info(&status);
        assert_eq!((&*reason, &*metadata["exit"]), ("FUNCTION_FAILED", exit));
    }
}

#[tokio::test]
async fn only_the_exit_code_decides_and_what_is_odd_is_warned_of() {
    let odd = EMPTY.replace("config.kubernetes.io/v1", "example.com/v7");
    let nameless = EMPTY.replace("apiVersion: config.kubernetes.io/v1\n", "");
    let beta = EMPTY.replace("/v1", "/v1beta1");
    let functions = Functions::new()
        .with_script("reports", &script(&with_results(RESULTS), "", 0))
        .with_script("talks", &script(EMPTY, "just saying", 0))
        .with_script("odd", &script(&odd, "", 0))
        .with_script("nameless", &script(&nameless, "", 0))
        .with_script("beta", &script(&beta, "", 0));
    let server = runner(&functions).start();
    let client = server.client().await;
    for (name, output, log, warning) in [
        ("reports", with_results(RESULTS), "", Some("exited with 0 but reported an error result")),
        ("talks", EMPTY.to_owned(), "just saying", None),
        ("odd", odd, "", Some(r#"the unknown apiVersion "example.com/v7""#)),
        ("nameless", nameless, "", Some("has no apiVersion")),
        ("beta", beta, "", None),
    ] {
        let answer = call(&client, name, EMPTY.into()).await.unwrap();
        assert_eq!((&*answer.resource_list, &*answer.log), (output.as_bytes(), log.as_bytes()), "{name}");
        let warnings = || -> Vec<String> {
            let about = format!("image={:?}", image(name));
            let lines = server.log();
            lines
                .lines()
                .filter(|line| line.contains(" WARN ") && line.contains(&about))
                .map(Into::into)
                .collect()
        };
        eventually("the call is logged", || server.log().contains(&format!("function={:?}", image(name))));
        match warning {
            None => assert_eq!(warnings(), Vec::<String>::new(), "{name}"),
            Some(warning) => assert!(warnings().concat().contains(warning), "{name}: {:?}", warnings()),
        }
    }
}

#[tokio::test]
async fn a_program_that_cannot_start_is_told_apart_from_one_that_is_not_there() {
    let functions = Functions::new()
        .with_entry("absent", &["example.com/absent:v1"])
        .with_script("plain", "cat")
        .with_entry("foreign", &["example.com/foreign:v1"])
        .with_entry("folder", &["example.com/folder:v1"])
        .with_entry("windows", &["example.com/windows:v1"])
        .with_entry("orphaned", &["example.com/orphaned:v1"]);
    fs::set_permissions(functions.folder().join("plain"), fs::Permissions::from_mode(0o644)).unwrap();
    functions.write_executable("foreign", "\u{7f}ELF, but not for this machine");
    fs::create_dir(functions.folder().join("folder")).unwrap();
    functions.write_executable("windows", "#!/bin/sh\r\ncat\r\n");
    functions.write_executable("orphaned", "#!/no/such/interpreter\n");
    let server = runner(&functions).start();
    let client = server.client().await;
    for (name, hint) in [
        ("absent", "the file is missing"),
        ("plain", "chmod +x is missing"),
        ("folder", "is not a file"),
        ("windows", "end in CRLF"),
        ("orphaned", "the interpreter \"/no/such/interpreter\""),
    ] {
        let status = call(&client, name, EMPTY.into()).await.unwrap_err();
        assert_eq!(status.code(), Code::NotFound, "{status}");
        let path = functions.folder().join(name);
        let start = format!("function {:?} not found: ", image(name));
        assert!(status.message().starts_with(&start), "{}", status.message());
        assert!(status.message().contains(path.to_str().unwrap()), "{}", status.message());
        assert!(status.message().contains(hint), "{}", status.message());
        assert_eq!(error_info(&status).0, "FUNCTION_NOT_FOUND");
        let told = server.log().lines().any(|line| {
            line.contains(&format!("the executable {} ", path.display()))
                && line.contains(hint.trim_start_matches("the file "))
        });
        assert!(told, "{}", server.log());
    }
    let status = call(&client, "foreign", EMPTY.into()).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    let start = format!("Failed to execute function {:?}: cannot start ", image("foreign"));
    assert!(
        status.message().starts_with(&start) && status.message().ends_with(" ()"),
        "{}",
        status.message()
    );
    assert_eq!(error_info(&status).0, "FUNCTION_NOT_STARTED");
    // What appears later is served without a new configuration.
    functions.write_executable("absent", "#!/bin/sh\ncat\n");
    assert!(call(&client, "absent", EMPTY.into()).await.is_ok());
}

/// The end of a call by its deadline. The client itself ends it with Cancelled, some moments later than the server:
/// on a busy machine it may be first now and then, but not each time.
async fn answered_by_the_server(client: &Client, name: &str) -> Status {
    for _ in 0..5 {
        let status = call_within(client, name, EMPTY.into(), Duration::from_secs(4)).await.unwrap_err();
        if status.code() != Code::Cancelled {
            return status;
        }
    }
    panic!("the client is always first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passed_deadline_says_where_the_time_went_before_the_client_gives_up() {
    let functions =
        Functions::new().with_script("stuck", "echo thinking >&2; sleep 300").with_script("next", "cat");
    let server = runner(&functions).flags(["--max-concurrent-executions=1"]).metrics().start();
    let client = server.client().await;
    let running = answered_by_the_server(&client, "stuck").await;
    let other = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "stuck", EMPTY.into()).await }
    });
    eventually("it runs", || server.metrics().contains("function_runner_executions_running 1"));
    let queued = answered_by_the_server(&client, "next").await;
    other.abort();
    for (status, name, place) in [
        (queued, "next", "s while waiting for other functions to finish (see --max-concurrent-executions)"),
        (running, "stuck", "s while the function was running; stderr so far: thinking\n"),
    ] {
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        let start = format!(
            "function evaluation timed out for {}: the deadline of the call passed after ",
            image(name)
        );
        assert!(status.message().starts_with(&start), "{}", status.message());
        assert!(status.message().ends_with(place), "{}", status.message());
        assert_eq!(error_info(&status).0, "TIMED_OUT");
    }
}

#[tokio::test]
async fn a_function_is_ended_by_the_function_timeout() {
    let functions = Functions::new().with_script("stuck", "echo thinking >&2; sleep 300");
    let server = runner(&functions).flags(["--function-timeout=3s"]).start();
    let client = server.client().await;
    let status = call(&client, "stuck", EMPTY.into()).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(
        status.message(),
        "function evaluation timed out for example.com/stuck:v1: the function ran longer than \
         --function-timeout allows (3s); stderr so far: thinking\n"
    );
}

#[tokio::test]
async fn bounds_of_ours_are_resource_exhausted() {
    let functions = Functions::new()
        .with_script("flood", "echo why >&2; sleep 0.2; exec cat /dev/zero")
        .with_script("stuck", "sleep 300");
    let server = runner(&functions)
        .flags([
            "--max-request-body-size=100000",
            "--max-concurrent-executions=1",
            "--max-queued-executions=0",
        ])
        .metrics()
        .start();
    let client = server.client().await;
    let status = call(&client, "flood", EMPTY.into()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let start =
        format!("function {:?} was not answered: the function wrote more than the allowed ", image("flood"));
    assert!(status.message().starts_with(&start), "{}", status.message());
    assert!(status.message().ends_with("--max-request-body-size sets that limit; stderr so far: why\n"));
    assert_eq!(error_info(&status).0, "LIMIT_REACHED");

    let stuck = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "stuck", EMPTY.into()).await }
    });
    while !server.metrics().contains("function_runner_executions_running 1") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let status = call(&client, "stuck", EMPTY.into()).await.unwrap_err();
    stuck.abort();
    assert_eq!(status.code(), Code::ResourceExhausted);
    for words in ["was not answered: ", "--max-queued-executions", "--max-concurrent-executions"] {
        assert!(status.message().contains(words), "{}", status.message());
    }
    assert_eq!(error_info(&status).0, "LIMIT_REACHED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_at_the_bound_refuses_itself_and_nobody_else() {
    let functions = Functions::new().with_script("crowd", "cat").with_script("other", "cat");
    let server =
        runner(&functions).flags(["--max-concurrent-executions=1", "--max-queued-executions=8"]).start();
    let client = server.client().await;
    let crowd: Vec<_> = (0..60)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                loop {
                    if let Err(status) = call(&client, "crowd", EMPTY.into()).await {
                        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                        // Those who are refused come again, but leave the others some of this machine.
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            })
        })
        .collect();
    // Until the places to wait in have run out.
    while call(&client, "crowd", EMPTY.into()).await.is_ok() {}
    for _ in 0..20 {
        let (one, two) =
            tokio::join!(call(&client, "other", EMPTY.into()), call(&client, "other", EMPTY.into()));
        one.unwrap();
        two.unwrap();
    }
    // The crowd was there all the time.
    while call(&client, "crowd", EMPTY.into()).await.is_ok() {}
    for member in crowd {
        member.abort();
    }
}

#[tokio::test]
async fn a_log_that_does_not_fit_beside_the_output_is_cut_and_the_output_is_not() {
    let write = |bytes: usize| format!("head -c {bytes} /dev/zero | tr '\\0' x");
    let output = format!("cat\nprintf '# '\n{}\necho\n", write(60_000));
    let functions = Functions::new()
        .with_script("both", &format!("{{ {}; echo the last words; }} >&2\n{output}", write(60_000)));
    let server = runner(&functions).flags(["--max-request-body-size=100000"]).start();
    let client = server.client().await;
    let answer = call(&client, "both", EMPTY.into()).await.unwrap();
    assert_eq!(answer.resource_list.len(), EMPTY.len() + "# \n".len() + 60_000);
    assert!(answer.resource_list.len() + answer.log.len() <= 100_000, "{}", answer.log.len());
    let log = String::from_utf8(answer.log.to_vec()).unwrap();
    assert!(log.ends_with("xthe last words\n") && log.len() > 30_000, "{}", log.len());
    assert!(log.lines().next().unwrap().contains("bytes"), "{log:.100}");
}

#[tokio::test]
async fn a_megabyte_of_results_and_of_stderr_still_makes_a_readable_message() {
    let functions = Functions::new().with_script(
        "chatty",
        &format!(
            "cat >/dev/null\ncat <<'END'\n{}END\n\
             echo '- message: the first result'\n\
             yes -- '- message: \"one of very many results\"' | head -n 25000\n\
             yes 'trace \u{1F600} line' | head -c 1000000 >&2\n\
             echo 'the last words' >&2\nexit 1",
            with_results("")
        ),
    );
    let server = runner(&functions).start();
    let client = server.client().await;
    let status = call(&client, "chatty", EMPTY.into()).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal, "{status}");
    let message = status.message();
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'%';
    let encoded: usize = message.as_bytes().iter().map(|byte| if plain(byte) { 1 } else { 3 }).sum();
    assert!(encoded < 32 * 1024 && message.len() > 8 * 1024, "{encoded}");
    let start = format!(
        "failed to evaluate function {:?} with structured results: [info]: the first result\n\n",
        image("chatty")
    );
    assert!(message.starts_with(&start), "{}", &message[..200]);
    assert!(message.ends_with("the last words\n"), "{message}");
    let (results, stderr) = message.split_once(" and stderr: ").unwrap();
    assert!(results.ends_with("more bytes cut]"), "{results}");
    assert!(stderr.starts_with('[') && stderr[..40].contains(" bytes cut] …"), "{}", &stderr[..40]);
    assert_eq!(error_info(&status).0, "FUNCTION_FAILED");
}
