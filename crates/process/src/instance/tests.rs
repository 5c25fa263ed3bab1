use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use super::*;

/// A place for one test, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("place-{}", crate::calls::random_name()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a service leaves that is killed: all but the lock.
fn abandon(instance: Instance) -> PathBuf {
    let path = instance.path().to_owned();
    // So that it does not remove itself.
    fs::create_dir(path.join("function-left-1")).unwrap();
    fs::write(path.join("function-left-1/file"), "x").unwrap();
    drop(instance);
    assert!(path.exists());
    path
}

#[test]
fn only_the_folders_of_dead_services_are_removed() {
    let place = Place::new();
    let living = Instance::make(&place.0).unwrap();
    let dead = abandon(Instance::make(&place.0).unwrap());
    let outside = Place::new();
    fs::write(outside.0.join("kept"), "x").unwrap();
    symlink(&outside.0, dead.join("function-left-2")).unwrap();
    tidy(&place.0);
    assert!(!dead.exists(), "it is not removed");
    assert!(outside.0.join("kept").exists(), "a link was followed");
    assert!(living.is_in_place());
}

#[test]
fn nothing_that_somebody_else_made_is_touched() {
    let place = Place::new();
    let path = |name: &str| place.0.join(name);
    let make = |name: &str, mode: u32, lock: Option<String>| {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("kept"), "x").unwrap();
        if let Some(text) = lock {
            fs::write(path(name).join(LOCK), text).unwrap();
            fs::set_permissions(path(name).join(LOCK), Permissions::from_mode(0o600)).unwrap();
        }
        fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
    };
    let marker = |name: &str| Some(format!("{MARKER}{name}\n"));
    // By name alone, as an older version or anybody may have made it.
    make("function-0123456789abcdef-1", 0o700, None);
    make("functions-of-mine", 0o700, None);
    make("functions-other-lock", 0o700, Some("another lock\n".to_owned()));
    make("functions-half", 0o700, Some(MARKER.to_owned()));
    make("functions-copied", 0o700, marker("functions-from-elsewhere"));
    make("functions-more", 0o700, Some(format!("{MARKER}functions-more\nand more\n")));
    make("functions-open", 0o755, marker("functions-open"));
    make("another-name", 0o700, marker("another-name"));
    // Links to what would be removed under its own name.
    let elsewhere = Place::new();
    let target = abandon(Instance::make(&elsewhere.0).unwrap());
    symlink(&target, path(target.file_name().unwrap().to_str().unwrap())).unwrap();
    make("functions-linked", 0o700, None);
    fs::write(elsewhere.0.join("lock"), marker("functions-linked").unwrap()).unwrap();
    symlink(elsewhere.0.join("lock"), path("functions-linked").join(LOCK)).unwrap();
    // Something that would hold up whoever opens it.
    make("functions-pipe", 0o700, None);
    let pipe = Command::new("mkfifo").arg("-m").arg("600").arg(path("functions-pipe").join(LOCK)).status();
    assert!(pipe.unwrap().success());
    fs::write(path("functions-file"), marker("functions-file").unwrap()).unwrap();

    let listing = || {
        let mut entries: Vec<_> = Command::new("find").arg(&place.0).output().unwrap().stdout;
        entries.sort_unstable();
        entries
    };
    let before = listing();
    tidy(&place.0);
    assert_eq!(listing(), before);
    assert!(target.join("function-left-1/file").exists());
}

#[test]
fn another_users_folders_are_left_alone() {
    let place = Place::new();
    let dead = abandon(Instance::make(&place.0).unwrap());
    let owner = Some(12345);
    if std::os::unix::fs::chown(dead.join(LOCK), owner, None).is_err() {
        return; // only root can give files away
    }
    tidy(&place.0);
    assert!(dead.join("function-left-1").exists());
    std::os::unix::fs::chown(dead.join(LOCK), Some(0), None).unwrap();
    std::os::unix::fs::chown(&dead, owner, None).unwrap();
    tidy(&place.0);
    assert!(dead.join("function-left-1").exists());
}

#[test]
fn what_still_runs_of_a_dead_service_is_ended() {
    let place = Place::new();
    let dead = abandon(Instance::make(&place.0).unwrap());
    let call = crate::calls::random_name();
    fs::create_dir(dead.join(&call)).unwrap();
    let start = |mark: &str| {
        let mut command = Command::new("/bin/sleep");
        command.arg("60").env(crate::calls::COOKIE, mark).stdout(Stdio::null()).spawn().unwrap()
    };
    let (mut left, mut other) = (start(&call), start(&format!("{call}0")));
    tidy(&place.0);
    assert!(!dead.exists());
    assert!(!left.wait().unwrap().success());
    assert!(other.try_wait().unwrap().is_none(), "another call was ended");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_folder_is_replaced_when_it_is_not_in_its_place() {
    let place = Place::new();
    for harm in
        ["rm -r $DIR", "mv $DIR $DIR.moved", "mv $DIR $DIR.moved; ln -s $DIR.moved $DIR", "chmod 755 $DIR"]
    {
        let instance = Instance::make(&place.0).unwrap();
        assert!(instance.is_in_place());
        let done = Command::new("/bin/sh").arg("-c").arg(harm).env("DIR", instance.path()).status();
        assert!(done.unwrap().success() && !instance.is_in_place(), "{harm}");
    }
}
