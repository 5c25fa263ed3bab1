//! The socket of a connection: its client must begin to speak in time, is told
//! that the connection will end before it does, and loses nothing when it ends.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use crate::connection::Handle;

/// How long a client may take for the bytes with which every HTTP/2 connection
/// begins: one that never does would take up a place for ever.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many they are.
const PREFACE: usize = 24;
/// GOAWAY with the highest stream there can be and no error: begin no more
/// requests; those that are on their way are answered.
const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// How long we read on after our side has ended.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// A connection's socket.
pub(crate) struct Socket {
    stream: TcpStream,
    handle: Arc<Handle>,
    /// Bytes of the preface that are still to come, and until when.
    missing: usize,
    patience: Option<Pin<Box<Sleep>>>,
    /// How much of [`GOAWAY`] is written.
    announced: usize,
    linger: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, handle: Arc<Handle>) -> Self {
        let patience = Some(Box::pin(sleep(PREFACE_TIMEOUT)));
        Self { stream, handle, missing: PREFACE, patience, announced: 0, linger: None }
    }

    /// Writes what is left of an announcement that has begun.
    fn poll_announce(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.announced < GOAWAY.len() {
            let rest = &GOAWAY[self.announced..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.announced += written,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Nothing may come between the two halves of an announcement.
    fn poll_finish_announcement(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.announced == 0 { Poll::Ready(Ok(())) } else { self.poll_announce(context) }
    }

    fn note(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = polled {
            self.handle.moved(bytes);
        }
        polled
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        self.handle.moved(read);
        if let Some(patience) = &mut self.patience {
            let late = polled.is_pending() && patience.as_mut().poll(context).is_ready();
            self.missing = self.missing.saturating_sub(read);
            if late || self.missing == 0 {
                self.patience = None;
            }
            if late {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        polled
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_finish_announcement(context))?;
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_finish_announcement(context))?;
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// The library flushes when it has written whole frames, after its first one and whenever it is
    /// polled: here a frame of ours does no harm.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.announced > 0 || self.handle.is_announcing() {
            ready!(self.poll_announce(context))?;
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Ends our side and reads on: closed with something unread, the kernel would reset the
    /// connection, and answers that the client has not taken yet would be gone.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.linger = Some(Box::pin(sleep(LINGER)));
        }
        let mut unread = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut unread);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                // The client's end, however it came.
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => break,
            }
        }
        match &mut self.linger {
            Some(linger) => linger.as_mut().poll(context).map(Ok),
            None => Poll::Ready(Ok(())),
        }
    }
}
