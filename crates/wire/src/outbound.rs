//! An answer on its way out: counted until its last byte is written, and no longer on its way than it may be.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use tokio::task::AbortHandle;
use tonic::{Status, body::Body};

use crate::{Failure, Memory, Reservation, Room, peer::Peer};

/// How long an answer may be on its way, and how much of it must be taken each second beyond that. What nobody
/// reads would keep its memory from others.
const PATIENCE: Duration = Duration::from_secs(30);
const BYTES_PER_SECOND: usize = 64 * 1024;

/// Counts and times an answer's body.
pub(crate) struct OutboundBody {
    inner: Body,
    /// Polled before its turn, for it to be refused where it does not fit.
    first: Option<Frame<Bytes>>,
    outlet: Outlet,
}

/// What becomes of the bytes of an answer.
pub(crate) struct Outlet {
    pub(crate) memory: Memory,
    pub(crate) peer: Option<Peer>,
    pub(crate) room: Room,
}

impl OutboundBody {
    /// The body, unless there is no memory for its beginning, which in most answers is all of it.
    pub(crate) async fn new(mut inner: Body, outlet: Outlet) -> Result<Self, Status> {
        let first =
            std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut inner).poll_frame(context))).await;
        let first = match first {
            Poll::Ready(Some(frame)) => Some(outlet.count(frame?)?),
            Poll::Ready(None) | Poll::Pending => None,
        };
        Ok(Self { inner, first, outlet })
    }
}

impl Outlet {
    /// The same frame, counted and timed until it is dropped, which is when it is written.
    fn count(&self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, Status> {
        let bytes = match frame.into_data() {
            Ok(bytes) if !bytes.is_empty() => bytes,
            Ok(empty) => return Ok(Frame::data(empty)),
            Err(other) => return Ok(other),
        };
        let reserved = self.memory.try_reserve(bytes.len());
        let reserved = reserved.map_err(|full| Failure::MemoryFull { full }.into_status(self.room))?;
        let timer = self.peer.clone().map(|peer| Timer::start(peer, bytes.len()));
        Ok(Frame::data(Bytes::from_owner(Counted { bytes, _reserved: reserved, _timer: timer })))
    }
}

impl http_body::Body for OutboundBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(context));
        Poll::Ready(frame.map(|frame| self.outlet.count(frame?)))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.inner.is_end_stream()
    }
}

/// Bytes that are in the ledger, and watched, for as long as they are there.
struct Counted {
    bytes: Bytes,
    _reserved: Reservation,
    _timer: Option<Timer>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Closes the connection of a client that does not take its answer in time. Nothing less gives the memory back: what
/// has been handed to the connection cannot be had from it again.
struct Timer(AbortHandle);

impl Timer {
    fn start(peer: Peer, bytes: usize) -> Self {
        let seconds = u64::try_from(bytes / BYTES_PER_SECOND).unwrap_or(u64::MAX);
        let patience = PATIENCE.saturating_add(Duration::from_secs(seconds));
        let timer = async move {
            tokio::time::sleep(patience).await;
            peer.close();
        };
        Self(tokio::spawn(timer).abort_handle())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame on its way to a client, counted in `memory`.
    fn frame(bytes: usize, memory: &Memory, peer: Option<&Peer>) -> Result<Frame<Bytes>, Status> {
        let outlet = Outlet { memory: memory.clone(), peer: peer.cloned(), room: Room::USUAL };
        outlet.count(Frame::data(vec![7; bytes].into()))
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_take_an_answer_loses_the_connection() {
        let memory = Memory::new(1 << 20);
        for (bytes, seconds) in [(1000, 30), (640 * 1024, 40)] {
            let peer = Peer::new(None);
            let unread = frame(bytes, &memory, Some(&peer)).unwrap();
            assert_eq!(memory.used(), bytes);
            let begun = tokio::time::Instant::now();
            peer.closed().await;
            assert_eq!(begun.elapsed().as_secs(), seconds);
            drop(unread);
            assert_eq!(memory.used(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_taken_in_time_has_no_part_in_what_comes_later() {
        let memory = Memory::new(1 << 20);
        let peer = Peer::new(None);
        let taken = frame(1000, &memory, Some(&peer)).unwrap().into_data().unwrap();
        let piece = taken.slice(900..);
        drop(taken);
        assert_eq!(memory.used(), 1000, "a piece keeps the whole");
        drop(piece);
        assert_eq!(memory.used(), 0);
        assert!(tokio::time::timeout(Duration::from_secs(100), peer.closed()).await.is_err());
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_refused() {
        let refused = frame(1001, &Memory::new(1000), None).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert!(frame(0, &Memory::new(0), None).is_ok());
    }
}
