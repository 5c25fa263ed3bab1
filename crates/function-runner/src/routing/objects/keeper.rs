//! What is known of the objects, and the writes that follow from it.
//!
//! Several replicas do the same to the same objects. They agree on what there is to say, so that the first to
//! write it is the only one; and where they do not, each says its opinion once, when that changes, and not again
//! because somebody else said something.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    mem,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{Api, api::DynamicObject, runtime::watcher};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tracing::{debug, warn};

use super::{Change, Opinion, Seen, Written, see};
use crate::routing::{Built, Object, Routing};

/// Changes that come together are put in force together.
const GATHER: Duration = Duration::from_millis(50);
/// Writes at once.
const AT_ONCE: usize = 8;
/// How long after a failure an object is tried again; doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// How long a write that was done may take to be seen.
const ECHO: Duration = Duration::from_secs(10);
/// After so many looks we find out again whether the definition of the kind has our fields.
const LOOKS_AT_DEFINITION: u32 = 60;

pub(super) struct Keeper {
    api: Api<DynamicObject>,
    routing: Routing,
    known: HashMap<Arc<str>, Known>,
    objects: BTreeMap<Arc<str>, Arc<Object>>,
    /// What is being listed.
    listing: Option<HashMap<Arc<str>, (Seen, Object)>>,
    /// When what changed is put in force.
    changed: Option<Instant>,
    built: Arc<Built>,
    /// Objects to be looked at; those in the queue are marked.
    queue: VecDeque<Arc<str>>,
    writes: JoinSet<Outcome>,
    /// Whether the definition of the kind is known not to have our fields.
    lacks_additions: bool,
    may_write: bool,
    has_told_forbidden: bool,
    looks: u32,
}

struct Known {
    seen: Seen,
    /// The opinion that was written, or found to be there.
    settled: Option<Opinion>,
    is_queued: bool,
    state: State,
    pause: Duration,
}

#[derive(PartialEq)]
enum State {
    Idle,
    /// A write is under way.
    Writing,
    /// A write was done, and this version of the object is not seen yet.
    Awaiting {
        resource_version: String,
        until: Instant,
    },
    /// A write failed.
    Pausing {
        until: Instant,
    },
}

struct Outcome {
    name: Arc<str>,
    uid: String,
    opinion: Option<Opinion>,
    resource_version: String,
    written: Written,
}

impl Keeper {
    pub(super) fn new(api: Api<DynamicObject>, routing: Routing) -> Self {
        Self {
            api,
            routing,
            known: HashMap::new(),
            objects: BTreeMap::new(),
            listing: None,
            changed: None,
            built: Arc::default(),
            queue: VecDeque::new(),
            writes: JoinSet::new(),
            lacks_additions: false,
            may_write: true,
            has_told_forbidden: false,
            looks: 0,
        }
    }

    /// How many objects were listed so far.
    pub(super) fn listed(&self) -> usize {
        self.listing.as_ref().map_or(0, HashMap::len)
    }

    /// Takes in what the API server tells.
    pub(super) fn see(&mut self, event: watcher::Event<DynamicObject>) {
        let default_prefix = &self.routing.terms().default_prefix;
        match event {
            watcher::Event::Init => self.listing = Some(HashMap::new()),
            watcher::Event::InitApply(object) => {
                let (name, seen, content) = see(&object, default_prefix);
                self.listing.get_or_insert_default().insert(name, (seen, content));
            }
            watcher::Event::InitDone => {
                let listing = self.listing.take().unwrap_or_default();
                let is_there = |name: &Arc<str>| listing.contains_key(name);
                self.known.retain(|name, _| is_there(name));
                self.objects.retain(|name, _| is_there(name));
                for (name, (seen, content)) in listing {
                    self.take_in(&name, seen, content);
                }
                self.find_out_definition();
                self.put_in_force();
            }
            watcher::Event::Apply(object) => {
                let (name, seen, content) = see(&object, default_prefix);
                self.take_in(&name, seen, content);
            }
            watcher::Event::Delete(object) => {
                let (name, ..) = see(&object, default_prefix);
                self.known.remove(&name);
                if self.objects.remove(&name).is_some() {
                    self.gather();
                }
            }
        }
    }

    fn take_in(&mut self, name: &Arc<str>, seen: Seen, content: Object) {
        let has_changed = if seen.is_going {
            self.objects.remove(name).is_some()
        } else {
            let before = self.objects.get(name);
            let has_changed = before.is_none_or(|before| **before != content);
            if has_changed {
                self.objects.insert(name.clone(), Arc::new(content));
            }
            has_changed
        };
        if self.known.get(name).is_some_and(|known| known.seen.uid != seen.uid) {
            self.known.remove(name);
        }
        let known = self.known.entry(name.clone()).or_insert_with(|| Known::new(seen.clone()));
        known.seen = seen;
        match &known.state {
            State::Awaiting { resource_version, .. } if *resource_version != known.seen.resource_version => {}
            State::Writing => {}
            // A newer version is a reason to try again at once.
            State::Awaiting { .. } | State::Pausing { .. } | State::Idle => known.state = State::Idle,
        }
        if has_changed {
            self.gather();
        } else {
            self.enqueue(name);
        }
    }

