//! What one call may cost: steps of work, memory, bytes of output, and time.
//!
//! A [`Document`](crate::Document) counts against its budget whatever is done with it, and so does whoever works
//! on it beside it. Steps and memory may grow with what was read and with what is written, and not faster: so
//! no configuration makes a small list expensive. A budget that was exceeded stays exceeded; its document
//! then reads as an empty one and takes no changes, so that whatever works on it comes to its end soon.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// What a call may always use, and how much more for each byte that it reads or writes. A step is about what
/// it takes to look at one value: some nanoseconds.
const STEPS: u64 = 1 << 22;
const STEPS_PER_BYTE: u64 = 128;
/// Real lists take three to eight bytes for each of their own; one of nothing but commas takes twenty.
const MEMORY: u64 = (4 << 20) - (256 << 10);
const MEMORY_PER_BYTE: u64 = 40;

/// Far more than any message can be.
const DEFAULT_OUTPUT: usize = 64 << 20;

/// How much memory is asked for at once.
const RESERVATION: u64 = 1 << 18;

/// After so many steps, time is looked at: some tens of microseconds.
const INTERVAL: u64 = 1 << 13;

/// What a budget is kept with: the deadline of a call, the memory of a service.
pub trait Monitor: fmt::Debug {
    /// Why the call is to end now, if it is.
    fn interrupted(&self) -> Option<Exceeded>;

    /// Takes more memory for the call, until it ends; `false` if there is none.
    fn reserve(&self, bytes: usize) -> bool;
}

/// Neither a deadline nor a bound of memory.
#[derive(Debug)]
struct Unmonitored;

impl Monitor for Unmonitored {
    fn interrupted(&self) -> Option<Exceeded> {
        None
    }

    fn reserve(&self, _: usize) -> bool {
        true
    }
}

/// What there was too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Exceeded {
    /// More work than the size of input and output explains.
    #[error("more than {limit} steps of work, which is far too much for a list of this size")]
    Steps {
        /// How many there may be.
        limit: u64,
    },
    /// More memory than the size of input and output explains.
    #[error("more than {limit} bytes of memory, which is far too much for a list of this size")]
    Memory {
        /// How many there may be.
        limit: u64,
    },
    /// More output than may be sent.
    #[error("more than {limit} bytes of output")]
    Output {
        /// How many there may be.
        limit: u64,
    },
    /// A value in so many others that programs cannot follow.
    #[error("fields nested more than {limit} levels deep")]
    Depth {
        /// How many there may be.
        limit: usize,
    },
    /// The call's time is over.
    #[error("more time than the call has")]
    Time,
    /// Nobody waits for the call any more.
    #[error("a caller that does not wait any longer")]
    Cancelled,
    /// All memory for calls is taken.
    #[error("more memory than is free in this moment")]
    Busy,
}

/// An exceeded budget, and what exceeded it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the call would take {exceeded}{}", because(*field))]
pub struct OverBudget {
    /// What there was too much of.
    pub exceeded: Exceeded,
    /// The field of the functionConfig that was being followed.
    pub field: Option<&'static str>,
}

fn because(field: Option<&'static str>) -> String {
    field.map(|field| format!(", because of `{field}` in the functionConfig")).unwrap_or_default()
}

impl From<OverBudget> for String {
    fn from(over: OverBudget) -> Self {
        over.to_string()
    }
}

/// What was used of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Steps of work.
    pub steps: u64,
    /// Bytes of memory, as they are reckoned.
    pub memory: u64,
    /// Bytes that were put into the document, whether or not they stayed there.
    pub written: u64,
}

/// What one call may cost. Clones count together.
#[derive(Debug, Clone)]
pub struct Budget(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Bytes read.
    read: Cell<u64>,
    max_output: u64,
    used: Cell<Used>,
    /// From this step on there is something to look at; 0 once the budget is exceeded.
    pause: Cell<u64>,
    /// Memory that the monitor has given.
    reserved: Cell<u64>,
    exceeded: RefCell<Option<OverBudget>>,
    field: Cell<Option<&'static str>>,
    monitor: Box<dyn Monitor>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(DEFAULT_OUTPUT)
    }
}

impl Budget {
    /// A budget for an output of at most so many bytes, without a deadline.
    pub fn new(max_output: usize) -> Self {
        Self::monitored(max_output, Unmonitored)
    }

    /// No bound at all, for what is bounded by others.
    pub fn unlimited() -> Self {
        let budget = Self::new(usize::MAX);
        budget.0.read.set(u64::MAX);
        budget
    }

