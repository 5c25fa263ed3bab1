//! A bound on how many calls run at once, shared fairly between those who wait.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// Lets at most so many run, and at most so many wait for it. Those who wait under the same key take turns
/// first come, first served; the keys take turns in a circle, so that a flood under one key costs the
/// others no more than one turn each. A cheap handle: clones share one queue.
#[derive(Clone, Debug)]
pub struct FairQueue {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    turns: Turns,
    waiting: HashMap<Ticket, oneshot::Sender<Permit>>,
}

/// The right to run, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    queue: FairQueue,
}

/// Why there was no permit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// As many wait as may wait.
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
        let turns = Turns::new(max_running.get(), max_waiting);
        Self { shared: Arc::new(Mutex::new(Shared { turns, waiting: HashMap::new() })) }
    }

    /// Waits for a turn under this key. Dropping the future leaves the queue.
    pub async fn acquire(&self, key: &str, deadline: Option<Instant>) -> Result<Permit, AcquireError> {
        let begun = Instant::now();
        let (mut waiter, turn) = {
            let mut shared = self.lock();
            match shared.turns.arrive(key) {
                Arrival::Runs => return Ok(Permit { queue: self.clone() }),
                Arrival::Refused => {
                    let (running, waiting) = (shared.turns.running, shared.turns.waiting);
                    return Err(AcquireError::Full { running, waiting });
                }
                Arrival::Waits(ticket) => {
                    let (sender, turn) = oneshot::channel();
                    shared.waiting.insert(ticket, sender);
                    (Waiter { queue: self, key, ticket: Some(ticket) }, turn)
                }
            }
        };
        let granted = match deadline {
            Some(deadline) => timeout_at(deadline, turn).await.ok(),
            None => Some(turn.await),
        };
        if let Some(Ok(permit)) = granted {
            waiter.ticket = None;
            return Ok(permit);
        }
        Err(AcquireError::TimedOut { waited: begun.elapsed(), ahead: self.running() })
    }

    /// How many run now.
    pub fn running(&self) -> usize {
        self.lock().turns.running
    }

    /// How many wait now.
    pub fn waiting(&self) -> usize {
        self.lock().turns.waiting
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let sender = {
            let mut shared = self.queue.lock();
            shared.turns.end().and_then(|ticket| shared.waiting.remove(&ticket))
        };
        // Outside the lock: a waiter that is just leaving has the new permit dropped right here, or by its
        // channel, and so passes the turn on.
        if let Some(sender) = sender {
            let _ = sender.send(Self { queue: self.queue.clone() });
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
            let mut shared = self.queue.lock();
            shared.turns.leave(self.key, ticket);
            shared.waiting.remove(&ticket);
        }
    }
}

type Ticket = u64;

/// What becomes of an arrival.
#[derive(Debug, PartialEq, Eq)]
enum Arrival {
    Runs,
    Waits(Ticket),
    Refused,
}

/// The queue's decisions, without waiting: plain state.
#[derive(Debug)]
struct Turns {
    max_running: usize,
    max_waiting: usize,
    running: usize,
    waiting: usize,
    next_ticket: Ticket,
    /// Those who wait, per key; no queue is empty.
    queues: HashMap<Arc<str>, VecDeque<Ticket>>,
    /// The keys of `queues`; the front has the next turn.
    circle: VecDeque<Arc<str>>,
}

impl Turns {
    fn new(max_running: usize, max_waiting: usize) -> Self {
        Self {
            max_running,
            max_waiting,
            running: 0,
            waiting: 0,
            next_ticket: 0,
            queues: HashMap::new(),
            circle: VecDeque::new(),
        }
    }

    fn arrive(&mut self, key: &str) -> Arrival {
        // A place is never free while someone waits: `end` hands it on.
        if self.running < self.max_running {
            self.running += 1;
            return Arrival::Runs;
        }
        if self.waiting >= self.max_waiting {
            return Arrival::Refused;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting += 1;
        if let Some(queue) = self.queues.get_mut(key) {
            queue.push_back(ticket);
        } else {
            let key: Arc<str> = key.into();
            self.queues.insert(key.clone(), VecDeque::from([ticket]));
            self.circle.push_back(key);
        }
        Arrival::Waits(ticket)
    }

    /// One has ended; the returned one runs in its place.
    fn end(&mut self) -> Option<Ticket> {
        self.running = self.running.saturating_sub(1);
        let key = self.circle.pop_front()?;
        let queue = self.queues.get_mut(&key)?;
        let ticket = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&key);
        } else {
            self.circle.push_back(key);
        }
        self.waiting -= 1;
        self.running += 1;
        Some(ticket)
    }

    /// One gives up waiting; nothing happens if it no longer waits.
    fn leave(&mut self, key: &str, ticket: Ticket) {
        let Some(queue) = self.queues.get_mut(key) else { return };
        let Some(position) = queue.iter().position(|&other| other == ticket) else { return };
        queue.remove(position);
        self.waiting -= 1;
        if queue.is_empty() {
            self.queues.remove(key);
            self.circle.retain(|other| other.as_ref() != key);
        }
    }
}

#[cfg(test)]
mod tests;
