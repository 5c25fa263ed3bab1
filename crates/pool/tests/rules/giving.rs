//! Giving pods to calls.

use crate::support::{A, Bench, limits, seconds};

#[test]
fn a_first_call_starts_a_pod_and_gets_it() {
    let mut bench = Bench::new(limits());
    assert_eq!(bench.arrive(1, A), ["launch 1 a-1 r1"]);
    assert_eq!(bench.launched(1), ["connect 1 u1"]);
    assert_eq!(bench.connected(1), ["record 1 until 2800", "grant 1 to 1"]);
    assert_eq!(bench.pods(), ["a 1 ready 1"]);
    assert_eq!(bench.leave(1), [""; 0]);
    assert_eq!(bench.arrive(2, A), ["grant 2 to 1"]);
    assert_eq!(bench.leave(2), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 ready 0"]);
}

#[test]
fn calls_go_to_the_least_loaded_pod() {
    let mut bench = two_ready_pods();
    assert_eq!(bench.arrive(1, A), ["grant 1 to 1"]);
    assert_eq!(bench.arrive(2, A), ["grant 2 to 2"]);
    assert_eq!(bench.arrive(3, A), ["grant 3 to 1"]);
    bench.leave(2);
    assert_eq!(bench.arrive(4, A), ["grant 4 to 2"]);
    assert_eq!(bench.arrive(5, A), ["grant 5 to 2"]);
}

#[test]
fn equals_take_turns() {
    let mut bench = two_ready_pods();
    let mut given = Vec::new();
    for call in 1..=6 {
        given.extend(bench.arrive(call, A));
        bench.leave(call);
    }
    let expected =
        ["grant 1 to 1", "grant 2 to 2", "grant 3 to 1", "grant 4 to 2", "grant 5 to 1", "grant 6 to 2"];
    assert_eq!(given, expected);
}

#[test]
fn at_the_limit_calls_crowd_the_pods_there_are() {
    let mut bench = two_ready_pods();
    for call in 1..=20 {
        assert_eq!(bench.arrive(call, A).len(), 1, "call {call} is not given a pod");
    }
    assert_eq!(bench.pods(), ["a 1 ready 10", "a 2 ready 10"]);
}

#[test]
fn while_a_pod_starts_each_ready_one_takes_its_share() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 2);
    bench.arrive(1, A);
    bench.start(1);
    assert_eq!(bench.arrive(2, A), ["grant 2 to 1"]);
    // Full: the third needs another pod and waits for it rather than crowd the first.
    assert_eq!(bench.arrive(3, A), ["launch 2 a-2 r1"]);
    assert_eq!(bench.arrive(4, A), [""; 0]);
    // Of five, the ready pod's half is three.
    assert_eq!(bench.arrive(5, A), ["grant 3 to 1"]);
    assert_eq!(bench.start(2), ["record 2 until 2800", "grant 4 to 2", "grant 5 to 2"]);
}

#[test]
fn patience_with_a_starting_pod_ends() {
    let mut bench = crowded_with_one_starting();
    assert_eq!(bench.pool.wake_at(), Some(bench.now + seconds(10)));
    assert_eq!(bench.sleep(), ["grant 3 to 1"]);
    assert_eq!(bench.arrive(4, A), ["grant 4 to 1"]);
}

#[test]
fn nobody_waits_for_a_starting_pod_in_trouble() {
    let mut bench = crowded_with_one_starting();
    bench.launched(2);
    assert_eq!(bench.trouble(2, "no node has room"), ["grant 3 to 1"]);
}

#[test]
fn a_call_that_leaves_makes_way_for_one_that_waits() {
    let mut bench = crowded_with_one_starting();
    assert_eq!(bench.leave(1), ["grant 3 to 1"]);
}

#[test]
fn waiting_calls_are_served_in_order() {
    let mut bench = Bench::new(limits());
    for call in 1..=4 {
        bench.arrive(call, A);
    }
    bench.leave(2);
    let given = bench.start(1);
    assert_eq!(given, ["record 1 until 2800", "grant 1 to 1", "grant 3 to 1", "grant 4 to 1"]);
}

fn two_ready_pods() -> Bench {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| {
        spec.max_pods = 2;
        spec.min_pods = 2;
    });
    assert_eq!(bench.want(A, false), ["launch 1 a-1 r1", "launch 2 a-2 r1"]);
    bench.start(1);
    bench.start(2);
    bench
}

/// Calls 1 and 2 are in pod 1; call 3 waits for pod 2.
fn crowded_with_one_starting() -> Bench {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 2);
    bench.arrive(1, A);
    bench.start(1);
    bench.arrive(2, A);
    assert_eq!(bench.arrive(3, A), ["launch 2 a-2 r1"]);
    bench
}
