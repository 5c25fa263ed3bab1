use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::turns::{Ticket, Turns};
use super::{AcquireError, FairQueue};

fn queue(running: usize, waiting: usize) -> FairQueue {
    FairQueue::new(NonZeroUsize::new(running).unwrap(), waiting)
}

#[test]
fn a_flood_under_one_key_costs_the_others_one_turn() {
    let mut turns = Turns::new(100);
    let kind = turns.add_kind(1);
    assert!(turns.run(kind));
    for (key, count) in [("flood", 50), ("b", 2), ("c", 1)] {
        for _ in 0..count {
            assert!(!turns.run(kind));
            assert_eq!(turns.join(kind, key, key).1, None);
        }
    }
    let order: Vec<_> = (0..6).map(|_| turns.end(kind).unwrap()).collect();
    assert_eq!(order, ["flood", "b", "c", "flood", "b", "flood"]);
}

#[test]
fn when_places_run_out_the_longest_line_loses_its_newest() {
    let mut turns = Turns::new(10);
    let (one, other) = (turns.add_kind(1), turns.add_kind(1));
    assert!(turns.run(one) && turns.run(other));
    for number in 0..10 {
        assert_eq!(turns.join(one, "flood", ("flood", number)).1, None);
    }
    assert_eq!(turns.join(one, "flood", ("flood", 10)).1, Some(("flood", 10)));
    // Shorter lines get places, also those of other work, until all are equally long.
    assert_eq!(turns.join(one, "b", ("b", 0)).1, Some(("flood", 9)));
    assert_eq!(turns.join(other, "flood", ("other", 0)).1, Some(("flood", 8)));
    for number in 1..3 {
        assert_eq!(turns.join(one, "b", ("b", number)).1, Some(("flood", 9 - 2 * number)));
        assert_eq!(turns.join(other, "flood", ("other", number)).1, Some(("flood", 8 - 2 * number)));
    }
    assert_eq!((turns.waiting(one), turns.waiting(other), turns.all_waiting()), (7, 3, 10));
    assert_eq!(turns.join(one, "b", ("b", 3)).1, Some(("b", 3)), "no line is longer");
    assert_eq!(turns.join(one, "flood", ("flood", 11)).1, Some(("flood", 11)));
    let order: Vec<_> = (0..7).map(|_| turns.end(one).unwrap().1).collect();
    assert_eq!(order, [0, 0, 1, 1, 2, 2, 3], "those that stay are served in order");
    assert!(turns.end(one).is_none() && turns.is_consistent());
}

/// Lines of kind and key.
type Lines = BTreeMap<(usize, u8), VecDeque<Ticket>>;

