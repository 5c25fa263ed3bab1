//! Shutdowns under clients that retry nothing: every call is answered, or could not even connect.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test ends where its set-up fails, and tells figures"
)]

mod common;

use std::time::Duration;

use common::{PATIENCE, PROGRAM};
use testing::{Callers, Question, Seen, Server, Signal};

/// A service that is told to end under `clients` clients, half of which connect all the time.
async fn shutdown_under(clients: usize, delay: Duration) -> Seen {
    let question = Question {
        image: "set-namespace:v0.4".to_owned(),
        input: "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n\
                items:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n\
                functionConfig: {apiVersion: v1, kind: ConfigMap, metadata: {name: it}, data: {namespace: prod}}\n"
            .into(),
        expected: "namespace: prod".to_owned(),
    };
    let mut server = Server::of(PROGRAM)
        .flags(["--disable-runtimes=exec,pod", "--builtin-functions=all", "--shutdown-grace=1m"])
        .flags([format!("--shutdown-delay={}s", delay.as_secs())])
        .start();
    let callers = Callers::start(clients, server.port(), &question);
    callers.have_answers(300).await;
    server.signal(Signal::TERM);
    let seen = callers.finish().await;
    assert_eq!(server.wait(PATIENCE).code(), Some(0));
    seen
}

async fn campaign(shutdowns: usize, clients: usize, delays: &[u64]) {
    let mut all = Seen::default();
    for (number, delay) in delays.iter().cycle().take(shutdowns).enumerate() {
        let seen = shutdown_under(clients, Duration::from_secs(*delay)).await;
        eprintln!("{number}: delay {delay} s, {} calls answered, {} lost", seen.answered, seen.lost.len());
        all.add(seen);
    }
    let (answered, lost) = (all.answered, all.lost.len());
    eprintln!("{shutdowns} shutdowns under {clients} clients: {answered} calls answered, {lost} lost");
    assert!(all.lost.is_empty(), "{lost} of {} calls were lost: {:#?}", answered + lost, all.lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_lost_at_the_end() {
    campaign(6, 60, &[0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half an hour: make campaign"]
async fn no_call_is_lost_in_250_shutdowns() {
    campaign(252, 200, &[0, 1, 5]).await;
}
