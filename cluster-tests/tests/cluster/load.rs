//! Callers that call all the time, each time for something else, and tell what they lost and what was another's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::task::JoinHandle;
use wire::client::Client;

use crate::installation::within;

/// Callers, each with one connection that it keeps, as Porch does.
const CALLERS: usize = 4;
/// What the name of a call's resource begins with.
const NAME: &str = "call-";
/// What gets that name in the input.
const UNNAMED: &str = "name: one";

/// Calls made all the time.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    callers: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    /// Begins to call; `connect` gives each caller its connection. The resource called `one` in the input is
    /// called otherwise in each call, and so in its answer.
    pub(crate) fn begin(connect: impl Fn() -> Client, image: &str, input: &Bytes) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let begun = Instant::now();
        let caller = |number: usize| {
            let (client, image, input) = (connect(), image.to_owned(), input.clone());
            let (stop, answered) = (stop.clone(), answered.clone());
            tokio::spawn(async move {
                let mut lost = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let name = next_name();
                    let input = renamed(&input, &name);
                    match client.evaluate(&image, input, within(30)).await {
                        Ok(answer) if names_in(&answer.resource_list) == [name.as_str()] => {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(answer) => {
                            let text = String::from_utf8_lossy(&answer.resource_list);
                            lost.push(format!("caller {number}, not the answer to {name}: {text}"));
                        }
                        Err(status) => {
                            lost.push(format!("caller {number} at {:?}: {status}", begun.elapsed()));
                        }
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                lost
            })
        };
        let callers = (0..CALLERS).map(caller).collect();
        Self { stop, answered, callers }
    }

    /// How many calls were answered so far.
    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits until so many more calls were answered.
    pub(crate) async fn goes_on(&self, calls: usize) {
        let (begun, wanted) = (Instant::now(), self.answered() + calls);
        while self.answered() < wanted {
            assert!(begun.elapsed() < Duration::from_mins(1), "only {} of {wanted} answers", self.answered());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends the calls; fails unless every one of them had its own answer.
    pub(crate) async fn lost_nothing(self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut lost = Vec::new();
        for caller in self.callers {
            lost.extend(caller.await.unwrap());
        }
        let answered = self.answered.load(Ordering::Relaxed);
        assert!(lost.is_empty(), "{} of {} calls lost: {lost:#?}", lost.len(), answered + lost.len());
    }
}

/// What no other call's resource is called.
fn next_name() -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    format!("{NAME}{}", CALLS.fetch_add(1, Ordering::Relaxed))
}

fn renamed(input: &Bytes, name: &str) -> Bytes {
    let text = String::from_utf8_lossy(input);
    assert!(text.contains(UNNAMED), "nothing to tell calls apart by in {text}");
    text.replacen(UNNAMED, &format!("name: {name}"), 1).into()
}

/// The names of calls in an answer.
fn names_in(answer: &Bytes) -> Vec<&str> {
    let text = std::str::from_utf8(answer).unwrap_or_default();
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '-');
    words.filter(|word| word.starts_with(NAME)).collect()
}

#[test]
fn an_answer_to_another_call_is_noticed() {
    let input = cluster_tests::order(&[]);
    let (one, other) = (renamed(&input, "call-1"), renamed(&input, "call-12"));
    assert_eq!(names_in(&one), ["call-1"]);
    assert_eq!(names_in(&other), ["call-12"]);
    assert_eq!(names_in(&[one, other].concat().into()), ["call-1", "call-12"]);
    assert!(names_in(&input).is_empty() && names_in(&Bytes::from_static(b"\xff")).is_empty());
}
