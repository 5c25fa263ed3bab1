//! Every kind of failure: its code, its reason and its exact words.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

use process::Exit;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use wire::{DOMAIN, Failure, Full, Room};

const IMAGE: &str = "example.com/f:v1";

fn image() -> String {
    IMAGE.to_owned()
}

fn unavailable() -> Failure {
    Failure::Unavailable { cause: "the cluster does not answer".into() }
}

/// A failure of every kind with what a caller gets of it.
#[allow(clippy::too_many_lines, reason = "a table")]
fn all() -> Vec<(Failure, Code, &'static str, &'static str)> {
    vec![
        (
            Failure::NotFound { image: image(), detail: None },
            Code::NotFound,
            "FUNCTION_NOT_FOUND",
            r#"function "example.com/f:v1" not found"#,
        ),
        (
            Failure::NotFound { image: image(), detail: Some("/functions/f is missing".into()) },
            Code::NotFound,
            "FUNCTION_NOT_FOUND",
            r#"function "example.com/f:v1" not found: /functions/f is missing"#,
        ),
        (
            Failure::FunctionFailed {
                image: image(),
                exit: "exit status 1".into(),
                results: "[error]: wrong".into(),
                stderr: "boom".into(),
                output: Box::default(),
            },
            Code::Internal,
            "FUNCTION_FAILED",
            r#"failed to evaluate function "example.com/f:v1" with structured results: [error]: wrong and stderr: boom"#,
        ),
        (
            Failure::FunctionFailed {
                image: image(),
                exit: "exit status 1".into(),
                results: String::new(),
                stderr: "\n".into(),
                output: Box::default(),
            },
            Code::Internal,
            "FUNCTION_FAILED",
            r#"failed to evaluate function "example.com/f:v1" with structured results:  and stderr: exit status 1"#,
        ),
        (
            Failure::OutputMalformed {
                image: image(),
                exit: Exit::Code(0),
                cause: "the output is empty".into(),
                stderr: "boom".into(),
            },
            Code::Internal,
            "OUTPUT_NOT_A_RESOURCE_LIST",
            r#"failed to parse the output of function "example.com/f:v1" with stderr 'boom': the output is empty"#,
        ),
        (
            Failure::OutputMalformed {
                image: image(),
                exit: Exit::Code(3),
                cause: "the output is empty".into(),
                stderr: "boom".into(),
            },
            Code::Internal,
            "FUNCTION_FAILED",
            r#"Failed to execute function "example.com/f:v1": exit status 3 (boom)"#,
        ),
        (
            Failure::OutputMalformed {
                image: image(),
                exit: Exit::Signal(9),
                cause: "the output is empty".into(),
                stderr: String::new(),
            },
            Code::Internal,
            "FUNCTION_FAILED",
            r#"Failed to execute function "example.com/f:v1": signal: killed ()"#,
        ),
        (
            Failure::NotStarted { image: image(), cause: "exec format error".into() },
            Code::Internal,
            "FUNCTION_NOT_STARTED",
            r#"Failed to execute function "example.com/f:v1": exec format error ()"#,
        ),
        (
            Failure::TimedOut { image: image(), cause: "too late".into(), stderr: String::new() },
            Code::DeadlineExceeded,
            "TIMED_OUT",
            "function evaluation timed out for example.com/f:v1: too late",
        ),
        (
            Failure::TimedOut { image: image(), cause: "too late".into(), stderr: "so far".into() },
            Code::DeadlineExceeded,
            "TIMED_OUT",
            "function evaluation timed out for example.com/f:v1: too late; stderr so far: so far",
        ),
        (
            Failure::Cancelled { image: image() },
            Code::Cancelled,
            "CANCELLED",
            "evaluation of example.com/f:v1 was cancelled by the client",
        ),
        (
            Failure::Exhausted { image: image(), cause: "the queue is full".into(), stderr: String::new() },
            Code::ResourceExhausted,
            "LIMIT_REACHED",
            r#"function "example.com/f:v1" was not answered: the queue is full"#,
        ),
        (
            Failure::MessageTooLarge { size: 7_000_000, limit: 6_291_456 },
            Code::ResourceExhausted,
            "MESSAGE_TOO_LARGE",
            "the message is 7000000 bytes, more than the limit of 6291456 bytes set by --max-request-body-size; \
             raise that flag on the function runner and the flag of the same name on its client",
        ),
        (
            Failure::MemoryFull { full: Full { wanted: 600, used: 700, limit: 1000, held: None } },
            Code::ResourceExhausted,
            "MEMORY_LIMIT_REACHED",
            "the call was refused: 600 bytes more do not fit: 700 of the 1000 bytes that calls may hold at once are \
             taken; try again in 1 s, or raise --max-memory or the container's memory limit",
        ),
        (
            Failure::MemoryFull { full: Full { wanted: 1600, used: 700, limit: 1000, held: None } },
            Code::ResourceExhausted,
            "MEMORY_LIMIT_REACHED",
            "the call was refused: it needs 1600 bytes more, and no caller may hold more than 1000; raise \
             --max-memory or the container's memory limit",
        ),
        (
            Failure::InvalidRequest { cause: "the header grpc-timeout is odd".into() },
            Code::InvalidArgument,
            "REQUEST_INVALID",
            "the header grpc-timeout is odd",
        ),
        (
            Failure::InvalidImage { cause: "invalid image reference \"\": it is empty".into() },
            Code::InvalidArgument,
            "IMAGE_REFERENCE_INVALID",
            "invalid image reference \"\": it is empty",
        ),
        (
            Failure::ImageMissing { image: image(), cause: "MANIFEST_UNKNOWN".into() },
            Code::FailedPrecondition,
            "IMAGE_MISSING",
            r#"image "example.com/f:v1" is not in its registry: MANIFEST_UNKNOWN"#,
        ),
        (
            Failure::ImageDenied { image: image(), cause: "UNAUTHORIZED".into() },
            Code::PermissionDenied,
            "IMAGE_DENIED",
            r#"image "example.com/f:v1" is refused: UNAUTHORIZED"#,
        ),
        (
            Failure::NoPod { image: image(), cause: Box::new(unavailable()) },
            Code::Unavailable,
            "NO_POD",
            "unable to get the grpc client to the pod for example.com/f:v1: the cluster does not answer",
        ),
        (
            Failure::Pod { image: image(), status: Box::new(Status::internal("the wrapper's words")) },
            Code::Internal,
            "POD_FAILED",
            "unable to evaluate example.com/f:v1 with pod evaluator: the wrapper's words",
        ),
        (
            Failure::Unusable { cause: r#"cannot read image "example.com/g": it is broken"#.into() },
            Code::FailedPrecondition,
            "NEEDS_FIXING",
            r#"cannot read image "example.com/g": it is broken"#,
        ),
        (unavailable(), Code::Unavailable, "UNAVAILABLE", "the cluster does not answer"),
        (Failure::Internal { cause: "a fault".into() }, Code::Internal, "INTERNAL", "a fault"),
    ]
}

#[test]
fn every_failure_has_its_code_reason_and_words() {
    for (failure, code, reason, words) in all() {
        assert_eq!((failure.code(), failure.reason(), failure.to_string().as_str()), (code, reason, words));
        let status = Status::from(failure);
        assert_eq!((status.code(), status.message()), (code, words));
        let info = status.get_details_error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str()), (reason, DOMAIN));
        if words.contains(IMAGE) {
            assert_eq!(info.metadata.get("image").map(String::as_str), Some(IMAGE));
        }
    }
}

