//! Processes that functions start, known by the numbers they write to a file.

use std::{fs, path::Path};

use crate::eventually;

/// The lines of a file, once there are at least `count`.
pub fn lines_of(file: &Path, count: usize) -> Vec<String> {
    let read = || -> Vec<String> {
        fs::read_to_string(file).unwrap_or_default().split_inclusive('\n').map(str::to_owned).collect()
    };
    let whole = |lines: &[String]| lines.len() >= count && lines.iter().all(|line| line.ends_with('\n'));
    eventually(&format!("{count} lines in {}", file.display()), || whole(&read()));
    read().iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Waits until none of these processes exists, not even as a zombie.
pub fn wait_until_gone(processes: &[String]) {
    for process in processes {
        process.parse::<u32>().expect("a process number");
        eventually(&format!("process {process} is gone"), || !Path::new("/proc").join(process).exists());
    }
}
