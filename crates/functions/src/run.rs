//! From the bytes a function is given to what its process would have given back.

use crate::builtin::{Function, find};
use crate::config::FunctionConfig;
use crate::list::ResourceList;
use crate::report::{Finding, Report};

/// What a function's process would have left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its stdout: the list with the changes and the results, or nothing if the input could not be read.
    pub output: Vec<u8>,
    /// Its stderr.
    pub stderr: String,
    /// Whether it would have exited with 0 and not with 1.
    pub succeeded: bool,
    /// The results that it added to the list.
    pub results: Vec<Finding>,
}

impl Function {
    /// Runs the function on a `ResourceList`. Takes time and memory linear in the input.
    pub fn run(&self, input: &[u8]) -> Outcome {
        run_with(input, self.body)
    }
}

/// Runs what is given as a function on a `ResourceList`.
pub fn run_with(
    input: &[u8],
    body: impl FnOnce(&mut ResourceList<'_>, &FunctionConfig) -> Report,
) -> Outcome {
    let unreadable = |error: String| Outcome {
        output: Vec::new(),
        stderr: format!("failed to evaluate function: {error}\n"),
        succeeded: false,
        results: Vec::new(),
    };
    let mut list = match ResourceList::parse(input) {
        Ok(list) => list,
        Err(error) => return unreadable(error.to_string()),
    };
    let config = list.function_config();
    let report: Report = body(&mut list, &config);
    if let Err(error) = list.add_results(&report) {
        return unreadable(format!("failed to write results: {error}"));
    }
    Outcome {
        output: list.to_text().into_bytes(),
        stderr: report.stderr,
        succeeded: !report.failed,
        results: report.results,
    }
}

/// Runs the function of this name, if there is one.
pub fn run(name: &str, input: &[u8]) -> Option<Outcome> {
    find(name).map(|function| function.run(input))
}
