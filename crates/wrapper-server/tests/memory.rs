//! A function that needs more memory than its container may have: a real control group with a real limit.
//! Needs root, and a memory controller that groups can be made with.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where its set-up fails"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use testing::{Server, resource_list};
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};
use tonic_types::StatusExt;
use wire::{client::CallOptions, proto::EvaluateFunctionResponse};

/// A control group limited to 64 MiB, removed when dropped.
struct Group {
    folder: PathBuf,
}

impl Group {
    fn new(name: &str) -> Self {
        let second_version = fs::exists("/sys/fs/cgroup/cgroup.controllers").unwrap();
        let (mount, limit, swap, no_swap) = if second_version {
            ("/sys/fs/cgroup", "memory.max", "memory.swap.max", "0")
        } else {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "64M")
        };
        let folder = PathBuf::from(format!("{mount}/wrapper-server-{name}-{}", std::process::id()));
        let why = "run as root where memory control groups can be made";
        fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}: {why}", folder.display()));
        let group = Self { folder };
        let limited = fs::write(group.folder.join(limit), "64M");
        limited.unwrap_or_else(|error| panic!("{}/{limit}: {error}: {why}", group.folder.display()));
        // Not there on machines that do not account for swap.
        let _ = fs::write(group.folder.join(swap), no_swap);
        group
    }

    /// A server in this group, of a function that does what the name in its input says.
    fn server(&self, folder: &Path) -> Server {
        let join = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.folder.display());
        let script = "list=$(cat); echo begun >&2
            until_told() { touch $1; while ! test -e told; do sleep 0.01; done; }
            case $list in
                *greedy*) exec tail /dev/zero ;;
                *delegating*) tail /dev/zero ;;
                *patient*) until_told patient; echo \"$list\" ;;
                *doomed*) until_told doomed; echo \"$list\"; kill -9 $$ ;;
                *) echo \"$list\" ;;
            esac";
        Server::of(env!("CARGO_BIN_EXE_wrapper-server"))
            .under(["sh", "-c", &join, "sh"])
            .rest(["--", "/bin/sh", "-c", script])
            .folder(folder)
            .start()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its last processes have been killed but may not be gone.
        for _ in 0..500 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Has the function do what this name says.
async fn call(server: &Server, name: &str) -> Result<EvaluateFunctionResponse, Status> {
    server.client().await.evaluate("x", resource_list(&[name]), CallOptions::default()).await
}

fn assert_out_of_memory(result: Result<EvaluateFunctionResponse, Status>) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    // What follows is the shell's own word about its child.
    let start = "function \"x\" was not answered: it ran out of memory: the kernel killed it, \
                 its container is limited to 64 MiB for all that runs in it; \
                 give the function more with resources.limits.memory; stderr so far: begun\n";
    assert!(status.message().starts_with(start), "{status:?}");
    assert_eq!(status.get_details_error_info().unwrap().reason, "LIMIT_REACHED");
}

fn assert_killed(result: Result<EvaluateFunctionResponse, Status>) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), Code::Internal, "{status:?}");
    let start = "failed to evaluate function \"x\" with structured results:  and stderr: begun\n";
    assert_eq!(status.message(), start);
    assert_eq!(status.get_details_error_info().unwrap().metadata["exit"], "signal: killed");
}

#[tokio::test]
async fn a_function_that_runs_out_of_memory_is_told_so_and_the_next_call_is_answered() {
    let (group, folder) = (Group::new("one"), tempfile::tempdir().unwrap());
    let server = group.server(folder.path());
    // Itself, and a shell whose last command it is: the shell exits with 137.
    for name in ["greedy", "delegating", "greedy"] {
        assert_out_of_memory(call(&server, name).await);
        assert!(call(&server, "modest").await.is_ok());
    }
    assert!(server.log().contains("call code=ResourceExhausted"), "{}", server.log());
    // Killed by someone else, after all that.
    fs::write(folder.path().join("told"), "").unwrap();
    assert_killed(call(&server, "doomed").await);
}

#[tokio::test]
async fn calls_beside_it_are_not_affected() {
    let (group, folder) = (Group::new("many"), tempfile::tempdir().unwrap());
    let server = group.server(folder.path());
    let told = async {
        while !["patient", "doomed"].iter().all(|name| folder.path().join(name).exists()) {
            sleep(Duration::from_millis(10)).await;
        }
        let (one, other) = tokio::join!(call(&server, "greedy"), call(&server, "greedy"));
        assert_out_of_memory(one);
        assert_out_of_memory(other);
        fs::write(folder.path().join("told"), "").unwrap();
    };
    let all = Box::pin(async { tokio::join!(call(&server, "patient"), call(&server, "doomed"), told) });
    let (patient, doomed, ()) = timeout(Duration::from_mins(2), all).await.unwrap();
    assert_eq!(patient.unwrap().resource_list, resource_list(&["patient"]));
    assert_killed(doomed);
}
