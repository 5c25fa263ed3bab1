//! No secret shows, whatever the file looks like.

use std::error::Error;
use std::fmt::{Debug, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use registry::{Keychain, KeychainError, Login, Secret};
use serde_json::{Value, json};

use crate::{Folder, image};

#[test]
fn a_secret_prints_stars() {
    let secret = Secret::new("hunter2");
    assert_eq!(format!("{secret:?} {secret:#?}"), "*** ***");
    assert_eq!(secret.reveal(), "hunter2");
    let login = Login::Basic { username: "hunter1".to_owned(), password: secret };
    assert_eq!(format!("{login:?}"), "Basic { entry: \"\", .. }");
}

/// Entries, right and wrong, that hold the secret.
fn entries(secret: &str) -> Vec<Value> {
    let auth = STANDARD.encode(format!("{secret}:{secret}"));
    vec![
        json!({ "auth": auth }),
        json!({ "auth": STANDARD.encode(secret) }),
        json!({ "auth": secret }),
        json!({ "auth": [secret] }),
        json!({ "username": secret, "password": secret }),
        json!({ "username": "u", "password": { "x": secret } }),
        json!({ "identitytoken": secret }),
        json!({ "registrytoken": secret }),
        json!({ "registrytoken": { secret: 1 } }),
        json!(secret),
        json!([auth]),
        json!({ secret: secret }),
    ]
}

/// Helper programs, right and wrong, that say the secret.
fn scripts(secret: &str) -> Vec<String> {
    vec![
        format!("printf '{{\"Username\":\"{secret}\",\"Secret\":\"{secret}\"}}'"),
        format!("printf '{{\"Username\":\"<token>\",\"Secret\":\"{secret}\"}}'"),
        format!("printf '{{\"Username\":{{\"{secret}\": 1}},\"Secret\":\"{secret}\"}}'"),
        format!("echo {secret}; echo {secret} >&2; exit 1"),
        format!("echo {secret}"),
        format!("exec yes {secret}"),
    ]
}

/// All that could be printed of a result.
fn printed(keychain: &Keychain, result: &Result<Option<Login>, KeychainError>) -> String {
    let mut text = format!("{keychain:?} {keychain:#?} {result:?} {result:#?}");
    let also = |text: &mut String, thing: &dyn Debug| write!(text, " {thing:?} {thing:#?}").unwrap();
    match result {
        Ok(Some(login)) => {
            text.push_str(login.entry());
            match login {
                Login::Basic { password, .. } => also(&mut text, password),
                Login::IdentityToken(secret) | Login::RegistryToken(secret) => also(&mut text, secret),
            }
        }
        Ok(None) => {}
        Err(error) => {
            let mut cause: Option<&dyn Error> = Some(error);
            while let Some(error) = cause {
                write!(text, " {error} {error:?} {error:#?}").unwrap();
                cause = error.source();
            }
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn no_secret_shows(
        secret in "Zq[A-Za-z0-9]{10,20}",
        entry in 0..12_usize,
        script in 0..6_usize,
        use_helper in any::<bool>(),
        damage in prop::option::of((any::<prop::sample::Index>(), "[\"{}:,a]?")),
    ) {
        let config = if use_helper {
            json!({"credHelpers": {"example.com": "test"}, "HttpHeaders": {"X": secret}})
        } else {
            json!({"auths": {"example.com": entries(&secret)[entry], "example.org": secret}})
        };
        let mut content = config.to_string();
        if let Some((index, put)) = damage {
            let place = index.index(content.len());
            content.replace_range(place..=place, &put);
        }
        let folder = Folder::new();
        folder.write(content);
        folder.script("test", &scripts(&secret)[script]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let keychain = folder.keychain();
        for _ in 0..2 {
            let result = runtime.block_on(keychain.lookup(&image("example.com/team/app")));
            let text = printed(&keychain, &result);
            for hidden in [&secret, &STANDARD.encode(&secret)[..12], &STANDARD.encode(format!("{secret}:"))[..12]] {
                prop_assert!(!text.contains(hidden), "{text}");
            }
        }
    }
}
