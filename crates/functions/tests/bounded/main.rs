//! No configuration and no list costs more than its own size: for every function, inputs made to do harm, with
//! counted memory and counted work.
//!
//! `known` has the inputs that once did harm, by name. `generator` makes others: sizes and shapes of all that a
//! function's configuration may say, crossed with those of the resources. As many as `HOSTILE_INPUTS` says are
//! made (some hundred unless it is set, which is what `make test` runs; `make fuzz` sets it), from the seed
//! in `HOSTILE_SEED` on: each has a seed of its own, and what fails tells with which one it is made again.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::format_collect,
    reason = "helpers of tests"
)]

mod call;
mod configurations;
#[path = "../counting/mod.rs"]
mod counting;
#[path = "../oracle/dice.rs"]
mod dice;
mod generator;
mod known;
mod maker;
mod paths;
mod resources;

use std::collections::BTreeMap;
use std::sync::Mutex;

use call::Cost;
use functions::Function;

/// How many inputs are made where nobody says how many.
const INPUTS: u64 = 400;

/// How many of those that take too much are shown.
const SHOWN: usize = 200;

/// One test at a time: the counters are for all.
static TURN: Mutex<()> = Mutex::new(());

/// The most that each function took for its input and output, and what was too much.
#[derive(Default)]
struct Tally {
    inputs: BTreeMap<&'static str, usize>,
    /// How many of them were lists that could be read.
    read: usize,
    memory: BTreeMap<&'static str, (f64, String)>,
    work: BTreeMap<&'static str, (f64, String)>,
    problems: Vec<String>,
}

impl Tally {
    fn run(&mut self, function: &'static Function, what: &str, input: &str) {
        let cost = Cost::of(function, input);
        *self.inputs.entry(function.name).or_default() += 1;
        self.read += usize::from(cost.was_read());
        let shown = || format!("{what}: {} bytes, {cost}", input.len());
        note(&mut self.memory, function.name, cost.memory_ratio(), &shown);
        note(&mut self.work, function.name, cost.work_ratio(), &shown);
        if let Some(problem) = cost.problem() {
            self.problems.push(format!("{}, {problem}: {}", function.name, shown()));
        }
    }

    /// Prints what was found, and fails if something was too much.
    #[track_caller]
    fn finish(self) {
        let all: usize = self.inputs.values().sum();
        println!("{all} inputs, of which {} could be read", self.read);
        for (name, count) in &self.inputs {
            println!("{name}: {count} inputs");
            for (what, worst) in [("memory", &self.memory), ("work", &self.work)] {
                if let Some((ratio, of)) = worst.get(name) {
                    println!("  most {what} {ratio:.1}: {of}");
                }
            }
        }
        assert!(self.read * 2 > all, "most inputs are no lists: they show nothing of the functions");
        for problem in self.problems.iter().take(SHOWN) {
            println!("- {problem}");
        }
        let count = self.problems.len();
        assert!(count == 0, "{count} inputs took too much, of which the first are above");
    }
}

fn note(
    worst: &mut BTreeMap<&'static str, (f64, String)>,
    name: &'static str,
    ratio: f64,
    shown: &dyn Fn() -> String,
) {
    if worst.get(name).is_none_or(|(most, _)| *most < ratio) {
        worst.insert(name, (ratio, shown()));
    }
}

/// A number from the environment.
fn setting(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")),
        Err(_) => otherwise,
    }
}

#[test]
fn known_inputs_take_no_more_than_their_size() {
    let _turn = TURN.lock();
    let mut tally = Tally::default();
    for known in known::all() {
        // At twice the size, what grows with the square is four times as much.
        for size in [1, 2] {
            let input = (known.input)(known.size * size);
            tally.run(functions::find(known.function).unwrap(), &format!("{} ×{size}", known.what), &input);
        }
    }
    tally.finish();
}

#[test]
fn generated_inputs_take_no_more_than_their_size() {
    let _turn = TURN.lock();
    let (first, count) = (setting("HOSTILE_SEED", 0), setting("HOSTILE_INPUTS", INPUTS));
    let mut tally = Tally::default();
    for seed in first..first.saturating_add(count) {
        let made = generator::make(seed);
        tally.run(made.function, &format!("HOSTILE_SEED={seed} ({})", made.what), &made.input);
    }
    tally.finish();
}
