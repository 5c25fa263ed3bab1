//! Replicas around one cluster, and what the steps of a schedule do to them.

use std::sync::Arc;

use pool::{CallId, Event, Moment, Phase, PodId, Spec};

use crate::check::ensure;
use crate::cluster::Cluster;
use crate::command::{Command, Kind};
use crate::random::Random;
use crate::replica::{Checked, Failure, Replica, Task};
use crate::scenario::{self, FUNCTIONS, Scenario, milliseconds};

pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) cluster: Cluster,
    pub(crate) replicas: Vec<Replica>,
    /// What the functions' pods are to be; replicas hear of changes late.
    pub(crate) specs: Vec<Arc<Spec>>,
    /// Whether things may go wrong.
    pub(crate) faults: bool,
    numbers: u64,
}

impl World {
    pub(crate) fn new(scenario: Scenario, random: &mut Random, traced: bool) -> Self {
        let limits = scenario::limits(&scenario, random);
        Self {
            scenario,
            cluster: Cluster::new(milliseconds(1_000_000)),
            replicas: (0..scenario.replicas).map(|name| Replica::new(name, traced, limits.clone())).collect(),
            specs: (0..FUNCTIONS).map(|function| scenario::first_spec(function, random)).collect(),
            faults: scenario.faults,
            numbers: 0,
        }
    }

