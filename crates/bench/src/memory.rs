//! What a program takes of memory and disk.

use std::path::Path;

use anyhow::Context;

/// Resident memory of a process.
pub fn resident_mb(process: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024.0 / 1e6)
}

/// The size of a file.
#[allow(clippy::cast_precision_loss, reason = "a few megabytes")]
pub fn file_mb(path: &Path) -> anyhow::Result<f64> {
    Ok(std::fs::metadata(path)?.len() as f64 / 1e6)
}
