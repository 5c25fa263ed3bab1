//! The service of this build against that of another one.

use std::{path::Path, sync::Arc};

use tokio::runtime::Runtime;

use crate::{
    contestants::{Contestants, Served, Stage},
    input,
    measure::{self, Result},
    table::{Row, Table, Target},
};

/// A call may take this much longer than before.
const SLOWER: f64 = 1.1;
/// Rounds that each plays, in turn with the other.
const ROUNDS: usize = 40;

/// Resources, the size their list has about, and calls in a round.
const SIZES: [(usize, &str, usize); 3] = [(5, "3 KB", 200), (100, "64 KB", 50), (2000, "1.3 MB", 5)];

/// Calls of `function`, built in and as a process, by the programs of two folders.
pub fn compare(runtime: &Runtime, function: &str, now: &Path, before: &Path) -> anyhow::Result<Table> {
    let stages = [now, before].map(|binaries| Stage::start(binaries, &[function]));
    let [now, before] = &stages;
    let contestants = runtime.block_on(async {
        [Arc::new(now.contestants(function).await), Arc::new(before.contestants(function).await)]
    });
    let mut table = Table::default();
    for (resources, size, calls) in SIZES {
        let input = input::resource_list(resources);
        for (way, name, calls) in [(Served::Builtin, "built in", calls), (Served::Service, "by service", 5)] {
            let measure = |who: &Arc<Contestants>| measure::alone(runtime, who, way, &input, calls);
            let mut results = [Result::default(), Result::default()];
            for _ in 0..ROUNDS {
                for (who, result) in contestants.iter().zip(&mut results) {
                    result.add(measure(who)?);
                }
            }
            let [now, before] = results.map(|result| result.median_ms());
            let title = format!("{function} {name}, {size}, against before");
            table.push(Row::against(title, "ms median", now, before, Some(Target::AtMost(SLOWER))));
        }
    }
    Ok(table)
}
