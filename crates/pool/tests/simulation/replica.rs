//! One replica of the service: a pool, and an owner that carries out what it says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pool::{
    Action, CallId, Event, Function, Limits, Moment, Observed, Phase, PodId, PodView, Pool, Refusal,
    Snapshot, Spec,
};

use crate::check;
use crate::cluster::Cluster;

/// Why something failed: a number, so that it can be told where it came from.
pub(crate) type Failure = u64;

pub(crate) type Checked = Result<(), String>;

pub(crate) struct Replica {
    /// Its number, and whether everything that happens to it is told.
    name: usize,
    traced: bool,
    pub(crate) pool: Pool<Failure>,
    pub(crate) limits: Limits,
    /// What is to be carried out or reported, in no order.
    pub(crate) tasks: Vec<Task>,
    /// Events of the watch, in order.
    pub(crate) watch: VecDeque<Event<Failure>>,
    /// The pods the watch has told of.
    pub(crate) told: BTreeSet<Arc<str>>,
    pub(crate) calls: BTreeMap<CallId, Call>,
    /// Calls that are over, whose end may be reported late or twice.
    pub(crate) over: Vec<CallId>,
    pub(crate) pods: BTreeMap<PodId, Known>,
    pub(crate) connected_uids: BTreeSet<Arc<str>>,
    /// What the pool was last told about each function with a call or on purpose.
    pub(crate) specs: BTreeMap<Function, Arc<Spec>>,
    /// What came along with pods of each function.
    pub(crate) found: BTreeMap<Function, Arc<Spec>>,
    pub(crate) failures: BTreeMap<Failure, Function>,
    /// When anything that may be a failed start of each function last happened.
    pub(crate) last_failure: BTreeMap<Function, Moment>,
    /// When a start of each function failed after a long time without failures.
    pub(crate) failing_since: BTreeMap<Function, Moment>,
    /// Until when pods are to be kept by what the pool was told.
    pub(crate) keep_until: BTreeMap<Arc<str>, Moment>,
    pub(crate) seen: Seen,
}

/// What happened, and how often.
pub(crate) type Seen = BTreeMap<String, usize>;

#[derive(Clone)]
pub(crate) enum Task {
    Claim {
        pod: PodId,
        function: Function,
        spec: Arc<Spec>,
        slot: usize,
        again: bool,
    },
    Create {
        pod: PodId,
        function: Function,
        spec: Arc<Spec>,
        slot: usize,
    },
    Report(Event<Failure>),
    Connect {
        pod: PodId,
        uid: Arc<str>,
    },
    /// Find out what became of a pod whose connection broke.
    Judge {
        pod: PodId,
        uid: Arc<str>,
    },
    Delete {
        uid: Arc<str>,
    },
    Record {
        uid: Arc<str>,
        keep_until: Moment,
    },
}

pub(crate) struct Call {
    pub(crate) function: Function,
    pub(crate) end: Moment,
    /// The pod it is in, if it does not wait.
    pub(crate) pod: Option<PodId>,
}

/// What a replica's owner knows of a pod.
pub(crate) struct Known {
    pub(crate) function: Function,
    pub(crate) stem: Arc<str>,
    pub(crate) uid: Option<Arc<str>>,
    pub(crate) begun: Moment,
    pub(crate) connected: bool,
    /// Whether it must get no more calls.
    pub(crate) closed: bool,
    /// Whether it is known to answer no more.
    pub(crate) dead: bool,
    pub(crate) last_used: Option<Moment>,
    pub(crate) recorded: Option<(Moment, Duration)>,
}

impl Replica {
    pub(crate) fn new(name: usize, traced: bool, limits: Limits) -> Self {
        Self {
            name,
            traced,
            pool: Pool::new(limits.clone()),
            limits,
            tasks: Vec::new(),
            watch: VecDeque::new(),
            told: BTreeSet::new(),
            calls: BTreeMap::new(),
            over: Vec::new(),
            pods: BTreeMap::new(),
            connected_uids: BTreeSet::new(),
            specs: BTreeMap::new(),
            found: BTreeMap::new(),
            failures: BTreeMap::new(),
            last_failure: BTreeMap::new(),
            failing_since: BTreeMap::new(),
            keep_until: BTreeMap::new(),
            seen: Seen::new(),
        }
    }

    /// Starts anew, knowing nothing.
    pub(crate) fn restart(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        *self = Self { seen, ..Self::new(self.name, self.traced, self.limits.clone()) };
    }

