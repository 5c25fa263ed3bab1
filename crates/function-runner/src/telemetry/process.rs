//! What is to be seen of any process, under the names that readers of the original know.

use std::fs;

use opentelemetry::metrics::Meter;

/// Ticks of a second in the kernel's files: fixed on every architecture we are built for.
const TICKS: f64 = 100.0;

/// Shows processor time, memory, files and threads.
pub(super) fn observe(meter: &Meter) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        gauge(
            meter,
            "go.goroutines",
            "",
            "Tasks that exist now; a task is what a goroutine is in Go.",
            move || Some(runtime.metrics().num_alive_tasks() as u64),
        );
    }
    gauge(meter, "go.threads", "", "Threads of the process.", || Some(Stat::read()?.threads));
    gauge(meter, "go.memstats.heap_inuse", "By", "Resident memory that no file backs.", || {
        status("RssAnon:")
    });
    gauge(meter, "process.resident_memory", "By", "Resident memory of the process.", || status("VmRSS:"));
    gauge(meter, "process.virtual_memory", "By", "Virtual memory of the process.", || status("VmSize:"));
    gauge(meter, "process.open_fds", "", "File descriptors that are open.", || {
        Some(fs::read_dir("/proc/self/fd").ok()?.count() as u64)
    });
    gauge(meter, "process.max_fds", "", "File descriptors that may be open.", || {
        let limits = fs::read_to_string("/proc/self/limits").ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        line.split_whitespace().next()?.parse().ok()
    });
    meter
        .f64_observable_gauge("process.start_time")
        .with_unit("s")
        .with_description("When the process began, in seconds since 1970.")
        .with_callback(|gauge| {
            if let Some(seconds) = start_time() {
                gauge.observe(seconds, &[]);
            }
        })
        .build();
    meter
        .f64_observable_counter("process.cpu")
        .with_unit("s")
        .with_description("Processor time of the process, functions that run as processes not included.")
        .with_callback(|counter| {
            if let Some(stat) = Stat::read() {
                counter.observe(stat.cpu_seconds, &[]);
            }
        })
        .build();
}

fn gauge(
    meter: &Meter,
    name: &'static str,
    unit: &'static str,
    description: &'static str,
    read: impl Fn() -> Option<u64> + Send + Sync + 'static,
) {
    meter
        .u64_observable_gauge(name)
        .with_unit(unit)
        .with_description(description)
        .with_callback(move |gauge| {
            if let Some(value) = read() {
                gauge.observe(value, &[]);
            }
        })
        .build();
}

/// A size that the kernel tells of the process, in bytes.
fn status(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

fn start_time() -> Option<f64> {
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
    Some(boot + Stat::read()?.started_after)
}

/// What stands in `/proc/self/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    threads: u64,
    /// Seconds from the start of the machine to that of the process.
    started_after: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(line: &str) -> Option<Self> {
        // The name of the program is in parentheses and may be anything.
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some(Self {
            cpu_seconds: (number(11)? + number(12)?) / TICKS,
            threads: fields.get(17)?.parse().ok()?,
            started_after: number(19)? / TICKS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read_whatever_the_program_is_called() {
        let line =
            "7 (a) b (c) S 1 1 1 0 -1 4194560 3 0 0 0 150 50 9 9 20 0 12 0 12345 99 8 18446744073709551615";
        let expected = Stat { cpu_seconds: 2.0, threads: 12, started_after: 123.45 };
        assert_eq!(Stat::parse(line), Some(expected));
        for bad in ["", "7 (a", "7 (a) S 1 2"] {
            assert_eq!(Stat::parse(bad), None);
        }
        assert!(Stat::read().is_some_and(|own| own.threads > 0));
        assert!(start_time().is_some_and(|at| at > 1e9));
    }
}