#[test]
fn what_neither_function_nor_caller_can_help_is_ours() {
    for (failure, _, reason, _) in all() {
        let expected = ["FUNCTION_NOT_STARTED", "NEEDS_FIXING", "INTERNAL"].contains(&reason);
        assert_eq!(failure.is_ours(), expected, "{failure:?}");
    }
    let of_a_pod = |failure: Failure| {
        Failure::Pod { image: image(), status: Box::new(failure.into_status(Room::USUAL)) }.is_ours()
    };
    assert!(of_a_pod(Failure::Internal { cause: "x".into() }));
    assert!(!of_a_pod(unavailable()));
    let cause = Box::new(Failure::Unusable { cause: "x".into() });
    assert!(Failure::NoPod { image: image(), cause }.is_ours());
}

#[test]
fn the_code_of_a_pod_and_of_the_cause_of_no_pod_is_kept() {
    for code in [Code::Internal, Code::DeadlineExceeded, Code::ResourceExhausted, Code::Unavailable] {
        let status = Box::new(Status::new(code, "words"));
        assert_eq!(Failure::Pod { image: image(), status }.code(), code);
    }
    let denied = Failure::ImageDenied { image: image(), cause: "no".into() };
    assert_eq!(Failure::NoPod { image: image(), cause: Box::new(denied) }.code(), Code::PermissionDenied);
}