    /// Has the pool handle an event, and checks what it makes of it.
    pub(crate) fn handle(&mut self, event: &Event<Failure>, cluster: &Cluster) -> Checked {
        let before = self.pool.snapshot();
        self.note_failing(event, &before, cluster);
        self.note(event, cluster);
        let actions = self.pool.handle(event.clone(), cluster.now);
        if self.traced {
            println!("{:?} {}: {event:?}\n    {actions:?}", cluster.now, self.name);
        }
        for action in &actions {
            check::action(self, action, &actions, event, cluster)
                .map_err(|why| format!("{why}\n  in {actions:?}"))?;
            self.count(action);
            self.follow(action, cluster);
        }
        if let Event::Gone { uid } = event {
            self.forget(uid);
        }
        check::state(self, &before, &actions, cluster)
            .map_err(|why| format!("{why}\n  after {event:?}\n  in {actions:?}"))
    }

    /// Notes what an event means, before the pool hears of it.
    fn note(&mut self, event: &Event<Failure>, cluster: &Cluster) {
        match event {
            Event::Arrived { call, function, spec, until } => {
                let end = until.unwrap_or(cluster.now + self.limits.ready_timeout);
                self.calls.insert(*call, Call { function: function.clone(), end, pod: None });
                self.specs.insert(function.clone(), spec.clone());
            }
            Event::Wanted { function, spec, .. } => drop(self.specs.insert(function.clone(), spec.clone())),
            Event::Left { call } => {
                if let Some(pod) = self.calls.remove(call).and_then(|call| call.pod)
                    && let Some(pod) = self.pods.get_mut(&pod)
                {
                    pod.last_used = Some(cluster.now);
                }
            }
            Event::Seen(observed) => self.note_seen(observed, cluster),
            Event::Gone { uid } => {
                self.told.remove(uid);
                // A late event may bring it back, and its end comes once more.
                self.connected_uids.remove(uid);
                self.end(|pod| pod.uid.as_ref() == Some(uid), true, cluster);
            }
            Event::Connected { pod } => {
                if let Some(pod) = self.pods.get_mut(pod) {
                    pod.connected = true;
                }
            }
            Event::Doubted { pod } => {
                if let Some(pod) = self.pods.get_mut(pod) {
                    pod.connected = false;
                }
            }
            Event::NotLaunched { pod, failure, .. } | Event::Trouble { pod, failure } => {
                self.note_failure(*pod, *failure, cluster);
            }
            Event::Broken { pod, failure, .. } => {
                self.note_failure(*pod, *failure, cluster);
                let uid = self.pods.get(pod).and_then(|pod| pod.uid.clone());
                self.end(|pod| pod.uid == uid, true, cluster);
            }
            Event::Launched { .. } | Event::Taken { .. } | Event::Tick | Event::Scan => {}
        }
    }

    fn note_seen(&mut self, observed: &Observed, cluster: &Cluster) {
        self.told.insert(observed.uid.clone());
        self.found.insert(observed.function.clone(), observed.spec.clone());
        if let Some(keep_until) = observed.keep_until {
            let known = self.keep_until.entry(observed.uid.clone()).or_default();
            *known = keep_until.max(*known);
        }
        if observed.phase != Phase::Alive {
            self.last_failure.insert(observed.function.clone(), cluster.now);
            self.end(|pod| pod.uid.as_ref() == Some(&observed.uid), observed.phase == Phase::Failed, cluster);
        }
    }

    fn note_failure(&mut self, pod: PodId, failure: Failure, cluster: &Cluster) {
        if let Some(pod) = self.pods.get(&pod) {
            self.failures.insert(failure, pod.function.clone());
            self.last_failure.insert(pod.function.clone(), cluster.now);
        }
    }

