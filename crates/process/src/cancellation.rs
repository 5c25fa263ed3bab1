//! Whether anybody still waits for a call, shared by the caller and the call's thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use crate::kill;

/// Cancels a call, from whichever thread, and kills its processes if it has any by then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancellation {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    /// An unreaped child, so its number is still its own.
    root: Option<Pid>,
}

impl Cancellation {
    /// The call's root, from now on killed by a cancellation; at once if that was before.
    pub(crate) fn started(&self, root: Pid) {
        let mut state = self.state();
        state.root = Some(root);
        if state.cancelled {
            kill::call(root);
        }
    }

    /// The root is going to be reaped: its number means nothing any more.
    pub(crate) fn ended(&self) {
        self.state().root = None;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    /// Something that cancels when it is dropped; to no effect once the call has ended.
    pub(crate) fn guard(self) -> Guard {
        Guard { cancellation: self }
    }

    fn cancel(&self) {
        let mut state = self.state();
        state.cancelled = true;
        if let Some(root) = state.root {
            kill::call(root);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels a call when dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    cancellation: Cancellation,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}
