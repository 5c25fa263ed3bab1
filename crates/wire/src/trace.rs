//! The trace of a call: taken from the caller, or begun here.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
};

use crate::Propagators;

/// The trace a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    flags: u8,
    state: Option<String>,
    baggage: Option<String>,
    propagators: Propagators,
}

impl TraceContext {
    /// A trace by its numbers.
    pub fn new(trace: u128, span: u64, flags: u8, state: Option<String>) -> Self {
        Self { trace, span, flags, state, baggage: None, propagators: Propagators::default() }
    }

    /// Begins a trace of our own, which whoever comes after us may record.
    pub fn begin() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        let trace = (u128::from(random()) << 64 | u128::from(random())).max(1);
        Self::new(trace, random().max(1), 1, None)
    }

    /// The same, handed on by these headers and with this baggage.
    #[must_use]
    pub fn carried_by(self, propagators: Propagators, baggage: Option<String>) -> Self {
        Self { baggage, propagators, ..self }
    }

    /// The headers that hand it on.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        self.propagators.write(self)
    }

    /// Reads a `traceparent`: `00-<32 hex>-<16 hex>-<2 hex>`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().split('-');
        let version = hexadecimal(fields.next()?, 2)?;
        let trace = hexadecimal(fields.next()?, 32)?;
        let span = u64::try_from(hexadecimal(fields.next()?, 16)?).ok()?;
        let flags = u8::try_from(hexadecimal(fields.next()?, 2)?).ok()?;
        // Later versions may append fields; version 0 may not, and 255 is forbidden.
        let well_formed = version != 255 && (version > 0 || fields.next().is_none());
        (well_formed && trace != 0 && span != 0).then(|| Self::new(trace, span, flags, None))
    }

    /// The trace id, as 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The numbers themselves: trace, span and flags.
    pub fn ids(&self) -> (u128, u64, u8) {
        (self.trace, self.span, self.flags)
    }

    /// The `tracestate` that came along.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The same with a `tracestate`.
    pub(crate) fn with_state(self, state: Option<String>) -> Self {
        Self { state, ..self }
    }

    /// The `baggage` that came along.
    pub(crate) fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// A number of exactly so many hexadecimal digits.
pub(crate) fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let right = text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    right.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_parent_reads_and_prints_back() {
        let context = TraceContext::parse(EXAMPLE).unwrap();
        assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.to_string(), EXAMPLE);
    }

    #[test]
    fn malformed_parents_are_no_trace() {
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad:?}");
        }
        assert!(
            TraceContext::parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some()
        );
    }

    #[test]
    fn a_trace_of_our_own_is_valid_and_new() {
        let (one, two) = (TraceContext::begin(), TraceContext::begin());
        assert_ne!(one, two);
        assert_eq!(one.ids().2, 1);
        assert_eq!(TraceContext::parse(&one.to_string()), Some(one));
    }
}
