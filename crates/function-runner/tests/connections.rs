//! More connections than there is room for: those who call are served, those who only wait make room.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{fs, io::Write, net::TcpStream, time::Duration};

use common::{EMPTY, PROGRAM, image, runner, within_patience};
use futures::future::join_all;
use testing::{Functions, Server, ServerBuilder, eventually};
use wire::client::{CallOptions, Client};

/// How every client of HTTP/2 begins, up to its empty settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn builtins() -> ServerBuilder {
    Server::of(PROGRAM).flags(["--disable-runtimes=exec,pod", "--builtin-functions=all"])
}

/// Connections that say no more than `greeting`, and then nothing.
fn idlers(server: &Server, count: usize, greeting: &[u8]) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        // It may be closed already, to make room for the next.
        let _ = stream.write_all(greeting);
        stream
    };
    (0..count).map(connect).collect()
}

async fn is_answered(client: &Client) {
    assert!(within_patience(client.is_serving()).await.unwrap());
}

/// Hundredths of a second of processor time that a process has used.
fn processor_time(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_leave_descriptors_to_functions_and_it_does_not_spin() {
    let functions = Functions::new().with_script("echo", "cat");
    let server = runner(&functions).under(["sh", "-c", r#"ulimit -n 64; exec "$@""#, "sh"]).start();
    let early = server.client().await;
    is_answered(&early).await;
    // More than there are descriptors for; those that fall silent before they have greeted, too.
    for greeting in [GREETING, &GREETING[..10]] {
        let idle = idlers(&server, 100, greeting);
        eventually("that is told", || server.log().contains("one client has most connections"));
        let before = processor_time(server.process());
        for _ in 0..20 {
            is_answered(&early).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let used = processor_time(server.process()) - before;
        assert!(
            used < 50,
            "{used} hundredths of a second of processor time for twenty small calls in a second"
        );
        let later = within_patience(server.client()).await;
        let echo = image("echo");
        let calls = (0..8).map(|_| later.evaluate(&echo, EMPTY.into(), CallOptions::default()));
        for answer in within_patience(join_all(calls)).await {
            answer.unwrap();
        }
        is_answered(&early).await;
        drop(idle);
    }
    assert_eq!(server.log().matches("one client has most connections").count(), 1, "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_bounded_and_the_idle_make_room() {
    let server = builtins().start();
    let early = server.client().await;
    let idle = idlers(&server, 1500, GREETING);
    is_answered(&early).await;
    is_answered(&within_patience(server.client()).await).await;
    let open = fs::read_dir(format!("/proc/{}/fd", server.process())).unwrap().count();
    assert!(open < 1100, "{open}");
    drop(idle);
}