#[derive(Clone, Debug)]
enum Event {
    Arrive(usize, u8),
    End(usize),
    Leave(prop::sample::Index),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..2_usize, 0..5_u8).prop_map(|(kind, key)| Event::Arrive(kind, key)),
        3 => (0..2_usize).prop_map(Event::End),
        1 => any::<prop::sample::Index>().prop_map(Event::Leave),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a model: the list of those who wait, per line.
    #[test]
    fn bounds_hold_nobody_is_lost_and_lines_are_treated_equally(
        max_running in [1..4_usize, 1..4_usize],
        max_waiting in 0..12_usize,
        events in prop::collection::vec(event(), 0..300),
    ) {
        let mut turns = Turns::new(max_waiting);
        let kinds = max_running.map(|most| turns.add_kind(most));
        let mut running = [0, 0];
        let mut waiting = Lines::new();
        // What waits is known by a number of ours; the ticket that each got.
        let mut tickets = HashMap::new();
        let mut next = 0_u64;
        // How many turns others had since a line's first waiter came to its front.
        let mut passed_over: HashMap<(usize, u8), usize> = HashMap::new();
        for event in events {
            let total: usize = waiting.values().map(VecDeque::len).sum();
            match event {
                Event::Arrive(kind, key) if turns.run(kinds[kind]) => {
                    prop_assert!(running[kind] < max_running[kind], "more than may run: {key}");
                    prop_assert!(waiting.keys().all(|line| line.0 != kind), "overtaken");
                    running[kind] += 1;
                }
                Event::Arrive(kind, key) => {
                    prop_assert_eq!(running[kind], max_running[kind]);
                    next += 1;
                    let (ticket, loser) = turns.join(kinds[kind], &key.to_string(), next);
                    prop_assert!(tickets.insert(next, ticket).is_none());
                    waiting.entry((kind, key)).or_default().push_back(next);
                    passed_over.entry((kind, key)).or_insert(0);
                    prop_assert_eq!(loser.is_some(), total == max_waiting);
                    if let Some(loser) = loser {
                        let longest = waiting.values().map(VecDeque::len).max().unwrap();
                        let line = waiting.values_mut().find(|line| line.back() == Some(&loser));
                        let line = line.expect("only the newest of a line may lose its place");
                        prop_assert_eq!(line.len(), longest, "a shorter line lost a call");
                        line.pop_back();
                    }
                }
                Event::End(kind) if running[kind] == 0 => {}
                Event::End(kind) => match turns.end(kinds[kind]) {
                    None => {
                        prop_assert!(waiting.keys().all(|line| line.0 != kind), "a waiter is forgotten");
                        running[kind] -= 1;
                    }
                    Some(number) => {
                        let line = waiting.iter().find(|(_, queue)| queue.front() == Some(&number));
                        let line = *line.expect("only a line's first waiter may run").0;
                        prop_assert_eq!(line.0, kind);
                        waiting.get_mut(&line).unwrap().pop_front();
                        for (_, count) in passed_over.iter_mut().filter(|(line, _)| line.0 == kind) {
                            *count += 1;
                        }
                        passed_over.insert(line, 0);
                    }
                },
                Event::Leave(index) if total > 0 => {
                    let all: Vec<_> = waiting
                        .iter()
                        .flat_map(|(&line, queue)| queue.iter().map(move |&number| (line, number)))
                        .collect();
                    let &((kind, key), number) = index.get(&all);
                    let ticket = tickets[&number];
                    prop_assert_eq!(turns.leave(kinds[kind], &key.to_string(), ticket), Some(number));
                    prop_assert_eq!(turns.leave(kinds[kind], &key.to_string(), ticket), None);
                    waiting.get_mut(&(kind, key)).unwrap().retain(|&other| other != number);
                }
                Event::Leave(_) => {}
            }
            waiting.retain(|_, queue| !queue.is_empty());
            passed_over.retain(|line, _| waiting.contains_key(line));
            prop_assert!(passed_over.values().all(|&count| count <= 5), "a line is starved");
            for (kind, &running) in kinds.into_iter().zip(&running) {
                prop_assert_eq!(turns.running(kind), running);
            }
            prop_assert_eq!(turns.all_waiting(), waiting.values().map(VecDeque::len).sum::<usize>());
            prop_assert!(turns.all_waiting() <= max_waiting && turns.is_consistent());
        }
    }
}

#[tokio::test]
async fn a_waiting_call_of_the_longest_line_is_told_that_it_lost_its_place() {
    let queue = queue(1, 2);
    let permit = queue.acquire("a", None).await.unwrap();
    let (mut first, mut second) = (Box::pin(queue.acquire("a", None)), Box::pin(queue.acquire("a", None)));
    assert!(futures_poll(first.as_mut()).is_none() && futures_poll(second.as_mut()).is_none());
    let mut third = Box::pin(queue.acquire("b", None));
    assert!(futures_poll(third.as_mut()).is_none());
    assert_eq!(second.await.unwrap_err(), AcquireError::Full { running: 1, waiting: 2 });
    assert_eq!(queue.waiting(), 2);
    drop(permit);
    drop(first.await.unwrap());
    drop(third.await.unwrap());
    assert_eq!((queue.running(), queue.waiting()), (0, 0));
}

