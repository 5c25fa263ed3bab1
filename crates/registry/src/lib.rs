//! Image registries: how images are named, and what is known of them.

mod cache;
mod client;
mod constraint;
mod credentials;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod metadata;
mod names;
mod prefix;
mod reference;
mod trust;

pub use cache::{Cache, CacheSettings, Source, TagSource};
pub use client::{InvalidMirror, Mirror, Options, PrivateOptions, Proxies, Registry, SetupError, is_exempt};
pub use constraint::{Constraint, ConstraintProblem, InvalidConstraint, Version, choose, highest};
pub use credentials::{BrokenEntry, HelperProblem, Keychain, KeychainError, Login, Malformed, Secret};
pub use error::{RegistryError, RegistryErrorKind};
pub use metadata::{Metadata, Platform};
pub use names::Resolver;
pub use prefix::{AllowedImages, InvalidPrefix, Prefix};
pub use reference::{ImageKey, InvalidReference, Problem, Reference};
pub use trust::Trust;
