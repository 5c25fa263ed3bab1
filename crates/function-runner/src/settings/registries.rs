//! How registries are asked, and which images may be used at all.

use std::{path::PathBuf, time::Duration};

use flags::{Flag, Flags};
use registry::{AllowedImages, Keychain, Mirror, Options, PrivateOptions, Proxies, Reference};

use super::{Surroundings, positive};
use crate::args;

/// How registries are asked, and which images may be used at all.
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// The images that may be used, by whatever executor.
    pub allowed: AllowedImages,
    /// Credentials and trust for private registries.
    pub private_registries: Option<PrivateRegistries>,
    /// Registries spoken with by plain HTTP or without checking certificates.
    pub insecure: Vec<String>,
    /// What stands in for registries.
    pub mirrors: Vec<Mirror>,
    /// When what a tag names is asked for again.
    pub refresh_interval: Duration,
    /// The way to registries.
    pub proxies: Proxies,
}

/// Credentials and trust for private registries.
#[derive(Debug, Clone)]
pub struct PrivateRegistries {
    /// The Docker configuration.
    pub auth_path: PathBuf,
    /// The secret made of it.
    pub auth_secret: String,
    /// The folder of the certificate authority, where it is to be used.
    pub tls_path: Option<PathBuf>,
}

impl RegistrySettings {
    /// The same for the registry client. Without private registries the user's own Docker configuration is
    /// used, and no authority but the system's.
    pub fn options(&self) -> Options {
        let private = self.private_registries.as_ref().map(|private| PrivateOptions {
            keychain: Keychain::file(private.auth_path.clone()),
            ca_folder: private.tls_path.clone(),
        });
        Options {
            keychain: Keychain::usual(),
            private,
            insecure_registries: self.insecure.clone(),
            mirrors: self.mirrors.clone(),
            allowed: self.allowed.clone(),
            proxies: self.proxies.clone(),
            ..Options::default()
        }
    }
}

pub(crate) fn read(flags: &mut Flags, around: &dyn Surroundings) -> RegistrySettings {
    let private_registries = PrivateRegistries {
        auth_path: flags.get(&args::REGISTRY_AUTH_SECRET_PATH),
        auth_secret: flags.get(&args::REGISTRY_AUTH_SECRET_NAME),
        tls_path: Some(flags.get(&args::TLS_SECRET_PATH))
            .filter(|_| flags.get(&args::ENABLE_PRIVATE_REGISTRIES_TLS)),
    };
    let insecure = flags.get(&args::INSECURE_REGISTRIES);
    if let Some(error) = insecure.iter().find_map(|host| Reference::check_registry(host).err()) {
        let rule = format!(
            "must be hosts, with a port if need be, such as registry.example:5000 ({})",
            error.problem()
        );
        flags.reject(&args::INSECURE_REGISTRIES, rule);
    }
    let allowed = read_allowed(flags);
    let mirrors: Vec<Mirror> = items(flags, &args::REGISTRY_MIRRORS);
    // Else it would never be asked, for a reason that is hard to find.
    let unused = mirrors.iter().map(Mirror::place).find(|place| {
        !allowed.is_everything() && !allowed.prefixes().iter().any(|prefix| prefix.overlaps(place))
    });
    if let Some(place) = unused {
        let rule = format!(
            "{place} is not under --allowed-images, so it would never be asked; add its images there"
        );
        flags.reject(&args::REGISTRY_MIRRORS, rule);
    }
    RegistrySettings {
        allowed,
        private_registries: flags.get(&args::ENABLE_PRIVATE_REGISTRIES).then_some(private_registries),
        insecure,
        mirrors,
        refresh_interval: positive(flags, &args::IMAGE_REFRESH_INTERVAL),
        proxies: Proxies::from_variables(|name| around.variable(name)),
    }
}

pub(crate) fn read_allowed(flags: &mut Flags) -> AllowedImages {
    AllowedImages::new(items(flags, &args::ALLOWED_IMAGES))
}

/// The items of a list, each of which must be right.
fn items<T: std::str::FromStr<Err: std::fmt::Display>>(
    flags: &mut Flags,
    flag: &Flag<Vec<String>>,
) -> Vec<T> {
    match flags.get(flag).iter().map(|item| item.parse()).collect() {
        Ok(items) => items,
        Err(error) => {
            flags.reject(flag, T::Err::to_string(&error));
            Vec::new()
        }
    }
}
