//! The end of the server: running calls finish, nothing is left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

use std::{fs, io::Write, net::TcpStream, os::unix::process::ExitStatusExt, path::Path, time::Duration};

use rustix::process::Signal;
use testing::{
    Callers, Question, Server, ServerBuilder, eventually, lines_of, resource_list, wait_until_gone,
};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use wire::client::CallOptions;

const PATIENCE: Duration = Duration::from_mins(2);

/// A server of a function that tells its process number in the file
/// `started`, and goes on once there is a file `go`.
fn waiting(folder: &Path) -> ServerBuilder {
    let script = "cat; echo $$ >> started; until [ -e go ]; do sleep 0.05; done";
    Server::of(env!("CARGO_BIN_EXE_wrapper-server")).rest(["--", "/bin/sh", "-c", script]).folder(folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn running_calls_finish_and_new_ones_are_refused() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = tempfile::tempdir().unwrap();
        let mut server = waiting(folder.path()).start();
        let client = server.client().await;
        let running = tokio::spawn({
            let client = client.clone();
            async move { client.evaluate("x", resource_list(&["a"]), CallOptions::default()).await }
        });
        lines_of(&folder.path().join("started"), 1);
        server.signal(signal);
        eventually("the signal is told", || server.log().contains("told to end"));
        eventually("the port is closed", || TcpStream::connect(("127.0.0.1", server.port())).is_err());
        let refused = client.evaluate("x", resource_list(&["b"]), CallOptions::default()).await.unwrap_err();
        // The client's own word for a call that it does not send over a connection about to end is the second one.
        assert!(matches!(refused.code(), Code::Unavailable | Code::Cancelled), "{refused:?}");
        assert!(!running.is_finished());
        fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(running.await.unwrap().unwrap().resource_list, resource_list(&["a"]));
        assert!(server.wait(PATIENCE).success());
        assert_eq!(lines_of(&folder.path().join("started"), 1).len(), 1, "the refused call did not run");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_lost_at_the_end() {
    for _ in 0..3 {
        let mut server = Server::of(env!("CARGO_BIN_EXE_wrapper-server")).rest(["--", "cat"]).start();
        let question =
            Question { image: "x".to_owned(), input: resource_list(&["a"]), expected: "name: a".to_owned() };
        let callers = Callers::start(20, server.port(), &question);
        callers.have_answers(100).await;
        server.signal(Signal::TERM);
        let seen = callers.finish().await;
        assert!(seen.lost.is_empty(), "{seen:#?}");
        assert!(server.wait(PATIENCE).success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_and_watchers_do_not_hold_it_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = waiting(folder.path()).start();
    let mut health = HealthClient::new(server.channel().await);
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    watch.message().await.unwrap().unwrap();
    server.signal(Signal::TERM);
    assert!(server.wait(PATIENCE).success());
    assert!(watch.message().await.unwrap().is_none(), "the watch is closed in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_never_begin_to_speak_do_not_hold_it_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = waiting(folder.path()).start();
    let connect = || TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let (silent, mut stuck) = (connect(), connect());
    stuck.write_all(b"PRI * HTTP").unwrap();
    // Connections are accepted in their order: when this one is answered, those are accepted.
    HealthClient::new(server.channel().await).check(HealthCheckRequest::default()).await.unwrap();
    server.signal(Signal::TERM);
    assert!(server.wait(PATIENCE).success());
    drop((silent, stuck));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_at_once_and_its_functions_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = waiting(folder.path()).variable("TMPDIR", folder.path().to_str().unwrap()).start();
    let client = server.client().await;
    let call =
        tokio::spawn(
            async move { client.evaluate("x", resource_list(&["a"]), CallOptions::default()).await },
        );
    let processes = lines_of(&folder.path().join("started"), 1);
    server.signal(Signal::TERM);
    eventually("the first signal is told", || server.log().contains("told to end"));
    server.signal(Signal::TERM);
    let status = server.wait(PATIENCE);
    assert_eq!((status.code(), status.signal()), (Some(1), None));
    assert!(call.await.unwrap().is_err());
    wait_until_gone(&processes);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_functions_left_behind_is_gone_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let script = "cat; (setsid sh -c 'echo $$ >> left; exec sleep 600' >/dev/null 2>&1 </dev/null &); \
                  until [ -s left ]; do sleep 0.02; done; touch $TMPDIR/file";
    let place = tempfile::tempdir().unwrap();
    let mut server = Server::of(env!("CARGO_BIN_EXE_wrapper-server"))
        .rest(["--", "/bin/sh", "-c", script])
        .folder(folder.path())
        .variable("TMPDIR", place.path().to_str().unwrap())
        .start();
    let client = server.client().await;
    client.evaluate("x", resource_list(&["a"]), CallOptions::default()).await.unwrap();
    server.signal(Signal::TERM);
    assert!(server.wait(PATIENCE).success());
    assert!(fs::read_dir(place.path()).unwrap().next().is_none(), "its folder is removed");
    wait_until_gone(&lines_of(&folder.path().join("left"), 1));
}
