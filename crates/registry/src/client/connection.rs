//! HTTP clients, one for each kind of trust, and the proxies they go through.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::{Client, NoProxy, Proxy};
use rustls::client::danger::ServerCertVerifier;
use rustls::{ClientConfig, RootCertStore};

use super::verifier::{Anyone, OwnAuthority};
use crate::error::{RegistryErrorKind, Trouble};
use crate::names::Resolver;
use crate::trust::{Authority, AuthorityError, AuthorityFolder, Trust};

/// The name's lookup is within it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Without a single byte for so long, a connection is given up and another tried.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS: usize = 4;
/// A proxy cannot know what these mean to us.
const NEVER_PROXIED: &str = "localhost,127.0.0.0/8,::1";

/// The proxies registries are reached through.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<String>,
    https: Option<String>,
    except: String,
}

/// Proxy addresses may hold passwords.
impl std::fmt::Debug for Proxies {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Proxies")
            .field("http", &self.http.is_some())
            .field("https", &self.https.is_some())
            .field("except", &self.except)
            .finish()
    }
}

impl Proxies {
    /// No proxy.
    pub fn none() -> Self {
        Self::default()
    }

    /// Those of `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or of their lower-case spellings.
    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// As [`from_environment`](Self::from_environment), from other variables.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            [name.to_owned(), name.to_ascii_lowercase()]
                .iter()
                .find_map(|name| variable(name))
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let all = either("ALL_PROXY");
        Self {
            http: either("HTTP_PROXY").or_else(|| all.clone()),
            https: either("HTTPS_PROXY").or(all),
            except: either("NO_PROXY").unwrap_or_default(),
        }
    }

    fn build(&self) -> Result<Vec<Proxy>, SetupError> {
        let exempt: Vec<&str> = self.except.split(',').map(|entry| without_port(entry.trim())).collect();
        let except = || NoProxy::from_string(&format!("{NEVER_PROXIED},{}", exempt.join(",")));
        let mut proxies = Vec::new();
        if let Some(address) = &self.http {
            let proxy = Proxy::http(address).map_err(|_| SetupError::Proxy("HTTP_PROXY"))?;
            proxies.push(proxy.no_proxy(except()));
        }
        if let Some(address) = &self.https {
            let proxy = Proxy::https(address).map_err(|_| SetupError::Proxy("HTTPS_PROXY"))?;
            proxies.push(proxy.no_proxy(except()));
        }
        Ok(proxies)
    }
}

/// The host of an entry of `NO_PROXY`. The library would let entries with a port match nothing; so they are
/// for all ports of the host.
fn without_port(entry: &str) -> &str {
    if let Some((address, _)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match entry.split_once(':') {
        // More than one colon is an IPv6 address.
        Some((host, port)) if !port.contains(':') => host,
        _ => entry,
    }
}

/// Why registries cannot be reached at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A proxy's address is none. It is not shown, as it may hold a password.
    #[error("the environment variable {0} is not the address of a proxy; write it as http://HOST:PORT")]
    Proxy(&'static str),
    /// The TLS library refuses its settings.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// The clients. Those with the user's own authority are made anew when its file changes.
pub(super) struct Connections {
    way: Way,
    plain: Client,
    /// Reading the system's roots takes long, and not all who build a `Registry` ask it something.
    system: OnceLock<Client>,
    unverified: Client,
    folder: Option<AuthorityFolder>,
    own: Mutex<Option<(Arc<Authority>, Client)>>,
}

impl Connections {
    pub(super) fn new(
        proxies: &Proxies,
        resolver: Resolver,
        folder: Option<AuthorityFolder>,
    ) -> Result<Self, SetupError> {
        let way = Way { proxies: proxies.build()?, resolver };
        let anyone = Arc::new(Anyone(provider()));
        Ok(Self {
            plain: way.client(with_roots(RootCertStore::empty())?)?,
            unverified: way.client(with_verifier(anyone)?)?,
            system: OnceLock::new(),
            way,
            folder,
            own: Mutex::new(None),
        })
    }

    /// The client for a kind of trust.
    pub(super) async fn client(&self, trust: Trust) -> Result<Client, Trouble> {
        match trust {
            Trust::PlainHttp => Ok(self.plain.clone()),
            Trust::Unverified => Ok(self.unverified.clone()),
            Trust::System => self.system().map_err(|error| {
                Trouble::new(
                    RegistryErrorKind::Untrusted,
                    error.to_string(),
                    "install the system's certificates or set SSL_CERT_FILE",
                )
            }),
            Trust::CustomAuthority => self.own().await,
        }
    }

    /// What is wrong with the user's own authority, if there is to be one.
    pub(super) async fn check(&self) -> Option<Trouble> {
        self.folder.as_ref()?;
        self.own().await.err()
    }

    fn system(&self) -> Result<Client, SetupError> {
        if let Some(client) = self.system.get() {
            return Ok(client.clone());
        }
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (good, _) = roots.add_parsable_certificates(found.certs);
        if good == 0 {
            let cause = found.errors.first().map(ToString::to_string);
            tracing::warn!(
                cause = cause.unwrap_or_default(),
                "the system has no root certificates: no public registry will be trusted"
            );
        }
        let client = self.way.client(with_roots(roots)?)?;
        Ok(self.system.get_or_init(|| client).clone())
    }

    async fn own(&self) -> Result<Client, Trouble> {
        let Some(folder) = &self.folder else {
            return Err(Trouble::unavailable("no custom certificate authority is configured"));
        };
        let untrusted = |error: &dyn std::error::Error| {
            Trouble::new(
                RegistryErrorKind::Untrusted,
                format!("the custom certificate authority cannot be used: {error}"),
                format!(
                    "put a good ca.crt or ca.pem into {}, or set --enable-private-registries-tls=false",
                    folder.path().display()
                ),
            )
        };
        let (file, text) = folder.read().await.map_err(|error: AuthorityError| untrusted(&error))?;
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((authority, client)) = own.as_ref()
            && authority.text == text
        {
            return Ok(client.clone());
        }
        let authority = Arc::new(Authority::parse(&file, text).map_err(|error| untrusted(&error))?);
        let client = OwnAuthority::new(&authority, provider())
            .map_err(SetupError::Tls)
            .and_then(|verifier| with_verifier(Arc::new(verifier)))
            .and_then(|config| self.way.client(config))
            .map_err(|error| untrusted(&error))?;
        tracing::info!(file, certificates = authority.certificates.len(), "certificate authority read");
        *own = Some((authority, client.clone()));
        Ok(client)
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn tls_error(error: &rustls::Error) -> SetupError {
    SetupError::Tls(error.to_string())
}

/// The library speaks TLS 1.2 and 1.3 and nothing older.
fn with_roots(roots: RootCertStore) -> Result<ClientConfig, SetupError> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| tls_error(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn with_verifier(verifier: Arc<dyn ServerCertVerifier>) -> Result<ClientConfig, SetupError> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| tls_error(&error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(config)
}

/// How any host is reached.
struct Way {
    proxies: Vec<Proxy>,
    resolver: Resolver,
}

impl Way {
    /// Redirects are followed by hand: credentials and the rules of plain HTTP depend on where they lead.
    fn client(&self, tls: ClientConfig) -> Result<Client, SetupError> {
        let builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(self.resolver.clone())
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .http1_only()
            .user_agent(concat!("function-runner/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(SILENCE_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .no_proxy();
        self.proxies
            .iter()
            .cloned()
            .fold(builder, reqwest::ClientBuilder::proxy)
            .build()
            .map_err(|error| SetupError::Tls(error.to_string()))
    }
}
