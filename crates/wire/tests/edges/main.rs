//! What a server answers to requests that are odd, endless, or more than it has memory for, and to more connections
//! than it has room for.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod connections;
mod scene;

use std::time::Duration;

use http::StatusCode;
use scene::*;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_types::StatusExt;

#[tokio::test]
async fn only_messages_of_protocol_buffers_are_taken() {
    let (address, _) = start();
    let client = connect(address).await;
    for right in
        ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8", "Application/GRPC"]
    {
        let status = call(&client, &[("content-type", right)], evaluate("x", 10)).await;
        assert_eq!(status.code(), Code::Ok, "{right}");
    }
    for wrong in [
        "",
        "application/json",
        "application/grpc+json",
        "application/grpc-web",
        "application/grpc-web+proto",
        "text/html",
    ] {
        let answer = send(&client, request(EVALUATE, &[("content-type", wrong)]), evaluate("x", 10)).await;
        assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{wrong}");
        let text = answer.into_body().data().await.unwrap().unwrap();
        assert!(text.starts_with(b"this is a gRPC service"), "{text:?}");
    }
}

#[tokio::test]
async fn a_malformed_deadline_is_refused_and_one_that_is_over_is_answered_at_once() {
    let (address, _) = start();
    let client = connect(address).await;
    let with = |timeout: &'static str| {
        let client = client.clone();
        async move { call(&client, &[("grpc-timeout", timeout)], evaluate("wait", 10)).await }
    };
    for odd in ["1s", "", "-1S", "1", "123456789S", "S"] {
        let refused = with(odd).await;
        assert_eq!(refused.code(), Code::InvalidArgument, "{odd:?}");
        assert!(refused.message().contains(&format!("grpc-timeout is {odd:?}")), "{refused}");
    }
    for over in ["0n", "0S", "5n", "1m"] {
        assert_eq!(with(over).await.code(), Code::DeadlineExceeded, "{over}");
    }
    let refused = call(&client, &[("grpc-timeout", "5S")], evaluate("x", 10)).await;
    assert_eq!(refused.code(), Code::Ok);
}

#[tokio::test]
async fn compressed_requests_are_refused_unread() {
    let (address, memory) = start();
    let client = connect(address).await;
    for encoding in ["gzip", "deflate", "zstd", "snappy", "br"] {
        let status = call(&client, &[("grpc-encoding", encoding)], evaluate("x", 10)).await;
        assert_eq!(status.code(), Code::Unimplemented, "{encoding}: {status}");
    }
    // However it is called, the answer fits its header.
    let long = "x%".repeat(4000);
    let status = call(&client, &[("grpc-encoding", &long)], evaluate("x", 10)).await;
    assert_eq!(status.code(), Code::Unimplemented, "{status}");
    assert!(status.message().len() < 300, "{status}");
    let mut flagged = evaluate("x", 10).to_vec();
    flagged[0] = 1;
    assert_eq!(call(&client, &[], flagged.into()).await.code(), Code::Internal);
    eventually("all memory comes back", || memory.used() == 0).await;
}

#[tokio::test]
async fn a_failure_fits_the_headers_that_its_caller_reads() {
    let (address, _) = start();
    let client = connect(address).await;
    let python = "grpc-python/1.62.0 grpc-c/39.0.0 (linux; chttp2)";
    for (agent, limit) in [(python, 8 * 1024), ("grpc-go/1.71.0", 73 * 1024)] {
        let answer = send(&client, request(EVALUATE, &[("user-agent", agent)]), evaluate("fail", 10)).await;
        let (status, headers, _) = status(answer).await;
        assert_eq!(status.code(), Code::Internal);
        assert!(
            status.message().contains("bytes cut]") && status.message().ends_with("why \u{1F600} "),
            "{status}"
        );
        let list: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!((limit / 2..limit).contains(&list), "{agent}: {list}");
    }
}

