//! A client of image registries, for what must be known of an image before it runs.
//!
//! Made of small parts: `transport` asks one host one question, `fetch` asks a registry with proof and
//! patience, and here the questions are put together.

mod challenge;
mod connection;
mod digest;
mod failure;
mod fetch;
mod inspect;
mod mirror;
mod retry;
mod tags;
mod token;
mod transport;
mod verifier;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::Instant;

pub use self::connection::{Proxies, SetupError};
pub use self::mirror::{InvalidMirror, Mirror};

use self::connection::Connections;
use self::fetch::{Session, Used};
use self::inspect::Inspection;
use self::mirror::Mirrors;
use self::token::Tokens;
use self::transport::Transport;
use crate::credentials::Keychain;
use crate::error::{RegistryError, RegistryErrorKind, Trouble};
use crate::metadata::{Metadata, Platform};
use crate::names::Resolver;
use crate::trust::AuthorityFolder;
use crate::{AllowedImages, Reference};

/// Images under this prefix are public: they are asked for without private credentials and authority.
const EXEMPT_PREFIX: &str = "gcr.io/kpt-fn/";
/// Whether an image is asked for and pulled without what private registries need.
pub fn is_exempt(image: &Reference) -> bool {
    image.full_name().starts_with(EXEMPT_PREFIX)
}

/// How long a question without a deadline may take.
const DEFAULT_BOUND: Duration = Duration::from_secs(30);

/// How registries are asked.
#[derive(Debug)]
pub struct Options {
    /// The credentials of users, where the private ones do not apply.
    pub keychain: Keychain,
    /// Private registries, if they are enabled.
    pub private: Option<PrivateOptions>,
    /// Registries, with or without port, spoken with by plain HTTP or without checking certificates.
    pub insecure_registries: Vec<String>,
    /// What stands in for registries and is asked first.
    pub mirrors: Vec<Mirror>,
    /// The images that may be asked for, mirrors' names of them included.
    pub allowed: AllowedImages,
    /// Where images are to run.
    pub platform: Platform,
    /// The proxies between us and registries.
    pub proxies: Proxies,
    /// What finds the addresses of names.
    pub resolver: Resolver,
}

impl Default for Options {
    /// The usual credentials, and the proxies of the environment.
    fn default() -> Self {
        Self {
            keychain: Keychain::usual(),
            private: None,
            insecure_registries: Vec::new(),
            mirrors: Vec::new(),
            allowed: AllowedImages::default(),
            platform: Platform::default(),
            proxies: Proxies::from_environment(),
            resolver: Resolver::default(),
        }
    }
}

/// What private registries need.
#[derive(Debug)]
pub struct PrivateOptions {
    /// Their credentials, in place of the usual ones.
    pub keychain: Keychain,
    /// The folder of their certificate authority, if they have their own.
    pub ca_folder: Option<PathBuf>,
}

