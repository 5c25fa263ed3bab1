//! Removes a private folder, whatever a function has made of it: unreadable folders, links, millions of
//! files, folders nested deeper than a path can name.

use std::ffi::CStr;
use std::fs::Permissions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, openat, openat2, renameat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Removes the folder of this name in `parent` and all it holds, or what is there in its place. No link is
/// followed, and nothing is touched that is mounted there: it belongs elsewhere.
///
/// Nesting is not walked down but flattened: folders inside a folder are moved up next to it before it is
/// removed. So neither recursion nor open descriptors grow with depth.
pub(crate) fn remove(parent: impl AsFd, name: &str) -> Result<(), Errno> {
    let parent = parent.as_fd();
    match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // A link to a folder is none.
        Err(Errno::NOTDIR) => return unlinkat(parent, name, AtFlags::empty()),
        Err(_) => {}
    }
    let top = open(parent, name)?;
    let mut moved = 0;
    loop {
        let mut removed_any = false;
        let mut failure = None;
        each_entry(&top, |name| match remove_entry(&top, name, &mut moved) {
            Ok(()) => removed_any = true,
            Err(error) => failure = Some(error),
        })?;
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // Removing while listing may skip entries, and moving up adds some: list again.
            Err(Errno::NOTEMPTY | Errno::EXIST) if removed_any => {}
            Err(error) => return Err(failure.unwrap_or(error)),
        }
    }
}

fn remove_entry(top: &OwnedFd, name: &CStr, moved: &mut u64) -> Result<(), Errno> {
    match unlinkat(top, name, AtFlags::empty()) {
        // Which of the two a folder gives depends on the file system.
        Err(Errno::ISDIR | Errno::PERM) => {}
        other => return other,
    }
    if unlinkat(top, name, AtFlags::REMOVEDIR).is_ok() {
        return Ok(());
    }
    let folder = open(top, name)?;
    each_entry(&folder, |inner| {
        let removed = unlinkat(&folder, inner, AtFlags::empty()).is_ok()
            || unlinkat(&folder, inner, AtFlags::REMOVEDIR).is_ok();
        // Moving a folder changes its "..", so it must be writable, which opening it here sees to.
        if !removed && open(&folder, inner).is_ok() {
            move_up(&folder, inner, top, moved);
        }
    })?;
    match unlinkat(top, name, AtFlags::REMOVEDIR) {
        // Entries were skipped while removing; what was achieved is seen by the next listing.
        Err(Errno::NOTEMPTY | Errno::EXIST) if !is_stuck(&folder) => Ok(()),
        other => other,
    }
}

fn move_up(folder: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) {
    // A function may have taken some of these names, though hardly a thousand in a row by accident.
    for _ in 0..1000 {
        *moved += 1;
        match renameat(folder, name, top, format!("moved-{moved}")) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            _ => return,
        }
    }
}

/// Whether nothing in the folder can be unlinked, so that trying again is of no use.
fn is_stuck(folder: &OwnedFd) -> bool {
    let mut stuck = true;
    let listed = each_entry(folder, |name| {
        if stuck {
            stuck = unlinkat(folder, name, AtFlags::empty()).is_err()
                && unlinkat(folder, name, AtFlags::REMOVEDIR).is_err();
        }
    });
    stuck && listed.is_ok()
}

