//! Functions of one image: several tags of it, say.

use std::collections::BTreeMap;
use std::sync::Arc;

use pool::{Action, CallId, Event, Limits, Observed, PodId, Spec};

use crate::support::{A, B, Bench, limits, seconds};

/// A and B are two names of one image.
fn bench() -> Bench {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.image = "example.com/f@1".into());
    bench
}

/// A's image is another from now on.
fn move_a(bench: &mut Bench) {
    bench.respecify(|spec| {
        if &*spec.stem == "a" {
            (spec.image, spec.stem) = ("example.com/f@2".into(), "a2".into());
        }
    });
}

#[test]
fn two_names_of_one_image_share_a_pod() {
    let mut bench = bench();
    bench.arrive(1, A);
    bench.start(1);
    assert_eq!(bench.arrive(2, B), ["grant 2 to 1"]);
    assert_eq!(bench.pods(), ["a 1 ready 2"]);
    bench.leave(1);
    bench.leave(2);
    bench.now += seconds(1800);
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
    bench.gone("u1");
    assert_eq!(bench.arrive(3, B), ["launch 2 b-1 r1"], "nobody else has a pod now");
    assert_eq!(bench.arrive(4, A), [""; 0], "and the other way round");
}

#[test]
fn a_pod_that_is_on_its_way_is_shared_too() {
    let mut bench = bench();
    assert_eq!(bench.arrive(1, A), ["launch 1 a-1 r1"]);
    assert_eq!(bench.arrive(2, B), [""; 0]);
    assert_eq!(bench.start(1), ["record 1 until 2800", "grant 1 to 1", "grant 2 to 1"]);
}

#[test]
fn more_calls_of_both_get_more_pods_within_one_limit() {
    let mut bench = bench();
    bench.respecify(|spec| spec.max_pods = 2);
    bench.arrive(1, A);
    bench.start(1);
    bench.arrive(2, B);
    assert_eq!(bench.arrive(3, B), ["launch 2 a-2 r1"]);
    bench.start(2);
    for call in 4..20 {
        let granted = bench.arrive(call, if call % 2 == 0 { A } else { B });
        assert!(granted.len() == 1 && granted[0].starts_with(&format!("grant {call} to")), "{granted:?}");
    }
}

#[test]
fn who_is_to_be_warm_gets_a_pod_of_its_own() {
    let mut bench = bench();
    assert_eq!(bench.want(A, true), ["launch 1 a-1 r1"]);
    assert_eq!(bench.want(B, true), ["launch 2 b-1 r1"], "whoever lists both wants both");
    bench.start(1);
    bench.start(2);
    assert_eq!(bench.arrive(1, B), ["grant 1 to 2"]);
}

#[test]
fn a_pod_found_in_the_cluster_is_shared_if_its_image_is_known() {
    let mut bench = bench();
    bench.see(bench.observed(A, "x1", 1));
    bench.connected(1);
    assert_eq!(bench.arrive(1, B), ["grant 1 to 1"]);

    let mut bench = self::bench();
    let found = bench.observed(A, "x1", 1);
    let spec = Spec { image: "".into(), ..(*found.spec).clone() };
    bench.see(Observed { spec: spec.into(), ..found });
    bench.connected(1);
    assert_eq!(bench.arrive(1, B), ["launch 2 b-1 r1"]);
}

#[test]
fn what_is_not_the_same_in_everything_is_not_shared() {
    let changes: [fn(&mut Spec); 6] = [
        |spec| spec.image = "example.com/f@2".into(),
        |spec| spec.image = "".into(),
        |spec| spec.revision = "r2".into(),
        |spec| spec.max_pods = 7,
        |spec| spec.max_queue = 7,
        |spec| spec.time_to_live = seconds(7),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut bench = bench();
        bench.arrive(1, A);
        bench.start(1);
        bench.respecify(move |spec| {
            if &*spec.stem == "b" {
                change(spec);
            }
        });
        let actions = bench.arrive(2, B);
        assert!(actions.iter().any(|action| action.starts_with("launch 2 b-1")), "{number}: {actions:?}");
    }
}

