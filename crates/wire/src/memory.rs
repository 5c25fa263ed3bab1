//! How many bytes calls may hold at once, over all of them: a ledger that everything large is entered in
//! before it is taken, and that gives no more than its limit.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// A share may hold this many times what it leaves free for others.
const GREED: usize = 4;

/// The bytes that may be in flight. Clones share them.
///
/// One that takes all it can must not shut out all others, so that each client has a [`share`](Memory::share):
/// what a share holds may be at most four times what it leaves free. One client alone comes to four fifths of
/// the limit, the next to four fifths of the rest.
#[derive(Debug, Clone)]
pub struct Memory {
    ledger: Arc<Ledger>,
    share: Option<Arc<Share>>,
}

/// What one client holds.
pub(crate) type Share = AtomicUsize;

#[derive(Debug)]
struct Ledger {
    limit: usize,
    used: AtomicUsize,
    refused: AtomicU64,
}

/// There is no room for so many bytes more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} bytes more do not fit: {used} of the {limit} bytes that calls may hold at once are taken{}", self.by_whom())]
pub struct Full {
    /// How many bytes were asked for.
    pub wanted: usize,
    /// How many were taken.
    pub used: usize,
    /// How many may be.
    pub limit: usize,
    /// How many of those taken are the caller's, where it has a share.
    pub held: Option<usize>,
}

impl Full {
    /// Whether waiting can help: more than the limit, or than one client may have of it, never fits.
    pub fn may_pass(&self) -> bool {
        self.wanted <= self.most()
    }

    /// The most that can ever be had.
    pub fn most(&self) -> usize {
        if self.held.is_some() { self.limit / (GREED + 1) * GREED } else { self.limit }
    }

    fn by_whom(&self) -> String {
        self.held.map_or_else(String::new, |held| {
            format!(", {held} by callers of this address, which may hold {GREED} times what they leave free")
        })
    }
}

impl Memory {
    /// At most `limit` bytes at once.
    pub fn new(limit: usize) -> Self {
        let ledger = Ledger { limit, used: AtomicUsize::new(0), refused: AtomicU64::new(0) };
        Self { ledger: Arc::new(ledger), share: None }
    }

    /// Bytes are counted, and never refused.
    pub fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// The same bytes, as one client sees them, that must leave something to others.
    #[must_use]
    pub fn share(&self) -> Self {
        self.with_share(Arc::default())
    }

    pub(crate) fn with_share(&self, share: Arc<Share>) -> Self {
        Self { ledger: self.ledger.clone(), share: Some(share) }
    }

    /// Takes so many bytes, until the reservation is dropped.
    pub fn try_reserve(&self, bytes: usize) -> Result<Reservation, Full> {
        let reservation = Reservation { memory: self.clone(), bytes: AtomicUsize::new(0) };
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// How many bytes are taken.
    pub fn used(&self) -> usize {
        self.ledger.used.load(Ordering::Relaxed)
    }

    /// How many may be.
    pub fn limit(&self) -> usize {
        self.ledger.limit
    }

    /// How often bytes were refused so far.
    pub fn refused(&self) -> u64 {
        self.ledger.refused.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> Result<(), Full> {
        let Ledger { limit, used, refused } = &*self.ledger;
        let full = |used: usize| {
            refused.fetch_add(1, Ordering::Relaxed);
            let held = self.share.as_ref().map(|share| share.load(Ordering::Relaxed));
            Full { wanted: bytes, used, limit: *limit, held }
        };
        if bytes > *limit {
            return Err(full(self.used()));
        }
        // Entered in the share first: what two calls of one client ask for at once counts for both.
        let held = self.share.as_ref().map_or(0, |share| add(share, bytes));
        let fits = |used: usize| {
            let used = used.checked_add(bytes).filter(|used| used <= limit)?;
            (held / GREED <= limit - used).then_some(used)
        };
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(drop).map_err(|used| {
            if let Some(share) = &self.share {
                subtract(share, bytes);
            }
            full(used)
        })
    }

    fn give_back(&self, bytes: usize) {
        subtract(&self.ledger.used, bytes);
        if let Some(share) = &self.share {
            subtract(share, bytes);
        }
    }
}

fn add(count: &AtomicUsize, bytes: usize) -> usize {
    count.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes)
}

fn subtract(count: &AtomicUsize, bytes: usize) {
    count.fetch_sub(bytes, Ordering::Relaxed);
}

/// Bytes that are taken; dropping it gives them back.
#[derive(Debug)]
pub struct Reservation {
    memory: Memory,
    bytes: AtomicUsize,
}

impl Reservation {
    /// Takes so many bytes more, or none of them.
    pub fn grow(&self, bytes: usize) -> Result<(), Full> {
        self.memory.take(bytes)?;
        add(&self.bytes, bytes);
        Ok(())
    }