    /// Notes for which functions nothing must be launched for a while.
    fn note_failing(&mut self, event: &Event<Failure>, before: &Snapshot<Failure>, cluster: &Cluster) {
        let current = |id: &PodId| before.pods.iter().find(|view| view.pod == *id && view.current);
        match event {
            Event::NotLaunched { pod, .. } | Event::Broken { pod, .. } => {
                let launched = matches!(event, Event::Broken { .. });
                let missing = |view: &&PodView<Failure>| {
                    view.uid.is_some() == launched && (view.uid.is_none() || view.phase == "starting")
                };
                // A failure during a pause does not prolong it, so only first ones tell.
                let first = |view: &&PodView<Failure>| {
                    let last = self.last_failure.get(&view.function);
                    last.is_none_or(|last| cluster.now >= *last + self.limits.max_backoff)
                };
                if let Some(view) = current(pod).filter(missing).filter(first) {
                    self.failing_since.insert(view.function.clone(), cluster.now);
                }
            }
            Event::Connected { pod } => {
                if let Some(view) = current(pod) {
                    self.failing_since.remove(&view.function);
                }
            }
            Event::Arrived { function, spec, .. } | Event::Wanted { function, spec, .. } => {
                let same = |known: &Arc<Spec>| known.revision == spec.revision && known.stem == spec.stem;
                if !self.specs.get(function).is_some_and(same) {
                    self.failing_since.remove(function);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, which: impl Fn(&Known) -> bool, dead: bool, cluster: &Cluster) {
        for pod in self.pods.values_mut().filter(|pod| pod.uid.is_some() && which(pod)) {
            pod.closed = true;
            pod.dead |= dead;
            self.last_failure.insert(pod.function.clone(), cluster.now);
        }
    }

    /// Does at once what the owner does at once, and remembers the rest.
    fn follow(&mut self, action: &Action<Failure>, cluster: &Cluster) {
        match action {
            Action::Launch { pod, function, spec, slot } => {
                let (pod, function, spec, slot) = (*pod, function.clone(), spec.clone(), *slot);
                let again = self.pods.contains_key(&pod);
                if !again {
                    self.pods.insert(pod, Known::new(function.clone(), spec.stem.clone(), cluster.now));
                }
                self.tasks.push(Task::Claim { pod, function, spec, slot, again });
            }
            Action::Connect { pod, uid } => {
                self.connected_uids.insert(uid.clone());
                self.attach(*pod, uid, cluster);
                self.tasks.push(Task::Connect { pod: *pod, uid: uid.clone() });
            }
            Action::Grant { call, pod } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.pod = Some(*pod);
                }
                if let Some(pod) = self.pods.get_mut(pod) {
                    pod.last_used = Some(cluster.now);
                }
            }
            Action::Refuse { call, .. } => {
                self.calls.remove(call);
                self.over.push(*call);
            }
            Action::Delete { pod, uid, .. } => {
                self.attach(*pod, uid, cluster);
                self.end(|pod| pod.uid.as_ref() == Some(uid), false, cluster);
                self.tasks.push(Task::Delete { uid: uid.clone() });
            }
            Action::Record { pod, uid, keep_until } => {
                if let Some(pod) = self.pods.get_mut(pod) {
                    pod.recorded = Some((cluster.now, keep_until.saturating_sub(cluster.now)));
                }
                self.tasks.push(Task::Record { uid: uid.clone(), keep_until: *keep_until });
            }
            Action::Lost { pod } => {
                let lost = self.calls.extract_if(.., |_, call| call.pod == Some(*pod)).map(|(id, _)| id);
                self.over.extend(lost);
            }
        }
    }

    /// Notes under which unique name a pod is in the cluster.
    fn attach(&mut self, pod: PodId, uid: &Arc<str>, cluster: &Cluster) {
        let (function, stem) = cluster.made(uid);
        let new = || Known::new(function, stem, cluster.now);
        self.pods.entry(pod).or_insert_with(new).uid = Some(uid.clone());
    }

    /// Forgets a pod that is gone, save for the launch that may still be under way in its place.
    fn forget(&mut self, uid: &Arc<str>) {
        let kept: BTreeSet<PodId> = self.pool.snapshot().pods.iter().map(|view| view.pod).collect();
        self.pods.retain(|id, pod| pod.uid.as_ref() != Some(uid) || kept.contains(id));
        for pod in self.pods.values_mut().filter(|pod| pod.uid.as_ref() == Some(uid)) {
            *pod = Known::new(pod.function.clone(), pod.stem.clone(), pod.begun);
        }
    }

    fn count(&mut self, action: &Action<Failure>) {
        let what = match action {
            Action::Launch { pod, .. } if self.pods.contains_key(pod) => "Launch again".to_owned(),
            Action::Launch { .. } => "Launch".to_owned(),
            Action::Connect { .. } => "Connect".to_owned(),
            Action::Grant { .. } => "Grant".to_owned(),
            Action::Refuse { refusal: Refusal::Crowded { .. }, .. } => "Refuse Crowded".to_owned(),
            Action::Refuse { refusal: Refusal::Failed(_), .. } => "Refuse Failed".to_owned(),
            Action::Refuse { refusal: Refusal::TimedOut { for_room, .. }, .. } => {
                if *for_room { "Refuse TimedOut for room" } else { "Refuse TimedOut" }.to_owned()
            }
            Action::Delete { reason, .. } => format!("Delete {reason:?}"),
            Action::Record { .. } => "Record".to_owned(),
            Action::Lost { .. } => "Lost".to_owned(),
        };
        *self.seen.entry(what).or_default() += 1;
    }

    pub(crate) fn waiting(&self, function: &Function) -> usize {
        self.calls.values().filter(|call| call.pod.is_none() && call.function == *function).count()
    }

    pub(crate) fn calls_in(&self, pod: PodId) -> usize {
        self.calls.values().filter(|call| call.pod == Some(pod)).count()
    }
}

impl Known {
    fn new(function: Function, stem: Arc<str>, begun: Moment) -> Self {
        Self {
            function,
            stem,
            uid: None,
            begun,
            connected: false,
            closed: false,
            dead: false,
            last_used: None,
            recorded: None,
        }
    }
}
