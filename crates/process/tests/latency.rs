//! What a call costs above a bare spawn of the same program. Run it in a release build:
//! `cargo test --release -p process --test latency -- --ignored --nocapture`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // a test may

mod common;

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{LIMITS, milliseconds, program, scratch, within};
use process::{Folder, Program, Supervisor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const RUNS: usize = 300;

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times[times.len() * part / 10].as_micros();
    println!("{name:<50} median {:>6} us, 90% {:>6} us", at(5), at(9));
}

fn bare(input: &[u8]) {
    let mut child = Command::new("/bin/cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let mut output = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(output.len(), input.len());
}

async fn bare_tokio(input: &[u8]) {
    let mut command = tokio::process::Command::new("/bin/cat");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).await.unwrap();
    let mut output = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut output).await.unwrap();
    assert!(child.wait().await.unwrap().success());
    assert_eq!(output.len(), input.len());
}

async fn measure(name: &str) {
    let supervisor = Supervisor::start().unwrap();
    let scratch = scratch();
    let input = Bytes::from(vec![b'x'; 3000]);
    let cat = program("/bin/cat", &[]);
    let working = Program { folder: Folder::Working(scratch.clone()), ..cat.clone() };
    let mut times = [const { Vec::new() }; 4];
    // In turns, so that what else the machine does meets all alike.
    for _ in 0..RUNS {
        let begun = Instant::now();
        bare(&input);
        times[0].push(begun.elapsed());
        let begun = Instant::now();
        bare_tokio(&input).await;
        times[1].push(begun.elapsed());
        for (at, program) in [(2, &cat), (3, &working)] {
            let begun = Instant::now();
            let finished =
                supervisor.run(program, input.clone(), &within(milliseconds(60_000))).await.unwrap();
            times[at].push(begun.elapsed());
            assert_eq!(finished.output, input);
        }
    }
    let names = ["std, bare", "tokio, bare", "supervisor", "supervisor, with a working folder"];
    for (what, times) in names.into_iter().zip(times) {
        report(&format!("{name}: {what}"), times);
    }
    let large = Bytes::from(vec![b'x'; 6 << 20]);
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..50 {
        let begun = Instant::now();
        supervisor.run(&cat, large.clone(), &LIMITS).await.unwrap();
        times[0].push(begun.elapsed());
        let begun = Instant::now();
        let mut child = tokio::process::Command::new("/bin/cat");
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut output = Vec::new();
        let feed = async {
            stdin.write_all(&large).await.unwrap();
            drop(stdin);
        };
        let (read, ()) = tokio::join!(stdout.read_to_end(&mut output), feed);
        read.unwrap();
        child.wait().await.unwrap();
        times[1].push(begun.elapsed());
    }
    for (what, times) in ["supervisor, 6 MiB", "tokio, bare, 6 MiB"].into_iter().zip(times) {
        report(&format!("{name}: {what}"), times);
    }
    supervisor.idle().await;
    std::fs::remove_dir(scratch.root()).unwrap();
}

#[test]
#[ignore = "a measurement, for release builds"]
fn latency() {
    let current = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    current.block_on(measure("current_thread"));
    drop(current);
    let multi = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    multi.block_on(async { tokio::spawn(measure("multi_thread")).await.unwrap() });
}
