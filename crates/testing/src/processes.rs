//! Which processes are there.

use std::fs;

/// The children of a process but its watchdog, zombies included, each as `PID STATE NAME`.
pub fn children_of(process: u32) -> Vec<String> {
    let lines = processes().filter_map(|process| fs::read_to_string(format!("/proc/{process}/stat")).ok());
    lines
        .filter_map(|line| {
            // The name stands in parentheses and may hold any character.
            let (head, tail) = line.rsplit_once(')')?;
            let (pid, name) = head.split_once(" (")?;
            let mut fields = tail.split_whitespace();
            let (state, parent) = (fields.next()?, fields.next()?);
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let is_watchdog = arguments.starts_with(b"watchdog\0");
            (parent.parse() == Ok(process) && !is_watchdog).then(|| format!("{pid} {state} {name}"))
        })
        .collect()
}

/// The processes whose environment mentions `mark`.
pub fn processes_with(mark: &str) -> Vec<u32> {
    let carries = |process: &u32| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    processes().filter(carries).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