#[tokio::test]
async fn a_request_of_two_messages_is_refused() {
    let (address, _) = start();
    let client = connect(address).await;
    let two = [evaluate("x", 10), evaluate("x", 10)].concat();
    assert_eq!(call(&client, &[], two.into()).await.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn requests_beyond_the_memory_are_refused_and_others_and_health_are_answered() {
    let (address, memory) = start();
    let greedy = connect(address).await;
    let (mut held, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let (answer, sending) = announce(&greedy, LIMIT).await;
        let before = memory.used() + usize::try_from(memory.refused()).unwrap();
        eventually("it is counted or refused", || {
            memory.used() + usize::try_from(memory.refused()).unwrap() > before
        })
        .await;
        if memory.refused() > refused.len() as u64 {
            refused.push(answer);
        } else {
            held.push((answer, sending));
        }
    }
    assert!(memory.used() <= MEMORY && held.len() >= 5, "{} of {memory:?}", held.len());
    for answer in refused {
        let (status, _, _) = status(answer.await.unwrap()).await;
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("raise --max-memory"), "{status}");
        assert!(status.message().contains("try again in 1 s"), "{status}");
        let retry = status.get_details_retry_info().unwrap().retry_delay;
        assert_eq!(retry, Some(Duration::from_secs(1)));
    }
    // Of its own it gets nothing more, but health.
    assert!(is_healthy(&greedy).await);
    let other = connect_from([127, 0, 0, 2], address, LIMIT.try_into().unwrap()).await;
    for _ in 0..20 {
        assert_eq!(call(&other, &[], evaluate("x", LIMIT / 4)).await.code(), Code::Ok);
    }
    drop(held);
    eventually("all memory comes back", || memory.used() == 0).await;
    assert_eq!(call(&greedy, &[], evaluate("x", LIMIT / 2)).await.code(), Code::Ok);
}

#[tokio::test]
async fn calls_that_wait_are_counted_until_they_end() {
    let (address, memory) = start();
    let client = connect(address).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut client = client.clone().ready().await.unwrap();
        let (answer, mut sending) = client.send_request(request(EVALUATE, &[]), false).unwrap();
        sending.send_data(evaluate("wait", LIMIT / 2), true).unwrap();
        waiting.push((answer, sending));
    }
    eventually("all four are counted", || memory.used() > 2 * LIMIT).await;
    // Dropped, they are cancelled.
    drop(waiting);
    eventually("all memory comes back", || memory.used() == 0).await;
}

#[tokio::test]
async fn answers_that_nobody_reads_are_counted_until_their_reader_is_gone() {
    let (address, memory) = start();
    let idle = connect_from([127, 0, 0, 1], address, 0).await;
    let mut unread = Vec::new();
    let mut codes = Vec::new();
    for _ in 0..20 {
        let answer = send(&idle, request(EVALUATE, &[]), evaluate("x", LIMIT / 2)).await;
        codes.push(Status::from_header_map(answer.headers()).map_or(Code::Ok, |status| status.code()));
        unread.push(answer);
    }
    assert!(codes.contains(&Code::Ok) && codes.contains(&Code::ResourceExhausted), "{codes:?}");
    assert!((MEMORY / 2..=MEMORY).contains(&memory.used()), "{memory:?}");
    let other = connect_from([127, 0, 0, 2], address, LIMIT.try_into().unwrap()).await;
    assert_eq!(call(&other, &[], evaluate("x", LIMIT / 4)).await.code(), Code::Ok);
    assert!(is_healthy(&other).await && memory.used() >= MEMORY / 2);
    drop((unread, idle));
    eventually("all memory comes back", || memory.used() == 0).await;
}

#[tokio::test]
async fn endless_health_checks_do_not_shut_out_those_of_others() {
    let (address, memory) = start();
    let greedy = connect(address).await;
    let mut held = Vec::new();
    for _ in 0..900 {
        let mut client = greedy.clone().ready().await.unwrap();
        held.push(client.send_request(request(HEALTH, &[]), false).unwrap());
    }
    let other = connect_from([127, 0, 0, 2], address, LIMIT.try_into().unwrap()).await;
    assert!(is_healthy(&other).await);
    assert_eq!(memory.used(), 0);
    let large = HealthCheckRequest { service: "x".repeat(100_000) };
    let (status, _, _) = status(send(&other, request(HEALTH, &[]), framed(&large)).await).await;
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
}

#[tokio::test]
async fn headers_are_counted_as_messages_are() {
    let (address, memory) = start();
    let greedy = connect(address).await;
    let long = "x".repeat(8 * 1024);
    let mut held = Vec::new();
    for _ in 0..500 {
        let mut client = greedy.clone().ready().await.unwrap();
        held.push(client.send_request(request(EVALUATE, &[("user-agent", &long)]), false).unwrap());
    }
    eventually("some are refused", || memory.refused() > 0).await;
    assert!((MEMORY / 2..=MEMORY).contains(&memory.used()), "{memory:?}");
    let other = connect_from([127, 0, 0, 2], address, LIMIT.try_into().unwrap()).await;
    assert_eq!(call(&other, &[], evaluate("x", LIMIT / 4)).await.code(), Code::Ok);
    drop(held);
    eventually("all memory comes back", || memory.used() == 0).await;
}

#[tokio::test]
async fn who_watches_health_does_not_keep_anybody_from_asking_for_it() {
    let (address, _) = start();
    let greedy = connect(address).await;
    let mut watches = Vec::new();
    for _ in 0..900 {
        let body = framed(&HealthCheckRequest { service: String::new() });
        let mut answer = send(&greedy, request(WATCH, &[]), body).await;
        // Read, lest the client's own library finds that there are too many pieces.
        if Status::from_header_map(answer.headers()).is_none() {
            answer.body_mut().data().await.unwrap().unwrap();
        }
        watches.push(answer);
    }
    let refused = watches.iter().filter(|answer| Status::from_header_map(answer.headers()).is_some()).count();
    assert!((1..900).contains(&refused), "{refused} watches of 900 were refused");
    assert!(is_healthy(&greedy).await);
}
