//! One call from its start to its end, on a thread of its own.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{Timespec, poll};
use rustix::io::Errno;

use crate::call::{Call, ExitWatch};
use crate::calls::Calls;
use crate::cancellation::Cancellation;
use crate::streams::{self, Step, Streams};
use crate::{Finished, Limits, Log, Program, RunError};

/// How long a descendant may keep an output open after its function has exited.
const LINGER: Duration = Duration::from_millis(500);

/// Runs the function; blocks until it has ended.
pub(crate) fn run(
    calls: &Arc<Calls>,
    program: &Program,
    input: Bytes,
    limits: &Limits,
    cancellation: &Cancellation,
) -> Result<Finished, RunError> {
    let begun = Instant::now();
    let deadline = limits.deadline.map(tokio::time::Instant::into_std);
    if cancellation.is_cancelled() || deadline.is_some_and(|deadline| deadline <= begun) {
        return Err(RunError::TimedOut { after: Duration::ZERO, log: Log::default() });
    }
    let (own, ends) = streams::pipes(input.len()).map_err(|source| RunError::start(&program.path, source))?;
    let kills = calls.memory.kills();
    let call = Call::start(calls, program, ends, cancellation)?;
    let lost = |source| RunError::Watch { program: program.path.clone(), source };
    let watch = call.watch();
    let mut streams = Streams::new(own, input, limits.max_output, limits.max_log).map_err(lost)?;
    match follow(&watch, &mut streams, deadline, cancellation).map_err(lost)? {
        End::Exited => {
            let exit = call.finish().map_err(lost)?;
            let (output, log) = streams.finish();
            // A cancelled call was killed by us.
            if exit.killed() && !cancellation.is_cancelled() && calls.memory.claim_kill(kills) {
                return Err(RunError::OutOfMemory { limit: calls.memory.limit(), log });
            }
            Ok(Finished { output, log, exit, elapsed: begun.elapsed() })
        }
        End::TimedOut => {
            drop(call);
            Err(RunError::TimedOut { after: begun.elapsed(), log: streams.into_log() })
        }
        End::TooLarge => {
            drop(call);
            Err(RunError::OutputTooLarge { limit: limits.max_output, log: streams.into_log() })
        }
    }
}

/// What ended a call.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Exited,
    TimedOut,
    TooLarge,
}

/// Moves the streams until the function has exited and they have ended, or something forbids going on.
fn follow(
    watch: &ExitWatch,
    streams: &mut Streams,
    deadline: Option<Instant>,
    cancellation: &Cancellation,
) -> io::Result<End> {
    let mut patience = deadline;
    let mut exited = false;
    while !(exited && streams.at_end()) {
        wait(if exited { None } else { Some(watch) }, streams, patience)?;
        if streams.step()? == Step::TooLarge {
            return Ok(End::TooLarge);
        }
        if !exited && watch.has_exited()? {
            exited = true;
            streams.stop_feeding();
            let lingering = Instant::now() + LINGER;
            patience = Some(deadline.map_or(lingering, |deadline| deadline.min(lingering)));
        }
        let late = patience.is_some_and(|patience| patience <= Instant::now());
        match exited {
            false if late => return Ok(End::TimedOut),
            true if late || cancellation.is_cancelled() => {
                return Ok(match streams.take_rest()? {
                    Step::TooLarge => End::TooLarge,
                    Step::Moved => End::Exited,
                });
            }
            _ => {}
        }
    }
    Ok(End::Exited)
}

