//! What a request asks for: version constraints in place of a tag, and images that are not allowed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use common::{EMPTY, runner, within_patience};
use testing::{Functions, Server, eventually};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;
use wire::proto::{EvaluateFunctionRequest, function_evaluator_client::FunctionEvaluatorClient};

/// Calls with an image and a tag.
struct Caller(FunctionEvaluatorClient<Channel>);

impl Caller {
    async fn of(server: &Server) -> Self {
        Self(FunctionEvaluatorClient::new(server.channel().await))
    }

    /// What the function said.
    async fn call(&self, image: &str, tag: &str) -> Result<String, Status> {
        let request = EvaluateFunctionRequest {
            resource_list: EMPTY.into(),
            image: image.to_owned(),
            tag: tag.to_owned(),
        };
        let answer = within_patience(self.0.clone().evaluate_function(request)).await?;
        Ok(String::from_utf8_lossy(&answer.into_inner().log).trim().to_owned())
    }
}

#[tokio::test]
async fn the_tag_of_a_request_may_be_a_version_constraint() {
    let functions = Functions::new();
    for (name, code) in [("old", 0), ("new", 0), ("broken", 1), ("main", 0)] {
        functions.write_executable(name, &format!("#!/bin/sh\necho {name} >&2; cat; exit {code}\n"));
    }
    let functions = functions
        .with_entry("old", &["example.com/f:v0.4", "example.com/f:v0.4.1"])
        .with_entry("new", &["example.com/f:v0.4.10", "example.com/f:v1.0.0-rc.1"])
        .with_entry("broken", &["example.com/f:v2.1.0"])
        .with_entry("main", &["example.com/f:main", "example.com/f:latest", "example.com/g:~1.2"]);
    let server = runner(&functions).start();
    let caller = Caller::of(&server).await;
    for (image, tag, expected) in [
        ("example.com/f", "~0.4", "new"),
        ("example.com/f:v0.4.1", "0.4.x", "new"),
        ("example.com/f", "<0.4.10", "old"),
        ("example.com/f", "v0.4", "old"),
        ("example.com/f", "0.4", "new"),
        ("example.com/f", ">=1.0.0-0 <2", "new"),
        ("example.com/f", "main", "main"),
        ("example.com/f:v9", "latest", "main"),
        ("example.com/g", "~1.2", "main"),
        ("example.com/g", "v1.2.9", "main"),
    ] {
        assert_eq!(caller.call(image, tag).await.unwrap(), expected, "{image} {tag}");
    }
    // The error names the version that ran.
    let failed = caller.call("example.com/f", ">1").await.unwrap_err();
    assert!(failed.message().contains(r#"function "example.com/f:v2.1.0""#), "{failed}");
    // What no executable's tag meets is for the next evaluator, and there is none.
    for (image, tag) in [("example.com/f", "~7"), ("example.com/h", "*"), ("example.com/g", ">1.2.5")] {
        let unknown = caller.call(image, tag).await.unwrap_err();
        assert_eq!(unknown.code(), Code::NotFound);
        assert_eq!(unknown.message(), format!("function \"{image}:{tag}\" not found"));
    }
    eventually("the log shows what was asked for", || {
        server.log().contains(r#"function="example.com/f:~7""#)
    });
}

#[tokio::test]
async fn a_tag_that_is_neither_tag_nor_constraint_is_an_invalid_argument() {
    let functions = Functions::new().with_script("echo", "cat");
    let server = runner(&functions).start();
    let caller = Caller::of(&server).await;
    for tag in ["not a tag", ">=", "v1@sha256:0", "\u{1b}[31m", "../v1", &"~1 ".repeat(100_000)] {
        let invalid = caller.call("example.com/echo:v1", tag).await.unwrap_err();
        assert_eq!(invalid.code(), Code::InvalidArgument, "{invalid}");
        assert!(invalid.message().contains("neither a tag nor a version constraint"), "{invalid}");
        assert!(invalid.message().contains("right ones look like ~0.4") && invalid.message().len() < 1000);
    }
}

#[tokio::test]
async fn images_that_are_not_allowed_are_refused_before_anything_else() {
    let functions = Functions::new()
        .with_script("echo", "cat")
        .with_entry("echo", &["example.com/organisation/echo:v1", "example.com/org/echo:v1"])
        .with_entry("gone", &["example.com/org/set-gone:v1"]);
    let server = runner(&functions).flags(["--allowed-images=example.com/org, example.com/set-*"]).start();
    let caller = Caller::of(&server).await;
    caller.call("example.com/org/echo:v1", "").await.unwrap();
    for unknown in ["example.com/org/set-gone:v1", "example.com/set-x"] {
        assert_eq!(caller.call(unknown, "").await.unwrap_err().code(), Code::NotFound, "{unknown}");
    }
    for image in ["example.com/organisation/echo:v1", "example.com/echo:v1", "echo:v1", "example.com/set"] {
        // A constraint does not lead around it.
        for tag in ["", "v1", "*"] {
            let refused = caller.call(image, tag).await.unwrap_err();
            assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
            assert_eq!(refused.get_error_details().error_info().unwrap().reason, "IMAGE_DENIED");
            let told = "is not under --allowed-images (example.com/org, example.com/set-*)";
            assert!(refused.message().contains(told), "{refused}");
        }
    }
    eventually("the refusals are logged", || server.log().matches("code=PermissionDenied").count() == 12);
    assert_eq!(
        server.log().matches("evaluator=\"none\" code=PermissionDenied").count(),
        12,
        "nobody was asked"
    );
}
