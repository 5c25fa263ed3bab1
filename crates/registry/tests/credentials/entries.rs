//! What entries say, well or badly.

use std::fs;
use std::process::Command;

use registry::{Keychain, KeychainError, Login};
use serde_json::{Value, json};

use crate::{Folder, basic, image};

async fn entry(entry: Value) -> Result<Option<Login>, KeychainError> {
    Folder::with(&json!({"auths": {"example.com": entry}})).lookup("example.com/app").await
}

#[tokio::test]
async fn basic_logins() {
    for (content, expected) in [
        (json!({"auth": "dXNlcjpwYXNz"}), Some("user:pass")),
        (json!({"auth": " dXNlcjpwYXNz\n"}), Some("user:pass")),
        // user:pa:ss, with padding and without.
        (json!({"auth": "dXNlcjpwYTpzcw=="}), Some("user:pa:ss")),
        (json!({"auth": "dXNlcjpwYTpzcw"}), Some("user:pa:ss")),
        // user:pass and zero bytes
        (json!({"auth": "dXNlcjpwYXNzAAA="}), Some("user:pass")),
        (json!({"username": "user", "password": "pass"}), Some("user:pass")),
        (json!({"Username": "user", "PASSWORD": "pass", "email": 7}), Some("user:pass")),
        (json!({"username": "user"}), Some("user:")),
        (json!({"username": "old", "password": "old", "auth": "dXNlcjpwYXNz"}), Some("user:pass")),
        (json!({"username": "user", "password": "pass", "auth": ""}), Some("user:pass")),
        (json!({"username": "user", "password": "pass", "auth": null}), Some("user:pass")),
        (json!({"auth": "Og=="}), None),
        (json!({"email": "a@b.c"}), None),
        (json!({}), None),
        (json!(null), None),
    ] {
        let text = content.to_string();
        assert_eq!(basic(entry(content).await.unwrap()).as_deref(), expected, "{text}");
    }
}

#[tokio::test]
async fn tokens() {
    let auth = "MDA6"; // 00:
    match entry(json!({"auth": auth, "identitytoken": "refresh"})).await.unwrap() {
        Some(Login::IdentityToken(token)) => assert_eq!(token.reveal(), "refresh"),
        other => panic!("{other:?}"),
    }
    match entry(json!({"auth": auth, "identitytoken": "refresh", "registrytoken": "access"})).await.unwrap() {
        Some(Login::RegistryToken(token)) => assert_eq!(token.reveal(), "access"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn broken_entries_break_only_themselves() {
    for (content, expected) in [
        (json!("dXNlcjpwYXNz"), "must be an object"),
        (json!(["x"]), "must be an object"),
        (json!({"auth": 7}), "\"auth\" must be a string"),
        (json!({"username": "u", "password": ["hidden"]}), "\"password\" must be a string"),
        (json!({"identitytoken": {}}), "\"identitytoken\" must be a string"),
        (json!({"auth": "not base64 hidden"}), "base64 of USER:PASSWORD"),
        // no colon; not UTF-8
        (json!({"auth": "dXNlcg=="}), "base64 of USER:PASSWORD"),
        (json!({"auth": "/zr/"}), "base64 of USER:PASSWORD"),
    ] {
        let config = json!({"auths": {"example.com": content, "example.org": {"auth": "dXNlcjpwYXNz"}}});
        let folder = Folder::with(&config);
        let error = folder.lookup("example.com/app").await.unwrap_err().to_string();
        let file = folder.file().display().to_string();
        assert!(
            error.contains(expected) && error.contains("\"example.com\"") && error.contains(&file),
            "{error}"
        );
        assert!(!error.contains("hidden") && !error.contains("dXNl"), "{error}");
        assert_eq!(basic(folder.lookup("example.org/app").await.unwrap()).as_deref(), Some("user:pass"));
        assert_eq!(folder.lookup("example.net/app").await.unwrap(), None);
    }
}

#[tokio::test]
async fn malformed_files() {
    let folder = Folder::new();
    let huge = format!("{{\"hidden\": \"{}\"}}", "x".repeat(5 << 20));
    let deep = "[".repeat(100_000);
    for (content, expected) in [
        ("hidden", "not JSON at line 1, column 1"),
        ("{\"auths\":\n {\"hidden\": }}", "not JSON at line 2"),
        ("{\"auths\": {\"example.com\": {\"auth\": \"hidden", "not JSON at line 1"),
        ("{} hidden", "not JSON"),
        ("[\"hidden\"]", "the content must be an object"),
        ("\"hidden\"", "the content must be an object"),
        ("{\"auths\": \"hidden\"}", "\"auths\" must be an object"),
        ("{\"auths\": [\"hidden\"]}", "\"auths\" must be an object"),
        ("{\"credHelpers\": \"hidden\"}", "\"credHelpers\" must be an object"),
        ("{\"credsStore\": {\"hidden\": 1}}", "\"credsStore\" must be a string"),
        (&huge, "more than 4194304 bytes"),
        (&deep, "not JSON"),
    ] {
        folder.write(content);
        let error = folder.lookup("example.com/app").await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains(expected) && text.contains(&folder.file().display().to_string()), "{text}");
        assert!(!text.contains("hidden") && text.len() < 2000, "{text}");
    }
    folder.write([0xff, 0xfe, 0]);
    assert!(matches!(folder.lookup("a.io/b").await, Err(KeychainError::Malformed { .. })));
}

#[tokio::test]
async fn files_without_logins() {
    let folder = Folder::new();
    assert_eq!(folder.lookup("example.com/app").await.unwrap(), None);
    for content in
        ["", " \n", "{}", "{\"auths\": null}", "{\"auths\": {}, \"credsStore\": \"\", \"HttpHeaders\": {}}"]
    {
        folder.write(content);
        assert_eq!(folder.lookup("example.com/app").await.unwrap(), None, "{content}");
    }
    let inside_nothing = Keychain::file(folder.file().with_file_name("none").join("config.json"));
    assert_eq!(inside_nothing.lookup(&image("example.com/app")).await.unwrap(), None);
    assert_eq!(Keychain::none().lookup(&image("example.com/app")).await.unwrap(), None);
    Keychain::none().forget();
}

#[tokio::test]
async fn what_is_no_file() {
    let folder = Folder::new();
    fs::create_dir(folder.file()).unwrap();
    let error = folder.lookup("example.com/app").await.unwrap_err().to_string();
    assert!(error.contains("it is not a regular file"), "{error}");
    fs::remove_dir(folder.file()).unwrap();
    // Nobody writes into this pipe: reading it would never end.
    assert!(Command::new("mkfifo").arg(folder.file()).status().unwrap().success());
    let error = folder.lookup("example.com/app").await.unwrap_err();
    assert!(matches!(error, KeychainError::Unreadable { .. }), "{error}");
}
