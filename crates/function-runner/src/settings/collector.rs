//! The collector of a signal, by the standard `OTEL_EXPORTER_OTLP_*` variables.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use flags::Mistake;

use super::{Surroundings, environment};

/// How long a collector may take to answer unless somebody says.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A collector, and how it is spoken to. Where it is, its headers and its compression are the exporter's to
/// read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    /// The protocol.
    pub protocol: Protocol,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// Certificates, where the connection is encrypted.
    pub tls: Option<TlsFiles>,
}

/// How a collector is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC.
    Grpc,
    /// Protocol buffers over HTTP.
    HttpProtobuf,
}

/// The files of an encrypted connection, each with the variable that names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Who may vouch for the collector, in place of the system's authorities.
    pub authorities: Option<NamedFile>,
    /// The certificate we show, and its key.
    pub identity: Option<(NamedFile, NamedFile)>,
}

/// A file and the variable that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The variable.
    pub variable: String,
    /// The file.
    pub path: PathBuf,
}

/// The variables of one signal: its own win over the general ones.
pub(super) struct Signal<'a> {
    name: &'static str,
    around: &'a dyn Surroundings,
}

impl<'a> Signal<'a> {
    /// The variables of `TRACES` or `METRICS`.
    pub(super) fn new(name: &'static str, around: &'a dyn Surroundings) -> Self {
        Self { name, around }
    }

    /// Whether somebody says where its collector is.
    pub(super) fn has_endpoint(&self) -> bool {
        self.find("ENDPOINT").is_some()
    }

    /// The value of `OTEL_EXPORTER_OTLP_[SIGNAL_]…`, and the name under which it was found.
    fn find(&self, what: &str) -> Option<(String, String)> {
        let names =
            [format!("OTEL_EXPORTER_OTLP_{}_{what}", self.name), format!("OTEL_EXPORTER_OTLP_{what}")];
        names.into_iter().find_map(|name| Some((self.around.variable(&name)?, name)))
    }

    /// Its collector. What cannot be meant is noted among the mistakes, what the exporter will not heed among the
    /// notes.
    pub(super) fn collector(&self, mistakes: &mut Vec<Mistake>, notes: &mut BTreeSet<String>) -> Collector {
        let protocol = self.protocol(mistakes);
        if let Some((given, name)) = self.find("COMPRESSION")
            && !["gzip", "none"].iter().any(|known| given.eq_ignore_ascii_case(known))
        {
            notes.insert(format!(
                "{name} is {given:?}, which is neither gzip nor none: nothing is compressed"
            ));
        }
        let timeout = self.timeout(notes);
        let tls = self.is_encrypted(protocol, mistakes).then(|| self.tls(mistakes));
        Collector { protocol, timeout, tls }
    }

    fn timeout(&self, notes: &mut BTreeSet<String>) -> Duration {
        let Some((given, name)) = self.find("TIMEOUT") else { return TIMEOUT };
        match given.parse() {
            Ok(milliseconds) if milliseconds > 0 => Duration::from_millis(milliseconds),
            _ => {
                notes.insert(format!(
                    "{name} is {given:?}, which is no number of milliseconds: it is {TIMEOUT:?}"
                ));
                TIMEOUT
            }
        }
    }

    fn protocol(&self, mistakes: &mut Vec<Mistake>) -> Protocol {
        match self.find("PROTOCOL") {
            None => Protocol::HttpProtobuf,
            Some((given, name)) => match given.as_str() {
                "grpc" => Protocol::Grpc,
                "http/protobuf" => Protocol::HttpProtobuf,
                odd => {
                    let reason = format!("is {odd:?}; must be grpc or http/protobuf");
                    mistakes.push(environment(&name, &reason));
                    Protocol::HttpProtobuf
                }
            },
        }
    }

    /// By the scheme of the endpoint; gRPC may do without one.
    fn is_encrypted(&self, protocol: Protocol, mistakes: &mut Vec<Mistake>) -> bool {
        let Some((endpoint, name)) = self.find("ENDPOINT") else { return false };
        match endpoint.split_once("://") {
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => false,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => true,
            None if protocol == Protocol::Grpc => {
                !self.find("INSECURE").is_some_and(|(given, _)| given.eq_ignore_ascii_case("true"))
            }
            _ => {
                let reason = format!("is {endpoint:?}; must be a URL such as http://collector:4318");
                mistakes.push(environment(&name, &reason));
                false
            }
        }
    }

    fn tls(&self, mistakes: &mut Vec<Mistake>) -> TlsFiles {
        let file = |what| self.find(what).map(|(path, variable)| NamedFile { variable, path: path.into() });
        let identity = match (file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (Some(alone), None) | (None, Some(alone)) => {
                let reason = "is of use only with its counterpart: a certificate needs its key";
                mistakes.push(environment(&alone.variable, reason));
                None
            }
            (None, None) => None,
        };
        TlsFiles { authorities: file("CERTIFICATE"), identity }
    }
}
