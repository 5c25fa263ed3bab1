//! The kept end of a function's standard error.

use bytes::Bytes;

/// The end of what a function wrote to standard error, and how much before it was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    kept: Bytes,
    cut: u64,
}

/// A log of which nothing was cut.
impl From<Bytes> for Log {
    fn from(kept: Bytes) -> Self {
        Self { kept, cut: 0 }
    }
}

impl Log {
    /// The kept bytes, without a note of what was cut.
    pub fn kept(&self) -> &Bytes {
        &self.kept
    }

    /// How many bytes before the kept ones were cut.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Whether nothing was written at all.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.cut == 0
    }

    /// The kept bytes, after a line that says how much was cut, if any was.
    pub fn to_bytes(&self) -> Bytes {
        if self.cut == 0 {
            return self.kept.clone();
        }
        let mut whole = note(self.cut).into_bytes();
        whole.extend_from_slice(&self.kept);
        whole.into()
    }

    /// Cuts from the front until [`Log::to_bytes`], note included, has at most `limit` bytes. Where not even
    /// the note fits, nothing is left.
    pub fn shrink(&mut self, limit: usize) {
        let length = if self.cut == 0 { self.kept.len() } else { note(self.cut).len() + self.kept.len() };
        if length <= limit {
            return;
        }
        // The note's length depends on the number in it: taking the longest it can get keeps this simple.
        let total = self.cut + self.kept.len() as u64;
        let Some(room) = limit.checked_sub(note(total).len()) else {
            // A note that does not fit would break the promised size, so nothing at all is left.
            *self = Self::default();
            return;
        };
        let from = character_start(&self.kept, self.kept.len().saturating_sub(room));
        self.cut += from as u64;
        self.kept = self.kept.slice(from..);
    }
}

fn note(cut: u64) -> String {
    format!("[the first {cut} bytes of this log were cut]\n")
}

/// The first position from `from` on that is not inside a UTF-8 character.
fn character_start(bytes: &[u8], from: usize) -> usize {
    let inside = bytes.iter().skip(from).take(3).take_while(|&&byte| byte & 0xC0 == 0x80).count();
    from + inside
}

/// A [`Log`] while it grows: holds at most about twice its limit, whatever is written.
#[derive(Debug)]
pub(crate) struct LogBuffer {
    bytes: Vec<u8>,
    cut: u64,
    limit: usize,
}

impl LogBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), cut: 0, limit }
    }

    /// Where to append; call [`LogBuffer::trim`] afterwards.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Forgets what will not be kept, only once there is as much of it as is kept: each byte is then moved
    /// at most once on average.
    pub(crate) fn trim(&mut self) {
        let surplus = self.bytes.len().saturating_sub(self.limit);
        if surplus > self.limit.max(64 << 10) {
            self.bytes.drain(..surplus);
            self.cut += surplus as u64;
        }
    }

    /// The log, cut to this buffer's limit or to `room`, whichever is less.
    pub(crate) fn finish(self, room: usize) -> Log {
        let mut log = Log { kept: self.bytes.into(), cut: self.cut };
        log.shrink(self.limit.min(room));
        log
    }
}

#[cfg(test)]
mod tests {
    use super::{Log, LogBuffer};

    fn log(text: &str, limit: usize) -> Log {
        let mut buffer = LogBuffer::new(limit);
        for chunk in text.as_bytes().chunks(7) {
            buffer.bytes().extend_from_slice(chunk);
            buffer.trim();
        }
        buffer.finish(usize::MAX)
    }

    #[test]
    fn a_log_that_fits_is_untouched() {
        let log = log("one\ntwo\n", 8);
        assert_eq!((log.to_bytes().as_ref(), log.cut()), (b"one\ntwo\n".as_slice(), 0));
    }

    #[test]
    fn the_end_is_kept_and_the_note_counts_what_was_cut() {
        let text = "x".repeat(1_000_000) + "the end";
        let log = log(&text, 1000);
        let bytes = log.to_bytes();
        assert!(bytes.len() <= 1000 && bytes.len() > 990, "{}", bytes.len());
        assert!(bytes.ends_with(b"the end"));
        assert_eq!(log.cut() + log.kept().len() as u64, text.len() as u64);
        assert!(bytes.starts_with(format!("[the first {} bytes", log.cut()).as_bytes()));
    }

    #[test]
    fn every_limit_is_kept_and_characters_stay_whole() {
        let text = "äöü€😀".repeat(40);
        for limit in 0..text.len() + 2 {
            let mut log = log(&text, usize::MAX);
            log.shrink(limit);
            let bytes = log.to_bytes();
            assert!(bytes.len() <= limit);
            assert!(std::str::from_utf8(&bytes).is_ok(), "limit {limit}");
            log.shrink(limit / 2);
            assert!(log.to_bytes().len() <= limit / 2);
        }
    }

    #[test]
    fn a_buffer_does_not_grow_with_what_is_written() {
        let mut buffer = LogBuffer::new(10);
        for _ in 0..10_000 {
            buffer.bytes().extend_from_slice(&[b'x'; 1000]);
            buffer.trim();
        }
        assert!(buffer.bytes().capacity() < 1 << 20);
        assert_eq!(buffer.finish(5).to_bytes().len(), 0);
    }
}