/// Registries, to be asked about images. A clone shares connections and tokens.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    transport: Transport,
    tokens: Tokens,
    keychain: Keychain,
    private: Option<PrivateOptions>,
    mirrors: Mirrors,
    allowed: AllowedImages,
    platform: Platform,
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Registry")
            .field("platform", &self.0.platform)
            .field("private", &self.0.private.is_some())
            .field("mirrors", &self.0.mirrors)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// A client. It asks nothing yet, and reads neither credentials nor certificates.
    pub fn new(options: Options) -> Result<Self, SetupError> {
        let Options { keychain, private, insecure_registries, mirrors, allowed, platform, proxies, resolver } =
            options;
        let folder = private.as_ref().and_then(|private| private.ca_folder.clone()).map(AuthorityFolder::new);
        Ok(Self(Arc::new(Inner {
            transport: Transport::new(Connections::new(&proxies, resolver, folder)?, insecure_registries),
            tokens: Tokens::default(),
            keychain,
            private,
            mirrors: Mirrors::new(mirrors),
            allowed,
            platform,
        })))
    }

    /// What is wrong with the credentials and certificates that registries are asked with, as their files are now;
    /// one line each. They are read again when they are needed.
    pub async fn check(&self) -> Vec<String> {
        let Inner { keychain, private, transport, .. } = &*self.0;
        let private = private.as_ref().map(|private| &private.keychain);
        let mut problems = Vec::new();
        for keychain in private.into_iter().chain([keychain]) {
            problems.extend(keychain.check().await.iter().map(ToString::to_string));
        }
        // What is asked for by flag ought to be there.
        if let Some(path) = private.and_then(Keychain::path).map(Path::to_owned) {
            let shown = path.display().to_string();
            let exists = spawn_blocking(move || path.try_exists()).await;
            if exists.is_ok_and(|exists| matches!(exists, Ok(false))) {
                problems.push(format!(
                    "there is no Docker config file {shown}, so private registries are asked without a login; put it \
                     there, or name another with --registry-auth-secret-path"
                ));
            }
        }
        let trouble = transport.check().await;
        problems.extend(trouble.map(|trouble| format!("{}; {}", trouble.problem, trouble.remedy)));
        problems
    }

    /// What an image says about itself, asked anew. Without a deadline it takes half a minute at most.
    pub async fn metadata(
        &self,
        image: &Reference,
        deadline: Option<Instant>,
    ) -> Result<Metadata, RegistryError> {
        self.ask(image, deadline, &Inspection { image, platform: &self.0.platform }).await
    }

    /// The tags of an image's repository, in the registry's order; the image's own tag does not matter.
    pub async fn tags(
        &self,
        image: &Reference,
        deadline: Option<Instant>,
    ) -> Result<Vec<String>, RegistryError> {
        self.ask(image, deadline, &TagList).await
    }

    /// Asks the mirrors of an image and then its registry, until one answers.
    async fn ask<I: Inquiry>(
        &self,
        image: &Reference,
        deadline: Option<Instant>,
        inquiry: &I,
    ) -> Result<I::Answer, RegistryError> {
        // Before any mirror is.
        self.0.allowed.check(image)?;
        let deadline = deadline.unwrap_or_else(|| Instant::now() + DEFAULT_BOUND);
        let mut failed: Option<(String, RegistryError)> = None;
        for mirror in self.0.mirrors.of(image) {
            // A mirror that hangs must leave time for the registry itself.
            let now = Instant::now();
            let its_deadline = now + deadline.saturating_duration_since(now) / 2;
            let name = mirror.full_name().to_owned();
            match self.ask_one(image, mirror, its_deadline, inquiry).await {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    tracing::debug!(mirror = name, cause = %error, "mirror cannot be used");
                    failed.get_or_insert((name, error));
                }
            }
        }
        self.ask_one(image, image.clone(), deadline, inquiry).await.map_err(|error| match failed {
            Some((mirror, earlier)) => error.after_mirror(&mirror, &earlier),
            None => error,
        })
    }

    async fn ask_one<I: Inquiry>(
        &self,
        image: &Reference,
        source: Reference,
        deadline: Instant,
        inquiry: &I,
    ) -> Result<I::Answer, RegistryError> {
        self.0.allowed.check(&source)?;
        let begin = Instant::now();
        let session = self.0.session(source, deadline);
        let answer = tokio::time::timeout_at(deadline, inquiry.put(&session)).await.unwrap_or_else(|_| {
            let seconds = begin.elapsed().as_secs_f64();
            Err(Trouble::new(
                RegistryErrorKind::TimedOut,
                format!("{} did not answer in full within {seconds:.1} s", session.host()),
                "check that the registry is well and can be reached, or allow more time",
            ))
        });
        answer.map_err(|trouble| trouble.with_image(image.as_given()))
    }
}

impl Inner {
    /// Which credentials and trust go with a name: decided by the name that is asked, so that a private mirror
    /// of public images gets the private ones.
    fn session(&self, image: Reference, deadline: Instant) -> Session<'_> {
        let private = self.private.as_ref().filter(|_| !is_exempt(&image));
        Session {
            transport: &self.transport,
            tokens: &self.tokens,
            keychain: private.map_or(&self.keychain, |private| &private.keychain),
            own_authority: private.is_some_and(|private| private.ca_folder.is_some()),
            is_private: private.is_some(),
            image,
            deadline,
            used: Mutex::new(Used::default()),
        }
    }
}

/// Something to be asked of a registry, in one or more questions.
trait Inquiry: Sync {
    type Answer;

    fn put(&self, session: &Session<'_>) -> impl Future<Output = Result<Self::Answer, Trouble>> + Send;
}

struct TagList;

impl Inquiry for TagList {
    type Answer = Vec<String>;

    async fn put(&self, session: &Session<'_>) -> Result<Vec<String>, Trouble> {
        tags::list(session).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exempt_prefix_does_without_private_credentials_and_authority() {
        let private = PrivateOptions {
            keychain: Keychain::file("private.json".into()),
            ca_folder: Some("authority".into()),
        };
        let options = Options {
            keychain: Keychain::file("usual.json".into()),
            private: Some(private),
            proxies: Proxies::none(),
            ..Options::default()
        };
        let registry = Registry::new(options).unwrap();
        for (image, is_exempt) in [
            ("gcr.io/kpt-fn/set-labels:v1", true),
            (
                "gcr.io/kpt-fn/deep/er@sha256:0000000000000000000000000000000000000000000000000000000000000000",
                true,
            ),
            ("gcr.io/kpt-fn-contrib/a:v1", false),
            ("gcr.io/kpt-fn:v1", false),
            ("gcr.io/a:v1", false),
            ("eu.gcr.io/kpt-fn/a:v1", false),
            ("ghcr.io/kptdev/krm-functions-catalog/a:v1", false),
        ] {
            let session = registry.0.session(Reference::parse(image).unwrap(), Instant::now());
            let file = if is_exempt { "usual.json" } else { "private.json" };
            assert_eq!(session.keychain.path(), Some(Path::new(file)), "{image}");
            assert_eq!((session.own_authority, session.is_private), (!is_exempt, !is_exempt), "{image}");
        }
    }
}
