//! The three pipes of a function: feeding one while reading the others.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use bytes::{Buf, Bytes};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::pipe::fcntl_setpipe_size;

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

/// Whether the streams may go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Some bytes were moved, or a stream ended, or there was nothing to do.
    Moved,
    /// Standard output has more bytes than allowed.
    TooLarge,
}

/// The pipes of a running function and what has come through them.
#[derive(Debug)]
pub(crate) struct Streams {
    input: Bytes,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    output: Vec<u8>,
    log: LogBuffer,
    max_output: usize,
    /// Functions mostly write about as much as they read.
    expected_output: usize,
}

impl Streams {
    /// Starts feeding: small inputs fit into the pipe whole, and need no further attention.
    pub(crate) fn new(own: OwnEnds, input: Bytes, max_output: usize, max_log: usize) -> io::Result<Self> {
        let expected_output = input.len().min(max_output) + LEAST_READ;
        let mut streams = Self {
            input,
            stdin: Some(own.stdin),
            stdout: Some(own.stdout),
            stderr: Some(own.stderr),
            output: Vec::new(),
            log: LogBuffer::new(max_log),
            max_output,
            expected_output,
        };
        streams.feed()?;
        Ok(streams)
    }

    /// Whether both outputs have come to their end.
    pub(crate) fn at_end(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Gives up what has not been fed yet.
    pub(crate) fn stop_feeding(&mut self) {
        self.stdin = None;
    }

    /// What to wait for before [`Streams::step`] has something to do.
    pub(crate) fn interests(&self) -> impl Iterator<Item = PollFd<'_>> {
        let reading = [&self.stdout, &self.stderr].into_iter().flatten().map(|end| (end, PollFlags::IN));
        let writing = self.stdin.iter().map(|end| (end, PollFlags::OUT));
        reading.chain(writing).map(|(end, flags)| PollFd::from_borrowed_fd(end.as_fd(), flags))
    }

    /// Moves what can be moved now, a little on each stream, so that a flood on one does not hold up the
    /// others.
    pub(crate) fn step(&mut self) -> io::Result<Step> {
        let step = self.read_output()?;
        self.read_log()?;
        self.feed()?;
        Ok(step)
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

    /// Writes what fits into the pipe, and closes it when all of the input is written.
    fn feed(&mut self) -> io::Result<()> {
        let Some(stdin) = &self.stdin else { return Ok(()) };
        while !self.input.is_empty() {
            match rustix::io::write(stdin, &self.input) {
                Ok(count) => self.input.advance(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                // A function need not read its input.
                Err(Errno::PIPE) => self.input.clear(),
                Err(error) => return Err(error.into()),
            }
        }
        self.stdin = None;
        Ok(())
    }
}

/// Appends what one read gives; at the end of the stream, closes it. `Ok(0)` also when there is nothing now.
fn read(stream: &mut Option<OwnedFd>, into: &mut Vec<u8>, least: usize) -> io::Result<usize> {
    let Some(end) = stream else { return Ok(0) };
    if into.capacity() - into.len() < LEAST_READ {
        into.reserve(into.len().clamp(least, MOST_READ.max(least)));
    }
    match rustix::io::retry_on_intr(|| rustix::io::read(&*end, spare_capacity(into))) {
        Ok(0) => {
            *stream = None;
            Ok(0)
        }
        Ok(count) => Ok(count),
        Err(Errno::AGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