#[tokio::test]
async fn kinds_of_work_run_apart_and_wait_together() {
    let processes = queue(1, 1);
    let cores = processes.beside(NonZeroUsize::new(2).unwrap());
    let running = [
        processes.acquire("a", None).await.unwrap(),
        cores.acquire("a", None).await.unwrap(),
        cores.acquire("b", None).await.unwrap(),
    ];
    assert_eq!((processes.running(), cores.running()), (1, 2));
    let mut waits = Box::pin(cores.acquire("a", None));
    assert!(futures_poll(waits.as_mut()).is_none());
    assert_eq!((processes.waiting(), cores.waiting()), (0, 1));
    let refused = processes.acquire("a", None).await.unwrap_err();
    assert_eq!(refused, AcquireError::Full { running: 1, waiting: 1 });
    let [process, core, _other] = running;
    drop(process);
    assert!(futures_poll(waits.as_mut()).is_none(), "the place of a process is no core");
    drop(core);
    drop(waits.await.unwrap());
}

#[tokio::test]
async fn full_is_refused_at_once() {
    let queue = queue(1, 1);
    let permit = queue.acquire("a", None).await.unwrap();
    let waiter = tokio::spawn({
        let queue = queue.clone();
        async move { queue.acquire("a", None).await.map(drop) }
    });
    tokio::task::yield_now().await;
    let refused = queue.acquire("b", None).await.unwrap_err();
    assert_eq!(refused, AcquireError::Full { running: 1, waiting: 1 });
    drop(permit);
    waiter.await.unwrap().unwrap();
    assert_eq!((queue.running(), queue.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait_and_frees_the_place() {
    let queue = queue(1, 1);
    let permit = queue.acquire("a", None).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(3);
    let error = queue.acquire("a", Some(deadline)).await.unwrap_err();
    assert_eq!(error, AcquireError::TimedOut { waited: Duration::from_secs(3), ahead: 1 });
    assert_eq!((queue.running(), queue.waiting()), (1, 0));
    drop(permit);
    assert_eq!(queue.running(), 0);
    // A free place is given even to one who has no time to wait.
    drop(queue.acquire("a", Some(Instant::now())).await.unwrap());
}

#[tokio::test]
async fn one_who_leaves_after_being_granted_passes_the_turn_on() {
    let queue = queue(1, 10);
    let permit = queue.acquire("a", None).await.unwrap();
    let mut leaving = Box::pin(queue.acquire("a", None));
    let mut staying = Box::pin(queue.acquire("b", None));
    assert!(futures_poll(leaving.as_mut()).is_none());
    assert!(futures_poll(staying.as_mut()).is_none());
    assert_eq!(queue.waiting(), 2);
    drop(permit); // grants to the one who leaves, who has not looked yet
    assert_eq!((queue.running(), queue.waiting()), (1, 1));
    drop(leaving);
    assert_eq!((queue.running(), queue.waiting()), (1, 0));
    drop(staying.await.unwrap());
    assert_eq!(queue.running(), 0);
}

fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_under_cancellation() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let queue = queue(3, 10_000);
    let at_once = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..2000_u64)
        .map(|number| {
            let (queue, at_once) = (queue.clone(), at_once.clone());
            tokio::spawn(async move {
                let key = format!("{}", number % 7);
                let wait = queue.acquire(&key, None);
                let permit = if number % 3 == 0 {
                    tokio::time::timeout(Duration::from_micros(number % 1500), wait).await.ok()
                } else {
                    Some(wait.await)
                };
                let Some(permit) = permit else { return false };
                assert!(at_once.fetch_add(1, Ordering::SeqCst) < 3);
                tokio::task::yield_now().await;
                at_once.fetch_sub(1, Ordering::SeqCst);
                drop(permit.unwrap());
                number % 3 != 0
            })
        })
        .collect();
    let mut served = 0;
    for task in tasks {
        let task = tokio::time::timeout(Duration::from_secs(20), task);
        served += usize::from(task.await.expect("a waiter is stuck").unwrap());
    }
    assert_eq!(served, 2000 - 667);
    assert_eq!((queue.running(), queue.waiting()), (0, 0));
}
