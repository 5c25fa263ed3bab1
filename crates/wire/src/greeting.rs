//! A connection whose client must begin to speak: one that never does would
//! take up a place for ever and keep the server from ending.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// How long a client may take for the bytes with which every HTTP/2 connection begins.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many they are.
const PREFACE: usize = 24;

/// A connection that fails when its client does not greet in time.
pub(crate) struct Greeting {
    stream: TcpStream,
    missing: usize,
    patience: Option<Pin<Box<Sleep>>>,
}

impl Greeting {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, missing: PREFACE, patience: Some(Box::pin(sleep(PATIENCE))) }
    }
}

impl Connected for Greeting {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Greeting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(patience) = &mut self.patience {
            let late = polled.is_pending() && patience.as_mut().poll(context).is_ready();
            self.missing = self.missing.saturating_sub(buffer.filled().len() - before);
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

impl AsyncWrite for Greeting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
