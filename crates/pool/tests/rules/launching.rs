//! From the launch of a pod to its being ready, with others at the same slots.

use pool::{Observed, Phase};

use crate::support::{A, B, Bench, limits, seconds};

#[test]
fn the_watch_may_show_a_pod_before_its_launch_is_reported() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    assert_eq!(bench.see(bench.observed(A, "u1", 1)), ["connect 1 u1"]);
    assert_eq!(bench.launched(1), [""; 0], "one connection per pod");
    assert_eq!(bench.connected(1), ["record 1 until 2800", "grant 1 to 1"]);
    assert_eq!(bench.launched(1), [""; 0]);
    assert_eq!(bench.connected(1), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 ready 1"]);
}

#[test]
fn the_watch_may_show_a_pod_after_its_launch_is_reported() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    assert_eq!(bench.see(bench.observed(A, "u1", 1)), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 ready 1"]);
}

#[test]
fn a_slot_taken_by_another_replica_brings_its_pod() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    assert_eq!(bench.taken(1), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 taken 0"]);
    assert_eq!(bench.see(bench.observed(A, "theirs", 1)), ["connect 1 theirs"]);
    assert_eq!(bench.connected(1), ["record 1 until 2800", "grant 1 to 1"]);
}

#[test]
fn the_pod_of_a_taken_slot_may_be_seen_before_that_is_reported() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    assert_eq!(bench.see(bench.observed(A, "theirs", 1)), ["connect 1 theirs"]);
    assert_eq!(bench.taken(1), [""; 0]);
    assert_eq!(bench.connected(1), ["record 1 until 2800", "grant 1 to 1"]);
}

#[test]
fn a_taken_slot_without_a_pod_is_taken_over() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.taken(1);
    assert_eq!(bench.pool.wake_at(), Some(bench.now + seconds(15)));
    assert_eq!(bench.sleep(), ["launch 1 a-1 r1"]);
    bench.taken(1);
    assert_eq!(bench.sleep(), ["launch 1 a-1 r1"]);
    assert_eq!(bench.start(1), ["record 1 until 2830", "grant 1 to 1"]);
}

#[test]
fn a_taken_slot_nobody_waits_for_is_let_go() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.taken(1);
    bench.leave(1);
    for _ in 0..3 {
        assert_eq!(bench.sleep(), ["launch 1 a-1 r1"]);
        bench.taken(1);
    }
    assert_eq!(bench.sleep(), [""; 0]);
    assert_eq!(bench.pods(), [""; 0]);
    assert_eq!(bench.pool.wake_at(), None);
}

#[test]
fn a_slot_taken_for_another_function_is_left_to_it() {
    // Two references to one image: the same stem.
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.stem = "same".into());
    bench.arrive(1, A);
    assert_eq!(bench.see(bench.observed(B, "theirs", 1)), ["connect 2 theirs"]);
    assert_eq!(bench.taken(1), ["launch 3 same-2 r1"]);
    assert_eq!(bench.pods(), ["a 2 launching 0", "b 1 starting 0"]);
}

#[test]
fn functions_of_one_stem_share_its_slots() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.stem = "same".into());
    assert_eq!(bench.arrive(1, A), ["launch 1 same-1 r1"]);
    assert_eq!(bench.arrive(2, B), ["launch 2 same-2 r1"]);
}

#[test]
fn the_lowest_free_slot_is_used() {
    let mut bench = three_ready_pods();
    assert_eq!(bench.gone("u2"), ["launch 4 a-2 r1"]);
    assert_eq!(bench.gone("u3"), ["launch 5 a-3 r1"]);
}

#[test]
fn the_slot_of_an_ending_pod_is_not_used_until_it_is_gone() {
    let mut bench = three_ready_pods();
    let ending = Observed { phase: Phase::Ending, ..bench.observed(A, "u2", 2) };
    assert_eq!(bench.see(ending), ["launch 4 a-4 r1"]);
    assert_eq!(bench.gone("u2"), [""; 0]);
    assert_eq!(bench.gone("u3"), ["launch 5 a-2 r1"]);
}

#[test]
fn the_slot_of_a_failed_pod_is_not_used_until_it_is_gone() {
    let mut bench = three_ready_pods();
    assert_eq!(bench.broken(1, "reset", false), ["delete 1 u1: Failed", "launch 4 a-4 r1"]);
}

#[test]
fn pods_of_others_are_adopted_and_count() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 2);
    assert_eq!(bench.see(bench.observed(A, "x", 1)), ["connect 1 x"]);
    assert_eq!(bench.see(bench.observed(A, "x", 1)), [""; 0], "seen again");
    bench.connected(1);
    for call in 1..=2 {
        assert_eq!(bench.arrive(call, A), [format!("grant {call} to 1")]);
    }
    assert_eq!(bench.arrive(3, A), ["launch 2 a-2 r1"]);
    assert_eq!(bench.arrive(4, A), [""; 0]);
    for call in 5..=20 {
        assert!(!bench.arrive(call, A).concat().contains("launch"), "two are allowed");
    }
}

