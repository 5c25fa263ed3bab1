//! Callers that call all the time, and tell what they lost.

use std::{
    error::Error as _,
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

/// Calls made all the time.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    callers: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    /// Begins to call; `connect` gives each caller its connection.
    pub(crate) fn begin(connect: impl Fn() -> Client, image: &str, input: &Bytes) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let begun = Instant::now();
        let caller = |number: usize| {
            let (client, image, input) = (connect(), image.to_owned(), input.clone());
            let (stop, answered) = (stop.clone(), answered.clone());
            tokio::spawn(async move {
                let mut lost = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let call = || client.evaluate(&image, input.clone(), within(30));
                    let answer = match call().await {
                        Err(status) if never_left(&status) => call().await,
                        answer => answer,
                    };
                    match answer {
                        Ok(_) => _ = answered.fetch_add(1, Ordering::Relaxed),
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

    /// Ends the calls; fails unless every one of them was answered.
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

/// Whether a request met a connection that was just being closed and was never
/// sent. Porch's gRPC library sends such a request again without a word; ours
/// hands it back.
fn never_left(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled) {
            return true;
        }
        cause = error.source();
    }
    false
}
