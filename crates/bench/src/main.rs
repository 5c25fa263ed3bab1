//! `make bench`: how much the service and the wrapper server add to a bare
//! process of the same function. Everything is measured in one run, with the
//! rounds of the contestants interleaved, so that only ratios are told.

#![allow(clippy::print_stdout, reason = "it prints a table for people")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, ensure};

use bench::{
    contestants::{Contestants, Served, Stage},
    input, measure, memory,
    table::{Row, Table, Target},
};

/// Resources, and the size their list has about.
const SIZES: [(usize, &str); 3] = [(5, "3 KB"), (100, "64 KB"), (2000, "1.3 MB")];
const CALLERS: [usize; 3] = [1, 8, 32];

/// A call may take this much longer than the bare process, at one caller.
const LATENCY: f64 = 1.15;
/// And reach this much of its throughput, at eight callers.
const THROUGHPUT: f64 = 0.9;

/// A built-in function is so many times faster than the process.
const BUILT_IN: f64 = 20.0;
/// And takes at most this much longer for each byte of a large input than of a small one.
const LINEAR: f64 = 1.5;
/// Resources in a list that is nearly as large as messages may be.
const LARGEST: usize = 9000;

/// A function as most are: in Go, on the usual libraries. The targets hold for it.
const USUAL: &str = "set-namespace";
/// A function that takes hardly any time: what is left is all ours.
const LEAN: &str = "set-owner";

fn main() -> anyhow::Result<()> {
    let mut folders = std::env::args_os().skip(1).map(PathBuf::from);
    let binaries = folders.next().context("usage: bench FOLDER-OF-BINARIES [THOSE-OF-BEFORE]")?;
    let before = folders.next();
    for folder in [Some(&binaries), before.as_ref()].into_iter().flatten() {
        for name in ["function-runner", "wrapper-server", USUAL, LEAN] {
            let program = folder.join(name);
            ensure!(program.exists(), "{} is missing; run: make bench", program.display());
        }
    }
    // The callers take as little of the machine as they can.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(before) = before {
        print!("{}", bench::before::compare(&runtime, USUAL, &binaries, &before)?.text());
        return Ok(());
    }
    let stage = Stage::start(&binaries, &[USUAL, LEAN]);
    let usual = Arc::new(runtime.block_on(stage.contestants(USUAL)));
    let lean = Arc::new(runtime.block_on(stage.contestants(LEAN)));
    let mut table = Table::default();
    // Before any call: what they take when nobody needs them.
    memory_rows(&stage, &usual, &binaries, &mut table)?;
    for (resources, size) in SIZES {
        for callers in CALLERS {
            rows(&runtime, &usual, USUAL, (resources, size), callers, &mut table)?;
        }
    }
    for callers in CALLERS {
        rows(&runtime, &lean, LEAN, SIZES[0], callers, &mut table)?;
    }
    builtin_rows(&runtime, &usual, &mut table)?;
    print!("{}", table.text());
    let path = binaries.parent().unwrap_or(Path::new(".")).join("bench.json");
    std::fs::write(&path, table.json())?;
    println!("\n{} of {} targets met; also in {}", table.passed(), table.targets(), path.display());
    Ok(())
}

fn rows(
    runtime: &tokio::runtime::Runtime,
    contestants: &Arc<Contestants>,
    function: &str,
    (resources, size): (usize, &str),
    callers: usize,
    table: &mut Table,
) -> anyhow::Result<()> {
    let ways = [Served::Service, Served::Wrapper];
    let input = input::resource_list(resources);
    let measured = measure::interleaved(runtime, contestants, ways, &input, callers)?;
    for (name, result) in ["service", "wrapper"].into_iter().zip(&measured.served) {
        let title = format!("{function} by {name}, {size}, {callers} callers");
        let targeted = function == USUAL;
        table.push(if callers == 1 {
            let target = targeted.then_some(Target::AtMost(LATENCY));
            Row::against(title, "ms median", result.median_ms(), measured.bare.median_ms(), target)
        } else {
            let target = (targeted && callers == 8).then_some(Target::AtLeast(THROUGHPUT));
            Row::against(title, "calls/s", result.throughput(), measured.bare.throughput(), target)
        });
    }
    Ok(())
}

/// The same function built into the service: how many times faster than the bare process, and whether its time
/// grows as its input does.
fn builtin_rows(
    runtime: &tokio::runtime::Runtime,
    usual: &Arc<Contestants>,
    table: &mut Table,
) -> anyhow::Result<()> {
    for (resources, size) in SIZES {
        let input = input::resource_list(resources);
        let measured = measure::interleaved(runtime, usual, [Served::Builtin], &input, 1)?;
        let [builtin] = &measured.served;
        let per_second = |median_ms: f64| 1e3 / median_ms;
        table.push(Row::against(
            format!("{USUAL} built in, {size}, 1 caller"),
            "calls/s",
            per_second(builtin.median_ms()),
            per_second(measured.bare.median_ms()),
            Some(Target::AtLeast(BUILT_IN)),
        ));
    }
    let [small, large] = [100, LARGEST].map(input::resource_list);
    let mut per_megabyte = [f64::NAN; 2];
    for (input, result) in [&small, &large].into_iter().zip(&mut per_megabyte) {
        let measured = measure::alone(runtime, usual, Served::Builtin, input, 25)?;
        #[allow(clippy::cast_precision_loss, reason = "a few megabytes")]
        let megabytes = input.len() as f64 / 1e6;
        *result = measured.median_ms() / megabytes;
    }
    let [small, large] = per_megabyte;
    table.push(Row::against(
        format!("{USUAL} built in, a MB of 5.9 MB against 64 KB"),
        "ms median",
        large,
        small,
        Some(Target::AtMost(LINEAR)),
    ));
    Ok(())
}

fn memory_rows(stage: &Stage, usual: &Contestants, binaries: &Path, table: &mut Table) -> anyhow::Result<()> {
    table.push(Row::bound(
        "idle service, resident",
        "MB",
        memory::resident_mb(stage.service_process())?,
        20.0,
    ));
    table.push(Row::bound(
        "idle wrapper, resident",
        "MB",
        memory::resident_mb(usual.wrapper_process())?,
        4.0,
    ));
    table.push(Row::bound("wrapper, on disk", "MB", memory::file_mb(&binaries.join("wrapper-server"))?, 2.5));
    Ok(())
}
