//! The end of the service by signals that are not meant for it, and what is left then: nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{fs, path::Path};

use common::{EMPTY, PATIENCE, call, runner};
use tempfile::TempDir;
use testing::{Functions, Server, Signal, eventually, processes_with};

/// A service with a running function that has started more, known by the text in `mark`.
async fn start(functions: &Functions, mark: &TempDir, scratch: &TempDir) -> Server {
    let server = runner(functions)
        .flags(["--exec-env=MARK", "--shutdown-delay=0s", "--shutdown-grace=0s"])
        .variable("MARK", mark.path().to_str().unwrap())
        .variable("TMPDIR", scratch.path().to_str().unwrap())
        .start();
    let client = server.client().await;
    tokio::spawn(async move { call(&client, "stuck", EMPTY.into()).await });
    eventually("the function runs", || mark.path().join("running").exists());
    server
}

fn stuck() -> Functions {
    let script = "touch file; (setsid sh -c 'trap \"\" TERM HUP; sleep 300; :' >/dev/null 2>&1 &)\n\
                  sleep 300 &\necho > $MARK/running; sleep 300";
    Functions::new().with_script("stuck", script)
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_that_would_kill_it_end_it_in_order() {
    let functions = stuck();
    for signal in [Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::ALARM] {
        let (mark, scratch) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mut server = start(&functions, &mark, &scratch).await;
        server.signal(signal);
        let status = server.wait(PATIENCE);
        assert!(status.success(), "{signal:?}: {status}\n{}", server.log());
        eventually("no process is left", || processes_with(mark.path().to_str().unwrap()).is_empty());
        eventually("no folder is left", || is_empty(scratch.path()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_die_with_a_service_that_is_killed() {
    let functions = stuck();
    let (mark, scratch) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut server = start(&functions, &mark, &scratch).await;
    assert!(processes_with(mark.path().to_str().unwrap()).len() > 3);
    server.signal(Signal::KILL);
    assert!(!server.wait(PATIENCE).success());
    eventually("no process is left", || processes_with(mark.path().to_str().unwrap()).is_empty());
    eventually("no folder is left", || is_empty(scratch.path()));
}
