//! The handle through which functions are run.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::call::{Call, ExitWatch};
use crate::calls::Calls;
use crate::streams::{self, Step, Streams};
use crate::sweeper::{Sweeper, Swept};
use crate::{Finished, Limits, Log, Program, RunError, descriptors, procfs};

/// How long a descendant may keep an output open after its function has exited.
const LINGER: Duration = Duration::from_millis(500);

/// Runs functions, and leaves nothing of them behind. A cheap handle: clones share one supervisor.
///
/// # How nothing is left behind
/// Each function runs in a process group of its own and carries a variable, `FUNCTION_CALL`, that its
/// descendants inherit. When its call ends, in whatever way, its group and everything below it by parent
/// links is killed. What had detached itself before (by `setsid`, by a double fork) becomes a child of this
/// process, which is a *child subreaper*; a background task, the sweeper, kills it, recognised by
/// `FUNCTION_CALL` or by working inside the call's private folder. One that has got rid of both is killed as
/// soon as no running call is old enough to have started it.
///
/// # What this means for other children of this process
/// - Those in this process's own group, without `FUNCTION_CALL`, are taken for helpers that other code here
///   has started and waits for: they are never killed, and reaped only when nobody did for ten seconds.
/// - Those that existed before [`Supervisor::start`] are never killed; they are reaped.
/// - All others were given to this process when their parents ended. They are reaped, and killed by the
///   rules above. So other code must start its children without a group or session of their own, or by
///   [`Supervisor::run`].
#[derive(Clone, Debug)]
pub struct Supervisor {
    calls: Arc<Calls>,
    swept: watch::Receiver<Swept>,
}

/// There is one supervisor at a time: a second would take the first one's functions for left-overs.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Held by the sweeper; gone with it.
#[derive(Debug)]
struct Only;

impl Only {
    fn claim() -> io::Result<Self> {
        if STARTED.swap(true, Ordering::SeqCst) {
            let text = "a supervisor is at work in this process already: clone its handle";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Ok(Self)
    }
}

impl Drop for Only {
    fn drop(&mut self) {
        STARTED.store(false, Ordering::SeqCst);
    }
}

impl Supervisor {
    /// Makes this process the reaper of its descendants, keeps the descriptors it inherited from functions,
    /// and starts the sweeper on the current tokio runtime, where it works until that runtime ends. To be
    /// called early, before other code starts processes.
    pub fn start() -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let only = Only::claim()?;
        if !procfs::is_ours() {
            let text =
                "/proc is missing or belongs to another process namespace: mount this namespace's /proc";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        descriptors::close_inherited_on_exec()?;
        let calls = Arc::new(Calls::new());
        let children = signal(SignalKind::child())?;
        let (sender, swept) = watch::channel(Swept::default());
        let sweeper = Sweeper::new(calls.clone(), sender);
        runtime.spawn(async move {
            let _only = only;
            sweeper.work(children).await;
        });
        Ok(Self { calls, swept })
    }

    /// Runs a function with this standard input. Dropping the future cancels the call: all its processes
    /// are killed. The answer does not wait for what the function left behind to be dead.
    pub async fn run(&self, program: &Program, input: Bytes, limits: &Limits) -> Result<Finished, RunError> {
        let begun = Instant::now();
        if limits.deadline.is_some_and(|deadline| deadline <= begun) {
            return Err(RunError::TimedOut { after: Duration::ZERO, log: Log::default() });
        }
        let (own, ends) = streams::pipes(input.len())
            .map_err(|source| RunError::Start { program: program.path.clone(), source })?;
        let call = Call::start(&self.calls, program, ends)?;
        let lost = |source| RunError::Watch { program: program.path.clone(), source };
        let watch = call.watch().map_err(lost)?;
        let mut streams = Streams::new(own, input, limits.max_output, limits.max_log).map_err(lost)?;
        match follow(&watch, &mut streams, limits.deadline).await.map_err(lost)? {
            End::Exited => {
                let exit = call.finish().map_err(lost)?;
                let (output, log) = streams.finish();
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

    /// How many functions run now.
    pub fn running(&self) -> usize {
        self.calls.roots().len()
    }

    /// Waits until no function runs, nothing that functions left behind is alive, and their private folders
    /// are removed. Give it a time limit where something may be impossible to kill.
    pub async fn idle(&self) {
        let mut swept = self.swept.clone();
        let asked = self.calls.ask_sweep();
        // An error means that the sweeper's runtime has ended, and with it all that could be waited for.
        let _ = swept.wait_for(|swept| swept.asked >= asked && swept.clean).await;
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
async fn follow(watch: &ExitWatch, streams: &mut Streams, deadline: Option<Instant>) -> io::Result<End> {
    // One timer for both purposes: the deadline, and after the exit the wait for the streams' ends.
    let timer = sleep_until(deadline.unwrap_or_else(Instant::now));
    tokio::pin!(timer);
    let mut timer_counts = deadline.is_some();
    let mut exited = false;
    while !(exited && streams.at_end()) {
        tokio::select! {
            step = streams.step() => {
                if step? == Step::TooLarge {
                    return Ok(End::TooLarge);
                }
            }
            exit = watch.exited(), if !exited => {
                exit?;
                exited = true;
                streams.stop_feeding();
                let patience = Instant::now() + LINGER;
                timer.as_mut().reset(deadline.map_or(patience, |deadline| deadline.min(patience)));
                timer_counts = true;
            }
            () = timer.as_mut(), if timer_counts => {
                if !exited {
                    return Ok(End::TimedOut);
                }
                return Ok(match streams.take_rest()? {
                    Step::TooLarge => End::TooLarge,
                    Step::Moved => End::Exited,
                });
            }
        }
    }
    Ok(End::Exited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Exit, Folder};

    #[tokio::test]
    async fn without_a_pidfd_signals_tell_the_exit() {
        let supervisor = Supervisor::start().unwrap();
        let program = Program {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), "sleep 0.1; exit 3".into()],
            environment: Environment::Inherited,
            folder: Folder::None,
        };
        for deadline in [None, Some(Instant::now() + Duration::from_secs(20))] {
            let (own, ends) = streams::pipes(0).unwrap();
            let call = Call::start(&supervisor.calls, &program, ends).unwrap();
            let mut watch = call.watch().unwrap();
            watch.forget_pidfd();
            let mut streams = Streams::new(own, Bytes::new(), 1000, 1000).unwrap();
            assert_eq!(follow(&watch, &mut streams, deadline).await.unwrap(), End::Exited);
            assert_eq!(call.finish().unwrap(), Exit::Code(3));
        }
        supervisor.idle().await;
    }
}
