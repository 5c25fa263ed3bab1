//! How long pods are kept.

use pool::Observed;

use crate::support::{A, Bench, limits, seconds};

#[test]
fn a_pod_is_kept_for_its_time_after_its_last_use() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    bench.now += seconds(100);
    bench.leave(1);
    bench.now += seconds(1799);
    assert_eq!(bench.scan(), [""; 0]);
    bench.now += seconds(1);
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
    assert_eq!(bench.scan(), [""; 0]);
}

#[test]
fn a_pod_with_a_call_in_it_is_kept_for_ever() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    bench.now += seconds(100_000);
    assert_eq!(bench.scan(), ["record 1 until 102800"]);
    bench.leave(1);
    bench.now += seconds(1800);
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
}

#[test]
fn the_time_is_recorded_at_most_once_a_minute() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    let mut recorded = Vec::new();
    for call in 2..=121 {
        bench.now += seconds(1);
        recorded.extend(bench.arrive(call, A).into_iter().filter(|action| action.starts_with("record")));
        bench.leave(call);
    }
    assert_eq!(recorded, ["record 1 until 2860", "record 1 until 2920"]);
}

#[test]
fn a_short_time_is_recorded_more_often() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.time_to_live = seconds(20));
    bench.arrive(1, A);
    bench.start(1);
    bench.now += seconds(4);
    assert_eq!(bench.arrive(2, A), ["grant 2 to 1"]);
    bench.now += seconds(1);
    assert_eq!(bench.arrive(3, A), ["grant 3 to 1", "record 1 until 1025"]);
}

#[test]
fn no_time_at_all_is_recorded_once_a_second() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.time_to_live = seconds(0));
    bench.arrive(1, A);
    bench.start(1);
    assert_eq!(bench.arrive(2, A), ["grant 2 to 1"]);
    assert_eq!(bench.scan(), [""; 0]);
    bench.leave(1);
    bench.leave(2);
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
}

#[test]
fn use_by_another_replica_keeps_a_pod() {
    let mut bench = Bench::new(limits());
    bench.want(A, true);
    bench.start(1);
    bench.now += seconds(1700);
    let theirs = Some(bench.now + seconds(1800));
    bench.see(Observed { keep_until: theirs, ..bench.observed(A, "u1", 1) });
    bench.see(Observed { keep_until: None, ..bench.observed(A, "u1", 1) });
    bench.now += seconds(1799);
    assert_eq!(bench.scan(), [""; 0]);
    bench.now += seconds(1);
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
}

#[test]
fn a_pod_found_at_a_start_is_kept_as_long_as_is_recorded_on_it() {
    let mut bench = Bench::new(limits());
    for (slot, keep_until) in [(1, Some(seconds(1100))), (2, None), (3, Some(seconds(10)))] {
        bench.respecify(|spec| spec.max_pods = 3);
        bench.see(Observed { keep_until, ..bench.observed(A, &format!("x{slot}"), slot) });
    }
    assert_eq!(bench.connected(1), [""; 0]);
    assert_eq!(bench.connected(2), ["record 2 until 2800"]);
    assert_eq!(bench.connected(3), [""; 0]);
    assert_eq!(bench.scan(), ["delete 3 x3: Idle"]);
    bench.gone("x3");
    bench.now = seconds(1100);
    assert_eq!(bench.scan(), ["delete 1 x1: Idle"]);
}

#[test]
fn the_time_a_pod_takes_to_start_is_not_idle_time() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.time_to_live = seconds(8));
    bench.want(A, true);
    // What the launch recorded counts from the pod's creation.
    let keep_until = Some(bench.now + seconds(8));
    bench.see(Observed { keep_until, ..bench.observed(A, "u1", 1) });
    bench.now += seconds(20);
    assert_eq!(bench.scan(), [""; 0], "it is still starting");
    assert_eq!(bench.connected(1), ["record 1 until 1028"]);
    bench.now += seconds(7);
    assert_eq!(bench.scan(), [""; 0]);
    bench.now += seconds(1);
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
}

#[test]
fn a_deletion_without_effect_is_asked_for_again() {
    let mut bench = Bench::new(limits());
    bench.want(A, true);
    bench.start(1);
    bench.now += seconds(1800);
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
    bench.now += seconds(30);
    bench.see(bench.observed(A, "u1", 1));
    assert_eq!(bench.scan(), [""; 0]);
    bench.now += seconds(1);
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
    bench.see(Observed { phase: pool::Phase::Ending, ..bench.observed(A, "u1", 1) });
    bench.now += seconds(1000);
    assert_eq!(bench.scan(), [""; 0], "it is going");
    assert_eq!(bench.pods(), ["a 1 ending 0"]);
}

#[test]
fn a_pod_that_goes_is_not_used_though_it_is_seen_alive() {
    let mut bench = Bench::new(limits());
    bench.want(A, true);
    bench.start(1);
    bench.now += seconds(1800);
    bench.scan();
    bench.see(bench.observed(A, "u1", 1));
    assert_eq!(bench.connected(1), [""; 0]);
    assert_eq!(bench.arrive(1, A), ["launch 2 a-2 r1"]);
}

#[test]
fn a_changed_time_to_live_counts_at_once() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    bench.leave(1);
    bench.respecify(|spec| spec.time_to_live = seconds(5000));
    bench.want(A, false);
    bench.now += seconds(4999);
    assert_eq!(bench.scan(), [""; 0]);
    bench.now += seconds(1);
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
}

#[test]
fn a_pod_with_a_long_call_in_it_is_kept_by_other_replicas_too() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.time_to_live = seconds(40));
    bench.arrive(1, A);
    assert_eq!(bench.start(1), ["record 1 until 1040", "grant 1 to 1"]);
    assert_eq!(bench.sleep(), ["record 1 until 1070"], "a quarter of its time before it is over");
    assert_eq!(bench.sleep(), ["record 1 until 1100"]);
    bench.now += seconds(15);
    assert_eq!(bench.leave(1), ["record 1 until 1115"], "it was used until now");
    assert_eq!(bench.pool.wake_at(), None);
}

#[test]
fn a_time_that_was_shortened_by_hand_counts_until_the_next_use() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    bench.leave(1);
    let by_hand = |bench: &Bench, until| Observed {
        keep_until: Some(until),
        is_shortened: true,
        ..bench.observed(A, "u1", 1)
    };
    bench.see(by_hand(&bench, seconds(1010)));
    assert_eq!(bench.scan(), [""; 0]);
    bench.now = seconds(1009);
    assert_eq!(bench.arrive(2, A), ["grant 2 to 1", "record 1 until 2809"], "it is used again");
    assert_eq!(bench.see(by_hand(&bench, seconds(0))), ["record 1 until 2809"], "there is a call in it");
    assert_eq!(bench.scan(), [""; 0]);
    bench.leave(2);
    bench.now += seconds(1799);
    assert_eq!(bench.scan(), [""; 0]);
    bench.see(by_hand(&bench, seconds(0)));
    assert_eq!(bench.scan(), ["delete 1 u1: Idle"]);
}

#[test]
fn an_older_record_is_no_shortening() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    bench.leave(1);
    // What is shown may be behind what was recorded.
    bench.see(Observed { keep_until: Some(seconds(1001)), ..bench.observed(A, "u1", 1) });
    bench.now += seconds(1799);
    assert_eq!(bench.scan(), [""; 0]);
}
