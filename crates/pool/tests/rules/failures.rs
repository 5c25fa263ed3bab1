//! Pods that do not come up, and pods that die.

use pool::{Observed, Phase};

use crate::support::{A, Bench, limits, seconds};

#[test]
fn a_lasting_failure_ends_the_wait() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.arrive(2, A);
    let refused = bench.not_launched(1, "no such image", true);
    assert_eq!(refused, ["refuse 1: no such image", "refuse 2: no such image"]);
    assert_eq!(bench.pods(), [""; 0]);
}

#[test]
fn during_the_pause_after_a_lasting_failure_calls_are_refused_at_once() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.not_launched(1, "no such image", true);
    bench.now += seconds(1) / 2;
    assert_eq!(bench.arrive(2, A), ["refuse 2: no such image"]);
    bench.now += seconds(1) / 2;
    assert_eq!(bench.arrive(3, A), ["launch 2 a-1 r1"], "the pause is over");
    bench.not_launched(2, "no such image", true);
    bench.now += seconds(1);
    assert_eq!(bench.arrive(4, A), ["refuse 4: no such image"], "it doubles");
    bench.now += seconds(1);
    assert_eq!(bench.arrive(5, A), ["launch 3 a-1 r1"]);
}

#[test]
fn a_lasting_failure_refuses_nobody_while_another_pod_comes() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 2);
    for call in 1..=4 {
        bench.arrive(call, A);
    }
    assert_eq!(bench.not_launched(2, "quota", true), [""; 0]);
    assert_eq!(bench.arrive(5, A), [""; 0]);
    let started = bench.start(1);
    let grants = ["grant 1 to 1", "grant 2 to 1", "grant 3 to 1"];
    assert_eq!(started[..2], ["record 1 until 2800", "launch 3 a-2 r1"], "one that came up ends the pause");
    assert_eq!(started[2..], grants);
    assert_eq!(bench.not_launched(3, "quota", true), ["grant 4 to 1", "grant 5 to 1"]);
}

#[test]
fn after_a_failure_that_may_pass_the_launch_is_tried_again() {
    let mut bench = Bench::new(limits());
    let begun = bench.now;
    bench.arrive(1, A);
    let mut pod = 1;
    for expected in [1, 3, 7, 15, 31] {
        assert_eq!(bench.not_launched(pod, "server is away", false), [""; 0]);
        pod += 1;
        assert_eq!(bench.sleep(), [format!("launch {pod} a-1 r1")]);
        assert_eq!(bench.now - begun, seconds(expected));
    }
    assert_eq!(bench.start(pod), ["record 6 until 2831", "grant 1 to 6"]);
}

#[test]
fn the_pause_has_a_longest_and_ends_with_a_pod_that_comes_up() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.min_pods = 1);
    bench.want(A, false);
    for pod in 1..20 {
        bench.not_launched(pod, "no", false);
        let before = bench.now;
        bench.sleep();
        assert!(bench.now - before <= seconds(60));
        assert!(pod < 10 || bench.now - before == seconds(60));
    }
    bench.start(20);
    assert_eq!(bench.gone("u20"), ["launch 21 a-1 r1"]);
    bench.not_launched(21, "no", false);
    assert_eq!(bench.pool.wake_at(), Some(bench.now + seconds(1)));
}

#[test]
fn failures_long_ago_are_forgotten() {
    let mut bench = Bench::new(limits());
    for pod in 1..=4 {
        bench.arrive(pod, A);
        bench.not_launched(pod, "no such image", true);
        bench.now += seconds(20);
    }
    bench.now += seconds(60);
    bench.scan();
    bench.arrive(5, A);
    bench.not_launched(5, "no such image", true);
    bench.now += seconds(1);
    assert_eq!(bench.arrive(6, A), ["launch 6 a-1 r1"]);
}

#[test]
fn a_starting_pod_that_breaks_is_deleted() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.launched(1);
    assert_eq!(bench.broken(1, "cannot pull", true), ["delete 1 u1: Failed", "refuse 1: cannot pull"]);
    assert_eq!(bench.broken(1, "cannot pull", true), [""; 0], "once");
    assert_eq!(bench.pods(), ["a 1 ending 0"]);
    assert_eq!(bench.gone("u1"), [""; 0]);
    assert_eq!(bench.pods(), [""; 0]);
}

