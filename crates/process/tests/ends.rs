//! Every process of a call dies and is reaped, however the call ends and whatever the function tried.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // a test may

mod common;

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use common::*;
use process::{Folder, Limits, Program, RunError};
use tokio::time::{Instant, timeout};

/// What an unmarked process is depends on the calls that run meanwhile, so these tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn all_gone(mark: &str) {
    gone(mark).await;
    timeout(PATIENCE, supervisor().idle()).await.expect("idle in the end");
    assert_eq!(supervisor().running(), 0);
    eventually("no zombie", || zombies().is_empty()).await;
}

/// Starts a call that is cancelled when the returned handle is aborted.
fn start(program: Program) -> tokio::task::JoinHandle<Result<process::Finished, RunError>> {
    tokio::spawn(async move { supervisor().run(&program, Bytes::new(), &LIMITS).await })
}

const STUBBORN: &str = "trap '' TERM INT HUP; sleep 1000 & setsid sleep 1001 & \
    setsid sh -c 'trap \"\" TERM; (sleep 1002 &) ; sleep 1003' & (setsid sleep 1004 >/dev/null 2>&1 &) ; \
    echo up >&2; while :; do sleep 1; done";

#[test]
fn at_the_deadline() {
    let _alone = alone();
    block_on(async {
        let mark = unique("deadline");
        let log = timed_out(&shell(STUBBORN, &mark), |log| !log.is_empty()).await;
        assert_eq!(log.to_bytes().as_ref(), b"up\n");
        all_gone(&mark).await;
    });
}

#[test]
fn at_cancellation() {
    let _alone = alone();
    block_on(async {
        let mark = unique("cancelled");
        let call = start(shell(STUBBORN, &mark));
        eventually("started", || marked(&mark).len() >= 7).await;
        assert_eq!(supervisor().running(), 1);
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        eventually("ended", || supervisor().running() == 0).await;
        all_gone(&mark).await;
    });
}

#[test]
fn at_overflow() {
    let _alone = alone();
    block_on(async {
        let mark = unique("overflow");
        let script = format!("setsid sleep 1000 & yes & {STUBBORN}");
        let result = supervisor().run(&shell(&script, &mark), Bytes::new(), &LIMITS).await;
        assert!(matches!(result, Err(RunError::OutputTooLarge { .. })));
        all_gone(&mark).await;
    });
}

#[test]
fn left_overs_of_a_good_end() {
    let _alone = alone();
    block_on(async {
        let mark = unique("daemons");
        let script = "sleep 1000 >/dev/null 2>&1 & (setsid sh -c 'trap \"\" TERM; sleep 1001; sleep 1002' \
            >/dev/null 2>&1 &) ; setsid setsid sleep 1003 >/dev/null 2>&1 & \
            (cd /; nohup sleep 1004 >/dev/null 2>&1 </dev/null &) ; sleep 0.1; echo good";
        let finished = supervisor().run(&shell(script, &mark), Bytes::new(), &LIMITS).await.unwrap();
        assert_eq!(finished.output.as_ref(), b"good\n");
        all_gone(&mark).await;
    });
}

/// Daemons that lose the call's mark: `sleep` with the mark as an argument it ignores would be refused, so
/// a shell carries it as its name.
fn unmarked(mark: &str, detach: &str) -> String {
    format!("{detach} env -i /bin/sh -c 'while :; do /bin/sleep 1; done' {mark} >/dev/null 2>&1 </dev/null")
}

/// The same, orphaned only after they have lost it: no sweep ever sees it on them.
fn never_marked(mark: &str) -> String {
    let daemon = format!("setsid /bin/sh -c \"while :; do /bin/sleep 1; done\" {mark}");
    format!("env -i PATH=/usr/bin:/bin /bin/sh -c '({daemon} >/dev/null 2>&1 </dev/null &)'")
}

