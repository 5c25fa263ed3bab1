//! Feeding and reading: any sizes, any order, no deadlock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // a test may

mod common;

use bytes::Bytes;
use common::*;
use process::{Exit, Limits, RunError};

#[test]
fn input_comes_back_whole_at_every_size() {
    block_on(async {
        for size in [0, 1, 4096, 65_535, 65_536, 65_537, 1 << 20, 6 << 20] {
            let input: Bytes = (0..=250_u8).cycle().take(size).collect::<Vec<_>>().into();
            let finished = supervisor().run(&program("/bin/cat", &[]), input.clone(), &LIMITS).await.unwrap();
            assert!(finished.output == input, "size {size}");
            assert_eq!(finished.exit, Exit::Code(0));
            assert!(finished.log.is_empty());
        }
    });
}

#[test]
fn a_function_need_not_read_its_input() {
    block_on(async {
        let input = vec![b'x'; 6 << 20];
        for script in ["echo done", "exec <&-; sleep 0.2; echo done", "head -c 10 >/dev/null; echo done"] {
            let finished = run_sh(script, &input, within(PATIENCE)).await.unwrap();
            assert_eq!(finished.output.as_ref(), b"done\n", "{script}");
            assert_eq!(finished.exit, Exit::Code(0));
        }
    });
}

#[test]
fn floods_on_both_outputs_do_not_block_each_other() {
    block_on(async {
        let script = "head -c 5000000 /dev/zero >&2 & head -c 5000000 /dev/zero; wait; cat >/dev/null";
        let limits = Limits { max_output: 8 << 20, ..within(PATIENCE) };
        let finished = run_sh(script, &vec![b'x'; 3 << 20], limits).await.unwrap();
        assert_eq!(finished.output.len(), 5_000_000);
        assert_eq!(finished.log.cut() + finished.log.kept().len() as u64, 5_000_000);
        let log = finished.log.to_bytes();
        assert!(log.len() <= Limits::MAX_LOG && log.len() > Limits::MAX_LOG - 100);
        assert!(log.starts_with(b"[the first "));
    });
}

#[test]
fn output_up_to_the_limit_passes_and_one_byte_more_does_not() {
    block_on(async {
        let limits = Limits { max_output: 100_000, ..LIMITS };
        let finished = run_sh("head -c 100000 /dev/zero", b"", limits).await.unwrap();
        assert_eq!(finished.output.len(), 100_000);
        let error = run_sh("echo why >&2; head -c 100001 /dev/zero", b"", limits).await.unwrap_err();
        let RunError::OutputTooLarge { limit: 100_000, log } = error else { panic!("{error}") };
        assert_eq!(log.to_bytes().as_ref(), b"why\n");
    });
}

#[test]
fn writing_for_ever_is_stopped() {
    block_on(async {
        let mark = unique("forever");
        let script = "yes; echo not reached";
        let result = supervisor().run(&shell(script, &mark), Bytes::new(), &within(PATIENCE)).await;
        assert!(matches!(result, Err(RunError::OutputTooLarge { .. })));
        gone(&mark).await;
        // A log without end is only cut: here the deadline ends it.
        let log = timed_out(&shell("yes >&2", &mark), |log| log.cut() > 0).await;
        assert!(log.to_bytes().len() <= Limits::MAX_LOG);
        assert!(log.to_bytes().ends_with(b"y\ny\n") || log.to_bytes().ends_with(b"y"));
        gone(&mark).await;
    });
}

#[test]
fn a_log_that_does_not_fit_beside_the_output_is_cut() {
    block_on(async {
        let limits = Limits { max_output: 10_000, ..LIMITS };
        let script = "head -c 9000 /dev/zero; head -c 5000 /dev/zero | tr '\\0' x >&2; echo end >&2";
        let finished = run_sh(script, b"", limits).await.unwrap();
        assert_eq!(finished.output.len(), 9000);
        let log = finished.log.to_bytes();
        assert!(log.len() <= 1000 && log.ends_with(b"xend\n"), "{}", log.len());
        let limits = Limits { max_output: 9000, ..LIMITS };
        let finished = run_sh(script, b"", limits).await.unwrap();
        assert_eq!((finished.output.len(), finished.log.to_bytes().len()), (9000, 0));
    });
}

#[test]
fn a_held_open_output_is_waited_for_only_briefly() {
    block_on(async {
        let mark = unique("held");
        // Held for longer than anybody would wait for this test.
        let program = shell("echo answer; sleep 1000 & exit 3", &mark);
        let finished = supervisor().run(&program, Bytes::new(), &LIMITS).await.unwrap();
        assert_eq!((finished.output.as_ref(), finished.exit), (b"answer\n".as_slice(), Exit::Code(3)));
        gone(&mark).await;

        // What a descendant still writes in that time belongs to the answer. A busy machine may not let it.
        let program = shell("(sleep 0.1; echo late) & echo early", &mark);
        let mut outputs = Vec::new();
        while outputs.len() < 20 && !outputs.iter().any(|output| output == "early\nlate\n") {
            outputs.push(supervisor().run(&program, Bytes::new(), &LIMITS).await.unwrap().output);
        }
        assert_eq!(outputs.pop().unwrap().as_ref(), b"early\nlate\n");
        assert!(outputs.iter().all(|output| output == "early\n"), "{outputs:?}");
        gone(&mark).await;
    });
}

#[test]
fn closed_outputs_do_not_end_a_call() {
    block_on(async {
        let finished = run_sh("exec >&- 2>&-; sleep 0.2; exit 7", b"", LIMITS).await.unwrap();
        assert_eq!(finished.exit, Exit::Code(7));
        let result = run_sh("exec >&- 2>&-; sleep 100", b"", within(milliseconds(200))).await;
        assert!(matches!(result, Err(RunError::TimedOut { .. })));
    });
}

#[test]
fn exits_are_told() {
    block_on(async {
        for (script, exit) in [
            ("exit 0", Exit::Code(0)),
            ("exit 255", Exit::Code(255)),
            ("kill -KILL $$", Exit::Signal(9)),
            ("kill -SEGV $$", Exit::Signal(11)),
        ] {
            assert_eq!(run_sh(script, b"", LIMITS).await.unwrap().exit, exit, "{script}");
        }
    });
}
