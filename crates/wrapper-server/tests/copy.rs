//! `cp -a DIR/. DST`, as the init container calls it: the same file under
//! another name.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

use std::{
    ffi::OsStr,
    fs::{self, File, FileTimes, Permissions},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, chown, symlink},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wrapper-server");
const USER: [&str; 6] = ["setpriv", "--reuid", "10001", "--regid", "10001", "--clear-groups"];

/// A place with the program under its name `cp`, a source and a destination.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(scene.source()).unwrap();
        fs::create_dir(scene.destination()).unwrap();
        symlink(PROGRAM, scene.program()).unwrap();
        scene
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("cp")
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    fn destination(&self) -> PathBuf {
        self.folder.path().join("destination")
    }

    /// `cp -a SOURCE/. DESTINATION`, which must succeed without a word.
    fn copy(&self) {
        let output =
            run(Command::new(self.program()).arg("-a").arg(self.source().join(".")).arg(self.destination()));
        assert_eq!(output, (Some(0), String::new()));
    }

    fn write(&self, name: impl AsRef<Path>, content: &str, mode: u32) -> PathBuf {
        let path = self.source().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }
}

/// The exit code and all that was said.
fn run(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn files_folders_and_links_are_copied_as_they_are() {
    let scene = Scene::new();
    scene.write("plain", "text", 0o640);
    scene.write("empty", "", 0o600);
    scene.write("program", "#!/bin/sh\necho ran\n", 0o755);
    scene.write("read-only", "fixed", 0o444);
    scene.write(".hidden", "seen", 0o644);
    fs::create_dir_all(scene.source().join("a/b")).unwrap();
    scene.write("a/b/deep", "down", 0o644);
    fs::set_permissions(scene.source().join("a"), Permissions::from_mode(0o1750)).unwrap();
    fs::hard_link(scene.source().join("plain"), scene.source().join("a/same")).unwrap();
    symlink("plain", scene.source().join("link")).unwrap();
    symlink("/nowhere/at all", scene.source().join("dangling")).unwrap();
    symlink("a", scene.source().join("folder-link")).unwrap();
    scene.copy();

    let at = |name: &str| scene.destination().join(name);
    for (name, content, bits) in [
        ("plain", "text", 0o640),
        ("empty", "", 0o600),
        ("read-only", "fixed", 0o444),
        (".hidden", "seen", 0o644),
        ("a/b/deep", "down", 0o644),
    ] {
        assert_eq!((read(at(name)), mode(at(name))), (content.to_owned(), bits), "{name}");
    }
    assert_eq!(mode(at("a")), 0o1750);
    assert_eq!(run(&mut Command::new(at("program"))), (Some(0), "ran\n".to_owned()));
    for (link, goal) in [("link", "plain"), ("dangling", "/nowhere/at all"), ("folder-link", "a")] {
        assert_eq!(fs::read_link(at(link)).unwrap(), Path::new(goal));
    }
    assert_eq!(fs::metadata(at("plain")).unwrap().ino(), fs::metadata(at("a/same")).unwrap().ino());
    assert_eq!(fs::read_dir(scene.destination()).unwrap().count(), 9, "nothing else is left there");
}

#[test]
fn times_and_owners_are_kept_where_that_is_allowed() {
    let scene = Scene::new();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = scene.write("file", "x", 0o4755);
    fs::create_dir(scene.source().join("folder")).unwrap();
    let inside = scene.write("folder/inside", "x", 0o644);
    for path in [&inside, &file, &scene.source().join("folder")] {
        chown(path, Some(1234), Some(4321)).expect("this test needs root");
        File::open(path).unwrap().set_times(FileTimes::new().set_modified(old)).unwrap();
    }
    fs::set_permissions(&file, Permissions::from_mode(0o4755)).unwrap();
    scene.copy();
    for name in ["file", "folder", "folder/inside"] {
        let copied = fs::metadata(scene.destination().join(name)).unwrap();
        assert_eq!((copied.uid(), copied.gid(), copied.modified().unwrap()), (1234, 4321, old), "{name}");
    }
    assert_eq!(mode(scene.destination().join("file")), 0o4755);
}

#[test]
fn what_is_there_is_replaced_and_what_is_elsewhere_stays() {
    let scene = Scene::new();
    let outside = scene.folder.path().join("outside");
    fs::write(&outside, "untouched").unwrap();
    for name in ["read-only", "through-a-link", "hard"] {
        scene.write(name, "new", 0o644);
    }
    symlink("new goal", scene.source().join("link")).unwrap();
    fs::write(scene.destination().join("read-only"), "old and longer").unwrap();
    fs::set_permissions(scene.destination().join("read-only"), Permissions::from_mode(0o400)).unwrap();
    symlink(&outside, scene.destination().join("through-a-link")).unwrap();
    fs::hard_link(&outside, scene.destination().join("hard")).unwrap();
    fs::write(scene.destination().join("link"), "was a file").unwrap();
    fs::write(scene.destination().join("other"), "stays").unwrap();
    for _ in 0..2 {
        scene.copy();
        for name in ["read-only", "through-a-link", "hard"] {
            assert_eq!(
                (read(scene.destination().join(name)), mode(scene.destination().join(name))),
                ("new".into(), 0o644)
            );
        }
        assert_eq!(fs::read_link(scene.destination().join("link")).unwrap(), Path::new("new goal"));
        assert_eq!(read(scene.destination().join("other")), "stays");
        assert_eq!(read(&outside), "untouched");
    }
}

#[test]
fn a_program_that_is_being_executed_is_replaced() {
    let scene = Scene::new();
    assert!(
        Command::new("/bin/cp")
            .args(["/bin/sleep"])
            .arg(scene.source().join("tool"))
            .status()
            .unwrap()
            .success()
    );
    scene.copy();
    let tool = scene.destination().join("tool");
    let mut running = Command::new(&tool).arg("600").stdout(Stdio::null()).spawn().unwrap();
    scene.copy();
    assert!(running.try_wait().unwrap().is_none());
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(Command::new(&tool).arg("0").status().unwrap().success());
}

#[test]
fn the_destination_folder_keeps_its_own_mode_owner_and_content() {
    let scene = Scene::new();
    scene.write("file", "x", 0o644);
    fs::create_dir(scene.source().join("shared")).unwrap();
    fs::create_dir(scene.destination().join("shared")).unwrap();
    fs::set_permissions(scene.source(), Permissions::from_mode(0o700)).unwrap();
    for kept in [scene.destination(), scene.destination().join("shared")] {
        chown(&kept, Some(77), Some(78)).expect("this test needs root");
        fs::set_permissions(&kept, Permissions::from_mode(0o2777)).unwrap();
    }
    scene.copy();
    for kept in [scene.destination(), scene.destination().join("shared")] {
        let metadata = fs::metadata(&kept).unwrap();
        assert_eq!((mode(&kept), metadata.uid(), metadata.gid()), (0o2777, 77, 78));
    }
}

#[test]
fn a_user_who_may_change_nothing_there_still_gets_the_files() {
    let scene = Scene::new();
    // The build's own folder may be out of that user's reach.
    fs::remove_file(scene.program()).unwrap();
    assert!(
        Command::new("/bin/cp")
            .args([PROGRAM.as_ref(), scene.program().as_os_str()])
            .status()
            .unwrap()
            .success()
    );
    fs::set_permissions(scene.folder.path(), Permissions::from_mode(0o755)).unwrap();
    scene.write("program", "#!/bin/sh\necho ran\n", 0o755);
    fs::create_dir(scene.source().join("folder")).unwrap();
    scene.write("folder/inside", "x", 0o644);
    symlink("program", scene.source().join("link")).unwrap();
    // Root's folders, writable by all; one of them is there already, with an older file of root's.
    fs::create_dir(scene.destination().join("folder")).unwrap();
    fs::write(scene.destination().join("folder/inside"), "old").unwrap();
    for folder in [scene.destination(), scene.destination().join("folder")] {
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    }
    let mut command = Command::new(USER[0]);
    command
        .args(&USER[1..])
        .arg(scene.program())
        .arg("-a")
        .arg(scene.source().join("."))
        .arg(scene.destination());
    assert_eq!(run(&mut command), (Some(0), String::new()), "setpriv needs root");
    let ran = run(&mut Command::new(scene.destination().join("link")));
    assert_eq!(ran, (Some(0), "ran\n".to_owned()));
    assert_eq!(read(scene.destination().join("folder/inside")), "x");
    assert_eq!(fs::metadata(scene.destination().join("program")).unwrap().uid(), 10001);
}

#[test]
fn any_name_is_a_name() {
    let scene = Scene::new();
    let long = "n".repeat(255);
    let names = [&b"two words"[..], b"new\nline", b"\xff\xfe", b"-a", b"\"'$(x)`\\", long.as_bytes()];
    for name in names {
        scene.write(OsStr::from_bytes(name), "x", 0o644);
    }
    scene.copy();
    for name in names {
        assert_eq!(
            read(scene.destination().join(OsStr::from_bytes(name))),
            "x",
            "{}",
            OsStr::from_bytes(name).display()
        );
    }
}

#[test]
fn the_other_forms_of_the_command_work_too() {
    let scene = Scene::new();
    let file = scene.write("file", "x", 0o755);
    let (source, destination) = (scene.source(), scene.destination());
    let cp = |arguments: &[&OsStr]| run(Command::new(scene.program()).args(arguments));
    let silent = (Some(0), String::new());
    // A file to a name, into a folder, and two at once.
    assert_eq!(cp(&[file.as_ref(), destination.join("named").as_ref()]), silent);
    assert_eq!(cp(&["--".as_ref(), file.as_ref(), destination.as_ref()]), silent);
    fs::create_dir(destination.join("both")).unwrap();
    let both = [destination.join("named"), destination.join("file"), destination.join("both")];
    assert_eq!(cp(&both.each_ref().map(|path| path.as_os_str())), silent);
    // A folder into a folder that is there, and to a name that is not.
    assert_eq!(cp(&["-r".as_ref(), source.as_ref(), destination.as_ref()]), silent);
    assert_eq!(cp(&["--archive".as_ref(), source.as_ref(), destination.join("new").as_ref()]), silent);
    for name in ["named", "file", "both/named", "both/file", "source/file", "new/file"] {
        assert_eq!(
            (read(destination.join(name)), mode(destination.join(name)) & 0o700),
            ("x".into(), 0o700),
            "{name}"
        );
    }
    let (code, said) = cp(&["-av".as_ref(), file.as_ref(), destination.as_ref()]);
    assert!(code == Some(0) && said.contains("source/file") && said.contains("destination/file"), "{said}");
}

#[test]
fn what_cannot_be_copied_is_named_and_the_rest_is_copied() {
    let scene = Scene::new();
    scene.write("file", "x", 0o644);
    scene.write("folder-there", "x", 0o644);
    symlink("file", scene.source().join("link-there")).unwrap();
    let pipe = scene.source().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    fs::create_dir_all(scene.destination().join("folder-there/full")).unwrap();
    fs::create_dir_all(scene.destination().join("link-there/full")).unwrap();
    let (code, said) =
        run(Command::new(scene.program()).arg("-a").arg(scene.source().join(".")).arg(scene.destination()));
    assert_eq!(code, Some(1));
    let named = |name: &str| said.lines().any(|line| line.starts_with("cp: ") && line.contains(name));
    assert!(named("source/./pipe"), "{said}");
    assert!(named("destination/folder-there") && named("destination/link-there"), "{said}");
    assert_eq!(said.lines().count(), 3, "{said}");
    assert_eq!(read(scene.destination().join("file")), "x");
    assert_eq!(fs::read_dir(scene.destination()).unwrap().count(), 3, "nothing half done is left");
}

#[test]
fn a_missing_source_and_a_destination_that_cannot_be_written_are_named() {
    let scene = Scene::new();
    scene.write("file", "x", 0o644);
    let cp = |from: &Path, to: &Path| run(Command::new(scene.program()).arg("-a").args([from, to]));
    for (from, to, named) in [
        (scene.source().join("none/."), scene.destination(), "source/none/."),
        (scene.source().join("."), "/proc/none".into(), "/proc/none"),
        (scene.source().join("file"), "/proc/none".into(), "/proc/none"),
        (scene.source().join("file"), scene.destination().join("no/folder"), "destination/no/folder"),
        (scene.source().join("."), scene.source().join("file"), "source/file"),
    ] {
        let (code, said) = cp(&from, &to);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.starts_with("cp: ") && said.contains(named), "{named}: {said}");
    }
    let (code, said) =
        run(Command::new(scene.program()).args(["-a", "/etc/hostname", "/etc/passwd", "/etc/group"]));
    assert!(code == Some(1) && said.contains("/etc/group"), "two files cannot become one: {said}");
}

