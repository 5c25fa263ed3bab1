//! The three pipes of a function: feeding one while reading the others.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use bytes::{Buf, Bytes};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::pipe::fcntl_setpipe_size;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::Log;
use crate::log::LogBuffer;

/// The least room offered to a read.
const LEAST_READ: usize = 8 << 10;
/// The most room added to a buffer at once.
const MOST_READ: usize = 4 << 20;
/// What a pipe holds unless told otherwise.
const USUAL_PIPE: usize = 64 << 10;
/// What a pipe can hold at most without privileges, by default.
const LARGEST_PIPE: usize = 1 << 20;

/// The ends that the function gets.
pub(crate) struct ChildEnds {
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

/// The ends kept here, before the function has started.
pub(crate) struct OwnEnds {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Makes the three pipes, for so much input. All ends are close-on-exec; those kept here do not block.
pub(crate) fn pipes(input: usize) -> io::Result<(OwnEnds, ChildEnds)> {
    let (child_stdin, stdin) = io::pipe()?;
    let (stdout, child_stdout) = io::pipe()?;
    let (stderr, child_stderr) = io::pipe()?;
    let own = OwnEnds { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() };
    for end in [&own.stdin, &own.stdout, &own.stderr] {
        ioctl_fionbio(end, true)?;
    }
    if input > USUAL_PIPE {
        // Larger pipes save turns between the two processes. Where the user's share of pipe memory is used
        // up, the usual size serves.
        for end in [&own.stdin, &own.stdout] {
            let _ = fcntl_setpipe_size(end, input.next_power_of_two().min(LARGEST_PIPE));
        }
    }
    let child =
        ChildEnds { stdin: child_stdin.into(), stdout: child_stdout.into(), stderr: child_stderr.into() };
    Ok((own, child))
}

/// Why [`Streams::step`] came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Some bytes were moved, or a stream ended.
    Moved,
    /// Standard output has more bytes than allowed.
    TooLarge,
}

/// The pipes of a running function and what has come through them.
#[derive(Debug)]
pub(crate) struct Streams {
    input: Bytes,
    stdin: Option<Sender>,
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    output: Vec<u8>,
    log: LogBuffer,
    max_output: usize,
    /// Functions mostly write about as much as they read.
    expected_output: usize,
}

impl Streams {
    pub(crate) fn new(own: OwnEnds, input: Bytes, max_output: usize, max_log: usize) -> io::Result<Self> {
        let expected_output = input.len().min(max_output) + LEAST_READ;
        let mut input = input;
        let stdin = feed_at_once(own.stdin, &mut input)?;
        Ok(Self {
            input,
            stdin,
            stdout: Some(Receiver::from_owned_fd_unchecked(own.stdout)?),
            stderr: Some(Receiver::from_owned_fd_unchecked(own.stderr)?),
            output: Vec::new(),
            log: LogBuffer::new(max_log),
            max_output,
            expected_output,
        })
    }

    /// Whether both outputs have come to their end.
    pub(crate) fn at_end(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Gives up what has not been fed yet.
    pub(crate) fn stop_feeding(&mut self) {
        self.stdin = None;
    }

    /// Moves some bytes; waits until there are any. May be dropped and called again. Never ready once all
    /// streams have ended.
    pub(crate) async fn step(&mut self) -> io::Result<Step> {
        // The branches are tried in random order, so that a flood on one stream does not hold up the others.
        tokio::select! {
            ready = ready(self.stdout.as_ref(), Receiver::readable), if self.stdout.is_some() => {
                ready?;
                self.read_output()
            }
            ready = ready(self.stderr.as_ref(), Receiver::readable), if self.stderr.is_some() => {
                ready?;
                self.read_log()?;
                Ok(Step::Moved)
            }
            ready = ready(self.stdin.as_ref(), Sender::writable), if self.stdin.is_some() => {
                ready?;
                self.feed()?;
                Ok(Step::Moved)
            }
            else => std::future::pending().await,
        }
    }

    /// Takes what is in the pipes now, at most what pipes can hold, without waiting for more.
    pub(crate) fn take_rest(&mut self) -> io::Result<Step> {
        let most = self.output.len().saturating_add(LARGEST_PIPE);
        while self.stdout.is_some() && self.output.len() < most {
            let before = self.output.len();
            if self.read_output()? == Step::TooLarge {
                return Ok(Step::TooLarge);
            }
            if self.output.len() == before {
                break;
            }
        }
        let mut taken = 0;
        while self.stderr.is_some() && taken < LARGEST_PIPE {
            match self.read_log()? {
                0 => break,
                more => taken += more,
            }
        }
        Ok(Step::Moved)
    }

    /// What was written. The log has what room the output leaves of the output's limit.
    pub(crate) fn finish(self) -> (Bytes, Log) {
        let room = self.max_output.saturating_sub(self.output.len());
        (self.output.into(), self.log.finish(room))
    }

    /// The log alone, of a call that failed.
    pub(crate) fn into_log(self) -> Log {
        self.log.finish(usize::MAX)
    }

    fn read_output(&mut self) -> io::Result<Step> {
        let least = if self.output.is_empty() { self.expected_output } else { LEAST_READ };
        read(&mut self.stdout, &mut self.output, least)?;
        Ok(if self.output.len() > self.max_output { Step::TooLarge } else { Step::Moved })
    }

    fn read_log(&mut self) -> io::Result<usize> {
        let count = read(&mut self.stderr, self.log.bytes(), LEAST_READ)?;
        self.log.trim();
        Ok(count)
    }

    fn feed(&mut self) -> io::Result<()> {
        let Some(stdin) = &self.stdin else { return Ok(()) };
        match stdin.try_write(&self.input) {
            Ok(count) => self.input.advance(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            // A function need not read its input.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.input.clear(),
            Err(error) => return Err(error),
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }
}

/// Writes what fits into the fresh pipe. Small inputs fit whole, and need no further attention.
fn feed_at_once(stdin: OwnedFd, input: &mut Bytes) -> io::Result<Option<Sender>> {
    while !input.is_empty() {
        match rustix::io::write(&stdin, input) {
            Ok(count) => input.advance(count),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Sender::from_owned_fd_unchecked(stdin).map(Some),
            Err(Errno::PIPE) => input.clear(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Appends what one read gives; at the end of the stream, closes it. `Ok(0)` also when there is nothing now.
fn read(stream: &mut Option<Receiver>, into: &mut Vec<u8>, least: usize) -> io::Result<usize> {
    let Some(receiver) = stream else { return Ok(0) };
    if into.capacity() - into.len() < LEAST_READ {
        into.reserve(into.len().clamp(least, MOST_READ.max(least)));
    }
    match receiver.try_read_buf(into) {
        Ok(0) => {
            *stream = None;
            Ok(0)
        }
        Ok(count) => Ok(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error),
    }
}

async fn ready<'a, T, F>(stream: Option<&'a T>, when: impl FnOnce(&'a T) -> F) -> io::Result<()>
where
    F: Future<Output = io::Result<()>>,
{
    match stream {
        Some(stream) => when(stream).await,
        None => std::future::pending().await,
    }
}
