//! When more pods are started.

use pool::Event;

use crate::support::{A, B, Bench, limits, seconds};

#[test]
fn fifty_first_calls_start_as_many_pods_as_allowed() {
    for max_pods in [1, 2, 5] {
        let mut bench = Bench::new(limits());
        bench.respecify(move |spec| spec.max_pods = max_pods);
        let launches: Vec<_> = (1..=50).flat_map(|call| bench.arrive(call, A)).collect();
        assert_eq!(launches.len(), max_pods, "{launches:?}");
        let mut granted = 0;
        for pod in 1..=max_pods {
            granted += bench.start(pod as u64).iter().filter(|action| action.starts_with("grant")).count();
        }
        assert_eq!(granted, 50);
    }
}

#[test]
fn no_more_pods_are_started_than_the_calls_fill() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| {
        spec.max_pods = 100;
        spec.max_queue = 3;
    });
    let launches: Vec<_> = (1..=10).flat_map(|call| bench.arrive(call, A)).collect();
    assert_eq!(launches.len(), 4);
}

#[test]
fn one_call_after_the_other_never_starts_a_second_pod() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| {
        spec.max_pods = 10;
        spec.max_queue = 1;
    });
    bench.arrive(1, A);
    bench.start(1);
    bench.leave(1);
    for call in 2..10 {
        assert_eq!(bench.arrive(call, A), [format!("grant {call} to 1")]);
        bench.leave(call);
    }
}

#[test]
fn another_pod_is_started_when_every_pod_is_full() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 3);
    bench.arrive(1, A);
    bench.start(1);
    assert_eq!(bench.arrive(2, A), ["grant 2 to 1"]);
    assert_eq!(bench.arrive(3, A), ["launch 2 a-2 r1"]);
    bench.start(2);
    assert_eq!(bench.arrive(4, A), ["grant 4 to 2"]);
    assert_eq!(bench.arrive(5, A), ["launch 3 a-3 r1"]);
    bench.start(3);
    assert_eq!(bench.arrive(6, A), ["grant 6 to 3"]);
    assert_eq!(bench.arrive(7, A), ["grant 7 to 1"], "at the limit");
}

#[test]
fn one_pod_with_a_free_place_is_enough() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 3);
    for call in 1..=4 {
        bench.arrive(call, A);
    }
    bench.start(1);
    bench.start(2);
    bench.leave(2);
    assert_eq!(bench.arrive(5, A).len(), 1, "a grant and no launch");
}

#[test]
fn a_raised_limit_counts_at_once() {
    let mut bench = Bench::new(limits());
    for call in 1..=5 {
        bench.arrive(call, A);
    }
    bench.respecify(|spec| spec.max_pods = 2);
    assert_eq!(bench.want(A, false), ["launch 2 a-2 r1"]);
}

#[test]
fn after_a_lowered_limit_the_highest_slots_go_when_idle() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 3);
    for call in 1..=6 {
        bench.arrive(call, A);
    }
    for pod in 1..=3 {
        bench.start(pod);
    }
    assert_eq!(bench.pods(), ["a 1 ready 2", "a 2 ready 2", "a 3 ready 2"]);
    bench.respecify(|spec| spec.max_pods = 1);
    assert_eq!(bench.want(A, false), [""; 0]);
    // Pods that are too many get no new calls.
    assert_eq!(bench.arrive(7, A), ["grant 7 to 1"]);
    assert_eq!(bench.arrive(8, A), ["grant 8 to 1"]);
    assert_eq!(bench.leave(4), [""; 0]);
    assert_eq!(bench.leave(3), ["delete 2 u2: Surplus"]);
    assert_eq!(bench.leave(5), [""; 0]);
    assert_eq!(bench.leave(6), ["delete 3 u3: Surplus"]);
    assert_eq!(bench.pods(), ["a 1 ready 4", "a 2 ending 0", "a 3 ending 0"]);
}

#[test]
fn min_pods_are_kept_up_without_calls() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| {
        spec.min_pods = 2;
        spec.max_pods = 4;
    });
    assert_eq!(bench.want(A, false), ["launch 1 a-1 r1", "launch 2 a-2 r1"]);
    bench.start(1);
    bench.start(2);
    assert_eq!(bench.gone("u1"), ["launch 3 a-1 r1"]);
    bench.start(3);
    // They are kept beyond their time to live.
    bench.now += seconds(100_000);
    assert_eq!(bench.scan(), [""; 0]);
    bench.respecify(|spec| spec.min_pods = 1);
    bench.want(A, false);
    assert_eq!(bench.scan(), ["delete 2 u2: Idle"]);
}

#[test]
fn more_min_pods_than_pods_are_the_limit() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.min_pods = usize::MAX);
    assert_eq!(bench.want(A, false), ["launch 1 a-1 r1"]);
}

#[test]
fn min_pods_that_fail_are_tried_again_with_growing_pauses() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| {
        spec.min_pods = 2;
        spec.max_pods = 2;
    });
    bench.want(A, false);
    let begun = bench.now;
    assert_eq!(bench.not_launched(1, "quota", true), [""; 0]);
    assert_eq!(bench.not_launched(2, "quota", true), [""; 0]);
    assert_eq!(bench.sleep(), ["launch 3 a-1 r1"], "one at a time after a failure");
    assert_eq!(bench.now - begun, seconds(1));
    bench.not_launched(3, "quota", true);
    bench.sleep();
    assert_eq!(bench.now - begun, seconds(3));
    assert_eq!(bench.start(4), ["record 4 until 2803", "launch 5 a-2 r1"], "one came up");
}

#[test]
fn warm_starts_one_pod_if_there_is_none() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 5);
    assert_eq!(bench.want(A, true), ["launch 1 a-1 r1"]);
    assert_eq!(bench.want(A, true), [""; 0]);
    bench.start(1);
    assert_eq!(bench.want(A, true), [""; 0]);
    assert_eq!(bench.want(B, false), [""; 0]);
}

#[test]
fn warm_does_not_try_during_a_pause() {
    let mut bench = Bench::new(limits());
    bench.want(A, true);
    bench.not_launched(1, "no such image", true);
    assert_eq!(bench.want(A, true), [""; 0]);
    assert_eq!(bench.pool.wake_at(), None, "nobody needs it");
    bench.now += seconds(2);
    assert_eq!(bench.handle(Event::Tick), [""; 0]);
    assert_eq!(bench.want(A, true), ["launch 2 a-1 r1"]);
}
