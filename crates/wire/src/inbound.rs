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

use crate::{Failure, Reservation, Room};

/// When a request arrived and until when its answer is of use.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// When its headers were read.
    pub at: Instant,
    /// When we answer at the latest: a little before the caller's deadline,
    /// because nobody reads what comes after it.
    pub deadline: Option<Instant>,
    /// The room that the caller has for the status of a failed call.
    pub room: Room,
}

impl Arrival {
    /// A request that arrives now and whose caller waits for ever.
    pub fn now() -> Self {
        Self { at: Instant::now(), deadline: None, room: Room::USUAL }
    }

    /// A request with these headers that arrives now.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self { room: Room::of(headers), ..Self::now() }
    }

    /// Reads until when the caller waits. A deadline that cannot be kept is a failure at once.
    pub(crate) fn read_deadline(&mut self, headers: &HeaderMap) -> Result<(), Failure> {
        let mut timeouts = headers.get_all("grpc-timeout").iter();
        let Some(value) = timeouts.next() else { return Ok(()) };
        let timeout = value.to_str().ok().and_then(parse_timeout).filter(|_| timeouts.next().is_none());
        let Some(timeout) = timeout else {
            let shown = String::from_utf8_lossy(value.as_bytes().get(..32).unwrap_or(value.as_bytes()));
            let cause = format!(
                "the request's header grpc-timeout is {shown:?}; it must be there once, with at most eight digits \
                 and a unit, one of H, M, S, m, u and n, such as 30S"
            );
            return Err(Failure::InvalidRequest { cause });
        };
        let usable = timeout.saturating_sub(margin(timeout));
        if usable.is_zero() {
            return Err(timed_out(format!("it arrived with only {timeout:?} left until its deadline")));
        }
        self.deadline = self.at.checked_add(usable);
        Ok(())
    }
}

/// A call that ended before we knew what it asks for.
fn timed_out(cause: String) -> Failure {
    Failure::TimedOut { image: "this call".to_owned(), cause, stderr: String::new() }
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

/// How long nothing of a request may arrive, and how long it may be on its way, but for a second more for so many
/// bytes. What is announced and never sent would keep its memory from others.
const PATIENCE: Duration = Duration::from_secs(10);
const BYTES_PER_SECOND: u32 = 64 * 1024;

/// What a request may bring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// The largest message.
    pub(crate) message: usize,
    /// Whether more than one may come: all that is known of a method that streams.
    pub(crate) streams: bool,
}

/// Guards a request's body: a message that announces more than the limit, or more than there is memory for, is
/// refused before it is read, and one that is still on its way when the caller's deadline passes, or that hardly
/// comes on, is given up.
pub(crate) struct GuardedBody {
    inner: tonic::body::Body,
    limits: BodyLimits,
    memory: Arc<Reservation>,
    /// The five bytes before a message: a flag and its length.
    prefix: Vec<u8>,
    /// Bytes of the current message still to come.
    remaining: usize,
    /// The largest message so far, which is what is reserved.
    largest: Option<usize>,
    arrival: Arrival,
    /// When something of it arrived last.
    last: Instant,
    /// Wakes us to see whether the request is late.
    timer: Pin<Box<Sleep>>,
    received: Arc<AtomicU64>,
}

const PREFIX: usize = 5;

impl GuardedBody {
    pub(crate) fn new(
        inner: tonic::body::Body,
        limits: BodyLimits,
        memory: Arc<Reservation>,
        arrival: Arrival,
        received: Arc<AtomicU64>,
    ) -> Self {
        let first = arrival.at + PATIENCE;
        let timer = Box::pin(tokio::time::sleep_until(arrival.deadline.map_or(first, |at| at.min(first))));
        Self {
            inner,
            limits,
            memory,
            prefix: Vec::with_capacity(PREFIX),
            remaining: 0,
            largest: None,
            arrival,
            last: arrival.at,
            timer,
            received,
        }
    }