#[test]
fn a_folder_is_not_copied_into_itself() {
    let scene = Scene::new();
    scene.write("file", "x", 0o644);
    let inner = scene.source().join("inner");
    fs::create_dir(&inner).unwrap();
    let (code, said) = run(Command::new(scene.program()).arg("-a").arg(scene.source().join(".")).arg(&inner));
    assert!(code == Some(1) && said.contains("into itself"), "{said:.300}");
    assert_eq!(read(inner.join("file")), "x");
    assert!(!inner.join("inner/inner").exists());
}

#[test]
fn a_wrong_command_line_is_told_with_the_usage() {
    let scene = Scene::new();
    for (arguments, told) in [
        (&[][..], "nothing to copy"),
        (&["-a"], "nothing to copy"),
        (&["-a", "alone"], "nothing to copy to alone"),
        (&["-z", "a", "b"], "unknown option -z"),
        (&["--sparse=auto", "a", "b"], "unknown option --sparse=auto"),
    ] {
        let (code, said) = run(Command::new(scene.program()).args(arguments));
        assert_eq!(code, Some(1), "{arguments:?}");
        assert!(said.contains(told) && said.contains("usage: cp "), "{arguments:?}: {said}");
    }
    let (code, said) = run(Command::new(scene.program()).arg(scene.source()).arg(scene.destination()));
    assert!(code == Some(1) && said.contains("neither -r nor -a"), "{said}");
}

