//! A token server as registries have them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;

use super::http::{self, Reply, Server};

pub(crate) struct TokenServer {
    pub(crate) server: Server,
    /// The certificate of the key its tokens are signed with.
    pub(crate) certificate: String,
    /// While set, tokens are handed out that have long expired.
    pub(crate) hands_out_old: Arc<AtomicBool>,
}

impl TokenServer {
    /// Knows one user.
    pub(crate) async fn start(user: &str, password: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["token".to_owned()]).unwrap().self_signed(&key).unwrap();
        let expected = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let hands_out_old = Arc::new(AtomicBool::new(false));
        let (der, key, old) = (certificate.der().to_vec(), key.serialize_der(), Arc::clone(&hands_out_old));
        let server = http::serve(move |request| {
            let is_known = request.header("authorization") == Some(&expected);
            if request.header("authorization").is_some() && !is_known {
                return Reply::status(
                    401,
                    r#"{"errors":[{"code":"UNAUTHORIZED","message":"wrong password"}]}"#,
                );
            }
            let wants = request.target.contains("service=test-service")
                && request.target.contains("scope=repository%3Afunctions%2Fa%3Apull");
            let age = if old.load(Ordering::SeqCst) { 7200 } else { 0 };
            let token = sign(&der, &key, age, is_known && wants);
            Reply::ok(json!({"token": token, "expires_in": 300}).to_string())
        })
        .await;
        Self { server, certificate: certificate.pem(), hands_out_old }
    }

    pub(crate) fn realm(&self) -> String {
        format!("http://{}/token", self.server.host)
    }
}

fn sign(certificate: &[u8], key: &[u8], age: u64, may_pull: bool) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - age;
    let header = json!({"typ": "JWT", "alg": "ES256", "x5c": [STANDARD.encode(certificate)]});
    let access = if may_pull {
        json!([{"type": "repository", "name": "functions/a", "actions": ["pull"]}])
    } else {
        json!([])
    };
    let claims = json!({
        "iss": "test-issuer", "aud": "test-service", "sub": "user", "jti": "1",
        "iat": now, "nbf": now - 10, "exp": now + 300, "access": access,
    });
    let signed = format!("{}.{}", base64url(header.to_string()), base64url(claims.to_string()));
    let random = ring::rand::SystemRandom::new();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &random).unwrap();
    let signature = pair.sign(&random, signed.as_bytes()).unwrap();
    format!("{signed}.{}", base64url(signature))
}

fn base64url(content: impl AsRef<[u8]>) -> String {
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(content)
}
