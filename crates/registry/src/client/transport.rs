//! One question to a host: by HTTPS with the trust that fits, or by plain HTTP where that is allowed;
//! redirects followed with care; bodies read up to a limit.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode, Url};

use super::connection::Connections;
use super::failure::{Failure, diagnose};
use super::retry::Again;
use crate::error::{RegistryErrorKind, Trouble};
use crate::trust::{Trust, is_insecure, is_local};

const MOST_REDIRECTS: usize = 5;
/// How many hosts' ways are remembered.
const MOST_KNOWN_HOSTS: usize = 1000;

/// Asks hosts.
pub(super) struct Transport {
    connections: Connections,
    insecure: Vec<String>,
    /// Hosts last reached by plain HTTP, so that HTTPS is not tried each time.
    plain: Mutex<HashSet<String>>,
}

/// What to ask.
pub(super) struct Question {
    pub(super) url: Url,
    /// Whether both schemes may be tried, as for a registry, or only that of the address.
    pub(super) any_scheme: bool,
    /// Whether the user's own authority is asked first.
    pub(super) own_authority: bool,
    pub(super) accept: &'static str,
    pub(super) authorization: Option<HeaderValue>,
    /// A form to post; without one it is a GET.
    pub(super) form: Option<String>,
}

/// What came back, before its body.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// Where the first question went, with the scheme that was used.
    pub(super) asked: Url,
    /// What vouched for the host first asked.
    pub(super) trust: Trust,
    /// Who answered in the end.
    pub(super) host: String,
    response: reqwest::Response,
}

/// A question that got no answer.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) trouble: Trouble,
    /// Whether asking again may help.
    pub(super) again: Again,
}

impl Unanswered {
    fn lasting(trouble: Trouble) -> Self {
        Self { trouble, again: Again::Never }
    }
}

impl Transport {
    pub(super) fn new(connections: Connections, insecure: Vec<String>) -> Self {
        Self { connections, insecure, plain: Mutex::new(HashSet::new()) }
    }

    /// What is wrong with the user's own authority, if there is to be one.
    pub(super) async fn check(&self) -> Option<Trouble> {
        self.connections.check().await
    }

    /// Whether plain HTTP may be spoken with a host.
    pub(super) fn may_be_plain(&self, host: &str) -> bool {
        is_local(host) || is_insecure(host, &self.insecure)
    }

    /// Asks and follows redirects. Credentials stay with the host they are for.
    pub(super) async fn ask(&self, mut question: Question) -> Result<Answer, Unanswered> {
        let mut answer = self.reach(&question).await?;
        let (asked, trust) = (answer.asked.clone(), answer.trust);
        for _ in 0..MOST_REDIRECTS {
            let Some(target) = redirection(&answer) else {
                return Ok(Answer { asked, trust, ..answer });
            };
            let from = authority(&answer.asked);
            let target = target.map_err(|problem| misled(&from, &problem))?;
            let host = authority(&target);
            if target.scheme() == "http" && answer.asked.scheme() != "http" && !self.may_be_plain(&host) {
                return Err(misled(&from, &format!("it leads from HTTPS to plain HTTP at {host}")));
            }
            if !same_origin(&asked, &target) {
                question.authorization = None;
            }
            question.url = target;
            question.any_scheme = false;
            question.form = None;
            answer = self.reach(&question).await?;
        }
        if redirection(&answer).is_some() {
            return Err(misled(
                &authority(&asked),
                &format!("more than {MOST_REDIRECTS} one after the other"),
            ));
        }
        Ok(Answer { asked, trust, ..answer })
    }

    /// The ways to a host, best first.
    fn ways(&self, question: &Question, host: &str) -> Vec<Trust> {
        let mut ways = Vec::new();
        if question.any_scheme || question.url.scheme() == "https" {
            if is_insecure(host, &self.insecure) {
                ways.push(Trust::Unverified);
            } else {
                ways.extend(question.own_authority.then_some(Trust::CustomAuthority));
                ways.push(Trust::System);
            }
        }
        let plain =
            if question.any_scheme { self.may_be_plain(host) } else { question.url.scheme() == "http" };
        ways.extend(plain.then_some(Trust::PlainHttp));
        let known_as_plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner).contains(host);
        if known_as_plain && ways.last() == Some(&Trust::PlainHttp) {
            ways.rotate_right(1);
        }
        ways
    }

    fn remember(&self, host: &str, is_plain: bool) {
        let mut known = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_plain {
            known.remove(host);
        } else if !known.contains(host) {
            if known.len() >= MOST_KNOWN_HOSTS {
                known.clear();
            }
            known.insert(host.to_owned());
        }
    }

    async fn reach(&self, question: &Question) -> Result<Answer, Unanswered> {
        let host = authority(&question.url);
        let mut distrusted: Option<String> = None;
        let mut unreached: Option<Failure> = None;
        for trust in self.ways(question, &host) {
            // A certificate that is not trusted is no reason to do without, nor is a host out of reach one
            // to trust others.
            let is_plain = trust == Trust::PlainHttp;
            if (distrusted.is_some() && is_plain)
                || (unreached.is_some() && !is_plain && distrusted.is_none())
            {
                continue;
            }
            match self.send(question, trust).await? {
                Ok(answer) => {
                    if let (Some(cause), Trust::System) = (&distrusted, trust) {
                        tracing::warn!(
                            registry = host,
                            cause,
                            "the registry's certificate is not of the custom authority; trusted by the system's roots"
                        );
                    }
                    // A server of HTTPS answers plain questions so; next time begin from the start.
                    self.remember(&host, is_plain && answer.status != StatusCode::BAD_REQUEST);
                    return Ok(answer);
                }
                Err(Failure::Certificate(cause)) => {
                    // The first reason is about the authority the user has chosen.
                    distrusted.get_or_insert(cause);
                }
                Err(failure) => {
                    self.remember(&host, false);
                    let is_nowhere = matches!(failure, Failure::Unresolved(_));
                    unreached.get_or_insert(failure);
                    // It has no address by another scheme either.
                    if is_nowhere {
                        break;
                    }
                }
            }
        }
        if let Some(cause) = distrusted {
            return Err(Unanswered::lasting(untrusted(&host, &cause, question.own_authority)));
        }
        let failure = unreached.unwrap_or(Failure::Lost("there is no way to it".to_owned()));
        let again = match failure {
            // A lookup has its own patience.
            Failure::Certificate(_) | Failure::NotTls | Failure::Incompatible(_) | Failure::Unresolved(_) => {
                Again::Never
            }
            Failure::Refused(_) => Again::Once,
            Failure::Lost(_) => Again::Soon,
        };
        Err(Unanswered { trouble: unreachable(&host, failure), again })
    }

    async fn send(&self, question: &Question, trust: Trust) -> Result<Result<Answer, Failure>, Unanswered> {
        let client = self.connections.client(trust).await.map_err(Unanswered::lasting)?;
        let mut url = question.url.clone();
        let scheme = if trust == Trust::PlainHttp { "http" } else { "https" };
        // Between these two schemes, changing is always possible.
        let _ = url.set_scheme(scheme);
        let method = if question.form.is_some() { Method::POST } else { Method::GET };
        let mut request = client.request(method, url.clone()).header(ACCEPT, question.accept);
        if let Some(authorization) = &question.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(form) = &question.form {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.clone());
        }
        match request.send().await {
            Ok(response) => Ok(Ok(Answer {
                status: response.status(),
                headers: response.headers().clone(),
                host: authority(&url),
                asked: url,
                trust,
                response,
            })),
            Err(error) => Ok(Err(diagnose(&error))),
        }
    }
}

