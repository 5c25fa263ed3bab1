//! Certificates made for a test.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use time::OffsetDateTime;

/// An authority that signs servers' certificates.
pub struct Authority {
    /// Its own certificate.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A server's certificate and key, as PEM.
#[derive(Debug)]
pub struct Server {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// An authority of this name.
    pub fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(parameters, key) }
    }

    /// A good certificate for `localhost`.
    pub fn server(&self) -> Server {
        self.sign(OffsetDateTime::now_utc() + time::Duration::days(1), "localhost")
    }

    /// One that was good until yesterday.
    pub fn expired(&self) -> Server {
        self.sign(OffsetDateTime::now_utc() - time::Duration::days(1), "localhost")
    }

    /// One that is not for `localhost`.
    pub fn for_another_name(&self) -> Server {
        self.sign(OffsetDateTime::now_utc() + time::Duration::days(1), "elsewhere.example")
    }

    fn sign(&self, until: OffsetDateTime, name: &str) -> Server {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.not_before = OffsetDateTime::now_utc() - time::Duration::days(2);
        parameters.not_after = until;
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap().pem();
        Server { certificate, key: key.serialize_pem() }
    }

    /// Puts the authority where the client looks for it.
    pub fn put(&self, folder: &Path) {
        std::fs::write(folder.join("ca.crt"), &self.pem).unwrap();
    }
}

/// What `openssl req -x509` makes: a server's certificate that says it is an authority.
pub fn self_signed_authority() -> Server {
    let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    Server { certificate: parameters.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}