#[test]
fn unmarked_daemons_die_when_no_running_call_can_have_started_them() {
    let _alone = alone();
    block_on(async {
        let (mark, older) = (unique("unmarked"), unique("older"));
        let script = format!("{} ; sleep 0.2", never_marked(&mark));
        supervisor().run(&shell(&script, "none"), Bytes::new(), &LIMITS).await.unwrap();
        all_gone(&mark).await;

        // While an older call runs, it might be that call's, which must not be harmed.
        let call = start(shell("sleep 1000", &older));
        eventually("older call", || !marked(&older).is_empty()).await;
        tokio::time::sleep(milliseconds(30)).await;
        supervisor().run(&shell(&script, "none"), Bytes::new(), &LIMITS).await.unwrap();
        let younger = start(shell("sleep 1000", &older));
        tokio::time::sleep(milliseconds(300)).await;
        assert!(!marked(&mark).is_empty(), "an innocent was killed");
        call.abort();
        // The younger call cannot have started it, and is left alone.
        gone(&mark).await;
        tokio::time::sleep(milliseconds(100)).await;
        assert!(!younger.is_finished() && supervisor().running() == 1);
        younger.abort();
        all_gone(&older).await;
    });
}

#[test]
fn unmarked_daemons_are_known_by_the_private_folder_or_their_parents() {
    let _alone = alone();
    block_on(async {
        let (mark, older) = (unique("unmarked"), unique("older"));
        let call = start(shell("sleep 1000", &older));
        eventually("older call", || !marked(&older).is_empty()).await;
        let scratch = scratch();
        let script = format!("mkdir -p deep/er; cd deep/er; ({} &) ; sleep 0.2", unmarked(&mark, "setsid"));
        let program = Program { folder: Folder::Working(scratch.clone()), ..shell(&script, "none") };
        supervisor().run(&program, Bytes::new(), &LIMITS).await.unwrap();
        gone(&mark).await;

        let script = format!("cd /; {} & echo up >&2; wait", unmarked(&mark, "setsid"));
        timed_out(&shell(&script, "none"), |log| !log.is_empty()).await;
        gone(&mark).await;
        assert!(!call.is_finished() && supervisor().running() == 1);
        call.abort();
        all_gone(&older).await;
        assert_eq!(private_folders(&scratch), [] as [String; 0]);
        std::fs::remove_dir_all(scratch.place()).unwrap();
    });
}

/// What [`a_daemon_in_the_group_of_the_service_dies`] starts: joins the group that its environment names, says
/// so by making a file, and stays.
#[test]
#[ignore = "it is a function, not a test"]
fn joins_a_group() {
    let Ok(group) = std::env::var("GROUP") else { return };
    let group = rustix::process::Pid::from_raw(group.parse().unwrap());
    rustix::process::setpgid(None, group).unwrap();
    std::fs::write(std::env::var("JOINED").unwrap(), "").unwrap();
    std::thread::sleep(Duration::from_secs(1000));
}

#[test]
fn a_daemon_in_the_group_of_the_service_dies() {
    let _alone = alone();
    block_on(async {
        let (mark, scratch) = (unique("joined"), scratch());
        let own = rustix::process::getpgrp().as_raw_nonzero();
        let joined = scratch.place().join("joined");
        let joined = joined.display();
        let test = std::env::current_exe().unwrap();
        // Without the call's variable before it is orphaned, and outside of the call's folder.
        let daemon = format!("{} joins_a_group {mark} --ignored --exact", test.display());
        let script = format!(
            "env -i PATH=$PATH GROUP={own} JOINED={joined} \
             /bin/sh -c 'cd /; ({daemon} >/dev/null 2>&1 </dev/null &)'; \
             while [ ! -e {joined} ]; do sleep 0.01; done; echo good"
        );
        let program = Program { folder: Folder::Working(scratch.clone()), ..shell(&script, "none") };
        let limits = within(Duration::from_mins(1));
        let finished = supervisor().run(&program, Bytes::new(), &limits).await.unwrap();
        assert_eq!(finished.output.as_ref(), b"good\n");
        all_gone(&mark).await;
        std::fs::remove_dir_all(scratch.place()).unwrap();
    });
}

#[test]
fn many_and_fleeing_processes() {
    let _alone = alone();
    block_on(async {
        let mark = unique("many");
        let script =
            "i=0; while [ $i -lt 300 ]; do setsid sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done; echo ok";
        let finished = supervisor().run(&shell(script, &mark), Bytes::new(), &LIMITS).await.unwrap();
        assert_eq!(finished.output.as_ref(), b"ok\n");
        all_gone(&mark).await;

        // Each process starts its successor in a new session and ends.
        let flee = "flee() { sleep 0.003; setsid sh -c \"$SCRIPT\" >/dev/null 2>&1 </dev/null & }; flee";
        let script = format!("SCRIPT='{flee}'; export SCRIPT; sh -c \"$SCRIPT\"; sleep 0.2; echo ok");
        let finished = supervisor().run(&shell(&script, &mark), Bytes::new(), &LIMITS).await.unwrap();
        assert_eq!(finished.output.as_ref(), b"ok\n");
        all_gone(&mark).await;

        // A chain of parents, each waiting for its child.
        let chain =
            "if [ $N -gt 0 ]; then N=$((N-1)) setsid sh -c \"$SCRIPT; :\"; else echo up >&2; sleep 1000; fi";
        let script = format!("SCRIPT='{chain}'; N=60; export SCRIPT N; sh -c \"$SCRIPT\"");
        timed_out(&shell(&script, &mark), |log| !log.is_empty()).await;
        all_gone(&mark).await;
    });
}

