//! The handle through which functions are run.

use std::io::{self, PipeWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::calls::Calls;
use crate::cancellation::Cancellation;
use crate::sweeper::{Sweeper, Swept};
use crate::{Finished, Limits, Log, Program, RunError, descriptors, procfs, run, watchdog};

/// How long after its deadline a call that has no thread is given up.
const NO_THREAD: Duration = Duration::from_millis(5);
/// How long after its deadline a call is given up whose thread is busy ending it.
const SLOW_THREAD: Duration = Duration::from_millis(150);

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
/// - Those in this process's own group that any thread but the first has started, without `FUNCTION_CALL`, are
///   helpers that other code here waits for: they are never killed, and reaped only when nobody did for ten
///   seconds. Of the children of the first thread nobody can tell whether it has started them or was given
///   them, so it must not start any; and threads that do must outlive them.
/// - Those that existed before [`Supervisor::start`] are never killed; they are reaped.
/// - All others were given to this process when their parents ended. They are reaped, and killed by the
///   rules above. So other code must start its children without a group or session of their own, or by
///   [`Supervisor::run`].
///
/// # Where this process is killed
/// With [`Supervisor::start_with_watchdog`] there is a process that ends what carries `FUNCTION_CALL` when this
/// one has died. It does not find what a function has started and stripped of that variable.
#[derive(Clone, Debug)]
pub struct Supervisor {
    calls: Arc<Calls>,
    swept: watch::Receiver<Swept>,
}

/// The signals by which people and programs end a process, and which end it at once where it does not listen:
/// whoever has a supervisor listens to all of them, and ends its functions first.
pub const END_SIGNALS: [SignalKind; 7] = [
    SignalKind::terminate(),
    SignalKind::interrupt(),
    SignalKind::hangup(),
    SignalKind::quit(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
    SignalKind::alarm(),
];

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
        Self::start_guarded(|_| Ok(None))
    }

    /// The same, and functions are ended also where this process is killed: by another one of the same
    /// program, whose `main` calls [`run_as_watchdog`](crate::run_as_watchdog) before all else.
    pub fn start_with_watchdog() -> io::Result<Self> {
        Self::start_guarded(watchdog::start)
    }

    fn start_guarded(
        start_watchdog: impl FnOnce(&str) -> io::Result<Option<PipeWriter>>,
    ) -> io::Result<Self> {
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
        // Before the sweeper, which leaves alone what it finds.
        let watchdog = start_watchdog(calls.prefix())?;
        let sweeper = Sweeper::new(calls.clone(), sender);
        runtime.spawn(async move {
            let _kept = (only, watchdog);
            sweeper.work(children).await;
        });
        Ok(Self { calls, swept })
    }

    /// Runs a function with this standard input. Dropping the future cancels the call: all its processes
    /// are killed. The answer does not wait for what the function left behind to be dead.
    ///
    /// Each running function has a thread of the runtime's blocking pool to itself: starting a process holds
    /// its thread up until the system finds time for the new one, and other calls must not wait for that.
    pub async fn run(&self, program: &Program, input: Bytes, limits: &Limits) -> Result<Finished, RunError> {
        let begun = Instant::now();
        let late = |after| RunError::TimedOut { after, log: Log::default() };
        if limits.deadline.is_some_and(|deadline| deadline <= begun) {
            return Err(late(Duration::ZERO));
        }
        let cancellation = Cancellation::default();
        let cancelled_when_dropped = cancellation.clone().guard();
        let (calls, path) = (self.calls.clone(), program.path.clone());
        let (program, limits) = (program.clone(), *limits);
        let has_thread = Arc::new(AtomicBool::new(false));
        let takes_thread = has_thread.clone();
        let mut running = spawn_blocking(move || {
            takes_thread.store(true, Ordering::Relaxed);
            run::run(&calls, &program, input, &limits, &cancellation)
        });
        let finished = match limits.deadline {
            Some(deadline) => match timeout_at(deadline + NO_THREAD, &mut running).await {
                Ok(finished) => finished,
                // The thread keeps the deadline itself and knows what the function wrote; on a busy machine
                // it takes a moment more.
                Err(_) if has_thread.load(Ordering::Relaxed) => {
                    timeout_at(deadline + SLOW_THREAD, running).await.map_err(|_| late(begun.elapsed()))?
                }
                Err(_) => return Err(late(begun.elapsed())),
            },
            None => running.await,
        };
        drop(cancelled_when_dropped);
        finished
            .unwrap_or_else(|error| Err(RunError::Watch { program: path, source: io::Error::other(error) }))
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
