//! One pod.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::{CallId, Moment, Observed, Reason, Spec};

/// How often the keeping of a pod is recorded at most, however short it is kept.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// What the pool knows of a pod.
#[derive(Debug)]
pub(crate) struct Pod<F> {
    pub(crate) stem: Arc<str>,
    pub(crate) slot: usize,
    pub(crate) revision: Arc<str>,
    pub(crate) uid: Option<Arc<str>>,
    /// Whether a launch was asked for and is not reported on, whatever was seen meanwhile.
    pub(crate) asked: bool,
    /// Pods that were seen in its place since then and are gone.
    pub(crate) gone: Vec<Arc<str>>,
    pub(crate) stage: Stage,
    pub(crate) standing: Standing,
    /// When the pool first asked for it or heard of it.
    pub(crate) begun: Moment,
    /// When it was made; by the cluster's word once it was seen.
    pub(crate) created: Moment,
    /// Whether the cluster has shown it.
    pub(crate) seen: bool,
    pub(crate) calls: HashSet<CallId>,
    /// The number of the last grant that was for it: among equals, the one that waited longest is next.
    pub(crate) last_grant: u64,
    /// When a call last entered or left it.
    pub(crate) last_used: Option<Moment>,
    /// Until when it is to be kept by what is recorded on it, by whomever.
    pub(crate) keep_until: Option<Moment>,
    pub(crate) trouble: Option<F>,
}

/// How far a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its launch was asked for.
    Launching,
    /// Another replica has the slot; its pod is awaited.
    Taken {
        /// Since when.
        since: Moment,
    },
    /// It exists and does not answer yet.
    Starting {
        /// Since when that is known.
        since: Moment,
    },
    /// It takes calls.
    Ready,
    /// It took calls, and whether it still can is being found out.
    Doubted,
    /// It takes no more calls and will go.
    Ending(Ending),
}

/// How a pod ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// When and why this replica last asked for its deletion, if it did.
    pub(crate) asked: Option<(Moment, Reason)>,
    /// Whether the cluster shows that it is being deleted.
    pub(crate) seen: bool,
    /// Whether it ends because it did not come up.
    pub(crate) failed_start: bool,
}

/// Whether a pod is what its function's pods are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is.
    Wanted,
    /// It was made from something older.
    Outdated,
    /// There are enough others, or an older one in its slot.
    Surplus,
}

impl Ending {
    /// The cluster shows that a pod is being deleted.
    pub(crate) fn seen() -> Self {
        Self { asked: None, seen: true, failed_start: false }
    }
}

impl<F> Pod<F> {
    /// A pod whose launch is asked for.
    pub(crate) fn launching(spec: &Spec, slot: usize, now: Moment) -> Self {
        Self {
            stem: spec.stem.clone(),
            slot,
            revision: spec.revision.clone(),
            uid: None,
            asked: false,
            gone: Vec::new(),
            stage: Stage::Launching,
            standing: Standing::Wanted,
            begun: now,
            created: now,
            seen: false,
            calls: HashSet::new(),
            last_grant: 0,
            last_used: None,
            keep_until: None,
            trouble: None,
        }
    }

    /// A pod that was found in the cluster.
    pub(crate) fn found(observed: &Observed, now: Moment) -> Self {
        let (stem, revision) = (observed.stem.clone(), observed.revision.clone());
        Self { stem, revision, ..Self::launching(&observed.spec, observed.slot, now) }
    }

    /// What was seen in its place is gone; what was asked for may still come.
    pub(crate) fn forget(&mut self) {
        self.gone.extend(self.uid.take());
        self.stage = Stage::Launching;
        self.seen = false;
        self.last_used = None;
        self.keep_until = None;
        self.trouble = None;
    }

    /// Takes over what the cluster says.
    pub(crate) fn observe(&mut self, observed: &Observed) {
        self.created = observed.created;
        self.revision = observed.revision.clone();
        self.seen = true;
        if observed.is_shortened {
            // By hand: nobody here does. It counts until the next use.
            (self.keep_until, self.last_used) = (observed.keep_until, None);
        }
        self.keep_until = self.keep_until.max(observed.keep_until);
    }

    /// Whether it is made from what the spec says.
    pub(crate) fn is_current(&self, spec: &Spec) -> bool {
        self.revision == spec.revision && self.stem == spec.stem
    }

