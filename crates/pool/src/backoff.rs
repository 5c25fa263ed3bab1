//! The pause after a failed start.

use crate::{Limits, Moment};

/// What is remembered of failed starts of a function until one succeeds.
#[derive(Debug)]
pub(crate) struct Backoff<F> {
    pause: Moment,
    until: Moment,
    /// Why the last start failed, as far as known.
    pub(crate) failure: Option<F>,
    /// Whether trying again soon is of no use.
    pub(crate) lasting: bool,
}

impl<F> Backoff<F> {
    /// Another start failed. Those that fail during the pause do not prolong it:
    /// pods that were started together fail together.
    pub(crate) fn after(
        before: Option<Self>,
        failure: Option<F>,
        lasting: bool,
        now: Moment,
        limits: &Limits,
    ) -> Self {
        match before {
            None => {
                let pause = limits.min_backoff.min(limits.max_backoff);
                Self { pause, until: now.saturating_add(pause), failure, lasting }
            }
            Some(before) => {
                let failure = failure.or(before.failure);
                if now < before.until {
                    return Self { failure, lasting, ..before };
                }
                let pause = before.pause.saturating_mul(2).min(limits.max_backoff);
                Self { pause, until: now.saturating_add(pause), failure, lasting }
            }
        }
    }

    /// Until when nothing is started, if that is still to come.
    pub(crate) fn pausing(&self, now: Moment) -> Option<Moment> {
        (now < self.until).then_some(self.until)
    }

    /// Whether the failures are so long ago that the next one is a first one.
    pub(crate) fn is_over(&self, now: Moment, limits: &Limits) -> bool {
        now >= self.until.saturating_add(limits.max_backoff)
    }
}
