//! From the bytes a function is given to what its process would have given back.

use krm::{Budget, OverBudget, Unreadable};

use crate::builtin::{Function, find};
use crate::config::FunctionConfig;
use crate::list::{InputError, ResourceList};
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
    /// What it was stopped for, if it was.
    pub over_budget: Option<OverBudget>,
}

impl Outcome {
    /// Of a function that did not come to its end.
    fn failed(error: impl std::fmt::Display, over_budget: Option<OverBudget>) -> Self {
        Self {
            output: Vec::new(),
            stderr: format!("failed to evaluate function: {error}\n"),
            succeeded: false,
            results: Vec::new(),
            over_budget,
        }
    }
}

impl Function {
    /// Runs the function on a `ResourceList`. Takes time and memory linear in what is read and written.
    pub fn run(&self, input: &[u8], budget: &Budget) -> Outcome {
        run_with(input, budget, self.body)
    }
}

/// Runs what is given as a function on a `ResourceList`.
pub fn run_with(
    input: &[u8],
    budget: &Budget,
    body: impl FnOnce(&mut ResourceList<'_>, &FunctionConfig) -> Report,
) -> Outcome {
    budget.read(input.len());
    let mut list = match ResourceList::parse(input, budget) {
        Ok(list) => list,
        Err(InputError::Unreadable(Unreadable::OverBudget(over))) => {
            return Outcome::failed(&over, Some(over.clone()));
        }
        Err(error) => return Outcome::failed(error, None),
    };
    let config = list.function_config();
    let report = body(&mut list, &config);
    // Whatever a function makes of a list whose budget is exceeded is worth nothing.
    let written = list.budget().check().map_err(Into::into).and_then(|()| list.add_results(&report));
    let output = match (written, list.to_text()) {
        (_, Err(over)) => return Outcome::failed(&over, Some(over.clone())),
        (Err(error), _) => return Outcome::failed(format!("failed to write results: {error}"), None),
        (Ok(()), Ok(output)) => output,
    };
    Outcome {
        output: output.into_bytes(),
        stderr: report.stderr,
        succeeded: !report.failed,
        results: report.results,
        over_budget: None,
    }
}

/// Runs the function of this name, if there is one, without a deadline and with any length of output.
pub fn run(name: &str, input: &[u8]) -> Option<Outcome> {
    find(name).map(|function| function.run(input, &Budget::default()))
}
