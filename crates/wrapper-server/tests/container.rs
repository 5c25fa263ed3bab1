//! Life inside a function's container: whatever its user, its folders and its
//! place among the processes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use testing::{Server, ServerBuilder, children_of, eventually, resource_list};
use wire::client::CallOptions;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wrapper-server");

/// A server of a function that is a shell script.
fn wrapper(script: &str) -> ServerBuilder {
    Server::of(PROGRAM).rest(["--", "/bin/sh", "-c", script])
}

/// Calls the function; what it wrote to stderr.
async fn log_of_call(server: &Server) -> String {
    let list = resource_list(&["a"]);
    let answer = server.client().await.evaluate("x", list, CallOptions::default()).await.unwrap();
    String::from_utf8(answer.log.to_vec()).unwrap()
}

/// Fails with the reason where this machine does not let us do what the test needs.
fn require(arguments: &[&str]) {
    let tried = Command::new(arguments[0]).args(&arguments[1..]).output().expect(arguments[0]);
    assert!(tried.status.success(), "{arguments:?} is not possible here (run as root): {tried:?}");
}

/// Whether nothing of any call is left in the one folder that the service keeps in this one.
fn has_no_calls(folder: &Path) -> bool {
    let names = |folder: &Path| -> Vec<_> { fs::read_dir(folder).unwrap().map(Result::unwrap).collect() };
    let own = names(folder);
    assert_eq!(own.len(), 1, "{own:?}");
    names(&own[0].path()).iter().all(|entry| !entry.file_type().unwrap().is_dir())
}

#[tokio::test]
async fn a_function_has_the_environment_and_the_folder_of_the_container() {
    let folder = tempfile::tempdir().unwrap();
    let server = wrapper("cat; pwd -P >&2; echo \"$SETTING\" >&2; echo \"$HOME\" >&2")
        .folder(folder.path())
        .variable("SETTING", "of the container")
        .variable("HOME", "/home/of/the/image")
        .start();
    let expected = format!("{}\nof the container\n/home/of/the/image\n", folder.path().display());
    assert_eq!(log_of_call(&server).await, expected);
}

#[tokio::test]
async fn each_call_has_a_private_temporary_folder_that_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "cat; mkdir -p $TMPDIR/a/b; echo x > $TMPDIR/a/b/c; chmod 0 $TMPDIR/a; stat -c '%a %n' $TMPDIR >&2";
    let server = wrapper(script).variable("TMPDIR", folder.path().to_str().unwrap()).start();
    let (first, second) = (log_of_call(&server).await, log_of_call(&server).await);
    for log in [&first, &second] {
        assert!(log.starts_with(&format!("700 {}/", folder.path().display())), "{log}");
    }
    assert_ne!(first, second);
    eventually("the folders are removed", || has_no_calls(folder.path()));
}

#[tokio::test]
async fn an_unusable_tmpdir_is_replaced_by_another_place() {
    for place in ["/nonexistent/folder", "/proc", "/etc/passwd"] {
        let server =
            wrapper("cat; test -w $TMPDIR || exit 1; echo $TMPDIR >&2").variable("TMPDIR", place).start();
        let told = log_of_call(&server).await;
        assert!(!told.starts_with(place) && !told.trim().is_empty(), "{told}");
    }
}

#[tokio::test]
async fn it_works_where_no_folder_can_be_written() {
    let launcher = |folders: &str| {
        let script = format!(
            "for folder in {folders}; do mount --bind $folder $folder && mount -o remount,bind,ro $folder || exit 9; done; \
             exec \"$@\""
        );
        ["unshare", "--mount", "sh", "-c", &script, "sh"].map(str::to_owned)
    };
    require(&["unshare", "--mount", "sh", "-c", "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp"]);
    let script = "cat; touch /tmp/x /dev/shm/x 2>/dev/null && exit 1; echo \"TMPDIR=$TMPDIR\" >&2";
    let server = wrapper(script).under(launcher("/tmp /dev/shm")).variable("TMPDIR", "/tmp").start();
    assert_eq!(log_of_call(&server).await, "TMPDIR=/tmp\n");
    let log = server.log();
    for part in ["WARN functions share the container's temporary folder", "/tmp: ", "/dev/shm: ", "TMPDIR"] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[tokio::test]
async fn it_works_as_any_user() {
    let user = ["setpriv", "--reuid", "10001", "--regid", "10001", "--clear-groups"];
    require(&[&user[..], &["true"]].concat());
    // The build's own folder may be out of that user's reach.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("wrapper-server");
    require(&["cp", PROGRAM, program.to_str().unwrap()]);
    let server = Server::of(&program)
        .under(user)
        .rest(["--", "/bin/sh", "-c", "cat; id -u >&2; touch $TMPDIR/x"])
        .start();
    assert_eq!(log_of_call(&server).await, "10001\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn as_the_first_process_it_reaps_every_orphan() {
    // A session of its own, as container runtimes give it.
    let launcher = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "setsid"];
    require(&[&launcher[..], &["true"]].concat());
    let script = "cat
        echo $PPID >&2
        (setsid sh -c 'exec sleep 600' >/dev/null 2>&1 </dev/null &)
        (env -i setsid sh -c 'cd /; sleep 600 & exec sleep 601' >/dev/null 2>&1 </dev/null &)
        (setsid sh -c 'exit 3' >/dev/null 2>&1 </dev/null &)
        (sleep 0.05 >/dev/null 2>&1 </dev/null &)";
    let mut server = wrapper(script).under(launcher).start();
    let below = children_of(server.process());
    let first: u32 = below[0].split(' ').next().unwrap().parse().unwrap();
    for _ in 0..5 {
        assert_eq!(log_of_call(&server).await, "1\n", "it is the first process of its namespace");
    }
    // Whatever lives in its namespace would be below it, zombies too.
    eventually("nothing is left below it", || children_of(first).is_empty());
    let first = Pid::from_raw(first.try_into().unwrap()).unwrap();
    kill_process(first, Signal::TERM).unwrap();
    assert!(server.wait(Duration::from_mins(2)).success());
}