#[test]
fn a_starting_pod_that_is_seen_failed_may_be_explained_later() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.launched(1);
    let failed = Observed { phase: Phase::Failed, ..bench.observed(A, "u1", 1) };
    assert_eq!(bench.see(failed), ["delete 1 u1: Failed"]);
    assert_eq!(bench.broken(1, "exit code 1", true), ["refuse 1: exit code 1"]);
}

#[test]
fn a_starting_pod_that_vanishes_is_replaced_after_a_pause() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.launched(1);
    bench.trouble(1, "evicted");
    assert_eq!(bench.gone("u1"), [""; 0]);
    assert_eq!(bench.sleep(), ["launch 2 a-1 r1"]);
    bench.launched(2);
    let ending = Observed { phase: Phase::Ending, ..bench.observed(A, "u2", 1) };
    assert_eq!(bench.see(ending), [""; 0]);
    assert_eq!(bench.sleep(), ["launch 3 a-2 r1"], "the slot is not free yet");
}

#[test]
fn a_ready_pod_that_breaks_loses_its_calls_and_is_replaced() {
    let mut bench = busy();
    assert_eq!(bench.broken(1, "connection reset", false), ["lost 1", "delete 1 u1: Failed"]);
    assert_eq!(bench.leave(1), [""; 0], "what was lost may still be reported");
    assert_eq!(bench.leave(2), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 ending 0"]);
    assert_eq!(bench.arrive(3, A), ["launch 2 a-2 r1"], "at once, under another name");
}

#[test]
fn a_ready_pod_that_is_seen_failed_loses_its_calls() {
    let mut bench = busy();
    let failed = Observed { phase: Phase::Failed, ..bench.observed(A, "u1", 1) };
    assert_eq!(bench.see(failed.clone()), ["lost 1", "delete 1 u1: Failed"]);
    assert_eq!(bench.see(failed), [""; 0]);
}

#[test]
fn a_ready_pod_that_is_gone_loses_its_calls() {
    let mut bench = busy();
    assert_eq!(bench.gone("u1"), ["lost 1"]);
    assert_eq!(bench.leave(1), [""; 0]);
    assert_eq!(bench.arrive(3, A), ["launch 2 a-1 r1"]);
}

#[test]
fn a_pod_that_others_delete_ends_its_calls_in_peace() {
    let mut bench = busy();
    let ending = Observed { phase: Phase::Ending, ..bench.observed(A, "u1", 1) };
    assert_eq!(bench.see(ending), [""; 0]);
    assert_eq!(bench.arrive(3, A), ["launch 2 a-2 r1"], "it gets no new ones");
    assert_eq!(bench.pods(), ["a 1 ending 2", "a 2 launching 0"]);
    bench.leave(1);
    assert_eq!(bench.gone("u1"), ["lost 1"]);
    assert_eq!(bench.leave(2), [""; 0]);
}

#[test]
fn an_ending_pod_whose_connection_breaks_loses_its_calls() {
    let mut bench = busy();
    bench.see(Observed { phase: Phase::Ending, ..bench.observed(A, "u1", 1) });
    assert_eq!(bench.broken(1, "reset", false), ["lost 1"]);
    assert_eq!(bench.gone("u1"), [""; 0]);
}

#[test]
fn a_pod_that_is_not_ready_in_time_is_given_up_when_nobody_waits() {
    let mut bench = Bench::new(limits());
    let begun = bench.now;
    bench.arrive(1, A);
    bench.launched(1);
    bench.leave(1);
    assert_eq!(bench.sleep(), ["delete 1 u1: NotReady"]);
    assert_eq!(bench.now - begun, seconds(60));
    assert_eq!(bench.connected(1), [""; 0], "too late");
    assert_eq!(bench.arrive(2, A), [""; 0], "it counts as a failure");
    assert_eq!(bench.sleep(), ["launch 2 a-2 r1"]);
}

#[test]
fn a_pod_that_is_not_ready_in_time_goes_on_while_calls_wait() {
    let mut bench = Bench::new(limits());
    let begun = bench.now;
    bench.arrive_until(1, A, Some(begun + seconds(100)));
    bench.launched(1);
    assert_eq!(bench.after(seconds(90)), [""; 0]);
    assert_eq!(bench.connected(1), ["record 1 until 2890", "grant 1 to 1"]);
}

#[test]
fn a_pod_that_is_late_is_given_up_as_soon_as_nobody_waits() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 2);
    let until = Some(bench.now + seconds(100));
    for call in 1..=3 {
        bench.arrive_until(call, A, until);
    }
    bench.launched(1);
    bench.launched(2);
    assert_eq!(bench.after(seconds(90)), [""; 0]);
    let actions = bench.connected(1);
    assert_eq!(actions[1..4], ["grant 1 to 1", "grant 2 to 1", "grant 3 to 1"]);
    assert_eq!(actions[4..], ["delete 2 u2: NotReady"]);
}

