//! Built-in functions through gRPC: what they answer, and how they fail.

use std::time::Duration;

use function_runner::builtin;
use tonic::Code;
use wire::client::CallOptions;

use super::{bare, call, common::within_patience, data, list, nowhere, package, text};

#[tokio::test]
async fn only_what_changes_is_changed() {
    let folder = nowhere();
    let server = bare(folder.path()).start();
    let client = server.client().await;
    let input = list(&data("namespace", "prod"));
    let answer = call(&client, "set-namespace", input.clone()).await.unwrap();
    let output = text(&answer.resource_list);
    assert_ne!(output, input);
    for (before, after) in input.lines().zip(output.lines()) {
        assert!(before == after || after.contains("namespace: prod"), "{before:?} became {after:?}");
    }
    // A second time nothing but the results can differ.
    let again = call(&client, "set-namespace", answer.resource_list.clone()).await.unwrap();
    let resources = |output: &str| output.split("\nresults:").next().unwrap().to_owned();
    assert_eq!(resources(text(&again.resource_list)), resources(output));
}

#[tokio::test]
async fn every_function_answers_and_its_example_works() {
    let folder = nowhere();
    let server = bare(folder.path()).metrics().start();
    let client = server.client().await;
    for function in builtin::all() {
        for name in function.names() {
            let input = package(function.example());
            let answer = call(&client, name, input.clone()).await;
            let answer = answer.unwrap_or_else(|status| panic!("{name}: {}", status.message()));
            assert!(text(&answer.resource_list).contains("kind: ResourceList"), "{name}");
            assert_ne!(answer.resource_list, input, "{name} does nothing");
        }
    }
    let metrics = server.metrics();
    for function in builtin::all() {
        let label = format!("function=\"{}\"", function.name());
        let counted =
            metrics.lines().any(|line| line.contains(&label) && line.contains("evaluator=\"builtin\""));
        assert!(counted, "{label} is not in:\n{metrics}");
    }
}

#[tokio::test]
async fn a_failure_reads_as_that_of_a_process() {
    let folder = nowhere();
    let server = bare(folder.path()).start();
    let client = server.client().await;
    let told = call(&client, "set-namespace:v0.4", list(&data("other", "x"))).await.unwrap_err();
    assert_eq!(told.code(), Code::Internal);
    let begin = "failed to evaluate function \"ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4\" with \
                 structured results: [error]";
    assert!(told.message().starts_with(begin) && told.message().contains(" and stderr: "), "{told}");

    for hostile in [
        "",
        "not yaml: [",
        "kind: List\n",
        "\u{0}\u{1}",
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: {a: b}\n",
        &format!("kind: ResourceList\nitems: {}", "[".repeat(100_000)),
        "kind: ResourceList\na: &a [x,x]\nb: &b [*a,*a]\nitems: [*b, *b]\nitems: []\n",
    ] {
        let shown: String = hostile.chars().take(40).collect();
        match call(&client, "set-namespace", hostile.to_owned()).await {
            Ok(answer) => assert!(!answer.resource_list.is_empty(), "{shown}"),
            Err(told) => assert_eq!(told.code(), Code::Internal, "{shown}: {told}"),
        }
    }
    let told = call(&client, "set-namespace", vec![0xff, 0xfe, b'a']).await.unwrap_err();
    assert!(told.message().starts_with("Failed to execute function"), "{told}");
    assert!(told.message().contains(": exit status 1 ("), "{told}");
    assert!(
        told.message().contains("failed to parse the input ResourceList: line 1: not valid UTF-8"),
        "{told}"
    );
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[tokio::test]
async fn an_output_beyond_the_limit_is_refused_as_that_of_an_executable() {
    let folder = nowhere();
    let limit = 4096;
    let server = bare(folder.path()).flags([format!("--max-request-body-size={limit}")]).start();
    // Once in the configuration, and on each of the resources.
    let input = package(&data("key", &"v".repeat(2000)));
    assert!(input.len() < limit);
    let told = call(&server.client().await, "set-annotations", input).await.unwrap_err();
    assert_eq!(told.code(), Code::ResourceExhausted, "{told}");
    for words in
        ["set-annotations", "more than 4032 bytes of output, because of `data`", "--max-request-body-size"]
    {
        assert!(told.message().contains(words), "{words} is not in {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_large_calls_at_once_are_all_answered_and_keep_their_deadlines() {
    let folder = nowhere();
    let server = bare(folder.path()).start();
    let client = server.client().await;
    let mut input = list(&data("namespace", "prod"));
    while input.len() < 300_000 {
        input.push_str("- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: x # kept\n");
    }
    let calls: Vec<_> = (0..24)
        .map(|number| {
            let (client, input) = (client.clone(), input.clone());
            tokio::spawn(async move {
                // Some give up at once: what they began must not hold up the others.
                let timeout = (number % 3 == 0).then_some(Duration::from_millis(20));
                let options = CallOptions { timeout, ..CallOptions::default() };
                let answered = within_patience(client.evaluate("set-namespace", input.into(), options)).await;
                match answered {
                    Ok(answer) => assert!(text(&answer.resource_list).contains("namespace: prod")),
                    Err(status) => {
                        assert!(timeout.is_some(), "{status}");
                        assert!(
                            matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled),
                            "{status}"
                        );
                    }
                }
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}
