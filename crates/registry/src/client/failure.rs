//! Why a question got no answer, dug out of the layers of the HTTP library's errors.

use std::error::Error;
use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError};

use crate::error::clean;
use crate::names::LookupError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The certificate is not trusted.
    Certificate(String),
    /// The other side does not speak TLS.
    NotTls,
    /// The other side speaks TLS, but none of ours.
    Incompatible(String),
    /// Its name, or that of the proxy to it, has no address for us.
    Unresolved(String),
    /// Nobody listens there.
    Refused(String),
    /// No connection, or one that was lost.
    Lost(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTls => formatter.write_str("it does not speak TLS"),
            Self::Certificate(cause)
            | Self::Incompatible(cause)
            | Self::Unresolved(cause)
            | Self::Refused(cause)
            | Self::Lost(cause) => formatter.write_str(cause),
        }
    }
}

/// Addresses are left out: they may hold what a registry put into a redirect, such as signatures.
pub(super) fn diagnose(error: &reqwest::Error) -> Failure {
    if let Some(tls) = find::<rustls::Error>(error) {
        return from_tls(tls);
    }
    if let Some(lookup) = find::<LookupError>(error) {
        return Failure::Unresolved(clean(&lookup.to_string()).unwrap_or_default());
    }
    if error.is_timeout() {
        return Failure::Lost("it was silent for too long".to_owned());
    }
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    // The outermost error alone shows the address.
    let cause = if innermost.source().is_none() && innermost.is::<reqwest::Error>() {
        "the connection failed".to_owned()
    } else {
        innermost.to_string()
    };
    let cause = clean(&cause).unwrap_or_default();
    match find::<io::Error>(error) {
        Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => Failure::Refused(cause),
        _ => Failure::Lost(cause),
    }
}

/// The outermost error of a kind.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        // An I/O error passes over the error it wraps when asked for its source.
        if let Some(wrapped) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref)
            && let Some(found) = find::<E>(wrapped)
        {
            return Some(found);
        }
        current = error.source();
    }
    None
}

fn from_tls(error: &rustls::Error) -> Failure {
    match error {
        rustls::Error::InvalidCertificate(cause) => Failure::Certificate(certificate(cause)),
        rustls::Error::NoCertificatesPresented => Failure::Certificate(error.to_string()),
        rustls::Error::InvalidMessage(_) => Failure::NotTls,
        rustls::Error::PeerIncompatible(_)
        | rustls::Error::AlertReceived(
            AlertDescription::ProtocolVersion
            | AlertDescription::HandshakeFailure
            | AlertDescription::InsufficientSecurity,
        ) => Failure::Incompatible(error.to_string()),
        other => Failure::Lost(clean(&other.to_string()).unwrap_or_default()),
    }
}

fn certificate(cause: &CertificateError) -> String {
    match cause {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet; are the clocks right?".to_owned()
        }
        CertificateError::UnknownIssuer => "it is of an unknown authority".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            clean(&format!("it is for another name: {cause}")).unwrap_or_default()
        }
        other => clean(&other.to_string()).unwrap_or_default(),
    }
}