/// Waits until a stream can move, the function has exited, or patience ends.
fn wait(watch: Option<&ExitWatch>, streams: &Streams, patience: Option<Instant>) -> io::Result<()> {
    let mut interests: Vec<_> =
        watch.into_iter().filter_map(ExitWatch::interest).chain(streams.interests()).collect();
    let mut longest = patience.map(|patience| patience.saturating_duration_since(Instant::now()));
    if let Some(pause) = watch.and_then(ExitWatch::look_again) {
        longest = Some(longest.map_or(pause, |longest| longest.min(pause)));
    }
    // Rounded up, or the last millisecond would be spent turning around.
    let timeout = longest.and_then(|longest| Timespec::try_from(longest + Duration::from_micros(100)).ok());
    match poll(&mut interests, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::Files;
    use crate::{Environment, Exit, Folder};

    fn shell(script: &str) -> Program {
        Program {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: Environment::Inherited,
            folder: Folder::None,
        }
    }

    const LIMITS: Limits = Limits { deadline: None, max_output: 1000, max_log: 1000 };

    /// Calls whose group is these files.
    fn calls_of(files: &Files) -> Arc<Calls> {
        let mut calls = Calls::new();
        calls.memory = files.second_version();
        Arc::new(calls)
    }

    /// A script that does what the kernel would: counts a kill.
    fn counting(files: &Files, count: u64, then: &str) -> Program {
        let events = files.path("memory.events");
        shell(&format!("echo oom_kill {count} > {}; echo word >&2; {then}", events.display()))
    }

    #[test]
    fn a_killed_function_ran_out_of_memory_only_if_the_kernel_counted_it() {
        let files = Files::new();
        let calls = calls_of(&files);
        let run = |program: &Program| run(&calls, program, Bytes::new(), &LIMITS, &Cancellation::default());
        for (count, then) in [(1, "kill -9 $$"), (2, "exit 137")] {
            let error = run(&counting(&files, count, then)).unwrap_err();
            assert_eq!(error.log().unwrap().to_bytes().as_ref(), b"word\n");
            let expected = "it ran out of memory: the kernel killed it, \
                            its container is limited to 64 MiB for all that runs in it";
            assert_eq!(error.to_string(), expected);
        }
        for (count, then, exit) in [
            (2, "kill -9 $$", Exit::Signal(9)),
            (2, "exit 137", Exit::Code(137)),
            (3, "exit 3", Exit::Code(3)),
            (4, "kill -15 $$", Exit::Signal(15)),
            (5, "exit 0", Exit::Code(0)),
            (5, "kill -9 $$", Exit::Signal(9)),
        ] {
            assert_eq!(run(&counting(&files, count, then)).unwrap().exit, exit, "{count} {then}");
        }
    }

    #[test]
    fn a_call_that_we_killed_takes_no_kill_from_another() {
        let files = Files::new();
        let calls = calls_of(&files);
        let cancellation = Cancellation::default();
        let guard = cancellation.clone().guard();
        let program = counting(&files, 1, "sleep 600");
        let finished = std::thread::scope(|scope| {
            let call = scope.spawn(|| run(&calls, &program, Bytes::new(), &LIMITS, &cancellation));
            let begun = Instant::now();
            while calls.memory.kills() != Some(1) {
                assert!(begun.elapsed() < Duration::from_mins(2), "it never starts");
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(guard);
            call.join().unwrap().unwrap()
        });
        assert_eq!(finished.exit, Exit::Signal(9));
        assert!(calls.memory.claim_kill(Some(0)));
    }

    #[test]
    fn without_a_pidfd_the_exit_is_noticed_all_the_same() {
        let calls = Arc::new(Calls::new());
        let program = shell("sleep 0.1; exit 3");
        for deadline in [None, Some(Instant::now() + Duration::from_mins(2))] {
            let cancellation = Cancellation::default();
            let (own, ends) = streams::pipes(0).unwrap();
            let call = Call::start(&calls, &program, ends, &cancellation).unwrap();
            let mut watch = call.watch();
            watch.forget_pidfd();
            let mut streams = Streams::new(own, Bytes::new(), 1000, 1000).unwrap();
            assert_eq!(follow(&watch, &mut streams, deadline, &cancellation).unwrap(), End::Exited);
            assert_eq!(call.finish().unwrap(), Exit::Code(3));
        }
    }
}