    /// Follows the messages in `data` and refuses one that is too large.
    fn check(&mut self, data: &Bytes) -> Result<(), Failure> {
        let mut rest = data.clone();
        while rest.has_remaining() {
            if self.remaining > 0 {
                let step = self.remaining.min(rest.remaining());
                rest.advance(step);
                self.remaining -= step;
                continue;
            }
            if self.largest.is_some() && !self.limits.streams {
                let cause = "the request has more than one message, and this method takes one".to_owned();
                return Err(Failure::InvalidRequest { cause });
            }
            let wanted = PREFIX - self.prefix.len();
            self.prefix.extend_from_slice(&rest.split_to(wanted.min(rest.remaining())));
            if let [_, a, b, c, d] = self.prefix[..] {
                let size = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
                self.announced(size)?;
                self.remaining = size;
                self.prefix.clear();
            }
        }
        Ok(())
    }

    /// A message of this size is to come: all of it is reserved, so that what has begun can end.
    fn announced(&mut self, size: usize) -> Result<(), Failure> {
        let limit = self.limits.message;
        if size > limit {
            return Err(Failure::MessageTooLarge { size, limit });
        }
        let reserved = self.largest.unwrap_or_default();
        self.memory.grow(size.saturating_sub(reserved)).map_err(|full| Failure::MemoryFull { full })?;
        self.largest = Some(size.max(reserved));
        Ok(())
    }

