//! What helper programs answered, kept for a while: each answer costs a process.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::time::Instant;

use super::error::HelperProblem;
use super::helper::Helper;
use super::login::Login;

/// The tokens that helpers give live for many minutes. A shorter-lived one is refused by the registry,
/// forgotten and asked for again.
const KEPT: Duration = Duration::from_mins(1);
/// Long enough for all who wait for the same answer, so that they do not all wait for the next failure.
const FAILURE_KEPT: Duration = Duration::from_secs(2);
/// Registries are named by callers: their number must not be what is remembered, or run.
const MOST_KEPT: usize = 256;
const MOST_RUNNING: usize = 4;

type Answer = Result<Option<Login>, HelperProblem>;
/// Locked while the program runs: whoever asks the same waits for that answer.
type Slot = Arc<AsyncMutex<Option<(Instant, Answer)>>>;

#[derive(Debug)]
pub(super) struct Answers {
    slots: Mutex<HashMap<(Helper, String), Slot>>,
    running: Semaphore,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self { slots: Mutex::default(), running: Semaphore::new(MOST_RUNNING) }
    }

    pub(super) async fn get(&self, helper: &Helper, server: &str, folders: &OsStr) -> Answer {
        let slot = self.slot(helper, server);
        let mut slot = slot.lock().await;
        if let Some((until, answer)) = slot.as_ref()
            && Instant::now() < *until
        {
            return answer.clone();
        }
        // An error would mean that the semaphore is closed, which it never is.
        let _permit = self.running.acquire().await;
        let answer = helper.get(server, folders).await;
        let kept = if answer.is_ok() { KEPT } else { FAILURE_KEPT };
        *slot = Some((Instant::now() + kept, answer.clone()));
        answer
    }

    pub(super) fn forget(&self) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn slot(&self, helper: &Helper, server: &str) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (helper.clone(), server.to_owned());
        if slots.len() >= MOST_KEPT && !slots.contains_key(&key) {
            // Those that somebody uses are kept by their users.
            slots.clear();
        }
        slots.entry(key).or_default().clone()
    }
}
