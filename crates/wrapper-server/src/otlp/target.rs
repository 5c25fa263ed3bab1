//! Where a signal goes, by the standard variables.

use std::time::Duration;

/// How long a collector may take to answer unless somebody says.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Where collectors are unless somebody says.
const DEFAULT: &str = "http://localhost:4318";

/// A collector's place for one signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// `host` or `host:port`, as in the URL.
    pub(super) authority: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) timeout: Duration,
}

/// What a signal is asked to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// It is offered to Prometheus.
    pub(crate) prometheus: bool,
    /// It is sent to a collector.
    pub(crate) collector: Option<Target>,
    /// What is asked for and not done.
    pub(crate) notes: Vec<String>,
}

impl Wanted {
    /// Reads the variables of `signal`, `TRACES` or `METRICS`; `default` is what is done where nobody says.
    pub(crate) fn read(signal: &str, default: &str, variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut wanted = Self::default();
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return wanted;
        }
        let own = |what: &str| variable(&format!("OTEL_EXPORTER_OTLP_{signal}_{what}"));
        let find = |what: &str| own(what).or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{what}")));
        let exporter = format!("OTEL_{signal}_EXPORTER");
        let default = if find("ENDPOINT").is_some() { "otlp" } else { default };
        let asked = variable(&exporter).unwrap_or_else(|| default.to_owned());
        for word in asked.split(',').map(str::trim) {
            match word {
                "" | "none" => {}
                "prometheus" if signal == "METRICS" => wanted.prometheus = true,
                "otlp" => match Target::read(signal, own, find) {
                    Ok(target) => wanted.collector = Some(target),
                    Err(note) => wanted.notes.push(note),
                },
                other => {
                    wanted.notes.push(format!("{exporter} has {other:?}, which the wrapper does not know"));
                }
            }
        }
        wanted
    }
}

impl Target {
    fn read(
        signal: &str,
        own: impl Fn(&str) -> Option<String>,
        find: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let less = |what: String| {
            format!("{what}, but the wrapper sends by http/protobuf and not encrypted: it does not")
        };
        if let Some(protocol) = find("PROTOCOL").filter(|protocol| protocol != "http/protobuf") {
            return Err(less(format!("{signal} are to be sent by {protocol:?}")));
        }
        // The endpoint of a signal is taken as it is; to the general one the signal's path is added.
        let (endpoint, suffix) = match own("ENDPOINT") {
            Some(endpoint) => (endpoint, String::new()),
            None => {
                let general = find("ENDPOINT").unwrap_or_else(|| DEFAULT.to_owned());
                (general, format!("/v1/{}", signal.to_lowercase()))
            }
        };
        let Some(rest) = endpoint.strip_prefix("http://") else {
            return Err(less(format!("{signal} are to be sent to {endpoint:?}")));
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let path = if suffix.is_empty() { path } else { path.trim_end_matches('/') };
        let path = format!("{path}{suffix}");
        let path = if path.is_empty() { "/".to_owned() } else { path };
        let is_sound = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || !is_sound(authority) || !is_sound(&path) {
            return Err(format!("{signal} are to be sent to {endpoint:?}, which is no URL: they are not"));
        }
        let headers = find("HEADERS").map(|list| read_headers(&list)).unwrap_or_default();
        let timeout =
            find("TIMEOUT").and_then(|text| text.parse().ok()).map_or(TIMEOUT, Duration::from_millis);
        Ok(Self { authority: authority.to_owned(), path, headers, timeout })
    }

    /// What to connect to.
    pub(super) fn host_and_port(&self) -> (&str, u16) {
        let (host, port) = match self.authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(80)),
            _ => (self.authority.as_str(), 80),
        };
        (host.trim_start_matches('[').trim_end_matches(']'), port)
    }
}

/// Reads `name=value,name=value`, with values as in a URL. What cannot be a header is left out.
fn read_headers(list: &str) -> Vec<(String, String)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), decoded(value.trim())))
        .filter(|(name, value)| {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !name.is_empty() && name.bytes().all(is_name) && !value.contains(|c: char| c.is_control())
        })
        .collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(signal: &str, default: &str, variables: &[(&str, &str)]) -> Wanted {
        Wanted::read(signal, default, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_endpoint_is_enough_and_nothing_is_sent_without_one() {
        assert_eq!(read("TRACES", "none", &[]), Wanted::default());
        assert!(read("METRICS", "prometheus", &[]).prometheus);
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
        let wanted = read("TRACES", "none", &[general]);
        let target = wanted.collector.unwrap();
        assert_eq!((target.path.as_str(), target.host_and_port()), ("/v1/traces", ("collector", 4318)));
        let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://[::1]/m");
        let wanted = read("METRICS", "prometheus", &[general, own]);
        assert!(!wanted.prometheus);
        let target = wanted.collector.unwrap();
        assert_eq!((target.path.as_str(), target.host_and_port()), ("/m", ("::1", 80)));
        let porch = [general, ("OTEL_METRICS_EXPORTER", "prometheus"), ("OTEL_TRACES_EXPORTER", "none")];
        assert!(read("METRICS", "prometheus", &porch).collector.is_none());
        assert_eq!(read("TRACES", "none", &porch), Wanted::default());
        assert_eq!(
            read("METRICS", "prometheus", &[general, ("OTEL_SDK_DISABLED", "TRUE")]),
            Wanted::default()
        );
    }

    #[test]
    fn what_the_wrapper_cannot_do_is_said() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://collector"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a b/"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a/\r\nx: y"),
        ] {
            let wanted =
                read("TRACES", "none", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), (name, value)]);
            assert!(wanted.collector.is_none() && wanted.notes.len() == 1, "{name}={value}: {wanted:?}");
        }
        assert_eq!(read("TRACES", "none", &[("OTEL_TRACES_EXPORTER", "prometheus")]).notes.len(), 1);
        let odd = read("METRICS", "prometheus", &[("OTEL_METRICS_EXPORTER", "console,prometheus")]);
        assert!(odd.prometheus && odd.notes[0].contains("console"), "{odd:?}");
    }

    #[test]
    fn headers_are_decoded_and_cannot_break_out() {
        let headers = read_headers("a=let%20me%20in, b=%,c=x%0d%0aevil: y,=z,d e=f,%,g=%zz");
        let expected = [("a", "let me in"), ("b", "%"), ("g", "%zz")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
