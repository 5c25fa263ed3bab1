//! A request on its way in: when it arrived, until when its caller waits, and
//! a body that answers for size and deadline in our own words.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};
use tonic::Status;

use crate::Failure;

/// When a request arrived and until when its answer is of use.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// When its headers were read.
    pub at: Instant,
    /// When we answer at the latest: a little before the caller's deadline,
    /// because nobody reads what comes after it.
    pub deadline: Option<Instant>,
}

impl Arrival {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let at = Instant::now();
        let deadline = headers
            .get("grpc-timeout")
            .and_then(|timeout| parse_timeout(timeout.to_str().ok()?))
            .and_then(|timeout| at.checked_add(timeout.saturating_sub(margin(timeout))));
        Self { at, deadline }
    }
}

/// How long before the caller's deadline we answer.
fn margin(timeout: Duration) -> Duration {
    (timeout / 20).clamp(Duration::from_millis(2), Duration::from_millis(200))
}

/// Reads a `grpc-timeout`: at most eight digits and a unit.
fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(amount * 3600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
}

/// Guards a request's body: a message that announces more than the limit is
/// refused before it is read, and one that is still on its way when the
/// caller's deadline passes is given up.
pub(crate) struct GuardedBody {
    inner: tonic::body::Body,
    limit: usize,
    /// The five bytes before a message: a flag and its length.
    prefix: Vec<u8>,
    /// Bytes of the current message still to come.
    remaining: usize,
    deadline: Option<Pin<Box<Sleep>>>,
    received: Arc<AtomicU64>,
}

const PREFIX: usize = 5;

impl GuardedBody {
    pub(crate) fn new(
        inner: tonic::body::Body,
        limit: usize,
        arrival: Arrival,
        received: Arc<AtomicU64>,
    ) -> Self {
        let deadline = arrival.deadline.map(|at| Box::pin(tokio::time::sleep_until(at)));
        Self { inner, limit, prefix: Vec::with_capacity(PREFIX), remaining: 0, deadline, received }
    }

    /// Follows the messages in `data` and refuses one that is too large.
    fn check(&mut self, data: &Bytes) -> Result<(), Status> {
        let mut rest = data.clone();
        while rest.has_remaining() {
            if self.remaining > 0 {
                let step = self.remaining.min(rest.remaining());
                rest.advance(step);
                self.remaining -= step;
                continue;
            }
            let wanted = PREFIX - self.prefix.len();
            self.prefix.extend_from_slice(&rest.split_to(wanted.min(rest.remaining())));
            if let [_, a, b, c, d] = self.prefix[..] {
                let size = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
                if size > self.limit {
                    return Err(Failure::MessageTooLarge { size, limit: self.limit }.into());
                }
                self.remaining = size;
                self.prefix.clear();
            }
        }
        Ok(())
    }
}

impl Body for GuardedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.received.fetch_add(data.len() as u64, Ordering::Relaxed);
                    let data = data.clone();
                    if let Err(status) = self.check(&data) {
                        return Poll::Ready(Some(Err(status)));
                    }
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Pending => {
                let late =
                    self.deadline.as_mut().is_some_and(|sleep| sleep.as_mut().poll(context).is_ready());
                if !late {
                    return Poll::Pending;
                }
                self.deadline = None;
                let cause = "the deadline passed before the whole request had arrived".to_owned();
                let late = Failure::TimedOut { image: "this call".to_owned(), cause, stderr: String::new() };
                Poll::Ready(Some(Err(late.into())))
            }
            ended @ Poll::Ready(_) => ended,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_read_as_the_protocol_says() {
        assert_eq!(parse_timeout("1S"), Some(Duration::from_secs(1)));
        assert_eq!(parse_timeout("99999999H"), Some(Duration::from_hours(99_999_999)));
        assert_eq!(parse_timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse_timeout("7u"), Some(Duration::from_micros(7)));
        assert_eq!(parse_timeout("0n"), Some(Duration::ZERO));
        for bad in ["", "S", "1", "1s", "-1S", "123456789S", "1 S", "é", "1é"] {
            assert_eq!(parse_timeout(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn we_answer_a_little_before_the_deadline() {
        assert_eq!(margin(Duration::from_secs(1)), Duration::from_millis(50));
        assert_eq!(margin(Duration::from_millis(10)), Duration::from_millis(2));
        assert_eq!(margin(Duration::from_secs(291)), Duration::from_millis(200));
    }

    fn guard(limit: usize) -> GuardedBody {
        let arrival = Arrival { at: Instant::now(), deadline: None };
        GuardedBody::new(tonic::body::Body::empty(), limit, arrival, Arc::default())
    }

    #[test]
    fn a_message_is_judged_by_its_announced_size_however_it_is_cut() {
        let message = |size: u32| [&[0][..], &size.to_be_bytes(), &[7; 4]].concat();
        for cut in 0..9 {
            let small = message(4);
            let mut body = guard(4);
            assert!(body.check(&Bytes::copy_from_slice(&small[..cut])).is_ok());
            assert!(body.check(&Bytes::copy_from_slice(&small[cut..])).is_ok());
            // Whatever follows is a message of its own.
            let status = body.check(&Bytes::from(message(5))).unwrap_err();
            assert_eq!(status.code(), tonic::Code::ResourceExhausted);
            assert!(
                status.message().contains("5 bytes") && status.message().contains("4 bytes"),
                "{status:?}"
            );
            assert!(status.message().contains("--max-request-body-size"));
        }
    }
}
