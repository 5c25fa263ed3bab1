use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::{AcquireError, Arrival, FairQueue, Ticket, Turns};

fn queue(running: usize, waiting: usize) -> FairQueue {
    FairQueue::new(NonZeroUsize::new(running).unwrap(), waiting)
}

#[test]
fn a_flood_under_one_key_costs_the_others_one_turn() {
    let mut turns = Turns::new(1, 100);
    assert_eq!(turns.arrive("flood"), Arrival::Runs);
    let mut names = HashMap::new();
    for (key, count) in [("flood", 50), ("b", 2), ("c", 1)] {
        for _ in 0..count {
            let Arrival::Waits(ticket) = turns.arrive(key) else { panic!("must wait") };
            names.insert(ticket, key);
        }
    }
    let order: Vec<_> = (0..6).map(|_| names[&turns.end().unwrap()]).collect();
    assert_eq!(order, ["flood", "b", "c", "flood", "b", "flood"]);
}

#[derive(Clone, Debug)]
enum Event {
    Arrive(u8),
    End,
    Leave(prop::sample::Index),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..5_u8).prop_map(Event::Arrive),
        3 => Just(Event::End),
        1 => any::<prop::sample::Index>().prop_map(Event::Leave),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a model: the list of those who wait, per key.
    #[test]
    fn bounds_hold_nobody_is_lost_and_each_key_is_in_order(
        max_running in 1..4_usize,
        max_waiting in 0..8_usize,
        events in prop::collection::vec(event(), 0..300),
    ) {
        let mut turns = Turns::new(max_running, max_waiting);
        let mut running = 0;
        let mut waiting: HashMap<u8, VecDeque<Ticket>> = HashMap::new();
        // How many turns others had since a key's first waiter came to the front of its queue.
        let mut passed_over: HashMap<u8, usize> = HashMap::new();
        for event in events {
            let total: usize = waiting.values().map(VecDeque::len).sum();
            match event {
                Event::Arrive(key) => match turns.arrive(&key.to_string()) {
                    Arrival::Runs => {
                        prop_assert!(running < max_running && total == 0);
                        running += 1;
                    }
                    Arrival::Waits(ticket) => {
                        prop_assert!(running == max_running && total < max_waiting);
                        waiting.entry(key).or_default().push_back(ticket);
                        passed_over.entry(key).or_insert(0);
                    }
                    Arrival::Refused => prop_assert!(running == max_running && total == max_waiting),
                },
                Event::End if running == 0 => {}
                Event::End => match turns.end() {
                    None => {
                        prop_assert_eq!(total, 0, "a waiter is forgotten");
                        running -= 1;
                    }
                    Some(ticket) => {
                        let key = waiting.iter().find(|(_, queue)| queue.front() == Some(&ticket));
                        let key = *key.expect("only a key's first waiter may run").0;
                        waiting.get_mut(&key).unwrap().pop_front();
                        for count in passed_over.values_mut() {
                            *count += 1;
                        }
                        passed_over.insert(key, 0);
                    }
                },
                Event::Leave(index) if total > 0 => {
                    let all: Vec<_> = waiting
                        .iter()
                        .flat_map(|(&key, queue)| queue.iter().map(move |&ticket| (key, ticket)))
                        .collect();
                    let &(key, ticket) = index.get(&all);
                    turns.leave(&key.to_string(), ticket);
                    turns.leave(&key.to_string(), ticket); // twice does no harm
                    waiting.get_mut(&key).unwrap().retain(|&other| other != ticket);
                }
                Event::Leave(_) => {}
            }
            waiting.retain(|_, queue| !queue.is_empty());
            passed_over.retain(|key, _| waiting.contains_key(key));
            prop_assert!(passed_over.values().all(|&count| count <= 5), "a key is starved");
            prop_assert_eq!(turns.running, running);
            prop_assert_eq!(turns.waiting, waiting.values().map(VecDeque::len).sum::<usize>());
            prop_assert!(turns.running <= max_running && turns.waiting <= max_waiting);
            prop_assert_eq!(turns.queues.len(), turns.circle.len());
        }
    }
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