#[test]
fn who_has_pods_keeps_to_them() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    bench.arrive(2, B);
    bench.start(2);
    bench.respecify(|spec| spec.image = "example.com/f@1".into());
    assert_eq!(bench.arrive(3, B), ["grant 3 to 2"]);
    assert_eq!(bench.arrive(4, A), ["grant 4 to 1"]);
}

#[test]
fn a_pod_that_cannot_start_is_nobodys_but_its_own_functions() {
    let mut bench = bench();
    bench.arrive(1, A);
    assert_eq!(bench.not_launched(1, "no such tag", true), ["refuse 1: no such tag"]);
    assert_eq!(bench.arrive(2, B), ["launch 2 b-1 r1"]);
}

#[test]
fn when_a_tag_moves_those_of_other_tags_do_not_go_with_it() {
    let mut bench = bench();
    bench.arrive(1, A);
    bench.arrive(2, B);
    assert_eq!(bench.pods(), ["a 1 launching 0"]);
    move_a(&mut bench);
    // The pod of the old image is no longer what A wants, and B waits for one of its own.
    assert_eq!(bench.arrive(3, A), ["launch 2 b-1 r1", "launch 3 a2-1 r1"]);
    assert_eq!(bench.start(2), ["record 2 until 2800", "grant 2 to 2"]);
    assert_eq!(bench.arrive(4, B), ["grant 4 to 2"]);
}

#[test]
fn pods_of_a_tags_former_image_are_not_shared_while_they_still_serve() {
    let mut bench = bench();
    bench.arrive(1, A);
    bench.start(1);
    move_a(&mut bench);
    assert_eq!(bench.arrive(2, A), ["launch 2 a2-1 r1", "grant 2 to 1"], "as with any change");
    bench.respecify(|spec| {
        if &*spec.stem == "b" {
            spec.image = "example.com/f@2".into();
        }
    });
    assert_eq!(bench.arrive(3, B), ["launch 3 b-1 r1"], "the one that is ready is of another image");
}

#[test]
fn a_guest_keeps_its_deadline_and_can_leave() {
    let mut bench = bench();
    bench.arrive(1, A);
    bench.arrive_until(2, B, Some(seconds(1010)));
    bench.arrive_until(3, B, Some(seconds(1020)));
    assert_eq!(bench.leave(3), [""; 0]);
    move_a(&mut bench);
    bench.arrive(4, A);
    bench.now = seconds(1010);
    assert_eq!(bench.after(seconds(0)), ["time 2 out"]);
    assert_eq!(bench.pool.snapshot().waiting, 2);
}

#[test]
fn calls_beyond_the_bound_are_refused_to_guests_too() {
    let mut bench = Bench::new(Limits { max_waiting: 1, ..limits() });
    bench.respecify(|spec| spec.image = "example.com/f@1".into());
    bench.arrive(1, A);
    assert_eq!(bench.arrive(2, B), ["refuse 2: 1 wait"]);
    bench.start(1);
    assert_eq!(bench.arrive(3, B), ["grant 3 to 1"]);
}

