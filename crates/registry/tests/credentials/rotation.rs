//! Files that change while they are in use.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use registry::Keychain;
use serde_json::json;
use tokio::time::advance;

use crate::{Folder, basic, image};

fn config(password: &str) -> String {
    json!({"auths": {"example.com": {"username": "u", "password": password}}}).to_string()
}

async fn password(keychain: &Keychain) -> Option<String> {
    let login = keychain.lookup(&image("example.com/app")).await;
    basic(login.unwrap_or_else(|error| panic!("{error}"))).map(|login| login[2..].to_owned())
}

#[tokio::test(start_paused = true)]
async fn is_looked_at_once_a_second() {
    let folder = Folder::new();
    let keychain = folder.keychain();
    let clone = keychain.clone();
    assert_eq!(password(&keychain).await, None);
    for round in 0..5 {
        let before = password(&keychain).await;
        let now = format!("p{round}");
        folder.write(config(&now));
        assert_eq!(password(&keychain).await, before);
        advance(Duration::from_millis(999)).await;
        assert_eq!(password(&clone).await, before);
        advance(Duration::from_millis(1)).await;
        assert_eq!(password(&clone).await, Some(now));
    }
    fs::remove_file(folder.file()).unwrap();
    advance(Duration::from_secs(1)).await;
    assert_eq!(password(&keychain).await, None);
}

#[tokio::test(start_paused = true)]
async fn is_read_at_once_when_forgotten() {
    let folder = Folder::new();
    folder.write(config("old"));
    let keychain = folder.keychain();
    assert_eq!(password(&keychain).await.as_deref(), Some("old"));
    folder.write(config("new"));
    keychain.clone().forget();
    assert_eq!(password(&keychain).await.as_deref(), Some("new"));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_old_file_is_seen() {
    let folder = Folder::new();
    folder.write(config("old"));
    // Until its stamp can be relied on: files have times of the real clock.
    std::thread::sleep(Duration::from_millis(3100));
    let keychain = folder.keychain();
    assert_eq!(password(&keychain).await.as_deref(), Some("old"));
    advance(Duration::from_secs(1)).await;
    assert_eq!(password(&keychain).await.as_deref(), Some("old"));
    // Of the same length, in the same place.
    folder.write(config("new"));
    advance(Duration::from_secs(1)).await;
    assert_eq!(password(&keychain).await.as_deref(), Some("new"));
}

#[tokio::test(start_paused = true)]
async fn an_error_lasts_until_the_file_is_mended() {
    let folder = Folder::new();
    let keychain = folder.keychain();
    for _ in 0..2 {
        folder.write(config("good"));
        advance(Duration::from_secs(1)).await;
        assert_eq!(password(&keychain).await.as_deref(), Some("good"));
        folder.write("{\"auths\": ");
        advance(Duration::from_secs(1)).await;
        keychain.lookup(&image("example.com/app")).await.unwrap_err();
        advance(Duration::from_secs(1)).await;
        keychain.lookup(&image("example.com/app")).await.unwrap_err();
    }
}

/// Puts the secret into the folder as the kubelet does: a new folder, and one link swapped for another.
fn mount(folder: &Path, generation: &str, content: &str) {
    let data = folder.join(format!("..{generation}"));
    fs::create_dir(&data).unwrap();
    fs::write(data.join(".dockerconfigjson"), content).unwrap();
    symlink(format!("..{generation}"), folder.join("..data_tmp")).unwrap();
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_mounted_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".dockerconfigjson");
    mount(folder.path(), "1", &config("one"));
    symlink("..data/.dockerconfigjson", &path).unwrap();
    let keychain = Keychain::file(path);
    assert_eq!(password(&keychain).await.as_deref(), Some("one"));
    for generation in ["2", "3"] {
        mount(folder.path(), generation, &config(generation));
        advance(Duration::from_secs(1)).await;
        assert_eq!(password(&keychain).await.as_deref(), Some(generation));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_lookups_while_the_file_is_replaced() {
    let folder = Folder::new();
    folder.write(config("0"));
    let keychain = folder.keychain();
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let keychain = keychain.clone();
            tokio::spawn(async move {
                for _ in 0..200 {
                    keychain.forget();
                    assert!(password(&keychain).await.is_some());
                }
            })
        })
        .collect();
    for round in 0..100 {
        let next = folder.file().with_extension("next");
        fs::write(&next, config(&round.to_string())).unwrap();
        fs::rename(next, folder.file()).unwrap();
        tokio::task::yield_now().await;
    }
    for reader in readers {
        reader.await.unwrap();
    }
    keychain.forget();
    assert_eq!(password(&keychain).await.as_deref(), Some("99"));
}
