//! A memory control group for the service alone.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A group with a limit and no swap, removed when dropped.
pub(crate) struct Group {
    folder: PathBuf,
    is_first_version: bool,
}

impl Group {
    pub(crate) fn new(limit: usize) -> Self {
        let name = format!("function-runner-floods-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/memory");
        let is_first_version = first.join("memory.limit_in_bytes").exists();
        let parent = if is_first_version { first } else { Path::new("/sys/fs/cgroup") };
        let folder = parent.join(name);
        let needs = "this test needs root and a memory controller of control groups";
        fs::create_dir(&folder).unwrap_or_else(|error| panic!("{needs}: {}: {error}", folder.display()));
        let group = Self { folder, is_first_version };
        let limit = limit.to_string();
        let (limits, swap) = if is_first_version {
            ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", limit.as_str()))
        } else {
            ("memory.max", ("memory.swap.max", "0"))
        };
        for (file, value) in [(limits, limit.as_str()), swap] {
            let path = group.folder.join(file);
            // A kernel that counts no swap has no file for it.
            if file == limits || path.exists() {
                fs::write(&path, value)
                    .unwrap_or_else(|error| panic!("{needs}: {}: {error}", path.display()));
            }
        }
        group
    }

    /// Words that start a program in the group.
    pub(crate) fn launcher(&self) -> [String; 4] {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.folder.display());
        ["sh", "-c", &script, "sh"].map(str::to_owned)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }

    /// How many processes the kernel killed for want of memory.
    pub(crate) fn kills(&self) -> u64 {
        let text = self.read(if self.is_first_version { "memory.oom_control" } else { "memory.events" });
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap()
    }

    /// What was used at most so far, and is now.
    pub(crate) fn figures(&self) -> String {
        let (peak, now) = if self.is_first_version {
            ("memory.max_usage_in_bytes", "memory.usage_in_bytes")
        } else {
            ("memory.peak", "memory.current")
        };
        let mebibytes = |file: &str| self.read(file).trim().parse::<u64>().map_or(0, |bytes| bytes >> 20);
        format!("at most {} MiB, now {} MiB", mebibytes(peak), mebibytes(now))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