    /// Executables may be there now, and we may be allowed to write now.
    pub(super) fn look_again(&mut self) {
        self.may_write = true;
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS_AT_DEFINITION) {
            self.find_out_definition();
        }
        self.put_in_force();
    }

    /// Forgets what is known of the definition of the kind: it may be another by now.
    fn find_out_definition(&mut self) {
        if mem::take(&mut self.lacks_additions) {
            self.known.values_mut().for_each(|known| known.settled = None);
        }
    }

    /// Does what is to be done next; the future may be dropped and made anew at any time.
    pub(super) async fn work(&mut self) {
        self.start_writes();
        let now = Instant::now();
        let wakes = self.known.values().filter_map(|known| match &known.state {
            State::Awaiting { until, .. } | State::Pausing { until } => Some(*until),
            State::Idle | State::Writing => None,
        });
        let wake = wakes.chain(self.changed).min();
        tokio::select! {
            Some(outcome) = self.writes.join_next() => {
                if let Ok(outcome) = outcome {
                    self.written(outcome);
                }
            }
            () = sleep_until(wake.unwrap_or(now)), if wake.is_some() => self.wake(),
            else => std::future::pending().await,
        }
    }

    fn wake(&mut self) {
        let now = Instant::now();
        if self.changed.is_some_and(|at| at <= now) {
            self.put_in_force();
        }
        let mut late = Vec::new();
        for (name, known) in &mut self.known {
            let is_late = match &known.state {
                State::Awaiting { until, .. } | State::Pausing { until } => *until <= now,
                State::Idle | State::Writing => false,
            };
            if is_late {
                known.state = State::Idle;
                late.push(name.clone());
            }
        }
        for name in late {
            self.enqueue(&name);
        }
    }

    fn gather(&mut self) {
        self.changed.get_or_insert_with(|| Instant::now() + GATHER);
    }

    fn put_in_force(&mut self) {
        self.changed = None;
        let objects = self.objects.clone();
        self.built = self.routing.change(|sources| sources.objects = objects);
        let names: Vec<_> = self.known.keys().cloned().collect();
        for name in names {
            self.enqueue(&name);
        }
    }

    fn enqueue(&mut self, name: &Arc<str>) {
        if let Some(known) = self.known.get_mut(name)
            && !mem::replace(&mut known.is_queued, true)
        {
            self.queue.push_back(name.clone());
        }
    }

    /// Writes what is to be written, but nothing about what is not in force yet.
    fn start_writes(&mut self) {
        while self.may_write && self.changed.is_none() && self.writes.len() < AT_ONCE {
            let Some(name) = self.queue.pop_front() else { return };
            self.start_write(name);
        }
    }

    fn start_write(&mut self, name: Arc<str>) {
        let Some(known) = self.known.get_mut(&name) else { return };
        known.is_queued = false;
        if known.state != State::Idle {
            return;
        }
        let opinion = self.built.verdicts.get(&name).map(|verdict| Opinion::of(verdict));
        let is_new = |opinion: &&Opinion| known.settled.as_ref() != Some(*opinion);
        let unsettled = opinion.as_ref().filter(is_new);
        let now = Time(Timestamp::now());
        let Some(change) = Change::next(&known.seen, unsettled, !self.lacks_additions, &now) else {
            known.settled = opinion;
            return;
        };
        known.state = State::Writing;
        let opinion = opinion.filter(|_| matches!(change, Change::Status { .. }));
        let Seen { uid, resource_version, .. } = known.seen.clone();
        let api = self.api.clone();
        debug!(name = &*name, ?change, "writing to a FunctionConfig");
        self.writes.spawn(async move {
            let written = change.write(&api, &name).await;
            Outcome { name, uid, opinion, resource_version, written }
        });
    }

    fn written(&mut self, outcome: Outcome) {
        let Outcome { name, uid, opinion, resource_version: before, written } = outcome;
        if matches!(written, Written::Unknown | Written::Pruned { .. }) {
            debug!("the definition of FunctionConfigs does not have all our fields");
            self.lacks_additions = true;
        }
        let Some(known) = self.known.get_mut(&name).filter(|known| known.seen.uid == uid) else { return };
        known.state = State::Idle;
        match written {
            Written::Done { resource_version } | Written::Pruned { resource_version } => {
                known.pause = FIRST_PAUSE;
                known.settled = opinion.or(known.settled.take());
                if [&before, &known.seen.resource_version].contains(&&resource_version) {
                    self.enqueue(&name);
                } else {
                    known.state = State::Awaiting { resource_version, until: Instant::now() + ECHO };
                }
            }
            Written::Unknown => self.enqueue(&name),
            Written::Gone => {}
            Written::Forbidden(error) => {
                self.may_write = false;
                let cause = pods::words(&error);
                if mem::replace(&mut self.has_told_forbidden, true) {
                    debug!(cause, "still may not write to FunctionConfigs");
                } else {
                    warn!(cause, "FunctionConfigs are used, but not told what became of them");
                }
                self.enqueue(&name);
            }
            Written::Overtaken if known.seen.resource_version != before => self.enqueue(&name),
            Written::Overtaken => known.retry(),
            Written::Failed(error) => {
                let cause = pods::words(&error);
                if known.pause == FIRST_PAUSE {
                    warn!(name = &*name, cause, "cannot write to a FunctionConfig; it is tried again");
                } else {
                    debug!(name = &*name, cause, "still cannot write to a FunctionConfig");
                }
                known.retry();
            }
        }
    }
}

impl Known {
    fn new(seen: Seen) -> Self {
        Self { seen, settled: None, is_queued: false, state: State::Idle, pause: FIRST_PAUSE }
    }

    fn retry(&mut self) {
        self.state = State::Pausing { until: Instant::now() + self.pause };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}
