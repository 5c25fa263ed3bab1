//! Many calls at once, most of which do not end well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // a test may

mod common;

use bytes::Bytes;
use common::*;
use process::{Exit, Folder, Program, RunError};
use tokio::time::timeout;

const SCRIPT: &str = "cat; echo $MARK >&2; (setsid sleep 1000 >/dev/null 2>&1 &) ; \
    sleep 1000 >/dev/null 2>&1 & mkdir -p $TMPDIR/x/y; chmod 0 $TMPDIR/x";

#[test]
fn two_hundred_calls_leave_nothing() {
    block_on(async {
        let scratch = scratch();
        let marks = unique("storm");
        let calls: Vec<_> = (0..200_usize)
            .map(|number| {
                let script =
                    if number % 3 == 0 { SCRIPT.to_owned() } else { format!("{SCRIPT}; sleep 1000") };
                let mark = format!("{marks}/{number}/");
                let folder = match number % 2 {
                    0 => Folder::Working(scratch.clone()),
                    _ => Folder::Temporary(scratch.clone()),
                };
                let program = Program { folder, ..shell(&script, &mark) };
                tokio::spawn(async move {
                    let input = Bytes::from(mark.repeat(1 + number * 50));
                    let time = milliseconds(if number % 3 == 1 { 500 + number as u64 } else { 600_000 });
                    let limits = within(time);
                    let call = supervisor().run(&program, input.clone(), &limits);
                    match number % 3 {
                        0 => {
                            let finished = call.await.unwrap();
                            assert!(finished.output == input, "another call's output");
                            assert_eq!(finished.log.to_bytes(), format!("{mark}\n"));
                            assert_eq!(finished.exit, Exit::Code(0));
                        }
                        1 => assert!(matches!(call.await, Err(RunError::TimedOut { .. }))),
                        _ => assert!(timeout(milliseconds(number as u64 * 7), call).await.is_err()),
                    }
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        timeout(PATIENCE, supervisor().idle()).await.expect("idle in the end");
        assert_eq!(marked(&marks), [] as [u32; 0]);
        assert_eq!(marked(scratch.place().to_str().unwrap()), [] as [u32; 0]);
        assert_eq!(zombies(), [] as [String; 0]);
        let children = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let children = children.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap());
        assert_eq!(children.collect::<String>(), "");
        assert_eq!(private_folders(&scratch), [] as [String; 0]);
        std::fs::remove_dir_all(scratch.place()).unwrap();
    });
}
