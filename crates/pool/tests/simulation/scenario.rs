//! What kind of world a schedule runs in.

use std::sync::Arc;
use std::time::Duration;

use pool::{Function, Limits, Moment, Spec};

use crate::random::Random;

#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) replicas: usize,
    /// Whether requests, pods, connections and replicas fail, and people meddle.
    pub(crate) faults: bool,
    /// Whether settings change.
    pub(crate) changes: bool,
    /// Whether pods that nobody needs are deleted.
    pub(crate) endings: bool,
    /// Whether there may be a limit over all functions.
    pub(crate) limited: bool,
}

impl Scenario {
    /// Whether one replica does everything that is done.
    pub(crate) fn is_alone_in_peace(&self) -> bool {
        self.replicas == 1 && !self.faults
    }
}

/// How many functions there are. The last two are one image under two names.
pub(crate) const FUNCTIONS: usize = 4;

pub(crate) const LONGEST_TIME_TO_LIVE: Duration = Duration::from_mins(30);

pub(crate) fn name(function: usize) -> Function {
    format!("example.com/f{function}:v1").into()
}

pub(crate) fn milliseconds(number: usize) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap())
}

pub(crate) fn limits(scenario: &Scenario, random: &mut Random) -> Limits {
    let limited = scenario.limited && random.below(2) == 0;
    Limits {
        max_pods: limited.then(|| 1 + random.below(5)),
        max_waiting: if random.below(4) == 0 { 1 + random.below(4) } else { 1000 },
        ready_timeout: Duration::from_mins(if scenario.endings { 1 } else { 60 }),
        claim_timeout: Duration::from_secs(15),
        patience: milliseconds(random.below(3) * 5000),
        min_backoff: Duration::from_secs(1),
        max_backoff: Duration::from_secs(30),
    }
}

pub(crate) fn first_spec(function: usize, random: &mut Random) -> Arc<Spec> {
    let stem = format!("s{}-0", function.min(FUNCTIONS - 2));
    let mut spec = Spec {
        stem: stem.into(),
        image: "".into(),
        revision: "r0".into(),
        min_pods: 0,
        max_pods: 1 + random.below(3),
        max_queue: 1 + random.below(3),
        time_to_live: LONGEST_TIME_TO_LIVE,
    };
    if random.below(8) == 0 {
        spec.min_pods = 1 + random.below(2);
    }
    if random.below(3) == 0 {
        spec.time_to_live = milliseconds(random.below(40) * 1000);
    }
    Arc::new(spec)
}

/// The spec with one thing changed.
pub(crate) fn changed(spec: &Spec, function: usize, roll: usize) -> Arc<Spec> {
    let mut spec = spec.clone();
    match roll % 10 {
        0..=4 => spec.revision = format!("r{}", roll % 7).into(),
        5 => spec.stem = format!("s{}-{}", function.min(FUNCTIONS - 2), roll % 3).into(),
        6 => spec.max_pods = 1 + roll / 10 % 3,
        7 => spec.max_queue = 1 + roll / 10 % 3,
        8 => spec.min_pods = (roll / 10 % 6).saturating_sub(3),
        _ => spec.time_to_live = milliseconds(roll * 10),
    }
    Arc::new(spec)
}

/// A moment as Kubernetes tells it: in whole seconds.
pub(crate) fn whole(moment: Moment) -> Moment {
    Duration::from_secs(moment.as_secs())
}
