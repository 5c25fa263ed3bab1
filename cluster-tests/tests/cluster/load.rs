//! Callers that call all the time, each time for something else, and tell what they lost and what was another's.

use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::task::JoinHandle;
use tonic::Status;
use wire::client::Client;

use crate::installation::within;

/// Callers, each with one connection that it keeps, as Porch does.
const CALLERS: usize = 4;
/// Connections that may be closed under a request without a word. A server that ends tells its clients, but
/// now and then one of thousands of requests meets the very end of its connection; see [`was_cut_off`].
const MOST_CUT_OFF: usize = 2;
/// What the name of a call's resource begins with.
const NAME: &str = "call-";
/// What gets that name in the input.
const UNNAMED: &str = "name: one";

/// Calls made all the time.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    cut_off: Arc<AtomicUsize>,
    callers: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    /// Begins to call; `connect` gives each caller its connection. The resource called `one` in the input is
    /// called otherwise in each call, and so in its answer.
    pub(crate) fn begin(connect: impl Fn() -> Client, image: &str, input: &Bytes) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let cut_off = Arc::<AtomicUsize>::default();
        let begun = Instant::now();
        let caller = |number: usize| {
            let (client, image, input) = (connect(), image.to_owned(), input.clone());
            let (stop, answered, cut_off) = (stop.clone(), answered.clone(), cut_off.clone());
            tokio::spawn(async move {
                let mut lost = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let name = next_name();
                    let input = renamed(&input, &name);
                    let call = || client.evaluate(&image, input.clone(), within(30));
                    let answer = match call().await {
                        Err(status) if never_left(&status) => call().await,
                        Err(status) if was_cut_off(&status) => {
                            cut_off.fetch_add(1, Ordering::Relaxed);
                            call().await
                        }
                        answer => answer,
                    };
                    match answer {
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
        Self { stop, answered, cut_off, callers }
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
        let cut_off = self.cut_off.load(Ordering::Relaxed);
        assert!(cut_off <= MOST_CUT_OFF, "{cut_off} connections were closed under a request");
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

/// Whether a request met a connection that was just being closed and was never
/// sent. Porch's gRPC library sends such a request again without a word; ours
/// hands it back.
fn never_left(status: &Status) -> bool {
    causes(status).any(|error| error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled))
}

/// Whether the connection of a request ended before anything was answered.
fn was_cut_off(status: &Status) -> bool {
    causes(status).any(|error| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |&error| error.source())
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
