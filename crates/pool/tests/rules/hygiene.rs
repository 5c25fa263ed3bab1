//! Late reports, and what is forgotten.

use pool::{CallId, Event, PodId};

use crate::support::{A, B, Bench, limits, seconds};

#[test]
fn reports_about_what_is_not_known_do_no_harm() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    for pod in [0, 7, u64::MAX] {
        let pod = PodId(pod);
        let reports = [
            Event::Taken { pod },
            Event::NotLaunched { pod, failure: "no", lasting: true },
            Event::Connected { pod },
            Event::Broken { pod, failure: "no", lasting: true },
            Event::Trouble { pod, failure: "no" },
            Event::Gone { uid: "nobody".into() },
            Event::Left { call: CallId(99) },
        ];
        for report in reports {
            assert_eq!(bench.handle(report), [""; 0]);
        }
    }
    assert_eq!(bench.start(1), ["record 1 until 2800", "grant 1 to 1"]);
}

#[test]
fn reports_about_a_pod_that_is_no_more_do_no_harm() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.start(1);
    bench.gone("u1");
    assert_eq!(bench.connected(1), [""; 0]);
    assert_eq!(bench.trouble(1, "no"), [""; 0]);
    assert_eq!(bench.broken(1, "no", true), [""; 0]);
    assert_eq!(bench.gone("u1"), [""; 0]);
    assert_eq!(bench.pods(), [""; 0]);
}

#[test]
fn a_pod_whose_launch_was_given_up_is_deleted() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.not_launched(1, "timed out", true);
    assert_eq!(bench.launched(1), ["delete 1 u1: Surplus"]);
}

#[test]
fn a_pod_whose_launch_was_given_up_stays_if_it_is_in_use() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.not_launched(1, "timed out", false);
    bench.see(bench.observed(A, "u1", 1));
    bench.connected(2);
    assert_eq!(bench.launched(1), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 ready 1"]);
}

#[test]
fn reports_that_make_no_sense_at_the_time_do_no_harm() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    assert_eq!(bench.connected(1), [""; 0], "it is not even made");
    bench.launched(1);
    assert_eq!(bench.taken(1), [""; 0]);
    assert_eq!(bench.not_launched(1, "no", true), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 starting 0"]);
    assert_eq!(bench.broken(1, "no", false), ["delete 1 u1: Failed"]);
    assert_eq!(bench.connected(1), [""; 0]);
    assert_eq!(bench.taken(1), [""; 0]);
    assert_eq!(bench.launched(1), [""; 0]);
    assert_eq!(bench.pods(), ["a 1 ending 0"]);
}

#[test]
fn a_pod_that_breaks_before_it_is_made_is_a_failed_launch() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    assert_eq!(bench.broken(1, "no", true), ["refuse 1: no"]);
    assert_eq!(bench.pods(), [""; 0]);
}

#[test]
fn time_that_goes_back_stands_still() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.after(seconds(59));
    bench.now -= seconds(59);
    bench.after(seconds(0));
    bench.now += seconds(60);
    assert_eq!(bench.handle(Event::Tick), ["time 1 out"]);
}

#[test]
fn many_names_leave_nothing_behind() {
    let mut bench = Bench::new(limits());
    for call in 0..100_000 {
        bench.arrive(call, &format!("example.com/f{call}:v1"));
        let pod = call + 1;
        match call % 3 {
            0 => drop(bench.not_launched(pod, "no such image", true)),
            1 => {
                bench.launched(pod);
                bench.leave(call);
                bench.gone(&format!("u{pod}"));
            }
            _ => {
                bench.start(pod);
                bench.gone(&format!("u{pod}"));
                bench.leave(call);
            }
        }
    }
    bench.after(seconds(1000));
    bench.scan();
    assert_eq!(bench.pods(), [""; 0]);
    assert_eq!(bench.pool.wake_at(), None);
    let left = format!("{:?}", bench.pool);
    assert!(left.len() < 2000, "{left}");
}

#[test]
fn a_snapshot_tells_everything_about_a_pod() {
    let mut bench = Bench::new(limits());
    bench.arrive(1, A);
    bench.arrive(2, B);
    bench.start(1);
    bench.launched(2);
    bench.trouble(2, "cannot pull");
    let snapshot = bench.pool.snapshot();
    assert_eq!(snapshot.waiting, 1);
    let [a, b] = &snapshot.pods[..] else { panic!("two pods") };
    assert_eq!((&*a.function, a.slot, a.phase, a.calls, a.current), (A, 1, "ready", 1, true));
    assert_eq!((a.uid.as_deref(), a.created, a.last_used), (Some("u1"), bench.now, Some(bench.now)));
    assert_eq!((a.keep_until, a.trouble), (Some(bench.now + seconds(1800)), None));
    assert_eq!((&*b.function, b.phase, b.calls, b.trouble), (B, "starting", 0, Some("cannot pull")));
    assert_eq!((b.keep_until, b.last_used), (None, None));
}
