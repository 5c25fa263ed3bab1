//! Finding a short schedule that fails.

use std::fmt::Write;

use crate::command::Command;
use crate::run;
use crate::scenario::Scenario;

/// How many schedules are tried to find a shorter one.
const TRIES: usize = 3000;

/// Fails, with the shortest schedule found and everything that happens in it.
pub(crate) fn tell(scenario: Scenario, seed: u64, commands: &[Command], failure: &str) -> ! {
    let (short, why) = shrink(scenario, seed, commands, failure);
    let _ = run(scenario, seed, &short, true);
    let mut text = String::new();
    for (step, command) in short.iter().enumerate() {
        let Command { kind, replica, pick, roll } = command;
        let _ = writeln!(text, "{step:4}  {kind:?} replica {replica} pick {pick} roll {roll}");
    }
    panic!(
        "{name}, seed {seed}: {failure}\n\nshrunk to {} steps: {why}\n{text}\n\
         replay: POOL_SEED={seed} cargo test -p pool --test simulation {name}",
        short.len(),
        name = scenario.name,
    );
}

fn shrink(scenario: Scenario, seed: u64, commands: &[Command], failure: &str) -> (Vec<Command>, String) {
    let (mut short, mut why) = (commands.to_vec(), failure.to_owned());
    let mut tries = TRIES;
    let mut size = short.len() / 2;
    while size > 0 && tries > 0 {
        let (mut start, before) = (0, short.len());
        while start < short.len() && tries > 0 {
            tries -= 1;
            let end = short.len().min(start + size);
            let shorter = [&short[..start], &short[end..]].concat();
            match run(scenario, seed, &shorter, false) {
                Ok(_) => start = end,
                Err(failure) => (short, why) = (shorter, failure),
            }
        }
        // What one step needed may be gone with another.
        size = if size == 1 && short.len() < before { 1 } else { size / 2 };
    }
    (short, why)
}
