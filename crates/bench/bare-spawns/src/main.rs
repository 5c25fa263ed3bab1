//! A KRM function that measures another: run in a function pod, it starts the
//! program it is told, with its own input, a few times one after the other, and
//! answers how long each took. That is what a bare start costs in such a pod.

use std::{
    io::{self, Read, Write},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

/// Starts a call: enough for a median, few enough to be interleaved with others.
const STARTS: usize = 10;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "bare-spawns: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let program = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: bare-spawns PROGRAM"))?;
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let mut microseconds = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // It reads all its input before it writes, so one thread can do all of it.
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(&input)?;
        }
        let output = child.wait_with_output()?;
        microseconds.push(begun.elapsed().as_micros().to_string());
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
    }
    writeln!(
        io::stdout(),
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\nresults:\n- message: '{}'\n  severity: info",
        microseconds.join(" ")
    )
}