    /// Does one step.
    pub(crate) fn step(&mut self, command: Command) -> Checked {
        let Command { kind, replica, pick, roll } = command;
        match kind {
            Kind::Arrive => self.arrive(replica, pick % FUNCTIONS, roll)?,
            Kind::Leave => self.leave(replica, pick, roll)?,
            Kind::Watch => self.watch(replica, roll)?,
            Kind::Relist => self.relist(replica),
            Kind::Carry => self.carry(replica, pick, roll)?,
            Kind::Progress => self.progress(pick, roll),
            Kind::Fail | Kind::Vanish | Kind::Remove => self.harm(kind, pick, roll),
            Kind::Make => self.make(pick % FUNCTIONS, roll),
            Kind::Break => self.break_connection(replica, pick, roll)?,
            Kind::Pass => self.pass(self.cluster.now + milliseconds(roll * roll / 200))?,
            Kind::Jump => self.cluster.now += milliseconds(roll * 100),
            Kind::Scan => self.handle(replica, Event::Scan)?,
            Kind::Respecify => {
                let function = pick % FUNCTIONS;
                self.specs[function] = scenario::changed(&self.specs[function], function, roll);
            }
            Kind::Want => self.want(replica, pick % FUNCTIONS, roll < 300)?,
            Kind::Restart => {
                self.replicas[replica].restart();
                self.relist(replica);
            }
        }
        if !self.scenario.faults && !self.scenario.changes && !self.scenario.endings {
            // Where nothing ends, slots are enough to keep the limit among all replicas at all
            // times, save for functions that share their slots with others.
            for (function, spec) in self.specs[..FUNCTIONS - 2].iter().enumerate() {
                let count = self.cluster.current(&scenario::name(function), spec);
                ensure!(count <= spec.max_pods, "{count} pods of f{function}, {} allowed", spec.max_pods);
            }
        }
        if let Some(limit) = self.replicas[0].limits.max_pods.filter(|_| self.scenario.is_alone_in_peace()) {
            let count = self.cluster.pods.len();
            ensure!(count <= limit, "{count} pods, {limit} allowed");
        }
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "events are made to be handled")]
    pub(crate) fn handle(&mut self, replica: usize, event: Event<Failure>) -> Checked {
        let done = self.replicas[replica].handle(&event, &self.cluster);
        done.map_err(|why| format!("replica {replica} at {:?}: {why}", self.cluster.now))
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn arrive(&mut self, replica: usize, function: usize, roll: usize) -> Checked {
        let (call, now) = (CallId(self.number()), self.cluster.now);
        let until = match roll {
            0..300 => None,
            300..950 => Some(now + milliseconds(roll * 100)),
            _ => Some(now),
        };
        let (function, spec) = (scenario::name(function), self.specs[function].clone());
        self.handle(replica, Event::Arrived { call, function, spec, until })
    }

    fn leave(&mut self, replica: usize, pick: usize, roll: usize) -> Checked {
        let known = &self.replicas[replica];
        let late = roll < 100;
        let calls: Vec<CallId> =
            if late { known.over.clone() } else { known.calls.keys().copied().collect() };
        match calls.get(pick % calls.len().max(1)) {
            Some(&call) => self.handle(replica, Event::Left { call }),
            None => Ok(()),
        }
    }

    pub(crate) fn want(&mut self, replica: usize, function: usize, warm: bool) -> Checked {
        let (function, spec) = (scenario::name(function), self.specs[function].clone());
        self.handle(replica, Event::Wanted { function, spec, warm })
    }

    /// Delivers the next event of a watch; now and then twice, or without what came between.
    pub(crate) fn watch(&mut self, replica: usize, roll: usize) -> Checked {
        let queue = &mut self.replicas[replica].watch;
        let Some(mut event) = queue.pop_front() else { return Ok(()) };
        if let Event::Seen(observed) = &mut event {
            // What the settings are when it is told, not when the pod was made.
            let number = (0..FUNCTIONS).find(|&number| scenario::name(number) == observed.function);
            observed.spec = self.specs[number.unwrap_or_default()].clone();
        }
        let uid = |event: &Event<Failure>| match event {
            Event::Seen(observed) => Some(observed.uid.clone()),
            Event::Gone { uid } => Some(uid.clone()),
            _ => None,
        };
        let superseded = queue.iter().any(|later| uid(later) == uid(&event));
        if roll >= 900 && superseded {
            return Ok(());
        }
        if roll < 100 {
            self.handle(replica, event.clone())?;
        }
        self.handle(replica, event)
    }

    /// A watch begins anew: what was on its way is not told, everything there is is told.
    pub(crate) fn relist(&mut self, replica: usize) {
        let known = &mut self.replicas[replica];
        known.watch.clear();
        let gone = known.told.iter().filter(|uid| !self.cluster.pods.contains_key(*uid)).cloned();
        known.watch.extend(gone.map(|uid| Event::Gone { uid }));
        known.watch.extend(self.cluster.pods.values().map(|pod| Event::Seen(pod.observed.clone())));
    }

    /// Tells all watches how a pod is now.
    fn tell(&mut self, uid: &Arc<str>) {
        let event = match self.cluster.pods.get(uid) {
            Some(pod) => Event::Seen(pod.observed.clone()),
            None => Event::Gone { uid: uid.clone() },
        };
        for replica in &mut self.replicas {
            replica.watch.push_back(event.clone());
        }
    }

    /// Carries on with one of the things the pool asked for.
    pub(crate) fn carry(&mut self, replica: usize, pick: usize, roll: usize) -> Checked {
        let tasks = &mut self.replicas[replica].tasks;
        if tasks.is_empty() {
            return Ok(());
        }
        let place = pick % tasks.len();
        let task = tasks.swap_remove(place);
        let goes_wrong = self.faults && roll < 150;
        match task {
            Task::Claim { pod, function, spec, slot, again } => {
                let claim_timeout = self.replicas[replica].limits.claim_timeout;
                if goes_wrong {
                    self.fail_launch(replica, pod, roll);
                } else if self.cluster.claim(&spec.stem, slot, again.then_some(claim_timeout)) {
                    // Much may happen before the pod is made.
                    let create = Task::Create { pod, function, spec, slot };
                    self.replicas[replica].tasks.push(create.clone());
                    if !self.faults || roll < 700 {
                        self.replicas[replica].tasks.pop();
                        self.create(replica, create, 999);
                    }
                } else {
                    self.report(replica, Event::Taken { pod });
                }
            }
            Task::Create { .. } => self.create(replica, task, roll),
            Task::Report(event) => self.handle(replica, event)?,
            Task::Connect { pod, uid } => self.connect(replica, pod, uid, roll)?,
            Task::Judge { pod, uid } => self.judge(replica, pod, &uid, roll)?,
            Task::Delete { uid } => match self.cluster.pods.get_mut(&uid) {
                _ if goes_wrong => {}
                None => self.report(replica, Event::Gone { uid }),
                Some(pod) => {
                    if pod.observed.phase != Phase::Ending {
                        pod.observed.phase = Phase::Ending;
                        self.tell(&uid);
                    }
                }
            },
            Task::Record { uid, keep_until } => {
                if let Some(pod) = self.cluster.pods.get_mut(&uid).filter(|_| !goes_wrong) {
                    pod.observed.keep_until = Some(scenario::whole(keep_until));
                    self.tell(&uid);
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, replica: usize, event: Event<Failure>) {
        self.replicas[replica].tasks.push(Task::Report(event));
    }

    fn fail_launch(&mut self, replica: usize, pod: PodId, roll: usize) {
        let failure = self.number();
        self.report(replica, Event::NotLaunched { pod, failure, lasting: roll.is_multiple_of(2) });
    }

    fn create(&mut self, replica: usize, task: Task, roll: usize) {
        let Task::Create { pod, function, spec, slot } = task else { return };
        if self.faults && roll < 100 {
            if roll < 60 {
                self.cluster.free(&spec.stem, slot);
            }
            return self.fail_launch(replica, pod, roll);
        }
        let uid = self.cluster.make(&function, &spec, slot);
        self.tell(&uid);
        if self.faults && roll < 150 {
            // The answer was lost.
            return self.fail_launch(replica, pod, roll);
        }
        self.report(replica, Event::Launched { pod, uid });
    }

    /// Tries a connection. It is tried again unless that is decided.
    fn connect(&mut self, replica: usize, pod: PodId, uid: Arc<str>, roll: usize) -> Checked {
        let Some(found) = self.cluster.pods.get(&uid) else { return Ok(()) };
        let (reachable, failed) = (found.is_reachable(), found.observed.phase == Phase::Failed);
        let again = Task::Connect { pod, uid };
        let failure = self.number();
        if failed || (self.faults && roll < 50) {
            self.handle(replica, Event::Broken { pod, failure, lasting: roll.is_multiple_of(2) })
        } else if reachable {
            self.handle(replica, Event::Connected { pod })
        } else {
            self.replicas[replica].tasks.push(again);
            if self.faults && roll < 300 {
                self.handle(replica, Event::Trouble { pod, failure })
            } else {
                Ok(())
            }
        }
    }

    /// Ends the doubt about a pod, unless another has come in its place.
    fn judge(&mut self, replica: usize, pod: PodId, uid: &Arc<str>, roll: usize) -> Checked {
        let known = self.replicas[replica].pods.get(&pod);
        if known.is_none_or(|known| known.uid.as_ref() != Some(uid)) {
            return Ok(());
        }
        if self.cluster.pods.get(uid).is_some_and(crate::cluster::ClusterPod::is_reachable) {
            return self.handle(replica, Event::Connected { pod });
        }
        let failure = self.number();
        self.handle(replica, Event::Broken { pod, failure, lasting: roll.is_multiple_of(2) })
    }

    pub(crate) fn break_connection(&mut self, replica: usize, pick: usize, roll: usize) -> Checked {
        let known = self.replicas[replica].pods.iter().filter(|(_, pod)| pod.connected && !pod.dead);
        let connections: Vec<_> = known.map(|(&id, pod)| (id, pod.uid.clone())).collect();
        let Some((pod, uid)) = connections.get(pick % connections.len().max(1)).cloned() else {
            return Ok(());
        };
        if let Some(uid) = uid.clone().filter(|_| self.faults && (200..500).contains(&roll)) {
            // What became of it is found out later.
            self.replicas[replica].tasks.push(Task::Judge { pod, uid });
            return self.handle(replica, Event::Doubted { pod });
        }
        let found = uid.and_then(|uid| self.cluster.pods.get(&uid));
        if found.is_some_and(crate::cluster::ClusterPod::is_reachable) && !(self.faults && roll < 200) {
            return Ok(());
        }
        let failure = self.number();
        self.handle(replica, Event::Broken { pod, failure, lasting: roll.is_multiple_of(2) })
    }

    fn pick_pod(&self, pick: usize) -> Option<Arc<str>> {
        self.cluster.pods.keys().nth(pick % self.cluster.pods.len().max(1)).cloned()
    }

    /// A pod comes up; one that is ending is removed when its calls are over, or when its time is.
    pub(crate) fn progress(&mut self, pick: usize, roll: usize) {
        let Some(uid) = self.pick_pod(pick) else { return };
        let calls = self.calls_in(&uid);
        let Some(pod) = self.cluster.pods.get_mut(&uid) else { return };
        match pod.observed.phase {
            Phase::Alive => pod.answers = true,
            Phase::Ending if calls == 0 || (self.faults && roll < 200) => {
                self.cluster.vanish(&uid, self.faults && roll < 50);
                self.tell(&uid);
            }
            Phase::Failed | Phase::Ending => {}
        }
    }

    fn calls_in(&self, uid: &Arc<str>) -> usize {
        let calls = |replica: &Replica| {
            let pods = replica.pods.iter().filter(|(_, pod)| pod.uid.as_ref() == Some(uid));
            pods.map(|(&pod, _)| replica.calls_in(pod)).sum::<usize>()
        };
        self.replicas.iter().map(calls).sum()
    }

    fn harm(&mut self, kind: Kind, pick: usize, roll: usize) {
        let Some(uid) = self.pick_pod(pick) else { return };
        let Some(pod) = self.cluster.pods.get_mut(&uid) else { return };
        match kind {
            Kind::Vanish => self.cluster.vanish(&uid, roll < 300),
            Kind::Fail if pod.observed.phase == Phase::Alive => pod.observed.phase = Phase::Failed,
            Kind::Remove => pod.observed.phase = Phase::Ending,
            _ => return,
        }
        self.tell(&uid);
    }

    /// Somebody makes a pod, perhaps an old one, perhaps where there is one already.
    fn make(&mut self, function: usize, roll: usize) {
        let mut spec = Spec::clone(&self.specs[function]);
        if roll.is_multiple_of(2) {
            spec.revision = format!("r{}", roll % 7).into();
        }
        let uid = self.cluster.make(&scenario::name(function), &Arc::new(spec), roll / 10 % 4);
        self.tell(&uid);
    }

    /// Lets time pass until then, and wakes the pools when they ask for it.
    pub(crate) fn pass(&mut self, until: Moment) -> Checked {
        loop {
            let wakes = self.replicas.iter().map(|replica| replica.pool.wake_at()).enumerate();
            let next = wakes.filter_map(|(replica, wake)| Some((wake?, replica))).min();
            let Some((wake, replica)) = next.filter(|&(wake, _)| wake <= until) else { break };
            self.cluster.now = self.cluster.now.max(wake);
            self.handle(replica, Event::Tick)?;
        }
        self.cluster.now = self.cluster.now.max(until);
        Ok(())
    }
}
