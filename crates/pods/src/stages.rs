//! How long the stages of a pod's start take, by our own clock: that of the
//! cluster's objects counts in seconds.

use std::time::Duration;

use tokio::time::Instant;

use crate::{observe::Sighting, world::ColdStart};

/// The stages of a start that have been seen.
#[derive(Debug)]
pub(crate) struct Stages {
    /// When its launch was asked for; pods of others are not measured.
    since: Option<Instant>,
    scheduled: Option<Instant>,
    pulled: Option<Instant>,
    started: Option<Instant>,
}

impl Stages {
    pub(crate) fn new(since: Option<Instant>, sighting: &Sighting) -> Self {
        let mut stages = Self { since, scheduled: None, pulled: None, started: None };
        stages.saw(sighting);
        stages
    }

    /// Notes how far the pod is.
    pub(crate) fn saw(&mut self, sighting: &Sighting) {
        let now = Instant::now();
        let note = |stage: &mut Option<Instant>, is_reached: bool| {
            if is_reached && stage.is_none() {
                *stage = Some(now);
            }
        };
        note(&mut self.scheduled, sighting.progress.scheduled.is_some());
        note(&mut self.pulled, sighting.progress.initialized.is_some());
        note(&mut self.started, sighting.is_running);
    }

    /// The pod answers: tells what each stage took. What was not seen took no time of its own.
    pub(crate) fn connected(&mut self, mut tell: impl FnMut(ColdStart, Duration)) {
        let Some(mut before) = self.since.take() else { return };
        let now = Instant::now();
        let stages = [
            (ColdStart::Schedule, self.scheduled),
            (ColdStart::Pull, self.pulled),
            (ColdStart::Start, self.started),
            (ColdStart::Connect, Some(now)),
        ];
        for (stage, reached) in stages {
            let reached = reached.unwrap_or(before).max(before);
            tell(stage, reached.saturating_duration_since(before));
            before = reached;
        }
    }
}
