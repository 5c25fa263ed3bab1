//! Rounds of calls, interleaved between the contestants.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::runtime::Runtime;

use crate::contestants::{Contestants, Served};

/// Rounds each contestant plays, in turn with the others.
const LEAST_ROUNDS: u32 = 2;
const MOST_ROUNDS: u32 = 12;
/// About how long one round may take.
const ROUND: Duration = Duration::from_millis(300);
/// About how long each contestant may take for all its rounds.
const ALL_ROUNDS: Duration = Duration::from_secs(4);

/// What was measured of one contestant.
#[derive(Debug, Default)]
pub struct Result {
    durations: Vec<Duration>,
    elapsed: Duration,
}

impl Result {
    const NONE: Self = Self { durations: Vec::new(), elapsed: Duration::ZERO };

    pub fn add(&mut self, round: Self) {
        self.durations.extend(round.durations);
        self.elapsed += round.elapsed;
    }

    pub fn median_ms(&self) -> f64 {
        let mut sorted = self.durations.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).map_or(f64::NAN, |median| median.as_secs_f64() * 1e3)
    }

    #[allow(clippy::cast_precision_loss, reason = "a few thousand calls")]
    pub fn throughput(&self) -> f64 {
        self.durations.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// All contestants in the same conditions.
#[derive(Debug)]
pub struct Measured<const WAYS: usize> {
    pub bare: Result,
    /// In the order they were asked for.
    pub served: [Result; WAYS],
}

/// Measures these ways and the bare process.
pub fn interleaved<const WAYS: usize>(
    runtime: &Runtime,
    contestants: &Arc<Contestants>,
    ways: [Served; WAYS],
    input: &Bytes,
    callers: usize,
) -> anyhow::Result<Measured<WAYS>> {
    runtime.block_on(contestants.agree(&ways, input))?;
    let (calls, rounds) = plan(contestants, input, callers)?;
    let mut measured = Measured { bare: Result::NONE, served: [const { Result::NONE }; WAYS] };
    for _ in 0..rounds {
        measured.bare.add(bare_round(contestants, input, callers, calls)?);
        for (way, result) in ways.into_iter().zip(&mut measured.served) {
            result.add(served_round(runtime, contestants, way, input, callers, calls)?);
        }
    }
    Ok(measured)
}

/// Measures one way alone.
pub fn alone(
    runtime: &Runtime,
    contestants: &Arc<Contestants>,
    way: Served,
    input: &Bytes,
    calls: usize,
) -> anyhow::Result<Result> {
    served_round(runtime, contestants, way, input, 1, calls)
}

/// How many calls a round has, and how many rounds there are.
fn plan(contestants: &Contestants, input: &Bytes, callers: usize) -> anyhow::Result<(usize, u32)> {
    let begun = Instant::now();
    contestants.bare(input)?;
    let one = begun.elapsed().max(Duration::from_micros(100));
    // Several calls a caller, or the last ones of a round, with no others beside them, weigh too much.
    let calls = usize::try_from(ROUND.as_nanos() / one.as_nanos())?
        .clamp(3, 200)
        .max(3 * callers.min(8))
        .max(callers);
    let cores = std::thread::available_parallelism()?.get().min(callers);
    let round = one * u32::try_from(calls)? / u32::try_from(cores)?;
    let rounds = u32::try_from(ALL_ROUNDS.as_nanos() / round.as_nanos().max(1))?;
    Ok((calls, rounds.clamp(LEAST_ROUNDS, MOST_ROUNDS)))
}

fn bare_round(
    contestants: &Contestants,
    input: &Bytes,
    callers: usize,
    calls: usize,
) -> anyhow::Result<Result> {
    let begun = Instant::now();
    let durations = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|caller| {
                scope.spawn(move || {
                    (0..share(calls, callers, caller))
                        .map(|_| {
                            let begun = Instant::now();
                            contestants.bare(input)?;
                            Ok(begun.elapsed())
                        })
                        .collect::<anyhow::Result<Vec<_>>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a caller panicked"))))
            .collect::<anyhow::Result<Vec<_>>>()
    })?;
    Ok(Result { durations: durations.concat(), elapsed: begun.elapsed() })
}

fn served_round(
    runtime: &Runtime,
    contestants: &Arc<Contestants>,
    way: Served,
    input: &Bytes,
    callers: usize,
    calls: usize,
) -> anyhow::Result<Result> {
    runtime.block_on(async {
        let begun = Instant::now();
        let tasks: Vec<_> = (0..callers)
            .map(|caller| {
                let (contestants, input) = (contestants.clone(), input.clone());
                tokio::spawn(async move {
                    let mut durations = Vec::new();
                    for _ in 0..share(calls, callers, caller) {
                        let begun = Instant::now();
                        contestants.served(way, input.clone()).await?;
                        durations.push(begun.elapsed());
                    }
                    anyhow::Ok(durations)
                })
            })
            .collect();
        let mut durations = Vec::new();
        for task in tasks {
            durations.extend(task.await??);
        }
        Ok(Result { durations, elapsed: begun.elapsed() })
    })
}

/// How many of the calls one of the callers makes: at least one.
fn share(calls: usize, callers: usize, caller: usize) -> usize {
    (calls / callers + usize::from(caller < calls % callers)).max(1)
}
