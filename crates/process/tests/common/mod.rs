//! One supervisor per test process, on a runtime that outlives every test.
#![allow(dead_code)] // each test file uses its own part of this

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use process::{Environment, Finished, Folder, Limits, Log, Program, RunError, Scratch, Supervisor};
use tokio::runtime::Runtime;
use tokio::time::{Instant, timeout};

/// How long something that must happen may take before a test is taken to hang, also on a machine that has much
/// else to do.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A descriptor without close-on-exec, as if inherited, open before the supervisor starts.
pub(crate) const INHERITED: i32 = 77;

struct World {
    runtime: Runtime,
    supervisor: Supervisor,
    _inherited: OwnedFd,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let file = fs::File::open("/dev/null").unwrap();
        let inherited = rustix::io::fcntl_dupfd_cloexec(file.as_fd(), INHERITED).unwrap();
        rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let guard = runtime.enter();
        let supervisor = Supervisor::start().unwrap();
        drop(guard);
        World { runtime, supervisor, _inherited: inherited }
    })
}

pub(crate) fn supervisor() -> &'static Supervisor {
    &world().supervisor
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    world();
    world().runtime.block_on(future)
}

/// A private scratch root for one test.
pub(crate) fn scratch() -> Scratch {
    let root = std::env::temp_dir().join(unique("scratch"));
    fs::create_dir(&root).unwrap();
    Scratch::find([root]).unwrap()
}

/// The private folders that are there, by name.
pub(crate) fn private_folders(scratch: &Scratch) -> Vec<String> {
    let names = |path: PathBuf| -> Vec<String> {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
        let entries = fs::read_dir(path).into_iter().flatten().flatten().filter(|_| !is_link);
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    let own = names(scratch.place().to_owned()).into_iter().filter(|name| name.starts_with("functions-"));
    own.flat_map(|own| names(scratch.place().join(own))).filter(|name| name != ".lock").collect()
}

/// A text that occurs nowhere else on this machine.
pub(crate) fn unique(name: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let time = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    format!("{name}-{}-{time}-{number}", std::process::id())
}

/// A shell script as a function, without a private folder. `$MARK` is the given mark.
pub(crate) fn shell(script: &str, mark: &str) -> Program {
    let path = std::env::var_os("PATH").unwrap();
    Program {
        path: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: Environment::Clean([("PATH".into(), path), ("MARK".into(), mark.into())].into()),
        folder: Folder::None,
    }
}

pub(crate) fn program(path: impl Into<PathBuf>, arguments: &[&str]) -> Program {
    Program {
        path: path.into(),
        arguments: arguments.iter().map(OsString::from).collect(),
        environment: Environment::Inherited,
        folder: Folder::None,
    }
}

pub(crate) const LIMITS: Limits = Limits { deadline: None, max_output: 6 << 20, max_log: Limits::MAX_LOG };

pub(crate) fn within(time: Duration) -> Limits {
    Limits { deadline: Some(Instant::now() + time), ..LIMITS }
}

pub(crate) const fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(crate) async fn run_sh(script: &str, input: &[u8], limits: Limits) -> Result<Finished, RunError> {
    supervisor().run(&shell(script, "none"), Bytes::copy_from_slice(input), &limits).await
}

/// The living processes that carry a mark in their arguments or environment.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let own = std::process::id();
    let carries = |pid: u32, file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| pid != own && (carries(pid, "cmdline") || carries(pid, "environ"))).collect()
}

/// The dead, unreaped children of this process.
pub(crate) fn zombies() -> Vec<String> {
    let own = std::process::id().to_string();
    let stats = fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let zombie = |line: &String| {
        let mut fields = line[line.rfind(')').unwrap() + 1..].split_whitespace();
        fields.next() == Some("Z") && fields.next() == Some(own.as_str())
    };
    stats.filter(zombie).collect()
}

/// Waits until a condition holds; fails the test when it never does.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(milliseconds(5)).await;
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "it never becomes true: {what}");
}

pub(crate) async fn gone(mark: &str) {
    eventually("all processes are gone", || marked(mark).is_empty()).await;
}

/// Runs a function that never ends with ever longer deadlines, until it has got as far as it must.
pub(crate) async fn timed_out(program: &Program, is_far_enough: impl Fn(&Log) -> bool) -> Log {
    for seconds in [1, 4, 16, 64] {
        let result = supervisor().run(program, Bytes::new(), &within(Duration::from_secs(seconds))).await;
        let Err(RunError::TimedOut { log, .. }) = result else { panic!("{result:?}") };
        if is_far_enough(&log) {
            return log;
        }
    }
    panic!("it gets nowhere");
}
