//! Shutdowns under clients that retry nothing: every call is answered, or could not even connect.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use common::{PATIENCE, PROGRAM, within_patience};
use testing::{Server, Signal, in_own_thread, is_refused};
use tokio::time;
use tonic::transport::Endpoint;
use wire::client::{CallOptions, Client, endpoint};

/// Calls that are answered before the signal comes.
const CALLS_BEFORE: usize = 300;

/// What the clients of a shutdown saw.
#[derive(Debug, Default)]
struct Seen {
    answered: usize,
    lost: Vec<String>,
}

/// A client of its own kind; ends when nobody listens any more.
#[derive(Debug, Clone, Copy)]
enum Habit {
    /// Keeps its connection, as Porch does, until it is told to leave it.
    Keeps,
    /// Connects anew for every call.
    Connects,
}

#[derive(Clone)]
struct Caller {
    endpoint: Endpoint,
    input: Bytes,
    answered: Arc<AtomicUsize>,
}

impl Caller {
    async fn run(self, habit: Habit) -> Seen {
        let mut seen = Seen::default();
        let mut kept = None;
        loop {
            let client = match kept.take() {
                Some(client) => client,
                None => match within_patience(self.endpoint.connect()).await {
                    Ok(channel) => Client::new(channel, 1 << 20),
                    Err(error) if is_refused(&error) => return seen,
                    Err(error) => {
                        seen.lost.push(format!("{habit:?}, connecting: {error:?}"));
                        return seen;
                    }
                },
            };
            let call = client.evaluate("set-namespace:v0.4", self.input.clone(), CallOptions::default());
            match within_patience(call).await {
                Ok(answer) if String::from_utf8_lossy(&answer.resource_list).contains("namespace: prod") => {
                    seen.answered += 1;
                    self.answered.fetch_add(1, Ordering::Relaxed);
                }
                Ok(answer) => seen.lost.push(format!("{habit:?}, another answer: {answer:?}")),
                Err(status) if is_refused(&status) => return seen,
                Err(status) => seen.lost.push(format!("{habit:?}, call {}: {status:?}", seen.answered)),
            }
            if matches!(habit, Habit::Keeps) {
                kept = Some(client);
            }
        }
    }
}

/// A service that is told to end under `clients` clients, half of which connect all the time.
async fn shutdown_under(clients: usize, delay: Duration) -> Seen {
    let input = Bytes::from_static(
        b"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n\
          items:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n\
          functionConfig: {apiVersion: v1, kind: ConfigMap, metadata: {name: it}, data: {namespace: prod}}\n",
    );
    let mut server = Server::of(PROGRAM)
        .flags([
            "--disable-runtimes=exec,pod".to_owned(),
            "--builtin-functions=all".to_owned(),
            format!("--shutdown-delay={}ms", delay.as_millis()),
            // What clients do not take back by then is lost, and told.
            "--shutdown-grace=1m".to_owned(),
        ])
        .start();
    let caller = Caller {
        endpoint: endpoint(&format!("127.0.0.1:{}", server.port())).unwrap(),
        input,
        answered: Arc::default(),
    };
    let start = |number: usize| {
        let habit = if number % 2 == 0 { Habit::Keeps } else { Habit::Connects };
        in_own_thread(caller.clone().run(habit))
    };
    let callers: Vec<_> = (0..clients).map(start).collect();
    let enough = async {
        while caller.answered.load(Ordering::Relaxed) < CALLS_BEFORE {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    within_patience(enough).await;
    server.signal(Signal::TERM);
    let mut all = Seen::default();
    for caller in callers {
        let seen = caller.await.unwrap();
        all.answered += seen.answered;
        all.lost.extend(seen.lost);
    }
    let status = tokio::task::spawn_blocking(move || server.wait(PATIENCE)).await.unwrap();
    assert_eq!(status.code(), Some(0));
    all
}

async fn campaign(shutdowns: usize, clients: usize, delays: &[Duration]) {
    let mut all = Seen::default();
    for (number, delay) in delays.iter().cycle().take(shutdowns).enumerate() {
        let seen = shutdown_under(clients, *delay).await;
        eprintln!("{number}: {delay:?}: {} calls answered, {} lost", seen.answered, seen.lost.len());
        all.answered += seen.answered;
        all.lost.extend(seen.lost);
    }
    let (answered, lost) = (all.answered, all.lost.len());
    eprintln!("{shutdowns} shutdowns under {clients} clients: {answered} calls answered, {lost} lost");
    assert!(all.lost.is_empty(), "{lost} of {} calls were lost: {:#?}", answered + lost, all.lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_lost_at_the_end() {
    campaign(6, 60, &[Duration::ZERO, Duration::from_secs(1)]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half an hour: make campaign"]
async fn no_call_is_lost_in_two_hundred_and_fifty_shutdowns() {
    campaign(252, 200, &[Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)]).await;
}
