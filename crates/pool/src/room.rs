//! Room under the limit over all functions.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Function, Moment, PodId};

/// Who needs room, and who could give some.
#[derive(Debug)]
pub(crate) struct Room {
    limit: Option<usize>,
    needs: BTreeMap<(Urgency, Moment, Function), usize>,
    needed: usize,
    idle: BTreeSet<Idle>,
    ending: usize,
}

/// Pods a function wants and has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) urgency: Urgency,
    /// Since when its oldest call waits, or since when it is wanted.
    pub(crate) since: Moment,
    /// How many; at least 1.
    pub(crate) count: usize,
}

/// How pressing a need is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Calls wait, and no pod is there or coming for them.
    First,
    /// There are too few pods.
    More,
}

/// A pod that could go: since when it is idle, when it would go anyway, and its number.
pub(crate) type Idle = (Moment, Moment, PodId);

/// What one function has entered here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) idle: Vec<Idle>,
    pub(crate) ending: usize,
}

impl Room {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        let limit = limit.map(|limit| limit.max(1));
        Self { limit, needs: BTreeMap::new(), needed: 0, idle: BTreeSet::new(), ending: 0 }
    }

    /// Whether there is a limit at all.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether there is room that nobody needs, there being so many pods.
    pub(crate) fn is_spare(&self, pods: usize) -> bool {
        self.needs.is_empty() && self.is_free(pods)
    }

    fn is_free(&self, pods: usize) -> bool {
        self.limit.is_none_or(|limit| pods < limit)
    }

    /// Replaces what a function needs.
    pub(crate) fn need(&mut self, function: &Function, before: Option<Need>, now: Option<Need>) {
        if before == now {
            return;
        }
        if let Some(need) = before {
            self.needs.remove(&(need.urgency, need.since, function.clone()));
            self.needed -= need.count;
        }
        if let Some(need) = now {
            self.needs.insert((need.urgency, need.since, function.clone()), need.count);
            self.needed += need.count;
        }
    }

    /// Replaces what a function could give.
    pub(crate) fn offer(&mut self, before: &Offer, now: &Offer) {
        if before == now {
            return;
        }
        for idle in &before.idle {
            self.idle.remove(idle);
        }
        self.idle.extend(now.idle.iter().copied());
        self.ending = self.ending + now.ending - before.ending;
    }

    /// The function that may start a pod next, there being so many pods.
    pub(crate) fn next(&self, pods: usize) -> Option<Function> {
        let ((.., function), _) = self.needs.first_key_value()?;
        self.is_free(pods).then(|| function.clone())
    }

    /// The pod that must go to make room, there being so many pods. Those that
    /// are going already make room too.
    pub(crate) fn victim(&self, pods: usize) -> Option<PodId> {
        let staying = pods.saturating_sub(self.ending);
        if self.limit? >= staying.saturating_add(self.needed) || self.needed == 0 {
            return None;
        }
        self.idle.first().map(|&(.., pod)| pod)
    }
}
