//! The function as the only thing that a process does.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::run;

/// What the process may use: the program's own memory, the deepest stack it can have, and three times the
/// largest list.
const MAXIMUM_MEMORY: u64 = 2 << 30;

/// Reads a `ResourceList` from stdin, writes the changed one to stdout, and says by the exit code whether the
/// program succeeded. The memory of the process is bounded from here on.
pub fn main() -> ExitCode {
    limit_memory();
    let mut input = Vec::new();
    if let Err(error) = std::io::stdin().lock().read_to_end(&mut input) {
        print_line(&format!("failed to evaluate function: cannot read stdin: {error}"));
        return ExitCode::FAILURE;
    }
    let environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let outcome = run(&input, &environment, &print_line);
    // Where nobody reads, there is nobody to tell.
    let _ = std::io::stderr().lock().write_all(outcome.stderr.as_bytes());
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(&outcome.output).and_then(|()| stdout.flush());
    if let Err(error) = written {
        print_line(&format!("failed to evaluate function: cannot write stdout: {error}"));
        return ExitCode::FAILURE;
    }
    if outcome.succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A program that asks for more memory than this ends, before it takes it from the others on the machine.
fn limit_memory() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Data);
    let limit = maximum.map_or(MAXIMUM_MEMORY, |maximum| maximum.min(MAXIMUM_MEMORY));
    // Lowering one's own limits is always allowed.
    let _ = setrlimit(Resource::Data, Rlimit { current: Some(limit), maximum });
}

fn print_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
