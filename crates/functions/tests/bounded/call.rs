//! What one call costs, and what it may cost.

use functions::Function;
use krm::Budget;

use crate::counting::{Memory, count};

/// Bytes of memory for each byte of input and output, and beside that.
const MEMORY: usize = 40;
const MEMORY_BESIDE: usize = 4 << 20;

/// The same of work, which is counted in bytes allocated: whatever loops over configuration and resources
/// allocates.
const WORK: usize = 200;
const WORK_BESIDE: usize = 64 << 20;

/// As much as a message may have.
const MAX_OUTPUT: usize = 6 << 20;

/// What a call took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Bytes that went in and came out.
    size: usize,
    memory: usize,
    work: usize,
    steps: u64,
    was_read: bool,
}

impl Cost {
    /// Whether the input was a list that the function could work on.
    pub(crate) fn was_read(&self) -> bool {
        self.was_read
    }

    /// Runs a function: the one place where that is done.
    pub(crate) fn of(function: &Function, input: &str) -> Self {
        let cost = Self::once(function, input);
        // What is made once for all calls is not the second one's.
        if cost.problem().is_none() { cost } else { Self::once(function, input) }
    }

    fn once(function: &Function, input: &str) -> Self {
        let ((outcome, used), Memory { peak, total }) = count(|| {
            let budget = Budget::new(MAX_OUTPUT);
            (function.run(input.as_bytes(), &budget), budget.used())
        });
        let told: usize = outcome.results.iter().map(|result| result.message.len()).sum();
        assert!(
            outcome.succeeded || told + outcome.stderr.len() > 0,
            "{}: failed without a word: {input}",
            function.name
        );
        // What a call that was stopped had put into its list by then counts as its output.
        let written = usize::try_from(used.written).unwrap().min(MAX_OUTPUT);
        let output = if outcome.over_budget.is_some() { written } else { outcome.output.len() };
        let size = input.len() + output + outcome.stderr.len();
        let was_read = !outcome.output.is_empty() || outcome.over_budget.is_some();
        Self { size, memory: peak, work: total, steps: used.steps, was_read }
    }

    /// What was too much.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.memory > MEMORY * self.size + MEMORY_BESIDE {
            Some("too much memory")
        } else if self.work > WORK * self.size + WORK_BESIDE {
            Some("too much work")
        } else {
            None
        }
    }

    /// Memory for each byte of input and output, but for what is allowed beside that.
    pub(crate) fn memory_ratio(&self) -> f64 {
        ratio(self.memory.saturating_sub(MEMORY_BESIDE), self.size)
    }

    /// The same of work.
    pub(crate) fn work_ratio(&self) -> f64 {
        ratio(self.work.saturating_sub(WORK_BESIDE), self.size)
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn ratio(part: usize, of: usize) -> f64 {
    part as f64 / of.max(1) as f64
}

impl std::fmt::Display for Cost {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { size, memory, work, steps, .. } = self;
        write!(out, "{size} with output, {memory} of memory, {work} of work, {steps} steps")
    }
}