/// Calls of three names whose images change, as chance will have it.
struct Chance {
    bench: Bench,
    state: u64,
    /// Which image each name means now.
    images: [usize; 3],
    /// What each call that is not over wants, and whether it waits.
    calls: BTreeMap<u64, (usize, usize, bool)>,
    /// Name and image of each pod that was launched.
    pods: BTreeMap<u64, (usize, usize)>,
    launching: Vec<u64>,
    guests: usize,
}

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).unwrap_or_default() % limit
    }

    fn spec(&self, name: usize) -> Arc<Spec> {
        let image = self.images[name];
        let spec = Spec {
            stem: format!("f{name}-{image}").into(),
            image: format!("example.com/f@{image}").into(),
            max_pods: 2,
            ..crate::support::spec("f")
        };
        Arc::new(spec)
    }

    fn handle(&mut self, event: Event<&'static str>) {
        for action in self.bench.pool.handle(event, self.bench.now) {
            match action {
                Action::Launch { pod, spec, .. } => {
                    let part = |place: usize| usize::from(spec.stem.as_bytes()[place] - b'0');
                    self.pods.insert(pod.0, (part(1), part(3)));
                    self.launching.push(pod.0);
                }
                Action::Grant { call, pod } => {
                    let (name, image, waits) = self.calls[&call.0];
                    assert!(waits, "{call:?} is answered twice");
                    let (of, runs) = self.pods[&pod.0];
                    assert!(of == name || runs == image, "{call:?} of f{name}@{image} runs in f{of}@{runs}");
                    self.guests += usize::from(of != name);
                    self.calls.insert(call.0, (name, image, false));
                }
                Action::Refuse { call, .. } => drop(self.calls.remove(&call.0)),
                Action::Lost { .. } | Action::Connect { .. } | Action::Record { .. } => {}
                Action::Delete { uid, .. } => self.handle(Event::Gone { uid }),
            }
        }
        let waiting = self.calls.values().filter(|(_, _, waits)| *waits).count();
        assert_eq!(self.bench.pool.snapshot().waiting, waiting);
    }

    /// A pod that was launched comes up, or does not.
    fn finish(&mut self, number: usize, comes_up: bool) {
        let pod = self.launching.swap_remove(number);
        if comes_up {
            self.handle(Event::Launched { pod: PodId(pod), uid: format!("u{pod}").into() });
            self.handle(Event::Connected { pod: PodId(pod) });
        } else {
            self.handle(Event::NotLaunched { pod: PodId(pod), failure: "no", lasting: false });
        }
    }

    fn step(&mut self, number: u64) {
        self.bench.now += seconds(1);
        match self.below(10) {
            0..=3 => {
                let name = self.below(3);
                self.calls.insert(number, (name, self.images[name], true));
                let (function, spec) = (format!("example.com/f:{name}").into(), self.spec(name));
                self.handle(Event::Arrived { call: CallId(number), function, spec, until: None });
            }
            4 => {
                let name = self.below(3);
                self.images[name] = 1 + self.below(2);
            }
            5 | 6 if !self.launching.is_empty() => {
                let (which, comes_up) = (self.below(self.launching.len()), self.below(8) > 0);
                self.finish(which, comes_up);
            }
            7 => self.handle(Event::Scan),
            _ => {
                let call = self.below(usize::MAX).checked_rem(self.calls.len());
                let call = call.and_then(|nth| self.calls.keys().nth(nth).copied());
                if let Some(call) = call {
                    self.calls.remove(&call);
                    self.handle(Event::Left { call: CallId(call) });
                }
            }
        }
    }
}

#[test]
fn no_call_ever_runs_in_an_image_that_its_name_never_meant() {
    let mut guests = 0;
    for seed in 0..300 {
        let mut chance = Chance {
            bench: Bench::new(limits()),
            state: seed,
            images: [1; 3],
            calls: BTreeMap::new(),
            pods: BTreeMap::new(),
            launching: Vec::new(),
            guests: 0,
        };
        for number in 0..200 {
            chance.step(number);
        }
        // Whoever still waits gets a pod, or comes to the end of his time.
        for _ in 0..200 {
            if !chance.launching.is_empty() {
                chance.finish(0, true);
            }
            chance.bench.now += seconds(1);
            chance.handle(Event::Tick);
        }
        assert!(chance.calls.values().all(|(_, _, waits)| !waits), "{seed}: {:?}", chance.calls);
        guests += chance.guests;
    }
    assert!(guests > 100, "{guests} calls ran in pods of another name");
}
