//! Which headers carry traces from caller to callee, as `OTEL_PROPAGATORS` says.

use http::HeaderMap;

use crate::{TraceContext, trace::hexadecimal};

/// Longest `tracestate` handed on; the specification asks for at least 512.
const LONGEST_STATE: usize = 2048;
/// Longest `baggage` handed on, as its specification has it.
const LONGEST_BAGGAGE: usize = 8192;

/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;

/// The headers that carry traces; those of W3C unless told otherwise.
#[allow(clippy::struct_excessive_bools, reason = "each is a word of the list, with or without the others")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Propagators {
    trace_context: bool,
    baggage: bool,
    b3: bool,
    b3_multi: bool,
}

impl Default for Propagators {
    fn default() -> Self {
        Self { trace_context: true, baggage: true, ..Self::NONE }
    }
}

impl Propagators {
    /// No trace is taken over or handed on.
    pub const NONE: Self = Self { trace_context: false, baggage: false, b3: false, b3_multi: false };

    /// Reads a list such as `tracecontext,baggage,b3`, and tells the words in it that mean nothing here. Where
    /// nothing is left, it is as if there had been no list.
    pub fn read(list: &str) -> (Self, Vec<&str>) {
        let (mut read, mut unknown) = (Self::NONE, Vec::new());
        let mut is_none = false;
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "tracecontext" => read.trace_context = true,
                "baggage" => read.baggage = true,
                "b3" => read.b3 = true,
                "b3multi" => read.b3_multi = true,
                "none" => is_none = true,
                _ => unknown.push(word),
            }
        }
        let read = if read == Self::NONE && !is_none { Self::default() } else { read };
        (read, unknown)
    }

    /// The caller's trace, where its headers carry a valid one.
    pub fn parent(self, headers: &HeaderMap) -> Option<TraceContext> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let w3c = || {
            let state = text("tracestate").filter(|state| !state.is_empty() && state.len() <= LONGEST_STATE);
            Some(TraceContext::parse(text("traceparent")?)?.with_state(state.map(str::to_owned)))
        };
        // Senders choose between the two forms of B3; receivers read both.
        let b3 = || match text("b3") {
            Some(single) => parse_b3(single),
            None => {
                let debug = text("x-b3-flags").filter(|flags| *flags == "1").map(|_| "d");
                let sampled = debug.or_else(|| text("x-b3-sampled"));
                b3_context(text("x-b3-traceid")?, text("x-b3-spanid")?, sampled)
            }
        };
        let found = self.trace_context.then(w3c).flatten();
        found.or_else(|| (self.b3 || self.b3_multi).then(b3).flatten())
    }

    /// What the caller wants to be handed on beside its trace.
    pub fn baggage(self, headers: &HeaderMap) -> Option<String> {
        let baggage = headers.get("baggage").filter(|_| self.baggage)?.to_str().ok()?;
        (!baggage.is_empty() && baggage.len() <= LONGEST_BAGGAGE).then(|| baggage.to_owned())
    }

    /// The headers that carry `trace`.
    pub(crate) fn write(self, trace: &TraceContext) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if self.trace_context {
            headers.push(("traceparent", trace.to_string()));
            headers.extend(trace.state().map(|state| ("tracestate", state.to_owned())));
        }
        if let Some(baggage) = trace.baggage().filter(|_| self.baggage) {
            headers.push(("baggage", baggage.to_owned()));
        }
        let (id, span, flags) = trace.ids();
        let sampled = flags & SAMPLED;
        if self.b3 {
            headers.push(("b3", format!("{id:032x}-{span:016x}-{sampled}")));
        }
        if self.b3_multi {
            headers.push(("x-b3-traceid", format!("{id:032x}")));
            headers.push(("x-b3-spanid", format!("{span:016x}")));
            headers.push(("x-b3-sampled", sampled.to_string()));
        }
        headers
    }
}

/// Reads `<trace>-<span>[-<sampled>[-<parent>]]`.
fn parse_b3(text: &str) -> Option<TraceContext> {
    let mut fields = text.trim().split('-');
    let (trace, span) = (fields.next()?, fields.next()?);
    let sampled = fields.next();
    let parent_is_right = fields.next().is_none_or(|parent| hexadecimal(parent, 16).is_some());
    (parent_is_right && fields.next().is_none()).then(|| b3_context(trace, span, sampled)).flatten()
}

