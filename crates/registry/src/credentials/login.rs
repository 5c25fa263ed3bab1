//! What a registry is told, and how it is kept from being told to anybody else.

use std::fmt;
use std::sync::Arc;

/// Shown in place of what must not be.
const HIDDEN: &str = "***";

/// A password or token. It is shown nowhere: `Debug` prints `***`, and there is no `Display`.
///
/// Where it was found is no secret, so it carries that.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    value: Arc<str>,
    entry: Arc<str>,
}

impl Secret {
    /// A secret that comes from no entry of a file, such as a token that a server gave.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self { value: value.into(), entry: Arc::default() }
    }

    /// The same secret, found under this key.
    pub(super) fn found_in(self, entry: &str) -> Self {
        Self { entry: entry.into(), ..self }
    }

    /// The secret itself, to be sent to the registry and nowhere else.
    pub fn reveal(&self) -> &str {
        &self.value
    }

    pub(super) fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HIDDEN)
    }
}

/// How to prove to a registry who asks.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    /// Name and password, for basic authentication and for token servers.
    Basic {
        /// Hidden from `Debug` too: with some registries it is a token.
        username: String,
        /// Empty if only a name was given.
        password: Secret,
    },
    /// A refresh token, which a token server exchanges for an access token.
    IdentityToken(Secret),
    /// An access token, to be sent to the registry as it is.
    RegistryToken(Secret),
}

impl Login {
    /// The key of the entry that was used, as the file spells it, or which helper program answered.
    pub fn entry(&self) -> &str {
        let (Self::Basic { password: secret, .. }
        | Self::IdentityToken(secret)
        | Self::RegistryToken(secret)) = self;
        &secret.entry
    }

    pub(super) fn found_in(self, entry: &str) -> Self {
        match self {
            Self::Basic { username, password } => {
                Self::Basic { username, password: password.found_in(entry) }
            }
            Self::IdentityToken(token) => Self::IdentityToken(token.found_in(entry)),
            Self::RegistryToken(token) => Self::RegistryToken(token.found_in(entry)),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Basic { .. } => "Basic",
            Self::IdentityToken(_) => "IdentityToken",
            Self::RegistryToken(_) => "RegistryToken",
        };
        formatter.debug_struct(kind).field("entry", &self.entry()).finish_non_exhaustive()
    }
}
