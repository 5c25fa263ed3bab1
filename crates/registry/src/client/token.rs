//! What is sent with a question to prove who asks: a password, or a token from a token server.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use tokio::time::Instant;

use super::challenge::Challenge;
use super::fetch::{Refusal, Session};
use super::transport::{Answer, Question, authority};
use super::words;
use crate::credentials::{Login, Secret};
use crate::error::{RegistryErrorKind, Trouble};

const LARGEST_TOKEN_ANSWER: usize = 256 * 1024;
/// What the specification says of tokens that do not tell their age.
const DEFAULT_LIFETIME: Duration = Duration::from_mins(1);
/// A token is not used in its last seconds, when the registry's clock may see it as old.
const SAFETY: Duration = Duration::from_secs(10);
/// However long it lives: rights may be taken away.
const LONGEST_USE: Duration = Duration::from_mins(5);
const MOST_TOKENS: usize = 1000;

/// Proof of who asks.
#[derive(Clone)]
pub(super) struct Authorization {
    pub(super) header: HeaderValue,
    /// The entry of the credentials it was made from; `None` for nobody's.
    pub(super) entry: Option<String>,
    /// What must not be repeated to anyone.
    pub(super) secrets: Vec<Secret>,
}

/// Registry, repository, and whether the private credentials are meant.
type Key = (String, String, bool);

/// Proofs that were accepted, until they grow old.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<Key, (Authorization, Instant)>>);

impl Tokens {
    pub(super) fn get(&self, key: &Key) -> Option<Authorization> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.get(key).filter(|(_, until)| *until > Instant::now()).map(|(proof, _)| proof.clone())
    }

    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn keep(&self, key: Key, proof: &Authorization, lifetime: Duration) {
        let now = Instant::now();
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MOST_TOKENS {
            tokens.retain(|_, (_, until)| *until > now);
        }
        if tokens.len() >= MOST_TOKENS {
            tokens.clear();
        }
        tokens.insert(key, (proof.clone(), now + lifetime.saturating_sub(SAFETY).min(LONGEST_USE)));
    }
}

/// The answer of a token server.
#[derive(Deserialize)]
struct Issued {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<f64>,
}

/// Makes a proof of the kind the registry has asked for.
pub(super) async fn obtain(
    session: &Session<'_>,
    challenges: &[Challenge],
    asked: &Url,
    login: Option<&Login>,
) -> Result<Authorization, Refusal> {
    let bearer = challenges.iter().find_map(|challenge| match challenge {
        Challenge::Bearer { realm, service, scope, .. } => {
            Some((realm, service.as_deref(), scope.as_deref()))
        }
        Challenge::Basic => None,
    });
    match (bearer, login) {
        (_, Some(Login::RegistryToken(token))) => {
            let proof = bearer_proof(session, token.clone(), login)?;
            session.tokens.keep(session.key(), &proof, DEFAULT_LIFETIME);
            Ok(proof)
        }
        (Some((realm, service, scope)), _) => ask_token(session, realm, service, scope, asked, login).await,
        (None, Some(Login::Basic { username, password })) => {
            let header = basic(username, password, session)?;
            let proof = Authorization {
                secrets: secrets(login, &header),
                header,
                entry: login.map(|login| login.entry().to_owned()),
            };
            session.tokens.keep(session.key(), &proof, DEFAULT_LIFETIME);
            Ok(proof)
        }
        (None, login) => Err(session.denied(login, None)),
    }
}

