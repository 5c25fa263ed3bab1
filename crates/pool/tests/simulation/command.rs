//! The steps of a schedule. They are small and mean something in any state, so that
//! a schedule from which steps are taken out is a schedule too.

use crate::random::Random;
use crate::scenario::Scenario;

/// One step: what to do, and which of those it can be done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    pub(crate) replica: usize,
    /// Which function, call, pod or task, counted around.
    pub(crate) pick: usize,
    /// From 0 to 999: how it goes.
    pub(crate) roll: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call arrives.
    Arrive,
    /// A call ends or is given up.
    Leave,
    /// The next event of the watch is delivered.
    Watch,
    /// The watch begins anew.
    Relist,
    /// Something the pool asked for is carried on with.
    Carry,
    /// A pod of the cluster comes up, or is removed if it was ending.
    Progress,
    /// A pod of the cluster fails.
    Fail,
    /// A pod of the cluster vanishes.
    Vanish,
    /// Somebody deletes a pod of the cluster.
    Remove,
    /// Somebody makes a pod.
    Make,
    /// A connection breaks.
    Break,
    /// Time passes, and the pools are woken as they ask for.
    Pass,
    /// Time passes, and nobody is woken.
    Jump,
    Scan,
    /// A function's settings change.
    Respecify,
    /// A replica hears of a function's settings.
    Want,
    /// A replica starts anew.
    Restart,
}

/// How often each kind comes, and whether only where things go wrong or change.
const WEIGHTS: [(Kind, usize, Need); 17] = [
    (Kind::Arrive, 22, Need::Nothing),
    (Kind::Leave, 18, Need::Nothing),
    (Kind::Watch, 30, Need::Nothing),
    (Kind::Relist, 1, Need::Nothing),
    (Kind::Carry, 45, Need::Nothing),
    (Kind::Progress, 20, Need::Nothing),
    (Kind::Fail, 2, Need::Faults),
    (Kind::Vanish, 2, Need::Faults),
    (Kind::Remove, 2, Need::Faults),
    (Kind::Make, 1, Need::Faults),
    (Kind::Break, 3, Need::Faults),
    (Kind::Pass, 14, Need::Nothing),
    (Kind::Jump, 1, Need::Nothing),
    (Kind::Scan, 4, Need::Endings),
    (Kind::Respecify, 2, Need::Changes),
    (Kind::Want, 3, Need::Nothing),
    (Kind::Restart, 1, Need::Faults),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    Faults,
    Changes,
    Endings,
}

/// A schedule of so many steps.
pub(crate) fn schedule(scenario: &Scenario, length: usize, random: &mut Random) -> Vec<Command> {
    let possible = |&(_, _, need): &(Kind, usize, Need)| match need {
        Need::Nothing => true,
        Need::Faults => scenario.faults,
        Need::Changes => scenario.changes,
        Need::Endings => scenario.endings,
    };
    let kinds: Vec<Kind> = WEIGHTS
        .into_iter()
        .filter(possible)
        .flat_map(|(kind, weight, _)| std::iter::repeat_n(kind, weight))
        .collect();
    let mut command = || Command {
        kind: kinds[random.below(kinds.len())],
        replica: random.below(scenario.replicas),
        pick: random.below(1000),
        roll: random.below(1000),
    };
    (0..length).map(|_| command()).collect()
}