#[test]
fn the_details_repeat_the_message_because_some_clients_read_only_them() {
    use prost::Message;
    for (failure, code, _, words) in all() {
        let status = Status::from(failure);
        let details = tonic_types::pb::Status::decode(status.details()).unwrap();
        assert_eq!((details.code, details.message.as_str()), (i32::from(code), words));
    }
}

#[test]
fn no_failure_outgrows_its_header() {
    let long = "\u{1F600} \"{%}\" ".repeat(100_000);
    let text = || long.clone();
    for failure in [
        Failure::NotFound { image: text(), detail: Some(text()) },
        Failure::FunctionFailed {
            image: text(),
            exit: "exit status 1".into(),
            results: text(),
            stderr: text(),
            output: Box::new(long.clone().into()),
        },
        Failure::OutputMalformed { image: text(), exit: Exit::Code(0), cause: text(), stderr: text() },
        Failure::OutputMalformed { image: text(), exit: Exit::Code(1), cause: text(), stderr: text() },
        Failure::NotStarted { image: text(), cause: text() },
        Failure::TimedOut { image: text(), cause: text(), stderr: text() },
        Failure::Cancelled { image: text() },
        Failure::Exhausted { image: text(), cause: text(), stderr: text() },
        Failure::InvalidRequest { cause: text() },
        Failure::InvalidImage { cause: text() },
        Failure::ImageMissing { image: text(), cause: text() },
        Failure::ImageDenied { image: text(), cause: text() },
        Failure::NoPod {
            image: text(),
            cause: Box::new(Failure::TimedOut { image: text(), cause: text(), stderr: text() }),
        },
        Failure::Pod { image: text(), status: Box::new(Status::internal(text())) },
        Failure::Unavailable { cause: text() },
        Failure::Internal { cause: text() },
    ] {
        // More than any encoder makes of it: three characters for each byte that is no letter or digit.
        let plain = |byte: &u8| byte.is_ascii_alphanumeric();
        let message = failure.message();
        let encoded: usize = message.bytes().map(|byte| if plain(&byte) { 1 } else { 3 }).sum();
        assert!(encoded < 32 * 1024, "{encoded}: {message:.80}");
        assert!(message.contains(" cut]") || matches!(failure, Failure::Cancelled { .. }), "{message:.80}");
        for (room, total, whole) in [(Room::SMALL, 7 * 1024, 8 * 1024), (Room::USUAL, 72 * 1024, 73 * 1024)] {
            let headers = failure.clone().into_status(room).into_http::<String>().into_parts().0.headers;
            let value = |name: &str| headers.get(name).map_or(0, http::HeaderValue::len);
            let status = value("grpc-message") + value("grpc-status-details-bin");
            assert!((1..=total).contains(&status), "{status}: {message:.80}");
            // As HTTP/2 counts them against a client's limit.
            let list: usize =
                headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
            assert!(list < whole, "{list}: {message:.80}");
        }
    }
}

#[test]
fn details_are_left_out_where_the_message_leaves_no_room_for_them() {
    let failed = |length: usize| Failure::Internal { cause: "x".repeat(length) };
    let has_details = |length: usize, room: Room| !failed(length).into_status(room).details().is_empty();
    assert!(has_details(2_000, Room::SMALL) && !has_details(5_000, Room::SMALL));
    assert!(has_details(100_000, Room::USUAL));
    // The message itself is whole in all of them.
    assert_eq!(failed(5_000).into_status(Room::SMALL).message().len(), 5_000);
}

#[test]
fn who_may_try_again_is_told_when() {
    let full =
        |wanted: usize| Failure::MemoryFull { full: Full { wanted, used: 700, limit: 1000, held: None } };
    let delay =
        |failure: Failure| Status::from(failure).get_details_retry_info().and_then(|info| info.retry_delay);
    assert_eq!(delay(full(600)), Some(std::time::Duration::from_secs(1)));
    assert_eq!(delay(full(1600)), None, "it would never fit");
    let status = Box::new(Status::from(full(600)));
    assert!(delay(Failure::Pod { image: image(), status }).is_some(), "the wrapper's word is handed on");
    assert_eq!(delay(unavailable()), None);
}

