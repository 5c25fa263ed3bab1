//! What kustomize makes of random lists, and what our functions make of them, is the same to a reader in Go.
//!
//! The lists are in the field that both share: kinds, fields and configurations that the catalog's functions
//! and kustomize's filters treat alike. The program with kustomize in it is built here, with the Go that
//! `scripts/setup-go` finds; without one the test fails and says why.
#![allow(clippy::unwrap_used, clippy::format_collect, reason = "helpers of tests")]

mod dice;
#[path = "../given/mod.rs"]
mod given;
mod lists;
mod resources;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dice::Dice;

/// How many lists each function is given.
const LISTS: u64 = 100;

/// The program that runs kustomize.
fn kustomize() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = Command::new(here.join("../../scripts/setup-go")).output().unwrap();
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.success(), "there is no Go to build kustomize with: {said}");
    let go = String::from_utf8(found.stdout).unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kustomize-oracle");
    let built = Command::new(go.trim())
        .current_dir(here.join("tests/oracle/kustomize"))
        .env("CGO_ENABLED", "0")
        .args(["build", "-trimpath", "-o"])
        .arg(&program)
        .arg(".")
        .output()
        .unwrap();
    assert!(built.status.success(), "cannot build the oracle: {}", String::from_utf8_lossy(&built.stderr));
    program
}

/// The answers of kustomize, one line each.
fn ask(program: &Path, cases: Vec<u8>) -> Vec<String> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&cases));
    let mut answers = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answers).unwrap();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    answers.lines().map(str::to_owned).collect()
}

#[test]
fn resources_are_what_kustomize_makes_of_them() {
    let mut inputs = Vec::new();
    let mut cases = Vec::new();
    for (function, generate) in lists::FUNCTIONS {
        for seed in 0..LISTS {
            let input = generate(&mut Dice::new(seed));
            let outcome = functions::run(function, input.as_bytes()).unwrap();
            assert!(
                outcome.succeeded,
                "{function}, seed {seed}: {}{:?}\n{input}",
                outcome.stderr, outcome.results
            );
            writeln!(cases, "{function} {} {}", input.len(), outcome.output.len()).unwrap();
            cases.extend(input.as_bytes());
            cases.extend(&outcome.output);
            inputs.push((function, seed, input, outcome.output));
        }
    }
    let answers = ask(&kustomize(), cases);
    assert_eq!(answers.len(), 2 * inputs.len());
    let mut changed = 0;
    let mut different = Vec::new();
    for ((function, seed, input, output), answer) in inputs.iter().zip(answers.chunks(2)) {
        let (expected, found) = (&answer[0], &answer[1]);
        if expected != found || expected.starts_with("error") {
            let output = String::from_utf8_lossy(output);
            different.push(format!(
                "{function}, seed {seed}:\nkustomize: {expected}\nfound:     {found}\nof\n{input}\nbecame\n{output}\n"
            ));
        }
        changed += usize::from(!output.starts_with(input.as_bytes()));
    }
    assert!(different.is_empty(), "{} of {} lists:\n{}", different.len(), inputs.len(), different.concat());
    assert!(changed > inputs.len() / 2, "only {changed} of {} lists were changed at all", inputs.len());
}
