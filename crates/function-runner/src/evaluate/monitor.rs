//! What keeps a call of a built-in function within its time and the memory of the service.

use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use krm::{Exceeded, Monitor};
use tokio::time::Instant;
use wire::{Full, Memory, Reservation};

/// Ends a call at its deadline, when nobody waits for it any more, or when there is no memory left.
#[derive(Debug)]
pub(super) struct CallMonitor {
    deadline: Instant,
    abandoned: Abandoned,
    memory: Memory,
    reservation: RefCell<Option<Reservation>>,
    refusal: Refusal,
}

impl CallMonitor {
    pub(super) fn new(deadline: Instant, abandoned: Abandoned, memory: Memory, refusal: Refusal) -> Self {
        Self { deadline, abandoned, memory, reservation: RefCell::new(None), refusal }
    }
}

impl Monitor for CallMonitor {
    fn interrupted(&self) -> Option<Exceeded> {
        if self.abandoned.0.load(Ordering::Relaxed) {
            return Some(Exceeded::Cancelled);
        }
        (Instant::now() >= self.deadline).then_some(Exceeded::Time)
    }

    fn reserve(&self, bytes: usize) -> bool {
        let mut reservation = self.reservation.borrow_mut();
        let taken = match &*reservation {
            Some(reservation) => reservation.grow(bytes),
            None => self.memory.try_reserve(bytes).map(|first| *reservation = Some(first)),
        };
        taken.map_err(|full| self.refusal.set(full)).is_ok()
    }
}

/// Ends a call when time is first looked at, after about a tenth of a millisecond, or when it takes more memory
/// than a thread may have without asking for it. To hand a call to another thread and back takes half as long.
#[derive(Debug)]
pub(super) struct Moment {
    memory: Cell<usize>,
}

impl Default for Moment {
    fn default() -> Self {
        Self { memory: Cell::new(512 * 1024) }
    }
}

impl Monitor for Moment {
    fn interrupted(&self) -> Option<Exceeded> {
        Some(Exceeded::Time)
    }

    fn reserve(&self, bytes: usize) -> bool {
        let left = self.memory.get().checked_sub(bytes);
        self.memory.set(left.unwrap_or_default());
        left.is_some()
    }
}

/// Why a call got no more memory, if it asked for more than there was.
#[derive(Debug, Clone, Default)]
pub(super) struct Refusal(Arc<OnceLock<Full>>);

impl Refusal {
    fn set(&self, full: Full) {
        // The first one ends the call.
        let _ = self.0.set(full);
    }

    pub(super) fn get(&self) -> Option<Full> {
        self.0.get().copied()
    }
}

/// Whether nobody waits for a call any more.
#[derive(Debug, Clone, Default)]
pub(super) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    /// Says so when it is dropped: with the future of the call.
    pub(super) fn guard(&self) -> AbandonGuard {
        AbandonGuard(self.clone())
    }
}

#[derive(Debug)]
pub(super) struct AbandonGuard(Abandoned);

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_at_its_deadline_and_when_nobody_waits_for_it() {
        let abandoned = Abandoned::default();
        let guard = abandoned.guard();
        let deadline = Instant::now() + Duration::from_secs(1);
        let monitor = CallMonitor::new(deadline, abandoned, Memory::unlimited(), Refusal::default());
        assert_eq!(monitor.interrupted(), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(monitor.interrupted(), Some(Exceeded::Time));
        drop(guard);
        assert_eq!(monitor.interrupted(), Some(Exceeded::Cancelled));
    }

    #[tokio::test]
    async fn memory_is_taken_from_that_of_all_calls_and_given_back() {
        let memory = Memory::new(1000);
        let refusal = Refusal::default();
        let monitor = CallMonitor::new(Instant::now(), Abandoned::default(), memory.clone(), refusal.clone());
        assert!(monitor.reserve(600) && !monitor.reserve(600) && monitor.reserve(300));
        assert_eq!(memory.used(), 900);
        assert_eq!(refusal.get().unwrap().wanted, 600);
        drop(monitor);
        assert_eq!(memory.used(), 0);
    }
}