    /// A budget for an output of at most so many bytes, with a deadline or a bound of memory.
    pub fn monitored(max_output: usize, monitor: impl Monitor + 'static) -> Self {
        Self(Rc::new(Inner {
            read: Cell::new(0),
            max_output: max_output as u64,
            used: Cell::new(Used::default()),
            pause: Cell::new(INTERVAL),
            reserved: Cell::new(0),
            exceeded: RefCell::new(None),
            field: Cell::new(None),
            monitor: Box::new(monitor),
        }))
    }

    /// What was used so far.
    pub fn used(&self) -> Used {
        self.0.used.get()
    }

    /// Says which field of the functionConfig is followed from now on, to be named if it is too much.
    pub fn follow(&self, field: &'static str) {
        self.0.field.set(Some(field));
    }

    /// An error if it was exceeded.
    pub fn check(&self) -> Result<(), OverBudget> {
        if !self.is_exceeded() {
            return Ok(());
        }
        let exceeded = self.0.exceeded.borrow().clone();
        exceeded.map_or(Ok(()), Err)
    }

    /// Whether it was exceeded.
    pub fn is_exceeded(&self) -> bool {
        self.0.pause.get() == 0
    }

    /// Counts work. `false` if it is too much.
    #[inline]
    pub fn step(&self, steps: usize) -> bool {
        let mut used = self.0.used.get();
        used.steps = used.steps.saturating_add(steps as u64);
        self.0.used.set(used);
        used.steps < self.0.pause.get() || self.look()
    }

    /// Counts work; an error if it is too much.
    #[inline]
    pub fn work(&self, steps: usize) -> Result<(), OverBudget> {
        if self.step(steps) { Ok(()) } else { self.check() }
    }

    /// Counts the work of looking at a text.
    #[inline]
    pub fn read_text(&self, bytes: usize) -> Result<(), OverBudget> {
        self.work(1 + bytes / 16)
    }

    /// Counts memory that is about to be taken; an error if it is too much.
    pub fn memory(&self, bytes: usize) -> Result<(), OverBudget> {
        self.check()?;
        let mut used = self.0.used.get();
        used.memory = used.memory.saturating_add(bytes as u64);
        self.0.used.set(used);
        let limit = self.limit(MEMORY, MEMORY_PER_BYTE);
        if used.memory > limit {
            return Err(self.exceed(Exceeded::Memory { limit }));
        }
        let reserved = self.0.reserved.get();
        let missing = used.memory.saturating_sub(reserved);
        if missing > 0 {
            let taken = missing.max(RESERVATION);
            if !usize::try_from(taken).is_ok_and(|taken| self.0.monitor.reserve(taken)) {
                return Err(self.exceed(Exceeded::Busy));
            }
            self.0.reserved.set(reserved.saturating_add(taken));
        }
        Ok(())
    }

    /// Puts a part behind a text, if there is memory for it. A text that grows is moved now and then to a place
    /// of twice the size: then there are three bytes for each of its own.
    pub fn append(&self, text: &mut String, part: &str) -> Result<(), OverBudget> {
        self.memory(3 * part.len())?;
        text.push_str(part);
        Ok(())
    }

    /// Counts bytes that are about to be put into the document, or to be told; an error if it is too much.
    pub fn write(&self, bytes: usize) -> Result<(), OverBudget> {
        self.check()?;
        let mut used = self.0.used.get();
        used.written = used.written.saturating_add(bytes as u64);
        self.0.used.set(used);
        // What takes the place of something that was read does not make the output larger.
        if used.written > self.0.max_output.saturating_add(self.0.read.get()) {
            return Err(self.exceed(Exceeded::Output { limit: self.0.max_output }));
        }
        Ok(())
    }

    /// Counts bytes that the call was given: the more there are, the more it may cost.
    pub fn read(&self, bytes: usize) {
        self.0.read.set(self.0.read.get().saturating_add(bytes as u64));
    }

    /// An error if an output is too long.
    pub(crate) fn output(&self, bytes: usize) -> Result<(), OverBudget> {
        if bytes as u64 > self.0.max_output {
            return Err(self.exceed(Exceeded::Output { limit: self.0.max_output }));
        }
        Ok(())
    }

    /// Notes that it is exceeded; the first time counts.
    pub fn exceed(&self, exceeded: Exceeded) -> OverBudget {
        self.0.pause.set(0);
        let mut over = self.0.exceeded.borrow_mut();
        over.get_or_insert(OverBudget { exceeded, field: self.0.field.get() }).clone()
    }

