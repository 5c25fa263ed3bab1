//! `make bench`: how much the service and the wrapper server add to a bare
//! process of the same function. Everything is measured in one run, with the
//! rounds of the contestants interleaved, so that only ratios are told.

#![allow(clippy::print_stdout, reason = "it prints a table for people")]

mod contestants;
mod measure;
mod memory;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use bytes::Bytes;

use contestants::Contestants;
use table::{Row, Table, Target};

/// Resources, and the size their list has about.
const SIZES: [(usize, &str); 3] = [(5, "3 KB"), (100, "64 KB"), (2000, "1.3 MB")];
const CALLERS: [usize; 3] = [1, 8, 32];

/// A call may take this much longer than the bare process, at one caller.
const LATENCY: f64 = 1.15;
/// And reach this much of its throughput, at eight callers.
const THROUGHPUT: f64 = 0.9;

fn main() -> anyhow::Result<()> {
    let binaries = PathBuf::from(std::env::args_os().nth(1).context("usage: bench FOLDER-OF-BINARIES")?);
    for name in ["function-runner", "wrapper-server", "set-owner"] {
        ensure!(binaries.join(name).exists(), "{} is missing; run: make bench", binaries.join(name).display());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let contestants = runtime.block_on(Contestants::start(&binaries));
    let mut table = Table::default();
    // Before any call: what they take when nobody needs them.
    memory_rows(&contestants, &binaries, &mut table)?;
    for (resources, size) in SIZES {
        let input = resource_list(resources);
        for callers in CALLERS {
            let measured = measure::interleaved(&runtime, &contestants, &input, callers)?;
            for (name, result) in [("service", &measured.service), ("wrapper", &measured.wrapper)] {
                table.push(row(name, size, callers, result, &measured.bare));
            }
        }
    }
    print!("{}", table.text());
    let path = binaries.parent().unwrap_or(Path::new(".")).join("bench.json");
    std::fs::write(&path, table.json())?;
    println!("\n{} of {} targets met; also in {}", table.passed(), table.targets(), path.display());
    Ok(())
}

fn row(name: &str, size: &str, callers: usize, measured: &measure::Result, bare: &measure::Result) -> Row {
    let title = format!("{name}, {size}, {callers} callers");
    if callers == 1 {
        let target = Target::AtMost(LATENCY);
        return Row::against(title, "ms median", measured.median_ms(), bare.median_ms(), Some(target));
    }
    let target = (callers == 8).then_some(Target::AtLeast(THROUGHPUT));
    Row::against(title, "calls/s", measured.throughput(), bare.throughput(), target)
}

fn memory_rows(contestants: &Contestants, binaries: &Path, table: &mut Table) -> anyhow::Result<()> {
    table.push(Row::bound("idle service, resident", "MB", memory::resident_mb(contestants.service_process())?, 20.0));
    table.push(Row::bound("idle wrapper, resident", "MB", memory::resident_mb(contestants.wrapper_process())?, 4.0));
    table.push(Row::bound("wrapper, on disk", "MB", memory::file_mb(&binaries.join("wrapper-server"))?, 2.5));
    Ok(())
}

/// A list of deployments as people write them, about 650 bytes each.
fn resource_list(resources: usize) -> Bytes {
    use std::fmt::Write;
    let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: owner\n  data:\n    owner: team-a\nitems:\n".to_owned();
    for number in 0..resources {
        let _ = write!(
            text,
            "- apiVersion: apps/v1\n  kind: Deployment\n  metadata:\n    name: web-{number}\n    namespace: shop # the team's own\n    labels:\n      app: web-{number}\n      tier: frontend\n    annotations:\n      example.com/contact: team-a@example.com\n  spec:\n    replicas: 2\n    selector:\n      matchLabels:\n        app: web-{number}\n    template:\n      metadata:\n        labels:\n          app: web-{number}\n          tier: frontend\n      spec:\n        containers:\n        - name: web\n          image: example.com/shop/web:1.4.{number}\n          ports:\n          - containerPort: 8080\n          env:\n          - name: MODE\n            value: \"production\"\n          resources:\n            requests:\n              cpu: 100m\n              memory: 64Mi\n"
        );
    }
    text.into()
}