#[test]
fn orphans_that_end_during_the_call_are_reaped_during_the_call() {
    let _alone = alone();
    block_on(async {
        let (mark, scratch) = (unique("brief"), scratch());
        // The orphans wait for somebody to write into this pipe.
        let pipe = scratch.place().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let script = format!(
            "i=0; while [ $i -lt 20 ]; do (read end <{} &) ; i=$((i+1)); done; sleep 1000",
            pipe.display()
        );
        let call = start(shell(&script, &mark));
        eventually("orphans and the sleeper", || marked(&mark).len() == 22).await;
        drop(std::fs::OpenOptions::new().write(true).open(&pipe).unwrap());
        eventually("orphans ended", || marked(&mark).len() == 2).await;
        eventually("orphans reaped", || zombies().is_empty()).await;
        assert_eq!(supervisor().running(), 1);
        call.abort();
        all_gone(&mark).await;
        std::fs::remove_dir_all(scratch.place()).unwrap();
    });
}

#[test]
fn the_living_of_a_running_call_are_spared() {
    let _alone = alone();
    block_on(async {
        let (mark, scratch) = (unique("spared"), scratch());
        let (swept, told) = (scratch.place().join("swept"), scratch.place().join("told"));
        let until =
            |file: &std::path::Path| format!("while [ ! -e {} ]; do sleep 0.01; done", file.display());
        let daemon = format!("{}; echo daemon; : >{}", until(&swept), told.display());
        let script = format!("(setsid sh -c '{daemon}' &) ; {}; echo root", until(&told));
        let call = start(shell(&script, &mark));
        eventually("the daemon runs", || marked(&mark).len() >= 2).await;
        for _ in 0..20 {
            run_sh("(sleep 0.01 &) ; :", b"", LIMITS).await.unwrap();
        }
        std::fs::write(&swept, "").unwrap();
        let finished = call.await.unwrap().unwrap();
        assert_eq!(finished.output.as_ref(), b"daemon\nroot\n");
        all_gone(&mark).await;
        std::fs::remove_dir_all(scratch.place()).unwrap();
    });
}

#[test]
fn children_of_other_code_are_left_to_it() {
    let _alone = alone();
    supervisor();
    let mut ended = Command::new("/bin/sh").args(["-c", "exit 5"]).spawn().unwrap();
    // Should this test fail, it must not keep the test's own output open for long.
    let mut living = Command::new("/bin/sleep").arg("30").stdout(Stdio::null()).spawn().unwrap();
    block_on(async {
        for _ in 0..20 {
            run_sh("(setsid sleep 1000 >/dev/null 2>&1 &)", b"", LIMITS).await.unwrap();
        }
        timeout(PATIENCE, supervisor().idle()).await.expect("others' children do not count");
    });
    assert_eq!(ended.wait().unwrap().code(), Some(5));
    assert!(living.try_wait().unwrap().is_none());
    living.kill().unwrap();
    living.wait().unwrap();
}

#[test]
fn a_past_deadline_starts_nothing() {
    let _alone = alone();
    block_on(async {
        let scratch = scratch();
        let file = scratch.place().join("touched");
        let script = format!("touch {}", file.display());
        let program = Program { folder: Folder::Working(scratch.clone()), ..shell(&script, "none") };
        let limits = Limits { deadline: Some(Instant::now()), ..LIMITS };
        let error = supervisor().run(&program, Bytes::new(), &limits).await.unwrap_err();
        assert!(matches!(error, RunError::TimedOut { after: Duration::ZERO, .. }), "{error}");
        tokio::time::sleep(milliseconds(50)).await;
        assert!(!file.exists());
        assert_eq!(private_folders(&scratch), [] as [String; 0]);
        std::fs::remove_dir_all(scratch.place()).unwrap();
    });
}