    fn limit(&self, base: u64, per_byte: u64) -> u64 {
        let bytes = self.0.read.get().saturating_add(self.0.used.get().written);
        base.saturating_add(per_byte.saturating_mul(bytes))
    }

    /// Looks at what is looked at now and then. `false` if the call is to end.
    #[cold]
    fn look(&self) -> bool {
        if self.is_exceeded() {
            return false;
        }
        let steps = self.0.used.get().steps;
        let limit = self.limit(STEPS, STEPS_PER_BYTE);
        let problem =
            if steps > limit { Some(Exceeded::Steps { limit }) } else { self.0.monitor.interrupted() };
        match problem {
            Some(problem) => {
                self.exceed(problem);
                false
            }
            None => {
                self.0.pause.set(steps.saturating_add(INTERVAL));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, EditError, Value};

    const TEXT: &str = "a:\n- b: c\n";

    #[derive(Debug)]
    struct Script {
        ends: Cell<bool>,
        memory: Cell<usize>,
    }

    impl Monitor for Rc<Script> {
        fn interrupted(&self) -> Option<Exceeded> {
            self.ends.get().then_some(Exceeded::Time)
        }

        fn reserve(&self, bytes: usize) -> bool {
            let left = self.memory.get().checked_sub(bytes);
            self.memory.set(left.unwrap_or_default());
            left.is_some()
        }
    }

    #[test]
    fn work_and_memory_may_grow_with_what_is_read_and_written() {
        let budget = Budget::new(1 << 30);
        let steps = usize::try_from(STEPS).unwrap();
        budget.read(1000);
        budget.write(1000).unwrap();
        assert!(budget.step(steps + 128 * 2000));
        assert!(!budget.step(1 << 14));
        let over = budget.check().unwrap_err();
        assert!(matches!(over.exceeded, Exceeded::Steps { .. }), "{over}");
        let budget = Budget::new(1 << 30);
        let memory = usize::try_from(MEMORY).unwrap();
        budget.read(1000);
        budget.memory(memory + 40 * 1000).unwrap();
        assert!(matches!(budget.memory(1).unwrap_err().exceeded, Exceeded::Memory { .. }));
    }

    #[test]
    fn the_first_reason_stays_and_names_the_field() {
        let budget = Budget::new(10);
        budget.follow("labels");
        let over = budget.write(11).unwrap_err();
        let told =
            "the call would take more than 10 bytes of output, because of `labels` in the functionConfig";
        assert_eq!(over.to_string(), told);
        budget.follow("other");
        assert_eq!(budget.memory(usize::MAX).unwrap_err(), over);
        assert!(!budget.step(1) && budget.is_exceeded());
    }

    #[test]
    fn an_exceeded_document_reads_as_an_empty_one_and_takes_no_changes() {
        let budget = Budget::new(1000);
        let mut document = Document::parse_within(TEXT, &budget).unwrap();
        let root = document.root();
        let list = document.get(root, "a").unwrap();
        let long = document.set_field(root, "b", "x".repeat(2000)).unwrap_err();
        assert!(matches!(long, EditError::OverBudget(_)), "{long}");
        assert_eq!(document.get(root, "a"), None);
        assert_eq!(document.children(list).count(), 0);
        assert!(document.push(list, Value::null()).is_err() && document.set(list, "x").is_err());
        assert_eq!(document.to_text().unwrap_err(), budget.check().unwrap_err());
    }

    #[test]
    fn what_is_put_in_deeper_than_can_be_read_is_refused() {
        let mut document = Document::parse(TEXT).unwrap();
        let keys = vec!["k"; 10_000];
        let deep = document.ensure_path(document.root(), &keys).unwrap_err();
        assert_eq!(deep.to_string(), "the call would take fields nested more than 500 levels deep");
    }

    #[test]
    fn the_monitor_is_asked_now_and_then() {
        let script = Rc::new(Script { ends: Cell::new(false), memory: Cell::new(1 << 20) });
        let budget = Budget::monitored(1000, script.clone());
        assert!(budget.step(100_000));
        budget.memory(1).unwrap();
        assert_eq!(script.memory.get(), (1 << 20) - (1 << 18), "some at once");
        budget.memory((1 << 18) - 1).unwrap();
        script.memory.set(0);
        assert_eq!(budget.memory(1).unwrap_err().exceeded, Exceeded::Busy);
        let budget = Budget::monitored(1000, script.clone());
        script.ends.set(true);
        assert!(!budget.step(100_000));
        assert_eq!(budget.check().unwrap_err().exceeded, Exceeded::Time);
    }
}