/// Asks the token server the registry has named.
async fn ask_token(
    session: &Session<'_>,
    realm: &str,
    service: Option<&str>,
    scope: Option<&str>,
    asked: &Url,
    login: Option<&Login>,
) -> Result<Authorization, Refusal> {
    let mut url = token_server(session, realm, asked)?;
    let own_scope = format!("repository:{}:pull", session.repository());
    let scopes: Vec<&str> =
        scope.unwrap_or(&own_scope).split(' ').filter(|scope| !scope.is_empty()).collect();
    let mut authorization = None;
    let mut form = None;
    if let Some(Login::IdentityToken(token)) = login {
        // A query writer is the form writer at hand: both are encoded alike.
        let mut writer = url.clone();
        writer
            .query_pairs_mut()
            .clear()
            .append_pair("grant_type", "refresh_token")
            .append_pair("refresh_token", token.reveal())
            .append_pair("client_id", "function-runner")
            .append_pair("scope", &scopes.join(" "))
            .extend_pairs(service.map(|service| ("service", service)));
        form = writer.query().map(str::to_owned);
    } else {
        url.query_pairs_mut()
            .extend_pairs(service.map(|service| ("service", service)))
            .extend_pairs(scopes.iter().map(|scope| ("scope", *scope)));
        if let Some(Login::Basic { username, password }) = login {
            authorization = Some(basic(username, password, session)?);
        }
    }
    let hidden = authorization
        .as_ref()
        .map_or_else(|| secrets(login, &HeaderValue::from_static("")), |header| secrets(login, header));
    let answer = session
        .transport
        .ask(Question {
            url,
            any_scheme: false,
            own_authority: session.own_authority,
            accept: "application/json",
            authorization,
            form,
        })
        .await
        .map_err(Refusal::from)?;
    if !answer.status.is_success() {
        return Err(refused(session, answer, login, &hidden).await);
    }
    let host = answer.host.clone();
    let body = answer.body(LARGEST_TOKEN_ANSWER, "token").await.map_err(Refusal::from)?;
    let wrong = |problem: &str| {
        Refusal::lasting(Trouble::invalid(
            format!("the answer of the token server {host} {problem}"),
            "check the registry's token server",
        ))
    };
    let issued: Issued = serde_json::from_slice(&body).map_err(|_| wrong("is not the JSON of a token"))?;
    let token = issued.token.filter(|token| !token.is_empty()).or(issued.access_token);
    let token = token.filter(|token| !token.is_empty()).ok_or_else(|| wrong("holds no token"))?;
    let lifetime = issued
        .expires_in
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(DEFAULT_LIFETIME);
    let mut proof = bearer_proof(session, Secret::new(token), login)?;
    proof.secrets.extend(hidden);
    session.tokens.keep(session.key(), &proof, lifetime);
    Ok(proof)
}

/// The token server's address. A password does not go there unprotected, unless the registry itself is
/// spoken with in plain, or the token server may be.
fn token_server(session: &Session<'_>, realm: &str, asked: &Url) -> Result<Url, Refusal> {
    let wrong = |problem: String| {
        Refusal::lasting(Trouble::invalid(
            format!("{} names a token server that cannot be used: {problem}", authority(asked)),
            "check the realm in the registry's settings",
        ))
    };
    let mut url = asked.join(realm).map_err(|error| wrong(error.to_string()))?;
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    let host = authority(&url);
    match url.scheme() {
        "https" => Ok(url),
        "http" if asked.scheme() == "http" || session.transport.may_be_plain(&host) => Ok(url),
        "http" => Err(wrong(format!("{host} is to be asked by plain HTTP"))),
        _ => Err(wrong("it is no HTTP address".to_owned())),
    }
}

async fn refused(session: &Session<'_>, answer: Answer, login: Option<&Login>, hidden: &[Secret]) -> Refusal {
    let (status, host) = (answer.status, answer.host.clone());
    if super::fetch::may_pass(status) {
        return Refusal::passing(answer, "the token server", hidden).await;
    }
    let (said, _) = words::read(&answer.beginning(words::MOST_BYTES).await, hidden);
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return session.denied(login, said);
    }
    Refusal::lasting(
        Trouble::new(
            RegistryErrorKind::Invalid,
            format!("the token server {host} answers {status}"),
            "check the registry's token server",
        )
        .saying(said),
    )
}

fn basic(username: &str, password: &Secret, session: &Session<'_>) -> Result<HeaderValue, Refusal> {
    let text = STANDARD.encode(format!("{username}:{}", password.reveal()));
    sensitive(&format!("Basic {text}"), session)
}

fn bearer_proof(
    session: &Session<'_>,
    token: Secret,
    login: Option<&Login>,
) -> Result<Authorization, Refusal> {
    let header = sensitive(&format!("Bearer {}", token.reveal()), session)?;
    Ok(Authorization { header, entry: login.map(|login| login.entry().to_owned()), secrets: vec![token] })
}

fn sensitive(text: &str, session: &Session<'_>) -> Result<HeaderValue, Refusal> {
    let mut header = HeaderValue::from_str(text).map_err(|_| {
        Refusal::lasting(Trouble::invalid(
            format!("the token for {} has characters no header may hold", session.host()),
            "check the token server or the credentials",
        ))
    })?;
    header.set_sensitive(true);
    Ok(header)
}

fn secrets(login: Option<&Login>, header: &HeaderValue) -> Vec<Secret> {
    let Some(
        Login::Basic { password: secret, .. } | Login::IdentityToken(secret) | Login::RegistryToken(secret),
    ) = login
    else {
        return Vec::new();
    };
    let encoded = header.to_str().ok().and_then(|text| text.split_once(' ')).map(|(_, text)| text);
    std::iter::once(secret.clone()).chain(encoded.map(Secret::new)).collect()
}
