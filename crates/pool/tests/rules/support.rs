//! A pool, a clock, and words for what it does.

use std::sync::Arc;
use std::time::Duration;

use pool::{Action, CallId, Event, Limits, Moment, Observed, Phase, PodId, Pool, Refusal, Spec};

pub(crate) const A: &str = "example.com/a:v1";
pub(crate) const B: &str = "example.com/b:v1";
pub(crate) const C: &str = "example.com/c:v1";

pub(crate) fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

pub(crate) fn limits() -> Limits {
    Limits {
        max_pods: None,
        max_waiting: 1000,
        ready_timeout: seconds(60),
        claim_timeout: seconds(15),
        patience: seconds(10),
        min_backoff: seconds(1),
        max_backoff: seconds(60),
    }
}

/// What pods of a function are to be; the stem is the function's name without its tag.
pub(crate) fn spec(function: &str) -> Spec {
    Spec {
        stem: stem(function),
        image: "".into(),
        revision: "r1".into(),
        min_pods: 0,
        max_pods: 1,
        max_queue: 2,
        time_to_live: seconds(1800),
    }
}

fn stem(function: &str) -> Arc<str> {
    function.trim_start_matches("example.com/").trim_end_matches(":v1").into()
}

type Change = Box<dyn Fn(&mut Spec)>;

/// A pool with what tests say to it most.
pub(crate) struct Bench {
    pub(crate) pool: Pool<&'static str>,
    pub(crate) now: Moment,
    changes: Vec<Change>,
}