/// Opens a folder after giving its owner all rights to it.
fn open(parent: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    // Changing the mode through an opened path, not by name, cannot be led astray by a link.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (parent, name) = (parent.as_fd(), name.into_c_str()?);
    let handle = match openat2(parent, &*name, flags, Mode::empty(), ResolveFlags::NO_XDEV) {
        // Where it is not known, or not allowed to know it, as in some sandboxes.
        Err(Errno::NOSYS | Errno::PERM) => openat(parent, &*name, flags, Mode::empty())?,
        opened => opened?,
    };
    let by_handle = format!("/proc/self/fd/{}", handle.as_raw_fd());
    // Where this fails, so does what follows, and says why.
    let _ = std::fs::set_permissions(by_handle, Permissions::from_mode(0o700));
    openat(&handle, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn each_entry(folder: &OwnedFd, mut action: impl FnMut(&CStr)) -> Result<(), Errno> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            action(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use rustix::fs::CWD;

    fn remove(path: &Path) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let parent = openat(CWD, path.parent().unwrap(), flags, Mode::empty()).unwrap();
        super::remove(parent, path.file_name().unwrap().to_str().unwrap())
    }

    fn folder() -> PathBuf {
        let path = std::env::temp_dir().join(format!("removal-{}", crate::calls::random_name()));
        fs::create_dir(&path).unwrap();
        path
    }

    /// Runs itself where it may mount.
    #[test]
    fn what_is_mounted_in_a_folder_stays() {
        const INSIDE: &str = "REMOVAL_MAY_MOUNT";
        if std::env::var_os(INSIDE).is_none() {
            let again = std::process::Command::new("unshare")
                .args(["--map-root-user", "--mount", "--"])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "removal::tests::what_is_mounted_in_a_folder_stays"])
                .env(INSIDE, "yes")
                .output()
                .unwrap();
            assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
            return;
        }
        let (outside, path) = (folder(), folder());
        fs::create_dir(outside.join("deep")).unwrap();
        fs::write(outside.join("deep/kept"), "x").unwrap();
        fs::write(path.join("file"), "x").unwrap();
        let mount = |at: &Path| {
            fs::create_dir_all(at).unwrap();
            let mounted = std::process::Command::new("mount").arg("--bind").args([&outside, at]).status();
            assert!(mounted.unwrap().success());
        };
        mount(&path.join("a/b"));
        mount(&path.join("c"));
        assert!(remove(&path).is_err());
        assert!(!path.join("file").exists());
        mount(&path);
        assert!(remove(&path).is_err());
        assert_eq!(fs::read_to_string(outside.join("deep/kept")).unwrap(), "x");
        // They are this namespace's: for all others the folder is what it was.
        for at in [&path, &path.join("c"), &path.join("a/b")] {
            assert!(std::process::Command::new("umount").arg(at).status().unwrap().success());
        }
        for path in [path, outside] {
            remove(&path).unwrap();
        }
    }

    #[test]
    fn locked_folders_links_and_many_files_go_and_link_targets_stay() {
        let outside = folder();
        fs::write(outside.join("kept"), "x").unwrap();
        let path = folder();
        for number in 0..3000 {
            fs::write(path.join(format!("file-{number}")), "").unwrap();
        }
        let locked = path.join("locked/inner/more");
        fs::create_dir_all(&locked).unwrap();
        fs::create_dir(path.join("moved-1")).unwrap();
        fs::write(path.join("moved-1/file"), "").unwrap();
        fs::write(path.join("moved-2"), "").unwrap();
        fs::write(locked.join("file"), "x").unwrap();
        symlink(&outside, path.join("link")).unwrap();
        symlink(&outside, locked.join("link")).unwrap();
        for inside in [locked, path.join("locked/inner"), path.join("locked"), path.clone()] {
            fs::set_permissions(inside, Permissions::from_mode(0o000)).unwrap();
        }
        remove(&path).unwrap();
        assert!(!path.exists());
        assert!(outside.join("kept").exists());
        remove(&outside).unwrap();
        remove(&outside).unwrap(); // gone already is no error
    }

    #[test]
    fn what_is_there_in_the_place_of_a_folder_is_removed_and_not_followed() {
        let outside = folder();
        fs::write(outside.join("kept"), "x").unwrap();
        for target in [outside.clone(), outside.join("kept"), "/nonexistent".into()] {
            let path = folder();
            fs::remove_dir(&path).unwrap();
            symlink(&target, &path).unwrap();
            remove(&path).unwrap();
            assert!(fs::symlink_metadata(&path).is_err(), "a link to {} is still there", target.display());
        }
        let path = folder();
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        remove(&path).unwrap();
        assert!(!path.exists() && outside.join("kept").exists());
        remove(&outside).unwrap();
    }

    #[test]
    fn depth_beyond_any_path_is_no_obstacle() {
        let path = folder();
        let name = "n".repeat(200);
        let mut at: OwnedFd = fs::File::open(&path).unwrap().into();
        for _ in 0..300 {
            rustix::fs::mkdirat(&at, name.as_str(), Mode::RWXU).unwrap();
            at = openat(&at, name.as_str(), OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        }
        drop(at);
        remove(&path).unwrap();
        assert!(!path.exists());
    }
}
