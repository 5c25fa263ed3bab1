//! The end of the service: who is told, who is still answered, and what is left.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use common::{EMPTY, PATIENCE, call, runner, within_patience};
use tempfile::TempDir;
use testing::{
    Functions, Server, Signal, eventually, in_own_thread, is_refused, processes_with, resource_list,
};
use tokio::task::JoinHandle;
use tonic::{Code, Status};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use wire::{
    client::{Client, endpoint},
    proto::EvaluateFunctionResponse,
};

/// A service with a function that runs until the file `open` is in its gate, and tells there that it runs.
struct Gated {
    gate: TempDir,
    server: Server,
    _functions: Functions,
}

impl Gated {
    fn start(flags: &[&str]) -> Self {
        let functions = Functions::new().with_script("echo", "cat").with_script(
            "gated",
            "(setsid sleep 300 >/dev/null 2>&1 &)\necho > $GATE/running\n\
             while [ ! -e $GATE/open ]; do sleep 0.02; done; cat",
        );
        let gate = TempDir::new().unwrap();
        let server = runner(&functions)
            .flags(["--exec-env=GATE"])
            .flags(flags.iter().copied())
            .variable("GATE", gate.path().to_str().unwrap())
            .start();
        Self { gate, server, _functions: functions }
    }

    /// A call that has started to run.
    fn running_call(&self, client: &Client) -> JoinHandle<Result<EvaluateFunctionResponse, Status>> {
        let client = client.clone();
        let running = tokio::spawn(async move { call(&client, "gated", EMPTY.into()).await });
        eventually("the function runs", || self.gate.path().join("running").exists());
        running
    }

    fn open(&self) {
        fs::write(self.gate.path().join("open"), "").unwrap();
    }

    fn logged(&self, words: &str) {
        eventually(words, || self.server.log().contains(words));
    }

    /// No process of any function is there.
    fn nothing_runs(&self) {
        let mark = self.gate.path().to_str().unwrap();
        eventually("all processes are dead", || {
            processes_with(mark).iter().all(|process| *process == self.server.process())
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_signal_only_says_so_the_second_closes_the_port_and_running_calls_finish() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut gated = Gated::start(&["--shutdown-delay=10m"]);
        let client = gated.server.client().await;
        let mut health = HealthClient::new(gated.server.channel().await);
        let mut states = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
        let first = within_patience(states.message()).await.unwrap().unwrap();
        assert_eq!(first.status().as_str_name(), "SERVING");
        let running = gated.running_call(&client);

        gated.server.signal(signal);
        let second = within_patience(states.message()).await.unwrap().unwrap();
        assert_eq!(second.status().as_str_name(), "NOT_SERVING");
        let asked = within_patience(health.check(HealthCheckRequest::default())).await.unwrap();
        assert_eq!(asked.into_inner().status().as_str_name(), "NOT_SERVING");
        // Old connections and new ones are answered.
        assert!(call(&client, "echo", EMPTY.into()).await.is_ok());
        assert!(call(&gated.server.client().await, "echo", EMPTY.into()).await.is_ok());

        gated.server.signal(signal);
        gated.logged("clients are asked to leave");
        let refused = endpoint(&format!("127.0.0.1:{}", gated.server.port())).unwrap();
        eventually("new connections are refused", || {
            std::net::TcpStream::connect(("127.0.0.1", gated.server.port())).is_err()
        });
        assert!(within_patience(refused.connect()).await.is_err());
        assert!(!running.is_finished());
        gated.open();
        assert_eq!(within_patience(running).await.unwrap().unwrap().resource_list, EMPTY);
        assert_eq!(gated.server.wait(PATIENCE).code(), Some(0));
        gated.nothing_runs();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_signal_ends_at_once_and_takes_the_functions_along() {
    let mut gated = Gated::start(&["--shutdown-delay=10m", "--shutdown-grace=10m"]);
    let client = gated.server.client().await;
    let running = gated.running_call(&client);
    gated.server.signal(Signal::TERM);
    gated.logged("told to end");
    gated.server.signal(Signal::TERM);
    gated.logged("clients are asked to leave");
    gated.server.signal(Signal::TERM);
    assert_eq!(gated.server.wait(PATIENCE).code(), Some(1));
    assert!(within_patience(running).await.unwrap().is_err());
    gated.nothing_runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_outlasts_the_grace_is_answered_and_its_processes_are_dead() {
    let mut gated = Gated::start(&["--shutdown-delay=0", "--shutdown-grace=300ms"]);
    let client = gated.server.client().await;
    let running = gated.running_call(&client);
    gated.server.signal(Signal::TERM);
    let status = within_patience(running).await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert_eq!(
        status.message(),
        "the function runner is shutting down and does not wait for example.com/gated:v1 any longer \
         (--shutdown-grace); try again"
    );
    assert_eq!(gated.server.wait(PATIENCE).code(), Some(0));
    gated.nothing_runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_client_does_not_hold_up_the_end() {
    let mut gated = Gated::start(&["--shutdown-delay=0", "--shutdown-grace=10m"]);
    let client = gated.server.client().await;
    assert!(call(&client, "echo", EMPTY.into()).await.is_ok());
    gated.server.signal(Signal::TERM);
    assert_eq!(gated.server.wait(PATIENCE).code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_accepted_is_left_without_an_answer() {
    static STOPPING: AtomicBool = AtomicBool::new(false);
    let functions = Functions::new().with_script("slow", "cat; sleep 0.05");
    let mut server = runner(&functions).flags(["--shutdown-delay=300ms"]).start();
    let mut clients = Vec::new();
    for number in 0..8 {
        let endpoint = endpoint(&format!("127.0.0.1:{}", server.port())).unwrap();
        clients.push(in_own_thread(async move {
            let client = Client::new(endpoint.connect().await.unwrap(), 1 << 20);
            for count in 0_usize.. {
                let input = resource_list(&[&format!("call-{number}-{count}")]);
                match call(&client, "slow", input.clone()).await {
                    Ok(answer) => assert_eq!(answer.resource_list, input),
                    Err(status) => {
                        assert!(STOPPING.load(Ordering::SeqCst), "too early: {status:?}");
                        assert!(is_refused(&status), "{status:?}");
                        return count;
                    }
                }
            }
            unreachable!("the service ends")
        }));
    }
    eventually("the load is on", || server.log().matches("code=Ok").count() > 20);
    STOPPING.store(true, Ordering::SeqCst);
    server.signal(Signal::TERM);
    let mut answered = 0;
    for client in clients {
        answered += tokio::time::timeout(Duration::from_mins(1), client).await.unwrap().unwrap();
    }
    assert_eq!(server.wait(PATIENCE).code(), Some(0));
    eventually("the log is whole", || server.log().contains(" ended\n"));
    let log = server.log();
    let (taken, good) = (log.matches(" call function=").count(), log.matches(" code=Ok ").count());
    assert_eq!((taken, good), (answered, answered), "what was taken in was answered");
}
