//! A bound on how many calls run at once, shared fairly between those who wait.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

mod turns;

use turns::{Ticket, Turns};

/// Lets at most so many run, and at most so many wait for it.
///
/// Those who wait under the same key take turns first come, first served; the keys take turns in a circle, so
/// that a flood under one key costs the others no more than one turn each. So it is with the places to wait
/// in: when there are none left, the longest line loses its newest call to the arriving call of a shorter
/// line, and an arriving call of the longest line is refused.
///
/// A cheap handle: clones share one queue. Work of another kind, which is to run in places of its own but wait
/// in the same ones, gets its handle by [`FairQueue::beside`]:
///
/// ```
/// # use std::num::NonZeroUsize;
/// # use process::FairQueue;
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let processes = FairQueue::new(NonZeroUsize::new(32).unwrap(), 256);
/// let cores = processes.beside(NonZeroUsize::new(2).unwrap());
/// let permit = cores.acquire("set-labels", None).await?; // moved to the thread that does the work
/// # drop(permit);
/// # Ok::<(), process::AcquireError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct FairQueue {
    turns: Arc<Mutex<Turns<Waiting>>>,
    kind: usize,
}

/// Where one who waits is told what has become of it.
type Waiting = oneshot::Sender<Result<Permit, AcquireError>>;

/// The right to run, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    queue: FairQueue,
}

/// Why there was no permit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// As many wait as may wait, and no line is longer than this call's.
    #[error("{running} calls are running and {waiting} are waiting, the most allowed; try again later")]
    Full {
        /// How many run.
        running: usize,
        /// How many wait.
        waiting: usize,
    },
    /// The deadline passed while waiting.
    #[error("the deadline passed after {waited:?} of waiting for a free place; {ahead} calls are running")]
    TimedOut {
        /// For how long it waited.
        waited: Duration,
        /// How many were running when it gave up.
        ahead: usize,
    },
}

impl FairQueue {
    /// A queue with room for so many running and so many waiting.
    pub fn new(max_running: NonZeroUsize, max_waiting: usize) -> Self {
        let mut turns = Turns::new(max_waiting);
        let kind = turns.add_kind(max_running.get());
        Self { turns: Arc::new(Mutex::new(turns)), kind }
    }

    /// A queue for another kind of work: so many of it may run, whatever runs of the others; those who wait
    /// take the same places. Make it once and clone it.
    #[must_use]
    pub fn beside(&self, max_running: NonZeroUsize) -> Self {
        let kind = self.lock().add_kind(max_running.get());
        Self { turns: self.turns.clone(), kind }
    }

    /// Waits for a turn under this key. Dropping the future leaves the queue.
    pub async fn acquire(&self, key: &str, deadline: Option<Instant>) -> Result<Permit, AcquireError> {
        let begun = Instant::now();
        let (mut waiter, turn) = {
            let mut turns = self.lock();
            if turns.run(self.kind) {
                return Ok(Permit { queue: self.clone() });
            }
            let (sender, turn) = oneshot::channel();
            let (ticket, loser) = turns.join(self.kind, key, sender);
            if let Some(loser) = loser {
                let full =
                    AcquireError::Full { running: turns.running(self.kind), waiting: turns.all_waiting() };
                let _ = loser.send(Err(full));
            }
            (Waiter { queue: self, key, ticket: Some(ticket) }, turn)
        };
        let told = match deadline {
            Some(deadline) => timeout_at(deadline, turn).await.ok(),
            None => Some(turn.await),
        };
        if let Some(Ok(told)) = told {
            waiter.ticket = None;
            return told;
        }
        Err(AcquireError::TimedOut { waited: begun.elapsed(), ahead: self.running() })
    }

    /// How many run now, of this kind of work.
    pub fn running(&self) -> usize {
        self.lock().running(self.kind)
    }

    /// How many wait now, for this kind of work.
    pub fn waiting(&self) -> usize {
        self.lock().waiting(self.kind)
    }

    fn lock(&self) -> MutexGuard<'_, Turns<Waiting>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = self.queue.lock().end(self.queue.kind);
        // Outside the lock: a waiter that is just leaving has the new permit dropped right here, or by its
        // channel, and so passes the turn on.
        if let Some(next) = next {
            let _ = next.send(Ok(Self { queue: self.queue.clone() }));
        }
    }
}

/// Takes its ticket out of the queue when the wait is given up.
struct Waiter<'a> {
    queue: &'a FairQueue,
    key: &'a str,
    ticket: Option<Ticket>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.queue.lock().leave(self.queue.kind, self.key, ticket);
        }
    }
}

#[cfg(test)]
mod tests;