fn b3_context(trace: &str, span: &str, sampled: Option<&str>) -> Option<TraceContext> {
    let trace = hexadecimal(trace, 32).or_else(|| hexadecimal(trace, 16))?;
    let span = u64::try_from(hexadecimal(span, 16)?).ok()?;
    let flags = match sampled {
        Some("1" | "d" | "true") => SAMPLED,
        None | Some("0" | "false") => 0,
        Some(_) => return None,
    };
    (trace != 0 && span != 0).then(|| TraceContext::new(trace, span, flags, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn propagators(list: &str) -> Propagators {
        Propagators::read(list).0
    }

    #[test]
    fn lists_are_read_word_by_word() {
        assert_eq!(propagators(""), Propagators::default());
        assert_eq!(propagators(" tracecontext , baggage "), Propagators::default());
        assert_eq!(propagators("none"), Propagators::NONE);
        let (read, unknown) = Propagators::read("b3,jaeger,,B3");
        assert_eq!((read, unknown), (propagators("b3"), vec!["jaeger", "B3"]));
        // A list of words that nobody knows must not cut traces off.
        assert_eq!(Propagators::read("xray").0, Propagators::default());
    }

    #[test]
    fn each_form_is_read_where_it_is_asked_for_and_written_as_it_was_read() {
        let parent = format!("00-{TRACE}-{SPAN}-01");
        let single = format!("{TRACE}-{SPAN}-1");
        let w3c = headers(&[("traceparent", &parent), ("tracestate", "a=b"), ("baggage", "k=v")]);
        let b3 = headers(&[("b3", &single)]);
        let multi = headers(&[("x-b3-traceid", TRACE), ("x-b3-spanid", SPAN), ("x-b3-sampled", "1")]);
        for (list, carried, others) in [
            ("tracecontext,baggage", &w3c, [&b3, &multi]),
            ("b3", &b3, [&w3c, &w3c]),
            ("b3multi", &multi, [&w3c, &w3c]),
        ] {
            let propagators = propagators(list);
            let trace = propagators.parent(carried).unwrap();
            assert_eq!(trace.ids(), (u128::from_str_radix(TRACE, 16).unwrap(), 0x00f0_67aa_0ba9_02b7, 1));
            let handed_on = trace.carried_by(propagators, propagators.baggage(carried)).headers();
            let handed_on: Vec<_> = handed_on.iter().map(|(name, value)| (*name, value.as_str())).collect();
            assert_eq!(headers(&handed_on), *carried, "{list}");
            for other in others {
                assert_eq!(propagators.parent(other), None, "{list} {other:?}");
            }
        }
        assert!(propagators("b3").parent(&multi).is_some() && propagators("b3multi").parent(&b3).is_some());
        let none = Propagators::NONE;
        assert!(none.parent(&w3c).is_none() && none.baggage(&w3c).is_none());
        assert!(TraceContext::begin().carried_by(none, Some("k=v".to_owned())).headers().is_empty());
    }

    #[test]
    fn short_ids_and_debug_are_of_b3_and_malformed_headers_are_no_trace() {
        let read = |value: &str| propagators("b3").parent(&headers(&[("b3", value)]));
        assert_eq!(
            read(&format!("{SPAN}-{SPAN}-d-{SPAN}")).unwrap().ids(),
            (0xf0_67aa_0ba9_02b7, 0xf0_67aa_0ba9_02b7, 1)
        );
        assert_eq!(read(&format!("{TRACE}-{SPAN}")).unwrap().ids().2, 0);
        let long = "1".repeat(100_000);
        for bad in [
            "",
            "0",
            "1",
            "-",
            "---",
            &format!("{TRACE}-{SPAN}-7"),
            &format!("{TRACE}-{SPAN}-1-x"),
            &format!("{TRACE}-{SPAN}-1-{SPAN}-1"),
            &format!("{}-{SPAN}-1", "0".repeat(32)),
            &long,
        ] {
            assert_eq!(read(bad), None, "{bad:.80}");
        }
        let flags = headers(&[("x-b3-traceid", TRACE), ("x-b3-spanid", SPAN), ("x-b3-flags", "1")]);
        assert_eq!(propagators("b3").parent(&flags).unwrap().ids().2, 1);
    }

    #[test]
    fn what_comes_along_is_bounded() {
        let (state, baggage) = ("s".repeat(LONGEST_STATE + 1), "b".repeat(LONGEST_BAGGAGE + 1));
        let parent = format!("00-{TRACE}-{SPAN}-01");
        let long = headers(&[("traceparent", &parent), ("tracestate", &state), ("baggage", &baggage)]);
        let read = Propagators::default();
        assert_eq!(read.parent(&long).unwrap().state(), None);
        assert_eq!(read.baggage(&long), None);
    }
}
