//! Counts what is allocated, by everyone in the process: for tests that are alone in theirs, or take turns.
#![expect(unsafe_code, reason = "an allocator that counts cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

fn taken(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
    TOTAL.fetch_add(bytes, Ordering::Relaxed);
}

// SAFETY: all is left to the system's allocator; the counters have nothing to do with the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller keeps to the contract of this method, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While it is moved, both are there.
        taken(size);
        // SAFETY: as above.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What something took beside what was taken already, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// The most at one time.
    pub(crate) peak: usize,
    /// All of it, also what was given back in between.
    pub(crate) total: usize,
}

/// Does something, and tells the memory that it took.
pub(crate) fn count<T>(of: impl FnOnce() -> T) -> (T, Memory) {
    let (before, total) = (NOW.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed));
    PEAK.store(before, Ordering::Relaxed);
    let result = of();
    let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    (result, Memory { peak, total: TOTAL.load(Ordering::Relaxed) - total })
}
