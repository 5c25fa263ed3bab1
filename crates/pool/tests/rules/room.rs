//! The limit over all functions.

use pool::Limits;

use crate::support::{A, B, Bench, C, limits, seconds};

#[test]
fn the_longest_idle_pod_makes_room() {
    let mut bench = full();
    bench.arrive(3, A);
    bench.now += seconds(1);
    bench.leave(3);
    assert_eq!(bench.arrive(4, C), ["delete 2 u2: Room"], "b was used before a");
    assert_eq!(bench.gone("u2"), ["launch 3 c-1 r1"]);
    assert_eq!(bench.start(3), ["record 3 until 2801", "grant 4 to 3"]);
}

#[test]
fn a_busy_pod_makes_room_when_it_is_idle() {
    let mut bench = full();
    bench.arrive(3, A);
    bench.arrive(4, B);
    assert_eq!(bench.arrive(5, C), [""; 0]);
    assert_eq!(bench.leave(3), ["delete 1 u1: Room"]);
    assert_eq!(bench.leave(4), [""; 0], "one is enough");
    assert_eq!(bench.gone("u1"), ["launch 3 c-1 r1"]);
}

#[test]
fn a_pod_that_goes_anyway_makes_room() {
    let mut bench = full();
    bench.arrive(3, A);
    bench.broken(1, "reset", false);
    assert_eq!(bench.arrive(4, C), [""; 0], "no other is deleted for it");
    assert_eq!(bench.gone("u1"), ["launch 3 c-1 r1"]);
}

#[test]
fn who_waits_longest_gets_the_room() {
    let mut bench = Bench::new(Limits { max_pods: Some(1), ..limits() });
    bench.arrive(1, A);
    bench.start(1);
    bench.now += seconds(1);
    bench.arrive(2, C);
    bench.now += seconds(1);
    bench.arrive(3, B);
    assert_eq!(bench.leave(1), ["delete 1 u1: Room"]);
    assert_eq!(bench.gone("u1"), ["launch 2 c-1 r1"]);
    bench.start(2);
    assert_eq!(bench.leave(2), ["delete 2 u2: Room"]);
    assert_eq!(bench.gone("u2"), ["launch 3 b-1 r1"]);
}

#[test]
fn a_first_pod_comes_before_more_of_another_function() {
    let mut bench = Bench::new(Limits { max_pods: Some(2), ..limits() });
    bench.respecify(|spec| {
        spec.max_pods = 9;
        spec.max_queue = 1;
    });
    for call in 1..=5 {
        bench.arrive(call, A);
    }
    assert_eq!(bench.pods(), ["a 1 launching 0", "a 2 launching 0"]);
    bench.now += seconds(1);
    bench.arrive(6, B);
    assert_eq!(bench.not_launched(1, "no", false), ["launch 3 b-1 r1"]);
}

#[test]
fn no_more_pods_go_than_are_needed() {
    let mut bench = Bench::new(Limits { max_pods: Some(4), ..limits() });
    bench.respecify(|spec| spec.max_pods = 4);
    for call in 1..=8 {
        bench.arrive(call, A);
    }
    for pod in 1..=4 {
        bench.start(pod);
    }
    for call in 1..=8 {
        bench.leave(call);
    }
    assert_eq!(bench.arrive(10, B).len(), 1);
    assert_eq!(bench.arrive(11, C).len(), 1);
    assert_eq!(bench.arrive(12, C), [""; 0], "it fits in the pod to come");
    let ending = bench.pods().iter().filter(|pod| pod.contains("ending")).count();
    assert_eq!(ending, 2);
}

#[test]
fn more_pods_of_a_busy_function_take_the_room_of_idle_ones() {
    let mut bench = full();
    bench.respecify(|spec| spec.max_pods = 2);
    bench.arrive(3, A);
    bench.arrive(4, A);
    assert_eq!(bench.arrive(5, A), ["grant 5 to 1", "delete 2 u2: Room"]);
    assert_eq!(bench.gone("u2"), ["launch 3 a-2 r1"]);
}

#[test]
fn what_was_needed_and_is_no_longer_is_not_started() {
    let mut bench = full();
    bench.arrive(3, C);
    bench.leave(3);
    assert_eq!(bench.gone("u1"), [""; 0]);
}

#[test]
fn after_the_pause_of_a_lasting_failure_calls_wait_for_room() {
    let mut bench = Bench::new(Limits { max_pods: Some(1), ..limits() });
    bench.arrive(1, B);
    bench.not_launched(1, "no such image", true);
    bench.arrive(2, A);
    bench.start(2);
    bench.now += seconds(2);
    assert_eq!(bench.arrive(3, B), [""; 0], "it may be there by now");
    assert_eq!(bench.leave(2), ["delete 2 u2: Room"]);
    assert_eq!(bench.gone("u2"), ["launch 3 b-1 r1"]);
}

#[test]
fn min_pods_are_not_taken_away() {
    let mut bench = Bench::new(Limits { max_pods: Some(2), ..limits() });
    bench.respecify(|spec| {
        spec.max_pods = 2;
        spec.min_pods = usize::from(&*spec.stem == "a");
    });
    for call in 1..=3 {
        bench.arrive(call, A);
    }
    bench.start(1);
    bench.start(2);
    for call in 1..=3 {
        bench.leave(call);
    }
    assert_eq!(bench.arrive(4, B).len(), 1, "one of two may go");
    assert_eq!(bench.arrive(5, C), [""; 0], "the other may not");
    assert_eq!(bench.sleep(), ["time 4 out for room", "time 5 out for room"].map(String::from));
}

#[test]
fn a_warm_up_takes_no_room_from_others() {
    let mut bench = full();
    assert_eq!(bench.want(C, true), [""; 0]);
    assert_eq!(bench.gone("u1"), [""; 0]);
    assert_eq!(bench.want(C, true), ["launch 3 c-1 r1"]);
}

#[test]
fn a_limit_of_nothing_is_a_limit_of_one() {
    let mut bench = Bench::new(Limits { max_pods: Some(0), ..limits() });
    assert_eq!(bench.arrive(1, A), ["launch 1 a-1 r1"]);
    assert_eq!(bench.arrive(2, B), [""; 0]);
}

/// Room for two; pods 1 of a and 2 of b are idle.
fn full() -> Bench {
    let mut bench = Bench::new(Limits { max_pods: Some(2), ..limits() });
    bench.arrive(1, A);
    bench.arrive(2, B);
    bench.start(1);
    bench.start(2);
    bench.leave(1);
    bench.leave(2);
    bench
}
