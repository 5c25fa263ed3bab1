//! The pool: each event goes to the function it concerns, which is then looked at anew.

mod calls;
mod cluster;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::common::Common;
use crate::fleet::Fleet;
use crate::{Action, Event, Function, Limits, Moment, PodId, PodView, Reason, Snapshot, Spec};

/// All pods and all calls that need one.
#[derive(Debug)]
pub struct Pool<F> {
    fleets: HashMap<Function, Fleet<F>>,
    common: Common<F>,
}

impl<F: Clone> Pool<F> {
    /// A pool without pods.
    pub fn new(limits: Limits) -> Self {
        Self { fleets: HashMap::new(), common: Common::new(limits) }
    }

    /// Takes what happened and answers what is to be done, in this order.
    /// Reports about what the pool does not know, or no longer, do no harm.
    pub fn handle(&mut self, event: Event<F>, now: Moment) -> Vec<Action<F>> {
        self.common.now = self.common.now.max(now);
        match event {
            Event::Arrived { call, function, spec, until } => self.arrived(call, &function, &spec, until),
            Event::Left { call } => self.left(call),
            Event::Wanted { function, spec, warm } => self.want(&function, spec, warm),
            Event::Seen(observed) => self.seen(&observed),
            Event::Gone { uid } => self.gone(&uid),
            Event::Launched { pod, uid } => self.launched(pod, &uid),
            Event::Taken { pod } => self.taken(pod),
            Event::NotLaunched { pod, failure, lasting } => self.not_launched(pod, failure, lasting),
            Event::Connected { pod } => self.connected(pod),
            Event::Doubted { pod } => self.doubted(pod),
            Event::Broken { pod, failure, lasting } => self.broken(pod, failure, lasting),
            Event::Trouble { pod, failure } => self.troubled(pod, failure),
            Event::Tick => {}
            Event::Scan => self.scan(),
        }
        self.wake();
        self.settle();
        std::mem::take(&mut self.common.actions)
    }

    /// When a `Tick` is needed at the latest, if nothing else happens.
    pub fn wake_at(&self) -> Option<Moment> {
        self.common.timers.first().map(|&(wake, _)| wake)
    }

    /// Whether a pod is known, however far it is.
    pub fn knows(&self, pod: PodId) -> bool {
        self.common.pods.contains_key(&pod)
    }

    /// Every function that is known, and what its pods are to be.
    pub fn functions(&self) -> impl Iterator<Item = (&Function, &Arc<Spec>)> {
        self.fleets.iter().map(|(function, fleet)| (function, &fleet.spec))
    }

    /// The pool as it is now.
    pub fn snapshot(&self) -> Snapshot<F> {
        let view = |fleet: &Fleet<F>, pod: PodId| {
            let known = fleet.pods.get(&pod)?;
            Some(PodView {
                pod,
                function: fleet.function.clone(),
                slot: known.slot,
                uid: known.uid.clone(),
                current: known.is_current(&fleet.spec),
                phase: known.phase(),
                calls: known.calls.len(),
                created: known.created,
                keep_until: known.is_ready().then(|| known.kept_until(fleet.spec.time_to_live)),
                last_used: known.last_used,
                trouble: known.trouble.clone(),
            })
        };
        let pods = self.common.pods.iter();
        let mut pods: Vec<_> =
            pods.filter_map(|(&pod, function)| view(self.fleets.get(function)?, pod)).collect();
        pods.sort_by(|a, b| (&a.function, a.slot, a.pod).cmp(&(&b.function, b.slot, b.pod)));
        Snapshot { waiting: self.common.calls.waiting(), pods }
    }

    /// Has the functions looked at whose time has come.
    fn wake(&mut self) {
        let now = self.common.now;
        let due = self.common.timers.iter().take_while(|(wake, _)| *wake <= now);
        self.common.touched.extend(due.map(|(_, function)| function.clone()));
    }

    /// Looks at every function to which something happened until there is none left.
    fn settle(&mut self) {
        while !self.common.touched.is_empty() {
            self.send_guests_home();
            let mut touched = std::mem::take(&mut self.common.touched);
            self.each(&touched, Fleet::assess);
            while let Some(function) = self.common.room.next(self.common.pods.len()) {
                self.with(&function, Fleet::launch_needed);
                touched.insert(function);
            }
            self.each(&touched, Fleet::serve);
            while let Some(pod) = self.common.room.victim(self.common.pods.len()) {
                self.with_pod(pod, |fleet, common| {
                    fleet.delete(pod, Reason::Room, common);
                    fleet.enter(common);
                });
            }
            for function in touched {
                if self.fleets.get(&function).is_some_and(Fleet::is_empty) {
                    self.fleets.remove(&function);
                }
            }
        }
    }

    fn each(&mut self, functions: &BTreeSet<Function>, act: impl Fn(&mut Fleet<F>, &mut Common<F>)) {
        for function in functions {
            self.with(function, &act);
        }
    }

    fn with(&mut self, function: &Function, act: impl FnOnce(&mut Fleet<F>, &mut Common<F>)) {
        if let Some(fleet) = self.fleets.get_mut(function) {
            act(fleet, &mut self.common);
        }
    }

    /// Does something with the fleet of a pod, which is looked at afterwards; nothing if the pod is not known.
    fn with_pod(&mut self, pod: PodId, act: impl FnOnce(&mut Fleet<F>, &mut Common<F>)) {
        if let Some(function) = self.common.pods.get(&pod).cloned() {
            self.with(&function, act);
            self.common.touched.insert(function);
        }
    }

    /// The fleet of a function, which is looked at afterwards.
    fn fleet(&mut self, function: &Function, spec: &Arc<Spec>) -> (&mut Fleet<F>, &mut Common<F>) {
        self.common.touched.insert(function.clone());
        let new = || Fleet::new(function.clone(), spec.clone());
        (self.fleets.entry(function.clone()).or_insert_with(new), &mut self.common)
    }
}