#[test]
fn a_failed_pod_that_is_found_is_deleted() {
    let mut bench = Bench::new(limits());
    let failed = Observed { phase: Phase::Failed, ..bench.observed(A, "x", 1) };
    assert_eq!(bench.see(failed), ["delete 1 x: Failed"]);
    assert_eq!(bench.arrive(1, A), ["launch 2 a-2 r1"]);
}

#[test]
fn a_launch_reported_as_failed_that_made_its_pod_counts() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.see(bench.observed(A, "u1", 1));
    assert_eq!(bench.not_launched(1, "timed out", false), [""; 0]);
    assert_eq!(bench.connected(1), ["record 1 until 2800", "grant 1 to 1"]);
    // And the other way round.
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.not_launched(1, "timed out", false);
    assert_eq!(bench.see(bench.observed(A, "u1", 1)), ["connect 2 u1"]);
    assert_eq!(bench.connected(2), ["record 2 until 2800", "grant 1 to 2"]);
}

/// Calls 1 and 2 are in pod 1.
fn busy() -> Bench {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.arrive(2, A);
    bench.start(1);
    bench
}

#[test]
fn a_pod_in_doubt_gets_no_new_calls_until_it_answers_again() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    assert_eq!(bench.doubted(1), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 doubted 1"]);
    assert_eq!(bench.arrive(2, A), [""; 0], "it counts as one of the pods that may be");
    assert_eq!(bench.connected(1), ["grant 2 to 1"]);
    assert_eq!(bench.pods(), ["a 1 ready 2"]);
}

#[test]
fn while_a_pod_is_in_doubt_another_is_started_for_new_calls() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.max_pods = 2);
    bench.arrive(1, A);
    bench.start(1);
    bench.doubted(1);
    assert_eq!(bench.arrive(2, A), ["launch 2 a-2 r1"]);
    let lost = bench.broken(1, "it died", false);
    assert_eq!(lost, ["lost 1", "delete 1 u1: Failed"]);
    assert_eq!(bench.start(2).last().unwrap(), "grant 2 to 2");
}

#[test]
fn a_pod_in_doubt_that_died_is_replaced_at_once() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    bench.doubted(1);
    bench.arrive(2, A);
    let replaced = bench.broken(1, "it died", false);
    assert_eq!(replaced, ["lost 1", "delete 1 u1: Failed", "launch 2 a-2 r1"], "it was no failed start");
}

#[test]
fn only_a_pod_that_takes_calls_can_be_in_doubt() {
    let mut bench = Bench::new(limits());
    bench.doubted(7);
    bench.arrive(1, A);
    bench.doubted(1);
    bench.launched(1);
    bench.doubted(1);
    assert_eq!(bench.connected(1).last().unwrap(), "grant 1 to 1");
}

#[test]
fn what_kept_a_pod_from_being_made_is_no_trouble_once_it_is_made() {
    let mut bench = Bench::new(limits());
    let until = bench.now + seconds(10);
    bench.arrive_until(1, A, Some(until));
    bench.trouble(1, "server is away");
    bench.launched(1);
    let refused = bench.sleep();
    assert_eq!(refused, ["time 1 out"]);
}

#[test]
fn functions_are_known_by_what_their_pods_are_to_be_while_they_have_none() {
    let mut bench = Bench::new(limits());
    bench.respecify(|spec| spec.min_pods = 1);
    bench.want(A, false);
    assert!(bench.pool.knows(pool::PodId(1)));
    bench.not_launched(1, "server is away", false);
    assert!(!bench.pool.knows(pool::PodId(1)));
    let known: Vec<_> = bench.pool.functions().map(|(function, spec)| (&**function, spec.min_pods)).collect();
    assert_eq!(known, [(A, 1)]);
}
