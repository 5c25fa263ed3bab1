//! Helper programs, good and bad.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use registry::{HelperProblem, KeychainError, Login};
use serde_json::{Value, json};
use tokio::time::{advance, pause, sleep};

use crate::{Folder, basic, image};

/// Answers with the registry it was asked for as the user, and notes that it ran.
const ECHO: &str = r#"
server=$(cat)
echo "$1 $server" >> "$0.ran"
printf '{"ServerURL":"%s","Username":"%s","Secret":"s3cret"}' "$server" "$server"
"#;

fn folder(config: &Value, name: &str, script: &str) -> Folder {
    let folder = Folder::with(config);
    folder.script(name, script);
    folder
}

fn store(script: &str) -> Folder {
    folder(&json!({"credsStore": "test"}), "test", script)
}

fn ran(folder: &Folder) -> Vec<String> {
    let note = folder.file().with_file_name("docker-credential-test.ran");
    fs::read_to_string(note).unwrap_or_default().lines().map(str::to_owned).collect()
}

async fn problem(folder: &Folder) -> HelperProblem {
    let error = folder.lookup("example.com/app").await.unwrap_err();
    let text = format!("{error} {error:?}");
    for part in ["docker-credential-test", "example.com", &folder.file().display().to_string()] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("s3cret"), "{text}");
    match error {
        KeychainError::Helper { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn the_store_is_asked_for_all_registries() {
    let folder = store(ECHO);
    for (text, server) in [
        ("example.com/app", "example.com"),
        ("localhost:5000/app", "localhost:5000"),
        ("ubuntu", "https://index.docker.io/v1/"),
    ] {
        let login = folder.lookup(text).await.unwrap();
        let entry = format!("{server} (credsStore, docker-credential-test)");
        assert_eq!(login.as_ref().map(Login::entry), Some(entry.as_str()));
        assert_eq!(basic(login), Some(format!("{server}:s3cret")));
    }
    assert_eq!(ran(&folder), ["get example.com", "get localhost:5000", "get https://index.docker.io/v1/"]);
}

#[tokio::test]
async fn who_is_asked() {
    let config = json!({
        "auths": {
            "plain.com": {"username": "u", "password": "p"},
            "both.com": {"username": "u", "password": "p"},
            "both.com/team": {"username": "team", "password": "p"},
            "https://stored.com/v1/": {},
            "*.stored.com": {},
            "nobody.com": {"username": "u", "password": "p"},
        },
        "credHelpers": {"both.com": "test", "helper.com": "test", "nobody.com": "none", "empty.com": "none",
            "*.helper.com": "test"},
        "credsStore": "store",
    });
    let folder = folder(&config, "test", ECHO);
    folder.script("store", "printf '{\"Username\":\"store %s\",\"Secret\":\"x\"}' \"$(cat)\"");
    folder.script("none", "echo credentials not found in native keychain; exit 1");
    for (text, expected, entry) in [
        ("plain.com/app", Some("u:p"), "plain.com"),
        ("both.com/app", Some("both.com:s3cret"), "both.com (credHelpers, docker-credential-test)"),
        ("both.com/team/app", Some("team:p"), "both.com/team"),
        ("helper.com/app", Some("helper.com:s3cret"), "helper.com (credHelpers, docker-credential-test)"),
        (
            "a.helper.com/app",
            Some("a.helper.com:s3cret"),
            "*.helper.com (credHelpers, docker-credential-test)",
        ),
        // The store knows it by the name it was stored under, unless that is a pattern.
        (
            "stored.com/app",
            Some("store https://stored.com/v1/:x"),
            "https://stored.com/v1/ (credsStore, docker-credential-store)",
        ),
        (
            "a.stored.com/app",
            Some("store a.stored.com:x"),
            "a.stored.com (credsStore, docker-credential-store)",
        ),
        ("other.com/app", Some("store other.com:x"), "other.com (credsStore, docker-credential-store)"),
        ("nobody.com/app", Some("u:p"), "nobody.com"),
        // Its own helper stands in for the store.
        ("empty.com/app", None, ""),
    ] {
        let login = folder.lookup(text).await.unwrap();
        assert_eq!(login.as_ref().map_or("", Login::entry), entry, "{text}");
        assert_eq!(basic(login).as_deref(), expected, "{text}");
    }
}

#[tokio::test]
async fn answers() {
    let folder = store("printf '{\"Username\":\"<token>\",\"Secret\":\"refresh\"}'");
    match folder.lookup("example.com/app").await.unwrap() {
        Some(Login::IdentityToken(token)) => assert_eq!(token.reveal(), "refresh"),
        other => panic!("{other:?}"),
    }
    for script in [
        "echo credentials not found in native keychain; exit 1",
        "printf '  credentials not found in native keychain\n\n'; exit 2",
        "printf '{\"Username\":\"\",\"Secret\":\"\"}'",
        "printf '{}'",
    ] {
        assert_eq!(store(script).lookup("example.com/app").await.unwrap(), None, "{script}");
    }
    // One that neither reads its input nor is quiet.
    let folder =
        store("exec <&-; echo noise >&2; printf '{\"Username\":\"u\",\"Secret\":\"p\", \"More\": [1]}\n'");
    assert_eq!(basic(folder.lookup("example.com/app").await.unwrap()).as_deref(), Some("u:p"));
}

#[tokio::test]
async fn failures() {
    let failed = |problem: HelperProblem, part: &str| match problem {
        HelperProblem::Failed(status) => assert!(status.contains(part), "{status}"),
        other => panic!("{other}"),
    };
    failed(problem(&store("echo s3cret; echo s3cret >&2; exit 3")).await, "3");
    failed(problem(&store("echo s3cret; kill -9 $$")).await, "9");
    // Success, but not in these words.
    for script in [
        "echo s3cret",
        ":",
        "printf '{\"Username\":\"u\",\"Secret\":\"s3cret\"'",
        "printf '{\"Username\":7,\"Secret\":\"s3cret\"}'",
        "printf '\\377\\376s3cret'",
        "echo '[\"s3cret\", 1, 2]'",
        "echo credentials not found in native keychain",
    ] {
        let problem = problem(&store(script)).await;
        assert!(matches!(problem, HelperProblem::Garbage), "{script}: {problem}");
    }
    // Without end, and just too much.
    for script in ["exec yes s3cret", "head -c 65537 /dev/zero"] {
        let problem = problem(&store(script)).await;
        assert!(matches!(problem, HelperProblem::TooMuch(65536)), "{script}: {problem}");
    }
    let problem = problem(&folder(&json!({"credsStore": "test"}), "other", ECHO)).await;
    assert!(matches!(problem, HelperProblem::Missing), "{problem}");
}

#[tokio::test]
async fn what_cannot_run() {
    let folder = Folder::with(&json!({"credsStore": "test"}));
    let program = folder.file().with_file_name("docker-credential-test");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    assert!(matches!(problem(&folder).await, HelperProblem::Missing), "it is not executable");
    folder.script("test", "");
    fs::write(&program, "#!/no/such/shell\n").unwrap();
    assert!(matches!(problem(&folder).await, HelperProblem::Run(_)));
    fs::remove_file(&program).unwrap();
    fs::create_dir(&program).unwrap();
    assert!(matches!(problem(&folder).await, HelperProblem::Missing), "it is a folder");
}

#[tokio::test]
async fn names_that_no_program_has() {
    for name in ["../test", "a/b", "a b", "é", "x\0", &"x".repeat(300)] {
        for config in [json!({"credsStore": name}), json!({"credHelpers": {"example.com": name}})] {
            let error = Folder::with(&config).lookup("example.com/app").await.unwrap_err().to_string();
            assert!(error.contains("names no helper program") && !error.contains(name), "{error}");
        }
    }
    let config = json!({"credHelpers": {"example.com": ["x"]}});
    let error = Folder::with(&config).lookup("example.com/app").await.unwrap_err();
    assert!(matches!(error, KeychainError::Entry { .. }), "{error}");
}

/// How often to look for what must come, before giving up on it.
const LOOKS: u32 = 4000;

/// Waits for a script to note its number.
async fn process(note: &Path) -> PathBuf {
    for _ in 0..LOOKS {
        match fs::read_to_string(note) {
            Ok(text) if text.ends_with('\n') => return Path::new("/proc").join(text.trim()),
            _ => sleep(Duration::from_millis(5)).await,
        }
    }
    panic!("the program does not run");
}

async fn gone(process: &Path) {
    for _ in 0..LOOKS {
        if !process.exists() {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("{} is still there", process.display());
}

#[tokio::test]
async fn a_slow_one_is_stopped() {
    let folder = store("echo $$ > \"$0.pid\"; exec sleep 60");
    let keychain = folder.keychain();
    let asking = tokio::spawn(async move { keychain.lookup(&image("example.com/app")).await });
    let process = process(&folder.file().with_file_name("docker-credential-test.pid")).await;
    pause();
    advance(Duration::from_secs(9)).await;
    assert!(process.exists() && !asking.is_finished());
    advance(Duration::from_millis(1_100)).await;
    let error = asking.await.unwrap().unwrap_err();
    tokio::time::resume();
    assert!(error.to_string().contains("did not finish within 10 seconds"), "{error}");
    gone(&process).await;
}

#[tokio::test]
async fn is_stopped_when_nobody_waits() {
    let folder = store("echo $$ > \"$0.pid\"; exec sleep 60");
    let keychain = folder.keychain();
    let asking = tokio::spawn(async move { keychain.lookup(&image("example.com/app")).await });
    let process = process(&folder.file().with_file_name("docker-credential-test.pid")).await;
    asking.abort();
    gone(&process).await;
}

#[tokio::test]
async fn runs_once_for_many_who_ask() {
    let folder = store(&format!("sleep 0.2\n{ECHO}"));
    let keychain = folder.keychain();
    let asking: Vec<_> = (0..30)
        .map(|_| {
            let keychain = keychain.clone();
            tokio::spawn(async move { keychain.lookup(&image("example.com/app")).await })
        })
        .collect();
    for asking in asking {
        assert_eq!(basic(asking.await.unwrap().unwrap()).as_deref(), Some("example.com:s3cret"));
    }
    assert_eq!(ran(&folder).len(), 1);
    keychain.forget();
    keychain.lookup(&image("example.com/app")).await.unwrap();
    assert_eq!(ran(&folder).len(), 2);
    // Kept for a minute.
    pause();
    advance(Duration::from_secs(59)).await;
    tokio::time::resume();
    keychain.lookup(&image("example.com/app")).await.unwrap();
    assert_eq!(ran(&folder).len(), 2);
    pause();
    advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    keychain.lookup(&image("example.com/app")).await.unwrap();
    assert_eq!(ran(&folder).len(), 3);
}

#[tokio::test]
async fn a_failure_is_shared_too() {
    let folder = store("echo x >> \"$0.ran\"; sleep 0.2; exit 1");
    let keychain = folder.keychain();
    let asking: Vec<_> = (0..30)
        .map(|_| {
            let keychain = keychain.clone();
            tokio::spawn(async move { keychain.lookup(&image("example.com/app")).await })
        })
        .collect();
    for asking in asking {
        asking.await.unwrap().unwrap_err();
    }
    assert_eq!(ran(&folder).len(), 1);
}

#[tokio::test]
async fn many_registries_are_many_processes_but_few_at_once() {
    let folder = store(
        "echo + >> \"$0.ran\"; sleep 0.05; echo - >> \"$0.ran\"; printf '{\"Username\":\"u\",\"Secret\":\"p\"}'",
    );
    let keychain = folder.keychain();
    let asking: Vec<_> = (0..24)
        .map(|number| {
            let keychain = keychain.clone();
            tokio::spawn(async move { keychain.lookup(&image(&format!("r{number}.com/app"))).await })
        })
        .collect();
    for asking in asking {
        assert!(asking.await.unwrap().unwrap().is_some());
    }
    let (mut running, mut most) = (0_i32, 0);
    for line in ran(&folder) {
        running += if line == "+" { 1 } else { -1 };
        most = most.max(running);
    }
    assert!(running == 0 && (2..=4).contains(&most), "{running} {most}");
}
