//! The file as `make build` leaves it: small, static, at home in an empty
//! image, modest with memory.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

use std::{fs, path::PathBuf, process::Command};

use testing::{Server, resource_list};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use wire::client::CallOptions;

/// The released file, beside the folder of the one under test.
fn released() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_wrapper-server"));
    let path = built.parent().unwrap().with_file_name("release").join("wrapper-server");
    assert!(path.exists(), "there is no {}: run `make build` first", path.display());
    path
}

#[test]
fn it_is_at_most_two_and_a_half_megabytes() {
    let size = fs::metadata(released()).unwrap().len();
    assert!(size <= 2_500_000, "{size} bytes");
}

#[test]
fn it_needs_no_loader() {
    const INTERPRETER: u32 = 3;
    let file = fs::read(released()).unwrap();
    let short = |at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    // A 64-bit ELF header: where the program headers are, how large, how many.
    let (start, size, count) = (u64::from_le_bytes(file[32..40].try_into().unwrap()), short(54), short(56));
    let start = usize::try_from(start).unwrap();
    let kinds = (0..count).map(|number| {
        let at = start + number * size;
        u32::from_le_bytes(file[at..at + 4].try_into().unwrap())
    });
    let kinds: Vec<_> = kinds.collect();
    assert!(!kinds.is_empty() && !kinds.contains(&INTERPRETER), "{kinds:?}");
}

#[tokio::test]
async fn it_takes_at_most_four_megabytes_when_idle() {
    let server = Server::of(released()).rest(["--", "cat"]).metrics().start();
    HealthClient::new(server.channel().await).check(HealthCheckRequest::default()).await.unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", server.process())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes * 1024 <= 4_000_000, "{kilobytes} kB");
}

#[tokio::test]
async fn it_works_in_an_empty_image_on_a_read_only_root_as_any_user() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    fs::create_dir(folder.path().join("proc")).unwrap();
    // By another process: a file that this one has open for writing could not be executed.
    for name in ["wrapper-server", "grpc-health-probe"] {
        let copied = Command::new("cp").arg(released()).arg(folder.path().join(name)).status().unwrap();
        assert!(copied.success());
    }
    // The folder itself is for its owner only.
    assert!(Command::new("chmod").args(["755", root]).status().unwrap().success());
    let prepare = format!(
        "mount --bind {root} {root} && mount -o remount,bind,ro {root} && mount -t proc proc {root}/proc && \
         exec setsid chroot --userspec=10001:10001 {root} \"$@\""
    );
    let launcher = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &prepare, "sh"];
    let server =
        Server::of("/wrapper-server").under(launcher).rest(["--", "/wrapper-server", "--help"]).start();
    let probe = Command::new("chroot")
        .args([root, "/grpc-health-probe", "-addr", &format!("127.0.0.1:{}", server.port())])
        .status();
    assert!(probe.unwrap().success());
    // There is no function in this image: the program's own help is the output.
    let client = server.client().await;
    let status = client.evaluate("x", resource_list(&["a"]), CallOptions::default()).await.unwrap_err();
    assert!(status.message().starts_with("failed to parse the output of function \"x\""), "{status:?}");
}
