//! One question to a registry, with the proof it wants and as many attempts as make sense.

use std::sync::{Mutex, PoisonError};

use reqwest::header::{HeaderMap, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{StatusCode, Url};
use tokio::time::Instant;

use super::challenge::{self, Challenge};
use super::retry::{Again, Pauses, retry_after};
use super::token::{self, Authorization, Tokens};
use super::transport::{Answer, Question, Transport, Unanswered};
use super::words;
use crate::credentials::{Keychain, KeychainError, Login, Secret};
use crate::error::{RegistryErrorKind, Trouble};
use crate::reference::{DOCKER_HUB, Reference};
use crate::trust::Trust;

/// The longest name that a name server can be asked for.
const LONGEST_HOST: usize = 253;

/// The questions about one image at one registry.
pub(super) struct Session<'a> {
    pub(super) transport: &'a Transport,
    pub(super) tokens: &'a Tokens,
    pub(super) keychain: &'a Keychain,
    /// The image by the name it has at this registry.
    pub(super) image: Reference,
    pub(super) own_authority: bool,
    /// Whether the keychain is the private one.
    pub(super) is_private: bool,
    pub(super) deadline: Instant,
    pub(super) used: Mutex<Used>,
}

/// What was used to get the last answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Used {
    pub(super) credential: Option<String>,
    pub(super) trust: Option<Trust>,
}

/// What to get.
pub(super) struct Wanted<'a> {
    /// Path and query below the repository: `manifests/v1`.
    pub(super) path: &'a str,
    pub(super) accept: &'static str,
    pub(super) limit: usize,
    /// What it is called in errors: `manifest`.
    pub(super) what: &'a str,
    /// Whether it was named by the caller. Else the registry named it, and ought to have it.
    pub(super) is_named_by_caller: bool,
}

pub(super) struct Fetched {
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// An attempt that failed.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) trouble: Trouble,
    again: Again,
}

impl Refusal {
    pub(super) fn lasting(trouble: Trouble) -> Self {
        Self { trouble, again: Again::Never }
    }

    /// The refusal of a registry that is busy or broken.
    pub(super) async fn passing(answer: Answer, who: &str, secrets: &[Secret]) -> Self {
        let wished =
            answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(retry_after);
        let (status, host) = (answer.status, answer.host.clone());
        let (said, _) = words::read(&answer.beginning(words::MOST_BYTES).await, secrets);
        let trouble = if status == StatusCode::TOO_MANY_REQUESTS {
            let wait =
                wished.map(|wished| format!(" and asks to wait {} s", wished.as_secs())).unwrap_or_default();
            Trouble::new(
                RegistryErrorKind::Unavailable,
                format!("{who} {host} has had too many requests (429){wait}"),
                "try again later, or use credentials with a higher limit or a mirror (--registry-mirrors)",
            )
        } else {
            Trouble::unavailable(format!("{who} {host} answers {status}"))
        };
        Self { trouble: trouble.saying(said), again: wished.map_or(Again::Soon, Again::After) }
    }
}

impl From<Unanswered> for Refusal {
    fn from(unanswered: Unanswered) -> Self {
        Self { trouble: unanswered.trouble, again: unanswered.again }
    }
}

/// Answers that are worth another attempt.
pub(super) fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

/// The credentials last tried within an attempt.
#[derive(Default, PartialEq, Eq)]
enum Tried {
    /// None were looked up yet.
    #[default]
    Nothing,
    /// There were none: nobody's.
    Anonymous,
    Login(Login),
}

impl From<Option<Login>> for Tried {
    fn from(login: Option<Login>) -> Self {
        login.map_or(Self::Anonymous, Self::Login)
    }
}

/// How far the proof of who we are has come within an attempt.
#[derive(Default)]
struct Proof {
    tried: Tried,
    /// Whether they were looked up anew after a refusal.
    is_fresh: bool,
}