/// `sh -c SCRIPT` with SOURCE and DESTINATION in it.
fn shell(scene: &Scene, script: &str) -> (Option<i32>, String) {
    shell_with(scene, "-c", script)
}

fn shell_with(scene: &Scene, flags: &str, script: &str) -> (Option<i32>, String) {
    let program = scene.folder.path().join("sh");
    if !program.exists() {
        symlink(PROGRAM, &program).unwrap();
    }
    let script = script
        .replace("SOURCE", scene.source().to_str().unwrap())
        .replace("DESTINATION", scene.destination().to_str().unwrap());
    run(Command::new(program).args([flags, &script]))
}

#[test]
fn a_shell_copies_for_templates_that_call_one() {
    for script in [
        "cp -a SOURCE/. DESTINATION",
        "/bin/cp -a 'SOURCE/.' \"DESTINATION\"",
        "cp SOURCE/* DESTINATION",
        "cp SOURCE/wrapper-server DESTINATION && cp SOURCE/grpc-health-probe DESTINATION",
        "cp SOURCE/wrapper-server DESTINATION\ncp SOURCE/grpc-health-probe DESTINATION\n",
    ] {
        let scene = Scene::new();
        scene.write("wrapper-server", "w", 0o755);
        scene.write("grpc-health-probe", "p", 0o755);
        assert_eq!(shell(&scene, script), (Some(0), String::new()), "{script}");
        for (name, content) in [("wrapper-server", "w"), ("grpc-health-probe", "p")] {
            assert_eq!(read(scene.destination().join(name)), content, "{script}");
            assert_eq!(mode(scene.destination().join(name)), 0o755, "{script}");
        }
    }
}

