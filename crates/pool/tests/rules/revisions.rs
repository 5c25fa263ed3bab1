//! Pods of an older image, template or settings.

use pool::{Limits, Observed};

use crate::support::{A, Bench, limits, seconds};

#[test]
fn a_call_after_a_change_is_served_by_the_old_pod_until_a_new_one_is_ready() {
    let mut bench = used();
    change(&mut bench, "r2");
    assert_eq!(bench.arrive(2, A), ["launch 2 a-2 r2", "grant 2 to 1"]);
    assert_eq!(bench.pods(), ["a 1 ready 1 outdated", "a 2 launching 0"]);
    assert_eq!(bench.start(2), ["record 2 until 2810"], "the old one is busy");
    assert_eq!(bench.arrive(3, A), ["grant 3 to 2"]);
    assert_eq!(bench.leave(2), ["delete 1 u1: Outdated"]);
}

#[test]
fn a_change_replaces_a_used_pod_at_once() {
    let mut bench = used();
    change(&mut bench, "r2");
    assert_eq!(bench.want(A, false), ["launch 2 a-2 r2"]);
    assert_eq!(bench.start(2), ["record 2 until 2810", "delete 1 u1: Outdated"]);
    assert_eq!(bench.gone("u1"), [""; 0]);
    assert_eq!(bench.pods(), ["a 2 ready 0"]);
}

#[test]
fn a_change_replaces_no_pod_that_is_not_used() {
    let mut bench = Bench::new(limits());
    bench.want(A, true);
    bench.start(1);
    change(&mut bench, "r2");
    assert_eq!(bench.want(A, false), [""; 0]);
    assert_eq!(bench.want(A, true), ["launch 2 a-2 r2"], "unless a warm one is asked for");
}

#[test]
fn a_changed_stem_is_a_change_too() {
    let mut bench = used();
    bench.respecify(|spec| spec.stem = "other".into());
    assert_eq!(bench.want(A, false), ["launch 2 other-1 r1"]);
    bench.now += seconds(1);
    assert_eq!(bench.start(2), ["record 2 until 2811", "delete 1 u1: Outdated"]);
}

#[test]
fn other_settings_change_no_pod() {
    let mut bench = used();
    bench.respecify(|spec| spec.time_to_live = seconds(7));
    assert_eq!(bench.want(A, true), [""; 0]);
}

#[test]
fn old_pods_go_on_serving_while_new_ones_cannot_be_started() {
    let mut bench = used();
    change(&mut bench, "broken");
    assert_eq!(bench.arrive(2, A), ["launch 2 a-2 broken", "grant 2 to 1"]);
    assert_eq!(bench.not_launched(2, "forbidden", true), [""; 0]);
    assert_eq!(bench.arrive(3, A), ["grant 3 to 1"]);
    for call in 4..10 {
        assert!(bench.arrive(call, A).contains(&format!("grant {call} to 1")));
    }
}

#[test]
fn a_change_ends_the_pause_of_what_was_before() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.not_launched(1, "forbidden", true);
    change(&mut bench, "fixed");
    assert_eq!(bench.arrive(2, A), ["launch 2 a-1 fixed"]);
}

#[test]
fn failures_of_what_was_before_say_nothing_of_what_is_now() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    change(&mut bench, "fixed");
    assert_eq!(bench.arrive(2, A), ["launch 2 a-2 fixed"]);
    assert_eq!(bench.not_launched(1, "forbidden", true), [""; 0]);
    assert_eq!(bench.pool.snapshot().waiting, 2);
    assert_eq!(bench.arrive(3, A), [""; 0]);
}

#[test]
fn limits_count_current_pods_only() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 2);
    for call in 1..=6 {
        bench.arrive(call, A);
    }
    bench.start(1);
    bench.start(2);
    assert_eq!(bench.pods(), ["a 1 ready 3", "a 2 ready 3"]);
    change(&mut bench, "r2");
    bench.want(A, false);
    bench.start(3);
    let launches: Vec<_> = (10..20).flat_map(|call| bench.arrive(call, A)).collect();
    assert_eq!(launches.iter().filter(|action| action.starts_with("launch")).count(), 1);
}

#[test]
fn pods_of_one_who_knows_better_are_left_alone() {
    // Another replica already works with what this one will only hear of.
    let mut bench = used();
    let newer = Observed { revision: "r2".into(), ..bench.observed(A, "newer", 2) };
    assert_eq!(bench.see(newer), ["connect 2 newer"]);
    assert_eq!(bench.connected(2), ["record 2 until 2810"]);
    assert_eq!(bench.arrive(3, A), ["grant 3 to 1"], "it is not used either");
    bench.now += seconds(2000);
    assert_eq!(bench.scan(), ["record 1 until 4810", "delete 2 newer: Idle"]);
}

#[test]
fn with_no_room_the_old_pod_makes_way_for_the_new_when_it_is_idle() {
    let mut bench = Bench::new(Limits { max_pods: Some(1), ..limits() });
    bench.arrive(1, A);
    bench.start(1);
    change(&mut bench, "r2");
    assert_eq!(bench.arrive(2, A), ["grant 2 to 1"], "no room");
    bench.leave(1);
    assert_eq!(bench.leave(2), ["delete 1 u1: Room"]);
    assert_eq!(bench.gone("u1"), ["launch 2 a-1 r2"]);
}

fn change(bench: &mut Bench, revision: &'static str) {
    bench.respecify(move |spec| spec.revision = revision.into());
}

/// Pod 1 was used by call 1, ten seconds ago.
fn used() -> Bench {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    bench.leave(1);
    bench.now += seconds(10);
    bench
}

#[test]
fn a_pod_that_is_no_longer_what_it_was_serves_until_a_newer_one_is_ready() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    let changed = Observed { revision: "without its Service".into(), ..bench.observed(A, "u1", 1) };
    assert_eq!(bench.see(changed.clone()), [""; 0]);
    assert_eq!(bench.arrive(2, A), ["launch 2 a-2 r1", "grant 2 to 1"]);
    assert_eq!(bench.see(changed), [""; 0], "it is replaced once");
    bench.start(2);
    bench.leave(1);
    assert_eq!(bench.leave(2), ["delete 1 u1: Outdated"]);
}