#[test]
fn adopted_pods_beyond_the_limit_go_when_one_that_stays_is_ready() {
    let mut bench = Bench::new(limits());
    for slot in 1..=3 {
        bench.see(bench.observed(A, &format!("x{slot}"), slot));
    }
    assert_eq!(bench.connected(3)[1..], [""; 0]);
    assert_eq!(bench.arrive(1, A), ["grant 1 to 3"], "none of those that stay is ready");
    assert_eq!(bench.connected(1), ["record 1 until 2800", "delete 2 x2: Surplus"]);
    assert_eq!(bench.leave(1), ["delete 3 x3: Surplus"]);
}

#[test]
fn of_two_pods_in_a_slot_the_older_stays() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    let older = Observed { created: bench.now - seconds(5), ..bench.observed(A, "older", 1) };
    assert_eq!(bench.see(older), ["connect 2 older"]);
    assert_eq!(bench.connected(2), ["record 2 until 2800"]);
    assert_eq!(bench.arrive(2, A), ["grant 2 to 2"], "the one that goes gets no more calls");
    assert_eq!(bench.leave(1), ["delete 1 u1: Surplus"]);
    assert_eq!(bench.gone("u1"), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 ready 1"]);
}

#[test]
fn of_two_pods_in_a_slot_made_at_once_all_replicas_keep_the_same() {
    for order in [["x", "y"], ["y", "x"]] {
        let mut bench = Bench::new(limits());
        for uid in order {
            bench.see(bench.observed(A, uid, 1));
        }
        let mut actions = bench.connected(1);
        actions.extend(bench.connected(2));
        let deleted: Vec<_> = actions.iter().filter(|action| action.starts_with("delete")).collect();
        assert_eq!(deleted.len(), 1);
        assert!(deleted[0].ends_with("y: Surplus"), "{deleted:?}");
    }
}

#[test]
fn a_launch_that_made_another_pod_than_the_one_seen_makes_two() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    assert_eq!(bench.see(bench.observed(A, "theirs", 1)), ["connect 1 theirs"]);
    assert_eq!(bench.launched_as(1, "ours"), ["connect 2 ours"]);
    bench.connected(1);
    bench.now += seconds(1);
    assert_eq!(bench.see(bench.observed(A, "ours", 1)), ["delete 2 ours: Surplus"]);
}

#[test]
fn a_launch_outlives_the_pod_that_was_seen_in_its_place() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.see(bench.observed(A, "theirs", 1));
    assert_eq!(bench.gone("theirs"), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 launching 0"], "the slot is still being launched into");
    assert_eq!(bench.launched_as(1, "ours"), ["connect 1 ours"]);
    assert_eq!(bench.connected(1), ["record 1 until 2800", "grant 1 to 1"]);
}

#[test]
fn a_launched_pod_that_was_gone_before_is_gone() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.see(bench.observed(A, "u1", 1));
    bench.gone("u1");
    assert_eq!(bench.launched(1), [""; 0]);
    assert_eq!(bench.pods(), [""; 0]);
    assert_eq!(bench.sleep(), ["launch 2 a-1 r1"]);
}

#[test]
fn the_younger_in_a_slot_stays_when_the_older_ends() {
    let mut bench = Bench::new(limits());
    bench.see(bench.observed(A, "x", 1));
    bench.see(bench.observed(A, "y", 1));
    bench.connected(2);
    bench.see(Observed { phase: Phase::Ending, ..bench.observed(A, "x", 1) });
    assert_eq!(bench.arrive(1, A), ["grant 1 to 2"], "and no other is started");
}

#[test]
fn a_pod_without_a_slot_is_used_if_it_is_current() {
    let mut bench = Bench::new(limits());
    assert_eq!(bench.see(bench.observed(A, "old-name", 0)), ["connect 1 old-name"]);
    bench.connected(1);
    assert_eq!(bench.arrive(1, A), ["grant 1 to 1"]);
    assert_eq!(bench.see(bench.observed(A, "other", 0)), ["connect 2 other", "delete 2 other: Surplus"]);
    assert_eq!(bench.pods(), ["a 0 ready 1", "a 0 ending 0"]);
}

#[test]
fn a_slot_beyond_all_reason_does_no_harm() {
    let mut bench = Bench::new(limits());
    bench.see(bench.observed(A, "x", usize::MAX));
    bench.see(bench.observed(B, "y", usize::MAX));
    bench.connected(1);
    assert_eq!(bench.arrive(1, A), ["grant 1 to 1"]);
}

fn three_ready_pods() -> Bench {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| {
        spec.max_pods = 3;
        spec.min_pods = 3;
    });
    bench.want(A, false);
    for pod in 1..=3 {
        bench.start(pod);
    }
    bench
}