#[test]
fn a_shell_does_nothing_of_a_script_that_it_cannot_do_all_of() {
    let scene = Scene::new();
    scene.write("file", "x", 0o644);
    for (script, code, told) in [
        (
            "cp SOURCE/file DESTINATION && chmod 755 DESTINATION/file",
            127,
            "sh: chmod: not found; this sh knows nothing but cp",
        ),
        ("cp SOURCE/file DESTINATION; cp $HOME/x DESTINATION", 2, "sh: cannot understand '$'; this sh"),
        ("cp SOURCE/f* DESTINATION", 2, "sh: cannot understand a *"),
        ("", 2, "sh: the script is empty"),
    ] {
        let (ended, said) = shell(&scene, script);
        assert_eq!(ended, Some(code), "{script}: {said}");
        assert!(said.starts_with(told), "{script}: {said}");
        assert_eq!(fs::read_dir(scene.destination()).unwrap().count(), 0, "{script}");
    }
    let program = scene.folder.path().join("sh");
    for arguments in [&[][..], &["-c"], &["script.sh"], &["-l", "-c", "cp a b"], &["--help"]] {
        let (ended, said) = run(Command::new(&program).args(arguments));
        assert!(ended == Some(2) && said.starts_with("sh: "), "{arguments:?}: {said}");
    }
}

#[test]
fn a_shell_ends_as_its_last_copy_did() {
    let scene = Scene::new();
    scene.write("file", "x", 0o644);
    let (missing, good) = ("cp SOURCE/none DESTINATION", "cp SOURCE/file DESTINATION");
    for (script, code, copied) in [
        (format!("{missing} && {good}"), 1, 0),
        (format!("{missing}; {good}"), 0, 1),
        (format!("{good}; {missing}"), 1, 1),
    ] {
        let _ = fs::remove_file(scene.destination().join("file"));
        let (ended, said) = shell(&scene, &script);
        assert_eq!(ended, Some(code), "{script}: {said}");
        assert!(said.contains("source/none"), "{said}");
        assert_eq!(fs::read_dir(scene.destination()).unwrap().count(), copied, "{script}");
    }
    let _ = fs::remove_file(scene.destination().join("file"));
    assert_eq!(shell_with(&scene, "-ec", &format!("{missing}; {good}")).0, Some(1));
    assert_eq!(fs::read_dir(scene.destination()).unwrap().count(), 0, "it stops at the first failure");
}
