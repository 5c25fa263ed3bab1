//! Random schedules of calls, faults and changes over a model of the cluster, with one
//! replica and with several. What must hold is checked after each event.
//!
//! A schedule follows from its seed. A failure is shrunk to a short schedule and told with
//! its seed, which `POOL_SEED` replays. `POOL_SCHEDULES` sets how many schedules are tried.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are not seen as tests")]
#![allow(clippy::print_stdout, reason = "it is shown when a test fails, or on demand")]

mod check;
mod cluster;
mod command;
mod quiet;
mod random;
mod replica;
mod scenario;
mod shrink;
mod world;

use command::Command;
use random::Random;
use replica::Seen;
use scenario::Scenario;
use world::World;

/// Steps in one schedule.
const LENGTH: usize = 400;

#[test]
fn one_replica_in_peace() {
    let scenario = Scenario {
        name: "one_replica_in_peace",
        replicas: 1,
        faults: false,
        changes: true,
        endings: true,
        limited: true,
    };
    campaign(scenario, 1000, &["Launch", "Grant", "Delete Idle", "Delete Room", "Delete Outdated", "Record"]);
}

#[test]
fn one_replica_in_trouble() {
    let scenario = Scenario {
        name: "one_replica_in_trouble",
        replicas: 1,
        faults: true,
        changes: true,
        endings: true,
        limited: true,
    };
    campaign(scenario, 2000, &EVERYTHING);
}

#[test]
fn replicas_that_only_grow() {
    let scenario = Scenario {
        name: "replicas_that_only_grow",
        replicas: 3,
        faults: false,
        changes: false,
        endings: false,
        limited: false,
    };
    campaign(scenario, 1000, &["Launch", "Launch again", "Grant"]);
}

#[test]
fn replicas_in_trouble() {
    let scenario = Scenario {
        name: "replicas_in_trouble",
        replicas: 3,
        faults: true,
        changes: true,
        endings: true,
        limited: true,
    };
    campaign(scenario, 2000, &EVERYTHING);
}

/// Everything a pool can do.
const EVERYTHING: [&str; 16] = [
    "Connect",
    "Delete Failed",
    "Delete Idle",
    "Delete NotReady",
    "Delete Outdated",
    "Delete Room",
    "Delete Surplus",
    "Grant",
    "Launch",
    "Launch again",
    "Lost",
    "Record",
    "Refuse Crowded",
    "Refuse Failed",
    "Refuse TimedOut",
    "Refuse TimedOut for room",
];

/// Runs schedules, all of which must hold, and which together must come to see all of this.
fn campaign(scenario: Scenario, schedules: u64, expected: &[&str]) {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let seeds = match number("POOL_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("POOL_SCHEDULES").unwrap_or(schedules),
    };
    let whole = seeds.start() < seeds.end();
    let mut seen = Seen::new();
    for seed in seeds {
        let commands = commands(&scenario, seed);
        match run(scenario, seed, &commands, false) {
            Ok(happened) => add(&mut seen, happened),
            Err(failure) => shrink::tell(scenario, seed, &commands, &failure),
        }
    }
    println!("{}: {seen:?}", scenario.name);
    let missing: Vec<_> = expected.iter().filter(|what| !seen.contains_key(**what)).collect();
    assert!(!whole || missing.is_empty(), "never happened: {missing:?}");
}

fn add(all: &mut Seen, happened: Seen) {
    for (what, count) in happened {
        *all.entry(what).or_default() += count;
    }
}

fn commands(scenario: &Scenario, seed: u64) -> Vec<Command> {
    command::schedule(scenario, LENGTH, &mut Random::new(seed.wrapping_mul(2)))
}

/// Runs one schedule and tells what happened in it, or what went wrong and at which step.
fn run(scenario: Scenario, seed: u64, commands: &[Command], traced: bool) -> Result<Seen, String> {
    let run = || {
        let random = &mut Random::new(seed.wrapping_mul(2) + 1);
        let mut world = World::new(scenario, random, traced);
        for (step, &command) in commands.iter().enumerate() {
            world.step(command).map_err(|why| format!("step {step}, {command:?}: {why}"))?;
        }
        quiet::quiet_down(&mut world).map_err(|why| format!("afterwards: {why}"))?;
        let mut all = Seen::new();
        world.replicas.into_iter().for_each(|replica| add(&mut all, replica.seen));
        Ok(all)
    };
    std::panic::catch_unwind(run).unwrap_or_else(|_| Err("it panicked".to_owned()))
}