    /// Gives back all but so many bytes.
    pub fn shrink_to(&self, bytes: usize) {
        let shrink = |held: usize| (held > bytes).then_some(bytes);
        if let Ok(held) = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shrink) {
            self.memory.give_back(held - bytes);
        }
    }

    /// How many bytes it holds.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Where its bytes are from.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_more_than_the_limit_is_given_and_all_comes_back() {
        let memory = Memory::new(100);
        let first = memory.try_reserve(60).unwrap();
        assert_eq!(
            memory.try_reserve(41).unwrap_err(),
            Full { wanted: 41, used: 60, limit: 100, held: None }
        );
        let second = memory.clone().try_reserve(40).unwrap();
        assert_eq!((memory.used(), memory.limit(), memory.refused()), (100, 100, 1));
        assert!(first.grow(1).is_err());
        assert_eq!(first.bytes(), 60, "a refusal takes nothing");
        drop(second);
        first.grow(40).unwrap();
        first.shrink_to(30);
        first.shrink_to(70);
        assert_eq!((first.bytes(), memory.used()), (30, 30));
        drop(first);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn what_can_never_fit_is_told_apart() {
        let memory = Memory::new(10);
        let _taken = memory.try_reserve(10).unwrap();
        assert!(memory.try_reserve(10).unwrap_err().may_pass());
        assert!(!memory.try_reserve(11).unwrap_err().may_pass());
        let share = memory.share();
        assert!(!share.try_reserve(usize::MAX).unwrap_err().may_pass());
        assert!(
            share.try_reserve(8).unwrap_err().may_pass() && !share.try_reserve(9).unwrap_err().may_pass()
        );
    }

    #[test]
    fn unlimited_memory_is_counted() {
        let memory = Memory::unlimited();
        let _half = memory.share().try_reserve(usize::MAX / 2).unwrap();
        assert_eq!(memory.used(), usize::MAX / 2);
    }

    #[test]
    fn each_client_leaves_a_fifth_of_what_it_found() {
        let memory = Memory::new(1000);
        let fill = |share: &Memory| -> Vec<Reservation> {
            std::iter::from_fn(|| share.try_reserve(1).ok()).collect()
        };
        let (greedy, other) = (memory.share(), memory.share());
        let held = fill(&greedy);
        assert!((790..=810).contains(&held.len()), "{}", held.len());
        let small = other.try_reserve(100).unwrap();
        assert!(memory.try_reserve(1).is_ok(), "what has no share is bounded by the limit alone");
        let refused = greedy.try_reserve(20).unwrap_err().to_string();
        assert!(refused.contains(&format!("{} by callers of this address", held.len())), "{refused}");
        drop((held, small));
        assert_eq!(memory.used(), 0);
        let held = (fill(&greedy), fill(&other));
        assert!((155..=165).contains(&held.1.len()), "{}", held.1.len());
        assert!(memory.share().try_reserve(30).is_ok(), "{memory:?}");
    }

    #[test]
    fn many_threads_keep_the_limit() {
        let memory = Memory::new(1000);
        thread::scope(|scope| {
            for bytes in 1..=8 {
                let share = memory.share();
                scope.spawn(move || {
                    for _ in 0..2000 {
                        let taken: Vec<_> =
                            (0..60).filter_map(|_| share.try_reserve(bytes * 7).ok()).collect();
                        assert!(share.used() <= share.limit());
                        drop(taken);
                    }
                });
            }
        });
        assert_eq!(memory.used(), 0);
        assert!(memory.refused() > 0);
    }
}
