//! How long calls wait, and how many.

use std::time::Duration;

use pool::{CallId, Event, Limits};

use crate::support::{A, B, Bench, limits, seconds};

#[test]
fn each_call_waits_until_its_own_deadline() {
    let mut bench = Bench::new(limits());
    let begun = bench.now;
    bench.arrive_until(1, A, Some(begun + seconds(30)));
    bench.arrive_until(2, A, Some(begun + seconds(10)));
    bench.arrive_until(3, A, Some(begun + seconds(291)));
    bench.arrive(4, A);
    bench.launched(1);
    for (call, end) in [(2, 10), (1, 30), (4, 60), (3, 291)] {
        assert_eq!(bench.pool.wake_at(), Some(begun + seconds(end)));
        assert_eq!(bench.sleep()[0], format!("time {call} out"));
    }
}

#[test]
fn a_time_out_tells_what_is_wrong_with_the_pod() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.launched(1);
    bench.trouble(1, "cannot pull");
    assert_eq!(bench.trouble(1, "cannot pull: 429"), [""; 0]);
    assert_eq!(bench.sleep(), ["time 1 out: cannot pull: 429", "delete 1 u1: NotReady"]);
}

#[test]
fn a_time_out_tells_the_last_failure() {
    let mut bench = Bench::new(Limits { min_backoff: seconds(100), max_backoff: seconds(100), ..limits() });
    bench.arrive(1, A);
    assert_eq!(bench.not_launched(1, "server is away", false), [""; 0]);
    assert_eq!(bench.sleep(), ["time 1 out: server is away"]);
}

#[test]
fn a_call_that_comes_too_late_is_over() {
    let mut bench = Bench::new(limits());
    assert_eq!(bench.arrive_until(1, A, Some(Duration::ZERO)), ["time 1 out"]);
    assert_eq!(bench.pods(), [""; 0]);
}

#[test]
fn calls_beyond_the_bound_are_refused() {
    let mut bench = Bench::new(Limits { max_waiting: 2, ..limits() });
    bench.arrive(1, A);
    bench.arrive(2, A);
    assert_eq!(bench.arrive(3, A), ["refuse 3: 2 wait"]);
    assert_eq!(bench.arrive(4, B), ["refuse 4: 2 wait"], "and start nothing");
    bench.leave(2);
    assert_eq!(bench.arrive(5, B), ["launch 2 b-1 r1"]);
}

#[test]
fn a_ready_pod_is_given_however_many_wait_elsewhere() {
    let mut bench = Bench::new(Limits { max_waiting: 1, ..limits() });
    bench.arrive(1, A);
    bench.start(1);
    bench.arrive(2, B);
    assert_eq!(bench.arrive(3, A), ["grant 3 to 1"]);
    assert_eq!(bench.arrive(4, A), ["grant 4 to 1"]);
    bench.respecify(|spec| spec.max_pods = 2);
    // One that would wait for the second pod may not.
    assert_eq!(bench.arrive(5, A), ["launch 3 a-2 r1", "refuse 5: 1 wait"]);
}

#[test]
fn calls_whose_time_is_over_take_no_place() {
    let mut bench = Bench::new(Limits { max_waiting: 1, ..limits() });
    bench.arrive(1, A);
    bench.now += seconds(61);
    assert_eq!(bench.arrive(2, A), ["time 1 out"]);
    assert_eq!(bench.pool.snapshot().waiting, 1);
}

#[test]
fn a_bound_of_nothing_lets_one_wait() {
    let mut bench = Bench::new(Limits { max_waiting: 0, ..limits() });
    assert_eq!(bench.arrive(1, A), ["launch 1 a-1 r1"]);
    assert_eq!(bench.arrive(2, A), ["refuse 2: 1 wait"]);
}

#[test]
fn a_waiting_call_can_leave() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.arrive(2, A);
    assert_eq!(bench.leave(1), [""; 0]);
    assert_eq!(bench.leave(1), [""; 0], "twice does no harm");
    assert_eq!(bench.start(1), ["record 1 until 2800", "grant 2 to 1"]);
}

#[test]
fn a_call_that_arrives_again_is_one_call() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    assert_eq!(bench.arrive(1, A), [""; 0]);
    assert_eq!(bench.pool.snapshot().waiting, 1);
    assert_eq!(bench.start(1), ["record 1 until 2800", "grant 1 to 1"]);
    bench.handle(Event::Left { call: CallId(1) });
    assert_eq!(bench.pods(), ["a 1 ready 0"]);
}

#[test]
fn moments_without_end_do_no_harm() {
    let forever = Duration::MAX;
    let limits = Limits {
        ready_timeout: forever,
        claim_timeout: forever,
        patience: forever,
        min_backoff: forever,
        max_backoff: forever,
        max_pods: Some(usize::MAX),
        max_waiting: usize::MAX,
    };
    let mut bench = Bench::new(limits);
    bench.respecify(|spec| {
        spec.time_to_live = Duration::MAX;
        spec.max_pods = usize::MAX;
        spec.max_queue = usize::MAX;
    });
    bench.arrive_until(1, A, Some(Duration::MAX));
    bench.arrive(2, A);
    bench.taken(1);
    bench.see(bench.observed(A, "u1", 1));
    bench.connected(1);
    bench.arrive(3, B);
    bench.not_launched(2, "no", false);
    bench.now = Duration::MAX - Duration::from_nanos(1);
    bench.scan();
    bench.leave(1);
    bench.leave(2);
    bench.gone("u1");
}