impl Bench {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { pool: Pool::new(limits), now: seconds(1000), changes: Vec::new() }
    }

    /// From now on every spec is changed so.
    pub(crate) fn respecify(&mut self, change: impl Fn(&mut Spec) + 'static) {
        self.changes.push(Box::new(change));
    }

    pub(crate) fn spec(&self, function: &str) -> Arc<Spec> {
        let mut spec = spec(function);
        for change in &self.changes {
            change(&mut spec);
        }
        Arc::new(spec)
    }

    pub(crate) fn handle(&mut self, event: Event<&'static str>) -> Vec<String> {
        let actions = self.pool.handle(event, self.now);
        assert!(self.pool.wake_at().is_none_or(|wake| wake > self.now), "no busy waking");
        actions.iter().map(words).collect()
    }

    pub(crate) fn arrive(&mut self, call: u64, function: &str) -> Vec<String> {
        self.arrive_until(call, function, None)
    }

    pub(crate) fn arrive_until(&mut self, call: u64, function: &str, until: Option<Moment>) -> Vec<String> {
        let spec = self.spec(function);
        self.handle(Event::Arrived { call: CallId(call), function: function.into(), spec, until })
    }

    pub(crate) fn leave(&mut self, call: u64) -> Vec<String> {
        self.handle(Event::Left { call: CallId(call) })
    }

    pub(crate) fn want(&mut self, function: &str, warm: bool) -> Vec<String> {
        let spec = self.spec(function);
        self.handle(Event::Wanted { function: function.into(), spec, warm })
    }

    pub(crate) fn launched(&mut self, pod: u64) -> Vec<String> {
        self.launched_as(pod, &format!("u{pod}"))
    }

    pub(crate) fn launched_as(&mut self, pod: u64, uid: &str) -> Vec<String> {
        self.handle(Event::Launched { pod: PodId(pod), uid: uid.into() })
    }

    pub(crate) fn taken(&mut self, pod: u64) -> Vec<String> {
        self.handle(Event::Taken { pod: PodId(pod) })
    }

    pub(crate) fn not_launched(&mut self, pod: u64, failure: &'static str, lasting: bool) -> Vec<String> {
        self.handle(Event::NotLaunched { pod: PodId(pod), failure, lasting })
    }

    pub(crate) fn connected(&mut self, pod: u64) -> Vec<String> {
        self.handle(Event::Connected { pod: PodId(pod) })
    }

    pub(crate) fn doubted(&mut self, pod: u64) -> Vec<String> {
        self.handle(Event::Doubted { pod: PodId(pod) })
    }

    pub(crate) fn broken(&mut self, pod: u64, failure: &'static str, lasting: bool) -> Vec<String> {
        self.handle(Event::Broken { pod: PodId(pod), failure, lasting })
    }

    pub(crate) fn trouble(&mut self, pod: u64, failure: &'static str) -> Vec<String> {
        self.handle(Event::Trouble { pod: PodId(pod), failure })
    }

    /// A pod as the cluster shows it, made from what is current, now, in this slot.
    pub(crate) fn observed(&self, function: &str, uid: &str, slot: usize) -> Observed {
        let spec = self.spec(function);
        Observed {
            uid: uid.into(),
            function: function.into(),
            stem: spec.stem.clone(),
            slot,
            revision: spec.revision.clone(),
            spec,
            phase: Phase::Alive,
            created: self.now,
            keep_until: None,
            is_shortened: false,
        }
    }

    pub(crate) fn see(&mut self, observed: Observed) -> Vec<String> {
        self.handle(Event::Seen(observed))
    }

    pub(crate) fn gone(&mut self, uid: &str) -> Vec<String> {
        self.handle(Event::Gone { uid: uid.into() })
    }

    pub(crate) fn scan(&mut self) -> Vec<String> {
        self.handle(Event::Scan)
    }

    /// Lets time pass and ticks then, not before.
    pub(crate) fn after(&mut self, time: Duration) -> Vec<String> {
        self.now += time;
        self.handle(Event::Tick)
    }

    /// Sleeps until the pool wants to be woken.
    pub(crate) fn sleep(&mut self) -> Vec<String> {
        self.now = self.pool.wake_at().expect("nothing to wait for");
        self.handle(Event::Tick)
    }

    /// A launched pod is seen and comes up.
    pub(crate) fn start(&mut self, pod: u64) -> Vec<String> {
        assert_eq!(self.launched(pod), [format!("connect {pod} u{pod}")]);
        let pods = self.pool.snapshot().pods;
        let view = pods.iter().find(|view| view.pod == PodId(pod)).expect("a known pod");
        assert_eq!(self.see(self.observed(&view.function, &format!("u{pod}"), view.slot)), [""; 0]);
        self.connected(pod)
    }

    /// Pods as `function slot phase calls`, with what is special about them.
    pub(crate) fn pods(&self) -> Vec<String> {
        let pods = self.pool.snapshot().pods.into_iter();
        pods.map(|pod| {
            let old = if pod.current { "" } else { " outdated" };
            format!("{} {} {} {}{old}", stem(&pod.function), pod.slot, pod.phase, pod.calls)
        })
        .collect()
    }
}

/// An action in words.
fn words(action: &Action<&'static str>) -> String {
    match action {
        Action::Launch { pod, spec, slot, .. } => {
            format!("launch {} {}-{slot} {}", pod.0, spec.stem, spec.revision)
        }
        Action::Connect { pod, uid } => format!("connect {} {uid}", pod.0),
        Action::Grant { call, pod } => format!("grant {} to {}", call.0, pod.0),
        Action::Refuse { call, refusal: Refusal::Crowded { waiting } } => {
            format!("refuse {}: {waiting} wait", call.0)
        }
        Action::Refuse { call, refusal: Refusal::Failed(failure) } => format!("refuse {}: {failure}", call.0),
        Action::Refuse { call, refusal: Refusal::TimedOut { trouble, for_room } } => {
            let place = if *for_room { " for room" } else { "" };
            let trouble = trouble.map_or(String::new(), |trouble| format!(": {trouble}"));
            format!("time {} out{place}{trouble}", call.0)
        }
        Action::Delete { pod, uid, reason } => format!("delete {} {uid}: {reason:?}", pod.0),
        Action::Record { pod, keep_until, .. } => format!("record {} until {}", pod.0, keep_until.as_secs()),
        Action::Lost { pod } => format!("lost {}", pod.0),
    }
}