    /// Whether it takes calls.
    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// Whether it is on its way to take calls.
    pub(crate) fn is_coming(&self) -> bool {
        matches!(self.stage, Stage::Launching | Stage::Taken { .. } | Stage::Starting { .. })
    }

    /// Whether it will go.
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Ending(_))
    }

    /// When calls stop waiting for it rather than crowd other pods, if they wait for it now.
    pub(crate) fn awaited_until(&self, now: Moment, patience: Duration) -> Option<Moment> {
        let end = self.begun.saturating_add(patience);
        let awaited = self.standing == Standing::Wanted && self.is_coming() && self.trouble.is_none();
        (awaited && now < end).then_some(end)
    }

    /// When it is asked for again, its slot being taken.
    pub(crate) fn insist_at(&self, claim_timeout: Duration) -> Option<Moment> {
        match self.stage {
            Stage::Taken { since } => Some(since.saturating_add(claim_timeout)),
            _ => None,
        }
    }

    /// When it is given up, being still on its way, if nobody waits for it.
    pub(crate) fn late_at(&self, ready_timeout: Duration) -> Option<Moment> {
        match self.stage {
            Stage::Taken { .. } => Some(self.begun.saturating_add(ready_timeout)),
            Stage::Starting { since } => Some(since.saturating_add(ready_timeout)),
            // A launch comes to its end.
            Stage::Launching | Stage::Ready | Stage::Doubted | Stage::Ending(_) => None,
        }
    }

    /// Since when nobody has used it, as far as known.
    pub(crate) fn unused_since(&self, time_to_live: Duration) -> Moment {
        let by_others = self.keep_until.unwrap_or(self.begun.saturating_add(time_to_live));
        self.last_used.unwrap_or_default().max(by_others.saturating_sub(time_to_live))
    }

    /// Until when it is kept without being used.
    pub(crate) fn kept_until(&self, time_to_live: Duration) -> Moment {
        let own = self.last_used.map(|used| used.saturating_add(time_to_live));
        own.max(self.keep_until).unwrap_or(self.begun.saturating_add(time_to_live))
    }

    /// Takes calls from now on. Answers until when its keeping is to be recorded, if that is worth it:
    /// the time it took to start, as far as this pool saw it, is not counted as idle.
    pub(crate) fn become_ready(&mut self, time_to_live: Duration, now: Moment) -> Option<Moment> {
        let Stage::Starting { since } = self.stage else { return None };
        self.stage = Stage::Ready;
        self.trouble = None;
        let started_in = now.saturating_sub(since);
        let wished = self.keep_until.map_or(Moment::MAX, |until| until.saturating_add(started_in));
        self.record(wished, time_to_live, now)
    }

    /// Until when its keeping is to be recorded after a use, if that is worth recording again.
    pub(crate) fn record_use(&mut self, time_to_live: Duration, now: Moment) -> Option<Moment> {
        self.record(Moment::MAX, time_to_live, now)
    }

    fn record(&mut self, wished: Moment, time_to_live: Duration, now: Moment) -> Option<Moment> {
        const AT_MOST: Duration = Duration::from_mins(1);
        let interval = (time_to_live / 4).clamp(SHORTEST_INTERVAL, AT_MOST);
        let until = wished.min(now.saturating_add(time_to_live));
        let due = self.keep_until.is_none_or(|recorded| recorded.saturating_add(interval) <= until);
        due.then(|| *self.keep_until.insert(until))
    }

    /// When its keeping must be recorded again lest other replicas delete it with a call in it.
    pub(crate) fn renew_at(&self, time_to_live: Duration) -> Option<Moment> {
        let quarter = time_to_live / 4;
        let busy = self.is_ready() && !self.calls.is_empty() && quarter >= SHORTEST_INTERVAL;
        let recorded = self.keep_until.filter(|recorded| busy && *recorded < Moment::MAX)?;
        Some(recorded.saturating_sub(quarter))
    }

    /// Its phase in a word.
    pub(crate) fn phase(&self) -> &'static str {
        match self.stage {
            Stage::Launching => "launching",
            Stage::Taken { .. } => "taken",
            Stage::Starting { .. } => "starting",
            Stage::Ready => "ready",
            Stage::Doubted => "doubted",
            Stage::Ending(_) => "ending",
        }
    }
}
