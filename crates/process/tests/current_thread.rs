//! A whole life on a runtime with one thread, as the wrapper has it, and a second one after it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // a test may

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{LIMITS, PATIENCE, gone, milliseconds, program, shell, unique, within};
use process::{RunError, Supervisor};
use tokio::time::{Instant, timeout};

#[test]
fn one_thread_is_enough() {
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let supervisor = Supervisor::start().unwrap();
            // Whoever has started nothing waits for nothing. The clock moves only where somebody sleeps.
            tokio::time::pause();
            let begun = Instant::now();
            supervisor.idle().await;
            assert_eq!(begun.elapsed(), Duration::ZERO);
            tokio::time::resume();
            let input = Bytes::from(vec![b'x'; 3 << 20]);
            let finished = supervisor.run(&program("/bin/cat", &[]), input.clone(), &LIMITS).await.unwrap();
            assert_eq!(finished.output, input);
            let mark = unique("single");
            let daemon = shell("(setsid sleep 1000 >/dev/null 2>&1 &) ; sleep 0.1; echo ok", &mark);
            let sleeper = shell("setsid sleep 1000", &mark);
            let limits = within(milliseconds(300));
            let (one, two) = tokio::join!(
                supervisor.run(&daemon, Bytes::new(), &LIMITS),
                supervisor.run(&sleeper, Bytes::new(), &limits),
            );
            assert_eq!(one.unwrap().output.as_ref(), b"ok\n");
            assert!(matches!(two, Err(RunError::TimedOut { .. })));
            let dropped = supervisor.run(&sleeper, Bytes::new(), &LIMITS);
            assert!(timeout(milliseconds(100), dropped).await.is_err());
            timeout(PATIENCE, supervisor.idle()).await.unwrap();
            gone(&mark).await;
        });
    }
    let outside = Supervisor::start().unwrap_err();
    assert!(outside.to_string().contains("runtime"), "{outside}");
}