impl Answer {
    /// The body, if it has no more bytes than the limit. A body that says it is larger is not read at all.
    pub(super) async fn body(mut self, limit: usize, what: &str) -> Result<Vec<u8>, Unanswered> {
        let too_large = |size: String| {
            Unanswered::lasting(Trouble::invalid(
                format!("the {what} of {} has {size}, more than the {limit} allowed", self.host),
                "check the image; no sound one needs as much",
            ))
        };
        let announced = self.response.content_length();
        if let Some(length) = announced.filter(|length| *length > limit as u64) {
            return Err(too_large(format!("{length} bytes")));
        }
        let mut body = Vec::new();
        loop {
            match self.response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > limit => {
                    return Err(too_large("more bytes than announced".to_owned()));
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(body),
                Err(error) => {
                    let failure = diagnose(&error);
                    let trouble = Trouble::unavailable(format!(
                        "the {what} of {} broke off after {} bytes: {failure}",
                        self.host,
                        body.len()
                    ));
                    return Err(Unanswered { trouble, again: Again::Soon });
                }
            }
        }
    }

    /// The beginning of the body, as far as it can be had.
    pub(super) async fn beginning(mut self, limit: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < limit
            && let Ok(Some(chunk)) = self.response.chunk().await
        {
            body.extend(chunk.iter().take(limit - body.len()));
        }
        body
    }
}

/// `host:port`, with the port only if it is not the scheme's own.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host_str() == other.host_str()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// Where an answer leads, if it is a redirect.
fn redirection(answer: &Answer) -> Option<Result<Url, String>> {
    let is_redirect = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = answer.headers.get(LOCATION).filter(|_| is_redirect)?;
    let target = location
        .to_str()
        .map_err(|error| error.to_string())
        .and_then(|location| answer.asked.join(location).map_err(|error| error.to_string()))
        .and_then(|mut target| {
            if !matches!(target.scheme(), "http" | "https") || target.host_str().is_none() {
                return Err("it leads to no HTTP address".to_owned());
            }
            // A redirect gives no credentials of its own.
            let _ = target.set_username("");
            let _ = target.set_password(None);
            Ok(target)
        });
    Some(target)
}

fn misled(from: &str, problem: &str) -> Unanswered {
    Unanswered::lasting(Trouble::invalid(
        format!("the redirect of {from} cannot be followed: {problem}"),
        "check the registry's settings for its own address and its storage",
    ))
}

fn untrusted(host: &str, cause: &str, own_authority: bool) -> Trouble {
    let remedy = if own_authority {
        "put the authority of the registry's certificate into ca.crt of --tls-secret-path, or renew the certificate"
    } else {
        "use a certificate of a public authority, or name its own with --enable-private-registries-tls and \
         --tls-secret-path"
    };
    Trouble::new(
        RegistryErrorKind::Untrusted,
        format!("the certificate of {host} is not trusted: {cause}"),
        remedy,
    )
}

fn unreachable(host: &str, failure: Failure) -> Trouble {
    match failure {
        Failure::NotTls => Trouble::new(
            RegistryErrorKind::Unavailable,
            format!("{host} does not speak TLS"),
            "make it serve HTTPS, or allow plain HTTP with --insecure-registries",
        ),
        Failure::Incompatible(cause) => Trouble::new(
            RegistryErrorKind::Untrusted,
            format!("{host} and we have no TLS version or cipher in common: {cause}"),
            "make it speak TLS 1.2 or newer",
        ),
        Failure::Unresolved(cause) => Trouble::new(
            RegistryErrorKind::Unavailable,
            format!("{host} cannot be reached: {cause}"),
            "check the image's name, and the name servers of /etc/resolv.conf",
        ),
        other => Trouble::unavailable(format!("{host} cannot be reached: {other}")),
    }
}
