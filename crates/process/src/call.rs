//! One call's process, as a guard: dropping it kills whatever of the call is still alive.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, waitid};
use tokio::net::unix::pipe::Receiver;

use crate::calls::{COOKIE, CallNumber, Calls};
use crate::streams::ChildEnds;
use crate::{Environment, Exit, Folder, Program, RunError, kill, scratch};

/// A started call. Its root stays unreaped, and so keeps its process number, until [`Call::finish`].
#[derive(Debug)]
pub(crate) struct Call {
    calls: Arc<Calls>,
    number: CallNumber,
    root: Option<Pid>,
    reaped: bool,
    folder: Option<PathBuf>,
}

impl Call {
    /// Makes the private folder and starts the program with these ends of its pipes.
    pub(crate) fn start(calls: &Arc<Calls>, program: &Program, ends: ChildEnds) -> Result<Self, RunError> {
        let number = calls.next_number();
        let cookie = calls.cookie(number);
        let mut call = Self { calls: calls.clone(), number, root: None, reaped: false, folder: None };
        if let Some(place) = program.folder.scratch() {
            let path = place.root().join(&cookie);
            scratch::make_private(&path).map_err(|source| RunError::Folder { path: path.clone(), source })?;
            call.folder = Some(path);
        }
        let mut command = command(program, call.folder.as_ref(), &cookie);
        command.stdin(ends.stdin).stdout(ends.stdout).stderr(ends.stderr);
        // Dropping std's handle of a child neither kills nor reaps it: both are done here, by number.
        let root = calls
            .register(number, || command.spawn().map(|child| Pid::from_child(&child)))
            .map_err(|source| RunError::Start { program: program.path.clone(), source })?;
        call.root = Some(root);
        Ok(call)
    }

    /// Something that tells when the root has exited.
    pub(crate) fn watch(&self) -> io::Result<ExitWatch> {
        let root = self.root.ok_or(io::ErrorKind::NotFound)?;
        let pidfd = match pidfd_open(root, PidfdFlags::empty()) {
            Ok(pidfd) => Some(Receiver::from_owned_fd_unchecked(pidfd)?),
            Err(error) => {
                tracing::debug!(%error, "no pidfd: following the function by SIGCHLD");
                None
            }
        };
        Ok(ExitWatch { calls: self.calls.clone(), root, pidfd })
    }

    /// Ends a call whose root has exited: kills the rest of its group, reaps the root.
    pub(crate) fn finish(mut self) -> io::Result<Exit> {
        let root = self.root.ok_or(io::ErrorKind::NotFound)?;
        kill::group(root);
        let status = waitid(WaitId::Pid(root), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
        let exit = status.as_ref().and_then(exit).ok_or_else(|| io::Error::other("no exit status"))?;
        self.reaped = true;
        Ok(exit)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(root) = self.root
            && !self.reaped
        {
            kill::call(root);
        }
        self.calls.end(self.number, self.root, self.folder.take());
    }
}

fn exit(status: &WaitIdStatus) -> Option<Exit> {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Nothing is set here that keeps the standard library from its fast way of starting a process.
fn command(program: &Program, folder: Option<&PathBuf>, cookie: &str) -> Command {
    let mut command = Command::new(&program.path);
    command.args(&program.arguments).process_group(0);
    if let Environment::Clean(variables) = &program.environment {
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    }
    if let Some(folder) = folder {
        command.env("TMPDIR", folder);
        if matches!(program.folder, Folder::Working(_)) {
            command.env("HOME", folder).current_dir(folder);
        }
    }
    command.env(COOKIE, cookie);
    command
}

/// Tells when a root has exited, without reaping it.
#[derive(Debug)]
pub(crate) struct ExitWatch {
    calls: Arc<Calls>,
    root: Pid,
    /// Not a pipe, but the runtime's one safe way to wait until any descriptor is readable; it is never read.
    pidfd: Option<Receiver>,
}

impl ExitWatch {
    /// Waits for the exit; may be dropped and called again.
    pub(crate) async fn exited(&self) -> io::Result<()> {
        if let Some(pidfd) = &self.pidfd {
            return pidfd.readable().await;
        }
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            let changed = self.calls.child_changed.notified();
            tokio::pin!(changed);
            // Listening before looking: a change in between is not missed.
            changed.as_mut().enable();
            if waitid(WaitId::Pid(self.root), look)?.is_some() {
                return Ok(());
            }
            changed.await;
        }
    }

    #[cfg(test)]
    pub(crate) fn forget_pidfd(&mut self) {
        self.pidfd = None;
    }
}
