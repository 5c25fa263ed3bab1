//! Whom we trust to be a registry: the system's roots, an authority of the user's own, or, where allowed,
//! anyone.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::task::spawn_blocking;

/// The names of the authority's file within its folder, in the order tried: those of Kubernetes' secrets.
const AUTHORITY_FILES: [&str; 2] = ["ca.crt", "ca.pem"];
/// The system's whole bundle of roots has a quarter of a megabyte.
const LARGEST_AUTHORITY_FILE: u64 = 2 * 1024 * 1024;

/// What vouched for a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The system's root certificates.
    System,
    /// The certificates of the configured folder.
    CustomAuthority,
    /// Nothing: encrypted, but the certificate was not checked, as `--insecure-registries` asks for.
    Unverified,
    /// Nothing: not even encrypted.
    PlainHttp,
}

impl fmt::Display for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::System => "system roots",
            Self::CustomAuthority => "custom certificate authority",
            Self::Unverified => "none, certificate not verified",
            Self::PlainHttp => "none, plain HTTP",
        })
    }
}

/// Why the custom authority cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AuthorityError {
    /// There is no file of either name.
    #[error("there is neither ca.crt nor ca.pem in {folder}")]
    NoFile {
        /// Where it was looked for.
        folder: String,
    },
    /// The file cannot be read.
    #[error("cannot read {file}: {cause}")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's words.
        cause: String,
    },
    /// The file is larger than any bundle of certificates.
    #[error("{file} has more than {LARGEST_AUTHORITY_FILE} bytes")]
    TooLarge {
        /// The file.
        file: String,
    },
    /// The file holds no certificate, or a broken one.
    #[error("{file} is not a bundle of PEM certificates: {cause}")]
    Broken {
        /// The file.
        file: String,
        /// What is wrong.
        cause: String,
    },
}

/// The certificates of a folder, as read at one time.
#[derive(Debug)]
pub(crate) struct Authority {
    pub(crate) text: Vec<u8>,
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    pub(crate) roots: Arc<RootCertStore>,
}

/// Where the user's own certificates lie.
#[derive(Debug, Clone)]
pub(crate) struct AuthorityFolder(PathBuf);

impl AuthorityFolder {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The text of the file. Reading it anew for every question is cheap beside the question, and notices
    /// every way in which files get replaced.
    pub(crate) async fn read(&self) -> Result<(String, Vec<u8>), AuthorityError> {
        for name in AUTHORITY_FILES {
            let path = self.0.join(name);
            let file = path.display().to_string();
            let read = spawn_blocking(move || files::read(&path, LARGEST_AUTHORITY_FILE)).await;
            match read.unwrap_or_else(|error| Err(io::Error::other(error.to_string()))) {
                Ok((text, _)) => return Ok((file, text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    return Err(AuthorityError::TooLarge { file });
                }
                Err(error) => return Err(AuthorityError::Unreadable { file, cause: error.to_string() }),
            }
        }
        Err(AuthorityError::NoFile { folder: self.0.display().to_string() })
    }
}

impl Authority {
    /// Every certificate of a bundle must be a good one: half a bundle would fail later, and in a way
    /// nobody can explain.
    pub(crate) fn parse(file: &str, text: Vec<u8>) -> Result<Self, AuthorityError> {
        let broken = |cause: String| AuthorityError::Broken { file: file.to_owned(), cause };
        let mut certificates = Vec::new();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let number = certificates.len() + 1;
            let certificate =
                certificate.map_err(|error| broken(format!("certificate {number}: {error}")))?;
            roots
                .add(certificate.clone())
                .map_err(|error| broken(format!("certificate {number}: {error}")))?;
            certificates.push(certificate);
        }
        if certificates.is_empty() {
            return Err(broken("it holds no certificate".to_owned()));
        }
        Ok(Self { text, certificates, roots: Arc::new(roots) })
    }
}

/// The host of `host:port`, without the brackets of an IPv6 address.
pub(crate) fn host_of(registry: &str) -> &str {
    if let Some((address, _)) = registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    registry.split_once(':').map_or(registry, |(host, _)| host)
}