    /// When the request must have arrived, by what has arrived of it.
    fn latest(&self) -> Instant {
        let received = u32::try_from(self.received.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        let slowest = self.arrival.at + PATIENCE + Duration::from_secs(1) * received / BYTES_PER_SECOND;
        slowest.min(self.last + PATIENCE)
    }

    /// Why the request is given up, once it is late.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<Failure> {
        loop {
            std::task::ready!(self.timer.as_mut().poll(context));
            let (now, latest) = (Instant::now(), self.latest());
            if self.arrival.deadline.is_some_and(|at| at <= now) {
                let cause = "the deadline passed before the whole request had arrived".to_owned();
                return Poll::Ready(timed_out(cause));
            }
            if latest <= now {
                let received = self.received.load(Ordering::Relaxed);
                let cause = format!(
                    "the request hardly came on: {received} bytes and no end within {} s; it has {} s, one more for \
                     every {} KiB that arrived, and may not pause for {} s",
                    self.arrival.at.elapsed().as_secs(),
                    PATIENCE.as_secs(),
                    BYTES_PER_SECOND / 1024,
                    PATIENCE.as_secs()
                );
                return Poll::Ready(timed_out(cause));
            }
            let next = self.arrival.deadline.map_or(latest, |at| at.min(latest));
            self.timer.as_mut().reset(next);
        }
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
                    if !data.is_empty() {
                        self.last = Instant::now();
                    }
                    if let Err(failure) = self.check(&data) {
                        return Poll::Ready(Some(Err(failure.into_status(self.arrival.room))));
                    }
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Pending => {
                let late = std::task::ready!(self.poll_late(context));
                Poll::Ready(Some(Err(late.into_status(self.arrival.room))))
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
    use crate::{Full, Memory};

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

    fn deadline(timeouts: &[&'static str]) -> Result<Option<Duration>, Failure> {
        let name = http::HeaderName::from_static("grpc-timeout");
        let headers: HeaderMap = timeouts
            .iter()
            .map(|value| (name.clone(), http::HeaderValue::from_bytes(value.as_bytes()).unwrap()))
            .collect();
        let mut arrival = Arrival::of(&headers);
        arrival.read_deadline(&headers)?;
        Ok(arrival.deadline.map(|deadline| deadline - arrival.at))
    }

    #[tokio::test]
    async fn a_deadline_is_read_refused_or_over() {
        assert_eq!(deadline(&[]).unwrap(), None);
        assert_eq!(deadline(&["1S"]).unwrap(), Some(Duration::from_millis(950)));
        assert!(deadline(&["99999999H"]).is_ok());
        for odd in [&["1s"][..], &[""], &["-1S"], &["999999999S"], &["é"], &["1S", "1S"]] {
            let refused = deadline(odd).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{odd:?}");
            assert!(refused.message().contains("header grpc-timeout is \""), "{refused}");
        }
        let long = "9".repeat(5000).leak();
        assert!(deadline(&[long]).unwrap_err().message().len() < 300);
        for over in ["0n", "0H", "1n", "1999u", "2m"] {
            let late = deadline(&[over]).unwrap_err();
            assert_eq!(late.code(), tonic::Code::DeadlineExceeded, "{over}");
        }
        assert!(deadline(&["3m"]).unwrap().is_some());
    }

    fn guard(limit: usize, memory: &Memory) -> GuardedBody {
        let limits = BodyLimits { message: limit, streams: true };
        let reserved = Arc::new(memory.try_reserve(0).unwrap());
        GuardedBody::new(tonic::body::Body::empty(), limits, reserved, Arrival::now(), Arc::default())
    }

    fn message(size: u32) -> Bytes {
        [&[0][..], &size.to_be_bytes(), &[7; 4]].concat().into()
    }

    #[tokio::test]
    async fn a_message_is_judged_by_its_announced_size_however_it_is_cut() {
        for cut in 0..9 {
            let memory = Memory::new(100);
            let small = message(4);
            let mut body = guard(4, &memory);
            assert!(body.check(&small.slice(..cut)).is_ok());
            assert!(body.check(&small.slice(cut..)).is_ok());
            assert_eq!(memory.used(), 4);
            // Whatever follows is a message of its own.
            let status = Status::from(body.check(&message(5)).unwrap_err());
            assert_eq!(status.code(), tonic::Code::ResourceExhausted);
            assert!(
                status.message().contains("5 bytes") && status.message().contains("4 bytes"),
                "{status:?}"
            );
            assert!(status.message().contains("--max-request-body-size"));
            drop(body);
            assert_eq!(memory.used(), 0);
        }
    }

    #[tokio::test]
    async fn what_there_is_no_memory_for_is_refused_when_it_is_announced() {
        let memory = Memory::new(100);
        let mut first = guard(1000, &memory);
        first.check(&message(70)).unwrap();
        let refused = guard(1000, &memory).check(&message(31)).unwrap_err();
        assert!(matches!(
            refused,
            Failure::MemoryFull { full: Full { wanted: 31, used: 70, limit: 100, held: None } }
        ));
        drop(first);
        assert!(guard(1000, &memory).check(&message(31)).is_ok());
    }

    #[tokio::test]
    async fn one_message_is_one_message_unless_the_method_streams() {
        let memory = Memory::new(100);
        let both: Bytes = [message(4), message(4)].concat().into();
        let mut body = guard(10, &memory);
        body.check(&both).unwrap();
        assert_eq!(memory.used(), 4, "the one before is done with");
        let mut body = guard(10, &memory);
        body.limits.streams = false;
        assert_eq!(body.check(&both).unwrap_err().code(), tonic::Code::InvalidArgument);
    }

    /// What a request ends with of which so many bytes arrive each second, for so many seconds, and then nothing.
    async fn trickle(bytes: usize, seconds: usize, pause: u64) -> Result<(), Status> {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
        let inner = tonic::body::Body::new(Chunks(Box::pin(stream)));
        let limits = BodyLimits { message: usize::MAX, streams: true };
        let reserved = Arc::new(Memory::unlimited().try_reserve(0).unwrap());
        let mut body = GuardedBody::new(inner, limits, reserved, Arrival::now(), Arc::default());
        let sending = async move {
            for _ in 0..seconds {
                let _ = sender.send(Bytes::from(vec![0; bytes])).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            tokio::time::sleep(Duration::from_secs(pause)).await;
        };
        let reading = async move {
            while let Some(frame) =
                std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
            {
                frame?;
            }
            Ok(())
        };
        tokio::join!(sending, reading).1
    }

    struct Chunks(Pin<Box<dyn tokio_stream::Stream<Item = Bytes> + Send>>);

    impl Body for Chunks {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.0.as_mut().poll_next(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_hardly_comes_on_is_given_up() {
        trickle(64 * 1024, 100, 0).await.unwrap();
        trickle(0, 9, 0).await.unwrap();
        // However much there was before, a long pause is an end.
        trickle(6 << 20, 2, 8).await.unwrap();
        assert_eq!(trickle(6 << 20, 2, 10).await.unwrap_err().code(), tonic::Code::DeadlineExceeded);
        for slow in [0, 1, 32 * 1024] {
            let late = trickle(slow, 100, 0).await.unwrap_err();
            assert_eq!(late.code(), tonic::Code::DeadlineExceeded, "{slow}");
            assert!(late.message().contains("hardly came on"), "{late}");
        }
    }
}
