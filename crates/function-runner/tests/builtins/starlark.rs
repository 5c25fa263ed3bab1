//! `starlark`, which runs in a process of its own.

use std::time::Duration;

use testing::{children_of, eventually};
use tonic::Code;
use wire::client::CallOptions;

use super::{bare, call, common::within_patience, list, nowhere, program, text};

const OWNER: &str = "for resource in ctx.resource_list[\"items\"]:\n  \
                     resource[\"metadata\"][\"annotations\"] = {\"owner\": \"me\"}\nprint(\"done\")";

#[tokio::test]
async fn a_program_changes_resources_whichever_runtimes_there_are() {
    let folder = nowhere();
    for disabled in ["", "exec,pod"] {
        let server = bare(folder.path()).flags([format!("--disable-runtimes={disabled}")]).start();
        let answer = call(&server.client().await, "starlark:v0.5", list(&program(OWNER))).await.unwrap();
        let output = text(&answer.resource_list);
        assert!(output.contains("owner: me") && output.contains("# kept"), "{output}");
        assert_eq!(text(&answer.log), "done\n");
    }
}

#[tokio::test]
async fn a_program_sees_a_clean_environment() {
    let folder = nowhere();
    let server = bare(folder.path()).variable("API_TOKEN", "secret").variable("REGION", "north");
    let server = server.flags(["--exec-env=REGION"]).start();
    let source = "print(sorted(ctx.environment.keys()))\nprint(ctx.environment[\"REGION\"])";
    let answer = call(&server.client().await, "starlark", list(&program(source))).await.unwrap();
    let log = text(&answer.log);
    assert!(log.ends_with("north\n") && !log.contains("API_TOKEN"), "{log}");
}

#[tokio::test]
async fn a_failing_program_is_told_with_its_results() {
    let folder = nowhere();
    let server = bare(folder.path()).start();
    let client = server.client().await;
    let told = call(&client, "starlark:v0.5", list(&program("fail(\"no owner\")"))).await.unwrap_err();
    assert_eq!(told.code(), Code::Internal);
    let begin = "failed to evaluate function \"ghcr.io/kptdev/krm-functions-catalog/starlark:v0.5\" with structured \
                 results: [error]";
    assert!(told.message().starts_with(begin) && told.message().contains("no owner"), "{told}");
    // What cannot be read is the fault of who sent it, whichever function it is for.
    for image in ["starlark:v0.5", "set-namespace:v0.4"] {
        for (input, cause) in [
            ("\u{0}", "line 1"),
            (
                "kind: ResourceList\nitems: []\nitems: []\n",
                "line 3: the field \"items\" is there already; keep one of them",
            ),
        ] {
            let told = call(&client, image, input).await.unwrap_err();
            assert_eq!(told.code(), Code::Internal);
            assert!(told.message().starts_with("Failed to execute function \""), "{told}");
            assert!(told.message().contains("failed to parse the input ResourceList: "), "{told}");
            assert!(told.message().contains(cause), "{told}");
        }
    }
}

#[tokio::test]
async fn an_endless_program_is_ended_at_the_deadline_and_leaves_nothing() {
    let folder = nowhere();
    let server = bare(folder.path()).flags(["--function-timeout=60s"]).start();
    let client = server.client().await;
    let endless = list(&program("print(\"begun\")\nwhile True:\n  pass"));
    let options = CallOptions { timeout: Some(Duration::from_secs(8)), ..CallOptions::default() };
    let told =
        within_patience(client.evaluate("starlark", endless.clone().into(), options)).await.unwrap_err();
    assert_eq!(told.code(), Code::DeadlineExceeded, "{told}");
    for words in ["function evaluation timed out for", "/starlark", "while the function was running", "begun"]
    {
        assert!(told.message().contains(words), "{words} is not in {told}");
    }
    eventually("no process is left", || children_of(server.process()).is_empty());

    // By our own limit, and by cancellation.
    let server = bare(folder.path()).flags(["--function-timeout=1s"]).start();
    let client = server.client().await;
    let told = call(&client, "starlark", endless.clone()).await.unwrap_err();
    assert!(told.message().contains("longer than --function-timeout allows (1s)"), "{told}");
    let abandoned = call(&client, "starlark", endless);
    assert!(tokio::time::timeout(Duration::from_millis(300), abandoned).await.is_err());
    eventually("no process is left", || children_of(server.process()).is_empty());
}

#[tokio::test]
async fn too_much_memory_and_output_end_the_program_only() {
    let folder = nowhere();
    let server = bare(folder.path()).flags(["--max-request-body-size=100000"]).start();
    let client = server.client().await;
    // Much, bit by bit, and more than there can be at once.
    for greedy in ["x = []\nwhile True:\n  x.append(str(len(x)) * 10000)", "x = list(range(2147483647))"] {
        let told = call(&client, "starlark", list(&program(greedy))).await.unwrap_err();
        // The interpreter counts the values of a program itself, and says so in its own words.
        let says_so = ["needs more memory than", "Heap memory limit"];
        let says_so = says_so.iter().any(|words| told.message().contains(words));
        assert!(matches!(told.code(), Code::Internal | Code::ResourceExhausted) && says_so, "{told}");
        assert!(!told.message().contains("/proc/self/exe"), "{told}");
    }
    // The interpreter has no words of its own for this one.
    let deep = "x = []\nfor i in range(1000000):\n  x = [x]\ny = str(x)";
    if let Err(told) = call(&client, "starlark", list(&program(deep))).await {
        assert_eq!(told.code(), Code::ResourceExhausted, "{told}");
        assert!(told.message().contains("too deeply"), "{told}");
    }
    let wordy = "ctx.resource_list[\"items\"][0][\"x\"] = \"word \" * 100000";
    let told = call(&client, "starlark", list(&program(wordy))).await.unwrap_err();
    assert_eq!(told.code(), Code::ResourceExhausted, "{told}");
    assert!(told.message().contains("--max-request-body-size"), "{told}");
    assert!(call(&client, "starlark", list(&program("x = 1"))).await.is_ok());
}
