//! One call's process, as a guard: dropping it kills whatever of the call is still alive.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, waitid};

use crate::calls::{COOKIE, CallNumber, Calls};
use crate::cancellation::Cancellation;
use crate::folder::PrivateFolder;
use crate::streams::ChildEnds;
use crate::{Environment, Exit, Folder, Program, RunError, kill};

/// How often to ask for the exit on kernels without pidfd.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A started call. Its root stays unreaped, and so keeps its process number, until [`Call::finish`].
#[derive(Debug)]
pub(crate) struct Call {
    calls: Arc<Calls>,
    number: CallNumber,
    /// Unreaped, so that its number is still its own.
    root: Option<Pid>,
    cancellation: Cancellation,
    folder: Option<PrivateFolder>,
}

impl Call {
    /// Makes the private folder and starts the program with these ends of its pipes.
    pub(crate) fn start(
        calls: &Arc<Calls>,
        program: &Program,
        ends: ChildEnds,
        cancellation: &Cancellation,
    ) -> Result<Self, RunError> {
        let number = calls.next_number();
        let cookie = calls.cookie(number);
        let cancellation = cancellation.clone();
        let mut call = Self { calls: calls.clone(), number, root: None, cancellation, folder: None };
        if let Some(place) = program.folder.scratch() {
            let made = calls.private_folder(place, &cookie);
            call.folder =
                Some(made.map_err(|source| RunError::Folder { path: place.place().to_owned(), source })?);
        }
        let folder = call.folder.as_ref().map(PrivateFolder::path);
        let mut command = command(program, folder.as_deref(), &cookie);
        command.stdin(ends.stdin).stdout(ends.stdout).stderr(ends.stderr);
        // Dropping std's handle of a child neither kills nor reaps it: both are done here, by number.
        let root = calls
            .register(number, || {
                let pid = Pid::from_child(&command.spawn()?);
                first_to_be_killed(pid);
                Ok(pid)
            })
            .map_err(|source| RunError::start(&program.path, source))?;
        call.root = Some(root);
        call.cancellation.started(root);
        Ok(call)
    }

    /// Something that tells when the root has exited.
    pub(crate) fn watch(&self) -> ExitWatch {
        let pidfd = self.root.and_then(|root| {
            pidfd_open(root, PidfdFlags::empty())
                .inspect_err(|error| tracing::debug!(%error, "no pidfd: asking again and again for the exit"))
                .ok()
        });
        ExitWatch { root: self.root, pidfd }
    }

    /// Ends a call whose root has exited: kills the rest of its group, reaps the root.
    pub(crate) fn finish(mut self) -> io::Result<Exit> {
        let root = self.root.ok_or(io::ErrorKind::NotFound)?;
        self.cancellation.ended();
        kill::group(root);
        let status = waitid(WaitId::Pid(root), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
        let exit = status.as_ref().and_then(exit).ok_or_else(|| io::Error::other("no exit status"))?;
        self.calls.end(self.number, self.root.take(), self.folder.take());
        Ok(exit)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.cancellation.ended();
        if let Some(root) = self.root {
            kill::call(root);
        }
        if self.root.is_some() || self.folder.is_some() {
            self.calls.end(self.number, self.root.take(), self.folder.take());
        }
    }
}

fn exit(status: &WaitIdStatus) -> Option<Exit> {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Nothing is set here that keeps the standard library from its fast way of starting a process.
fn command(program: &Program, folder: Option<&Path>, cookie: &str) -> Command {
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
    root: Option<Pid>,
    pidfd: Option<OwnedFd>,
}

impl ExitWatch {
    /// What to wait for.
    pub(crate) fn interest(&self) -> Option<PollFd<'_>> {
        self.pidfd.as_ref().map(|pidfd| PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN))
    }

    /// How long to wait at most before looking again, where nothing can be waited for.
    pub(crate) fn look_again(&self) -> Option<Duration> {
        self.pidfd.is_none().then_some(LOOK_AGAIN)
    }

    /// Whether the root has exited.
    pub(crate) fn has_exited(&self) -> io::Result<bool> {
        let Some(root) = self.root else { return Ok(true) };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(root), look)?.is_some())
    }

    #[cfg(test)]
    pub(crate) fn forget_pidfd(&mut self) {
        self.pidfd = None;
    }
}

/// Where memory runs out, the kernel takes a function and not the service, whichever is larger. Making a child a
/// better choice is always allowed; where it cannot be done, the kernel chooses by size.
fn first_to_be_killed(pid: Pid) {
    let _ = std::fs::write(format!("/proc/{}/oom_score_adj", pid.as_raw_nonzero()), "1000");
}