/// Whether plain HTTP may be tried for a registry without being asked for: only for what is on this machine
/// or in a private network.
pub(crate) fn is_local(registry: &str) -> bool {
    let host = host_of(registry).to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(mapped) => mapped.is_loopback() || mapped.is_private(),
            None => address.is_loopback() || address.is_unique_local(),
        },
        Err(_) => {
            host == "localhost"
                || [".localhost", ".local"]
                    .iter()
                    .any(|ending| host.strip_suffix(ending).is_some_and(|name| !name.is_empty()))
        }
    }
}

/// Whether a registry is in the list of `--insecure-registries`: as written there, or as a host for any port.
pub(crate) fn is_insecure(registry: &str, insecure: &[String]) -> bool {
    insecure.iter().any(|entry| {
        entry.eq_ignore_ascii_case(registry)
            || entry.trim_matches(['[', ']']).eq_ignore_ascii_case(host_of(registry))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_local_registries() {
        for registry in [
            "localhost",
            "localhost:5000",
            "LOCALHOST",
            "a.localhost:1",
            "registry.local",
            "a.b.local:5000",
            "127.0.0.1",
            "127.8.9.1:80",
            "[::1]:5000",
            "[::ffff:10.0.0.1]",
            "10.1.2.3",
            "172.16.0.1:5000",
            "172.31.255.255",
            "192.168.1.1",
            "[fd00::1]:5000",
        ] {
            assert!(is_local(registry), "{registry}");
        }
        for registry in [
            "docker.io",
            "ghcr.io",
            "localhost.com",
            "local",
            ".local",
            "notlocal.com:5000",
            "mylocalhost",
            "172.32.0.1",
            "11.0.0.1",
            "8.8.8.8:5000",
            "[2001:db8::1]",
            "192.169.0.1",
            "127.0.0.1.example.com",
            "local.example",
            "10.0.0.1.nip.io",
        ] {
            assert!(!is_local(registry), "{registry}");
        }
    }

    #[test]
    fn insecure_registries_are_matched_with_and_without_port() {
        let list = ["a.example:5000".to_owned(), "b.example".to_owned(), "[2001:db8::1]".to_owned()];
        for registry in
            ["a.example:5000", "A.example:5000", "b.example", "b.example:443", "[2001:db8::1]:5000"]
        {
            assert!(is_insecure(registry, &list), "{registry}");
        }
        for registry in ["a.example", "a.example:5001", "xb.example", "b.example.com", ""] {
            assert!(!is_insecure(registry, &list), "{registry}");
        }
    }

    #[tokio::test]
    async fn a_missing_or_broken_authority_is_told_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let read = || async {
            let (file, text) = AuthorityFolder::new(folder.path().to_owned()).read().await?;
            Authority::parse(&file, text)
        };
        assert!(read().await.unwrap_err().to_string().contains("neither ca.crt nor ca.pem"));
        for (text, expected) in [
            ("", "holds no certificate"),
            ("garbage", "holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n", "certificate 1"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "certificate"),
        ] {
            std::fs::write(folder.path().join("ca.pem"), text).unwrap();
            let error = read().await.unwrap_err().to_string();
            assert!(error.contains("ca.pem") && error.contains(expected), "{text:?}: {error}");
        }
        std::fs::write(folder.path().join("ca.pem"), vec![b'x'; 3_000_000]).unwrap();
        assert!(matches!(read().await, Err(AuthorityError::TooLarge { .. })));
        std::fs::create_dir(folder.path().join("ca.crt")).unwrap();
        assert!(matches!(read().await, Err(AuthorityError::Unreadable { .. })));
    }

    #[tokio::test]
    async fn a_bundle_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let certificate =
            |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.pem();
        let bundle = format!("# two authorities\n{}\n{}", certificate("a"), certificate("b"));
        std::fs::write(folder.path().join("ca.crt"), &bundle).unwrap();
        let (file, text) = AuthorityFolder::new(folder.path().to_owned()).read().await.unwrap();
        let authority = Authority::parse(&file, text).unwrap();
        assert_eq!((authority.certificates.len(), authority.roots.len()), (2, 2));
    }
}
