//! Time as the pool counts it.

use std::time::{Duration, SystemTime};

use pool::Moment;
use tokio::time::Instant;

/// The pool's clock begins this long before our start, so that older pods can be told apart by age.
const BEFORE: Duration = Duration::from_hours(24 * 365);

/// The pool's clock.
#[derive(Debug)]
pub(super) struct Clock {
    started: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { started: Instant::now() }
    }

    pub(super) fn now(&self) -> Moment {
        self.started.elapsed() + BEFORE
    }

    /// A time of the cluster's clock on ours.
    pub(super) fn moment(&self, time: SystemTime) -> Moment {
        match time.duration_since(SystemTime::now()) {
            Ok(ahead) => self.now().saturating_add(ahead),
            Err(error) => self.now().saturating_sub(error.duration()),
        }
    }

    /// A time of the process on ours.
    pub(super) fn moment_of(&self, instant: Instant) -> Moment {
        instant.saturating_duration_since(self.started) + BEFORE
    }

    pub(super) fn instant(&self, moment: Moment) -> Instant {
        self.started + moment.saturating_sub(BEFORE)
    }
}

/// Sleeps until a time, or for ever.
pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