#[test]
fn the_outline_leaves_the_words_of_the_function_out() {
    let words = || "password: hidden".to_owned();
    let failed = Failure::FunctionFailed {
        image: image(),
        exit: "exit status 1".into(),
        results: words(),
        stderr: words(),
        output: Box::new(words().into()),
    };
    let status = Box::new(Status::from(failed.clone()));
    for (failure, expected) in [
        (failed, "the function failed: exit status 1"),
        (
            Failure::OutputMalformed {
                image: image(),
                exit: Exit::Code(0),
                cause: "the output is empty".into(),
                stderr: words(),
            },
            "the output is empty",
        ),
        (
            Failure::OutputMalformed {
                image: image(),
                exit: Exit::Signal(11),
                cause: "the output is empty".into(),
                stderr: words(),
            },
            "the function failed: signal: segmentation fault",
        ),
        (Failure::TimedOut { image: image(), cause: "too late".into(), stderr: words() }, "too late"),
        (Failure::Exhausted { image: image(), cause: "too much".into(), stderr: words() }, "too much"),
        (Failure::Pod { image: image(), status }, "the pod answered Internal"),
        (
            Failure::NoPod { image: image(), cause: Box::new(unavailable()) },
            "there is no pod: the cluster does not answer",
        ),
        (Failure::NotFound { image: image(), detail: None }, r#"function "example.com/f:v1" not found"#),
    ] {
        assert_eq!(failure.outline(), expected);
    }
}

#[test]
fn what_a_function_wrote_can_be_told_from_a_message() {
    let told = |stderr: &str| {
        let failure = Failure::TimedOut { image: image(), cause: "too late".into(), stderr: stderr.into() };
        wire::stderr_so_far(&failure.to_string()).to_owned()
    };
    assert_eq!(told("thinking\n"), "thinking\n");
    assert_eq!(told("a; stderr so far: b"), "a; stderr so far: b");
    assert_eq!(told(""), "");
    assert_eq!(wire::stderr_so_far("context deadline exceeded"), "");
}

#[test]
fn what_a_pod_tells_of_its_failure_is_passed_on() {
    let inner = Failure::Exhausted { image: image(), cause: "out of memory".into(), stderr: String::new() };
    let failure = Failure::Pod { image: image(), status: Box::new(inner.into()) };
    let status = Status::from(failure);
    assert_eq!(status.code(), Code::ResourceExhausted);
    let info = status.get_details_error_info().unwrap();
    assert_eq!(
        (info.reason.as_str(), info.metadata["image"].as_str()),
        ("LIMIT_REACHED", "example.com/f:v1")
    );
    // Another's wrapper tells nothing that a program can read.
    let foreign = Status::internal("exit status 1");
    let status = Status::from(Failure::Pod { image: image(), status: Box::new(foreign) });
    assert_eq!(status.get_details_error_info().unwrap().reason, "POD_FAILED");
}

#[test]
fn the_document_has_the_code_and_the_words_of_every_failure() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
    let document = std::fs::read_to_string(file).unwrap();
    let tables = documents::tables(&document);
    let rows = &tables.iter().find(|table| table.head.contains(&"reason".to_owned())).unwrap().rows;
    let reasons = |row: &[String]| -> Vec<String> {
        let words = row[2].split([' ', ';']);
        words.filter(|word| word.len() > 3 && word.to_uppercase() == **word).map(str::to_owned).collect()
    };
    // The first words in quotes, in which names stand for what varies.
    let says = |row: &[String], message: &str| {
        let Some(pattern) = row[3].starts_with('`').then(|| documents::quoted(&row[3])[0]) else {
            return true;
        };
        let names = ["IMAGE", "RESULTS", "STDERR", "CAUSE"];
        let pattern = names.iter().fold(pattern.to_owned(), |pattern, name| pattern.replace(name, "…"));
        // More may follow, such as what a function had written.
        documents::agree(&[format!("{pattern}…")], &[message.to_owned()])
    };
    for (failure, code, reason, message) in all() {
        let told: Vec<_> = rows.iter().filter(|row| reasons(row).iter().any(|told| told == reason)).collect();
        let fits = |row: &&&Vec<String>| {
            (row[1] == format!("{code:?}") || row[1].starts_with("that of ")) && says(row, message)
        };
        assert!(told.iter().any(|row| fits(&row)), "{failure:?} is not as docs/errors.md says: {told:#?}");
    }
    let there: Vec<_> = all().into_iter().map(|(_, _, reason, _)| reason.to_owned()).collect();
    for row in rows {
        assert!(reasons(row).iter().all(|reason| there.contains(reason)), "{row:?}");
    }
}