impl Session<'_> {
    pub(super) fn host(&self) -> &str {
        self.image.registry()
    }

    pub(super) fn repository(&self) -> &str {
        self.image.repository()
    }

    pub(super) fn key(&self) -> (String, String, bool) {
        (self.host().to_owned(), self.repository().to_owned(), self.is_private)
    }

    /// Asks until there is an answer, or no hope of one.
    pub(super) async fn get(&self, wanted: &Wanted<'_>) -> Result<Fetched, Trouble> {
        let mut pauses = Pauses::new(self.deadline);
        loop {
            let refusal = match self.attempt(wanted).await {
                Ok(fetched) => return Ok(fetched),
                Err(refusal) => refusal,
            };
            let Some(pause) = pauses.next(refusal.again) else {
                let mut trouble = refusal.trouble;
                if pauses.attempts() > 1 {
                    trouble.problem = format!("{} (after {} attempts)", trouble.problem, pauses.attempts());
                }
                return Err(trouble);
            };
            tracing::debug!(
                registry = self.host(),
                problem = refusal.trouble.problem,
                pause_ms = pause.as_millis(),
                "asking the registry again"
            );
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(&self, wanted: &Wanted<'_>) -> Result<Fetched, Refusal> {
        let url = self.address(wanted.path)?;
        let mut authorization = self.tokens.get(&self.key());
        let mut proof = Proof::default();
        loop {
            let answer = self
                .transport
                .ask(Question {
                    url: url.clone(),
                    any_scheme: true,
                    own_authority: self.own_authority,
                    accept: wanted.accept,
                    authorization: authorization.as_ref().map(|proof| proof.header.clone()),
                    form: None,
                })
                .await?;
            if answer.status == StatusCode::UNAUTHORIZED {
                authorization = Some(self.prove(answer, authorization, &mut proof).await?);
                continue;
            }
            let secrets = authorization.as_ref().map_or(&[][..], |proof| &proof.secrets);
            if !answer.status.is_success() {
                return Err(self.refused(answer, wanted, secrets, authorization.as_ref()).await);
            }
            *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Used {
                credential: authorization.as_ref().and_then(|proof| proof.entry.clone()),
                trust: Some(answer.trust),
            };
            let headers = answer.headers.clone();
            let body = answer.body(wanted.limit, wanted.what).await?;
            return Ok(Fetched { headers, body });
        }
    }

    /// A new proof after a 401. The second time it is made of credentials read anew, and there is no third.
    async fn prove(
        &self,
        answer: Answer,
        refused: Option<Authorization>,
        proof: &mut Proof,
    ) -> Result<Authorization, Refusal> {
        let challenges: Vec<Challenge> = answer
            .headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(challenge::parse)
            .collect();
        let asked = answer.asked.clone();
        let secrets = refused.as_ref().map_or(&[][..], |proof| &proof.secrets);
        let (mut said, _) = words::read(&answer.beginning(words::MOST_BYTES).await, secrets);
        if refused.is_some() {
            self.tokens.forget(&self.key());
            self.refresh(proof, said.clone())?;
        }
        loop {
            let (login, missing_helper) = match self.keychain.lookup(&self.image).await {
                Ok(login) => (login, None),
                Err(error) if error.is_missing_helper() => (None, Some(error)),
                Err(error) => return Err(self.without_login(&error, None)),
            };
            // The same again would be refused again, and count as another wrong login.
            if proof.is_fresh && proof.tried == Tried::from(login.clone()) {
                return Err(match missing_helper {
                    // It may be that it has the login.
                    Some(error) => self.without_login(&error, said),
                    None => self.denied(login.as_ref(), said),
                });
            }
            let obtained = token::obtain(self, &challenges, &asked, login.as_ref()).await;
            proof.tried = login.into();
            match obtained {
                Err(refusal) if refusal.trouble.kind == RegistryErrorKind::Denied && !proof.is_fresh => {
                    // The token server knows better why.
                    said = refusal.trouble.said.or(said);
                    self.refresh(proof, said.clone())?;
                }
                obtained => return obtained,
            }
        }
    }

    /// The refusal of a registry that wants credentials which cannot be had.
    fn without_login(&self, error: &KeychainError, said: Option<String>) -> Refusal {
        let trouble = Trouble::new(
            RegistryErrorKind::Denied,
            format!("the credentials for {} cannot be read: {error}", self.host()),
            "put the Docker config right",
        );
        Refusal::lasting(trouble.saying(said))
    }

    /// Makes the next look at the credentials a fresh one, if there has been none.
    fn refresh(&self, proof: &mut Proof, said: Option<String>) -> Result<(), Refusal> {
        if proof.is_fresh {
            let login = if let Tried::Login(login) = &proof.tried { Some(login) } else { None };
            return Err(self.denied(login, said));
        }
        proof.is_fresh = true;
        self.keychain.forget();
        Ok(())
    }

    /// The refusal of our credentials, or of our having none.
    pub(super) fn denied(&self, login: Option<&Login>, said: Option<String>) -> Refusal {
        let (host, repository) = (self.host(), self.repository());
        let trouble = match login {
            Some(login) => Trouble::new(
                RegistryErrorKind::Denied,
                format!("{host} refuses the credentials of the entry {:?} for {repository}", login.entry()),
                "check user name, password and rights in the Docker config",
            ),
            None => Trouble::new(
                RegistryErrorKind::Denied,
                format!("{host} wants credentials for {repository}, and there is no entry for it"),
                format!("check the image's name, or add an entry for {host} to the Docker config"),
            ),
        };
        Refusal::lasting(trouble.saying(said))
    }

    /// What a status other than success and 401 means.
    async fn refused(
        &self,
        answer: Answer,
        wanted: &Wanted<'_>,
        secrets: &[Secret],
        authorization: Option<&Authorization>,
    ) -> Refusal {
        let status = answer.status;
        if may_pass(status) {
            return Refusal::passing(answer, "the registry", secrets).await;
        }
        let host = answer.host.clone();
        let (said, code) = words::read(&answer.beginning(words::MOST_BYTES).await, secrets);
        let (repository, what) = (self.repository(), wanted.what);
        let trouble = match status {
            StatusCode::FORBIDDEN => {
                let who = match authorization.and_then(|proof| proof.entry.as_deref()) {
                    Some(entry) => format!("the credentials of the entry {entry:?}"),
                    None => "those without credentials".to_owned(),
                };
                Trouble::new(
                    RegistryErrorKind::Denied,
                    format!("{host} gives {who} no right to {repository}"),
                    "give them the right to pull, or use other credentials",
                )
            }
            StatusCode::NOT_FOUND if wanted.is_named_by_caller => {
                let what = if code.as_deref() == Some("NAME_UNKNOWN") {
                    format!("no repository {repository}")
                } else {
                    format!("no {what} of {repository}")
                };
                Trouble::new(
                    RegistryErrorKind::Missing,
                    format!("{host} has {what}"),
                    "check the image's name and tag, or push it",
                )
            }
            StatusCode::NOT_FOUND => Trouble::invalid(
                format!("{host} has no {what} of {repository}, though the image names it"),
                "push the image again",
            ),
            status => Trouble::invalid(
                format!("{host} answers {status} when asked for the {what} of {repository}"),
                "check that it is a registry of container images",
            ),
        };
        Refusal::lasting(trouble.saying(said))
    }

    fn address(&self, path: &str) -> Result<Url, Refusal> {
        let host = api_host(&self.image);
        if crate::trust::host_of(host).len() > LONGEST_HOST {
            return Err(Refusal::lasting(Trouble::invalid(
                format!("{host} is too long for the name of a host"),
                "check the image's name",
            )));
        }
        Url::parse(&format!("https://{host}/v2/{}/{path}", self.repository())).map_err(|error| {
            Refusal::lasting(Trouble::invalid(
                format!("{host} is not the address of a registry: {error}"),
                "check the image's name",
            ))
        })
    }
}

/// Where an image's registry is asked: Docker Hub's API has an address of its own.
fn api_host(image: &Reference) -> &str {
    match image.registry() {
        DOCKER_HUB => "registry-1.docker.io",
        registry => registry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_docker_hub_lead_to_its_api_and_no_other_name_does() {
        for (image, host, repository) in [
            ("ubuntu", "registry-1.docker.io", "library/ubuntu"),
            ("me/app:v1", "registry-1.docker.io", "me/app"),
            ("docker.io/ubuntu", "registry-1.docker.io", "library/ubuntu"),
            ("index.docker.io/me/app", "registry-1.docker.io", "me/app"),
            ("registry-1.docker.io/me/app", "registry-1.docker.io", "me/app"),
            ("docker.io.example/me/app", "docker.io.example", "me/app"),
            ("localhost:5000/docker.io/app", "localhost:5000", "docker.io/app"),
        ] {
            let image = Reference::parse(image).unwrap();
            assert_eq!((api_host(&image), image.repository()), (host, repository), "{image}");
        }
    }
}
