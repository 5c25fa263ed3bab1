//! The memory of the control group that this process and its functions share: what it is limited to, and how
//! often the kernel has killed a process in it for want of memory.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where containers, and most machines, see the control groups.
const MOUNT: &str = "/sys/fs/cgroup";

/// Limits from here on are the first version's way of saying that there is none.
const UNLIMITED: u64 = 1 << 60;

/// How much memory this process and its functions may use: as much as the tightest limit of its control groups says,
/// or else as much as the machine has.
pub fn available_memory() -> Option<u64> {
    Memory::own().tightest_limit().or_else(|| machine_memory(&fs::read_to_string("/proc/meminfo").ok()?))
}

/// The memory of the machine by the text of its `/proc/meminfo`.
fn machine_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// This process's own group. Where it cannot be found or read, nothing is ever said to be killed by the kernel.
#[derive(Debug)]
pub(crate) struct Memory {
    group: Option<Group>,
    /// As many of the counted kills as calls have claimed.
    claimed: AtomicU64,
}

#[derive(Debug)]
struct Group {
    /// The file that counts kills. Kept open: it is read at the start of each call.
    events: File,
    /// The files that say the limits of the group and of those it is in, its own first.
    limits: Vec<PathBuf>,
}

impl Memory {
    pub(crate) fn own() -> Self {
        Self::find(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default(), Path::new(MOUNT))
    }

    /// The group of a process with these memberships, the text of its `/proc/PID/cgroup`.
    fn find(memberships: &str, mount: &Path) -> Self {
        let group = memberships.lines().find_map(|line| {
            // NUMBER:CONTROLLERS:PATH; the second version of control groups names no controllers.
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            if controllers.is_empty() {
                Group::find(mount, path, "memory.events", "memory.max")
            } else if controllers.split(',').any(|controller| controller == "memory") {
                Group::find(&mount.join("memory"), path, "memory.oom_control", "memory.limit_in_bytes")
            } else {
                None
            }
        });
        Self { group, claimed: AtomicU64::new(0) }
    }

    /// How many processes the kernel has killed so far, if that is known.
    pub(crate) fn kills(&self) -> Option<u64> {
        self.group.as_ref()?.kills()
    }

    /// Whether the kernel has killed a process since it had killed `before`. This is true once for each that
    /// it killed: of the calls that run at once, no more are told so than were killed.
    pub(crate) fn claim_kill(&self, before: Option<u64>) -> bool {
        let (Some(before), Some(now)) = (before, self.kills()) else { return false };
        let claim = |claimed: u64| {
            // What was killed before and never claimed was no function, but something that one had started.
            let claimed = claimed.max(before);
            (claimed < now).then_some(claimed + 1)
        };
        self.claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim).is_ok()
    }

    /// The limit in bytes, if there is one. It can be changed at any time.
    pub(crate) fn limit(&self) -> Option<u64> {
        read_limit(self.group.as_ref()?.limits.first()?)
    }

    /// The least of the limits of the group and of those it is in.
    fn tightest_limit(&self) -> Option<u64> {
        self.group.as_ref()?.limits.iter().filter_map(|path| read_limit(path)).min()
    }
}

impl Group {
    fn find(mount: &Path, path: &str, events: &str, limit: &str) -> Option<Self> {
        // A container that has no namespace for its groups is told a path of the machine, and sees its own
        // group in the place of all of them.
        let folders = [mount.join(path.trim_start_matches('/')), mount.to_owned()];
        folders.into_iter().filter(|folder| is_own(folder)).find_map(|folder| {
            let events = File::open(folder.join(events)).ok()?;
            let folders = folder.ancestors().take_while(|folder| folder.starts_with(mount));
            let group = Self { events, limits: folders.map(|folder| folder.join(limit)).collect() };
            group.kills().map(|_| group)
        })
    }

    fn kills(&self) -> Option<u64> {
        // A few short lines in either version.
        let mut text = [0; 512];
        let length = self.events.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
    }
}

fn read_limit(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok().filter(|&limit| limit < UNLIMITED)
}

/// Whether this process is in the group of this folder.
fn is_own(folder: &Path) -> bool {
    let own = std::process::id().to_string();
    fs::read_to_string(folder.join("cgroup.procs")).is_ok_and(|list| list.lines().any(|pid| pid == own))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Files like those of a control group, removed when dropped.
    pub(crate) struct Files(PathBuf);

    impl Files {
        pub(crate) fn new() -> Self {
            let root = std::env::temp_dir().join(format!("memory-{}", crate::calls::random_name()));
            fs::create_dir(&root).unwrap();
            Self(root)
        }

        pub(crate) fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            fs::write(self.path(name), text).unwrap();
        }

        fn write_own(&self, folder: &str) {
            self.write(&format!("{folder}cgroup.procs"), &format!("1\n{}\n", std::process::id()));
        }

        pub(crate) fn second_version(&self) -> Memory {
            self.write_own("");
            self.write_kills(0);
            self.write("memory.max", "67108864\n");
            Memory::find("0::/\n", &self.0)
        }

        pub(crate) fn write_kills(&self, count: u64) {
            let text = format!("low 0\nhigh 0\nmax 812\noom 9\noom_kill {count}\noom_group_kill 7\n");
            self.write("memory.events", &text);
        }
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const FIRST: &str = "9:name=systemd:/\n4:cpu,memory:/pods/a:b\n3:pids:/pods/a:b\n0::/\n";

    fn write_first(files: &Files, folder: &str, count: u64) {
        let text = format!("oom_kill_disable 0\nunder_oom 0\noom_kill {count}\n");
        files.write(&format!("memory/{folder}memory.oom_control"), &text);
        files.write(&format!("memory/{folder}memory.limit_in_bytes"), "104857600\n");
    }

    #[test]
    fn the_second_version_is_read() {
        let files = Files::new();
        let memory = files.second_version();
        assert_eq!((memory.kills(), memory.limit()), (Some(0), Some(64 << 20)));
        files.write_kills(12);
        files.write("memory.max", "max\n");
        assert_eq!((memory.kills(), memory.limit()), (Some(12), None));
    }

    #[test]
    fn the_first_version_is_read_at_its_path_or_in_the_place_of_the_mount() {
        for folder in ["pods/a:b/", ""] {
            let files = Files::new();
            write_first(&files, "", 90);
            write_first(&files, folder, 3);
            files.write_own(&format!("memory/{folder}"));
            let memory = Memory::find(FIRST, &files.0);
            assert_eq!((memory.kills(), memory.limit()), (Some(3), Some(100 << 20)));
            files.write(&format!("memory/{folder}memory.limit_in_bytes"), "9223372036854771712\n");
            assert_eq!(memory.limit(), None);
        }
    }

    #[test]
    fn the_tightest_limit_of_the_group_and_those_it_is_in_counts() {
        let files = Files::new();
        files.write_own("a/b/");
        files.write("a/b/memory.events", "oom_kill 0\n");
        for (own, parent, tightest) in [
            ("max", "1000", Some(1000)),
            ("500", "1000", Some(500)),
            ("max", "max", None),
            ("odd", "7", Some(7)),
        ] {
            files.write("a/b/memory.max", own);
            files.write("a/memory.max", parent);
            assert_eq!(Memory::find("0::/a/b\n", &files.0).tightest_limit(), tightest, "{own} {parent}");
        }
    }

    #[test]
    fn the_machine_has_memory() {
        assert_eq!(machine_memory("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        for odd in ["", "MemTotal:", "MemTotal: x kB", "MemTotal: 99999999999999999999 kB", "MemTotal: 5"] {
            assert_eq!(machine_memory(odd), None, "{odd}");
        }
        assert!(available_memory().is_some());
    }

    #[test]
    fn what_is_missing_malformed_or_not_our_own_counts_nothing() {
        let empty = Files::new();
        let foreign = Files::new();
        write_first(&foreign, "pods/a:b/", 3);
        foreign.write("memory/pods/a:b/cgroup.procs", "1\n");
        foreign.write("memory.events", "oom_kill 1\n");
        for files in [&empty, &foreign] {
            for memberships in [FIRST, "0::/", "0::/../..", "", "memory", "4:memory", ":::", "\0", "5:pids:/"]
            {
                let memory = Memory::find(memberships, &files.0);
                assert_eq!((memory.kills(), memory.limit()), (None, None), "{memberships:?}");
                assert!(!memory.claim_kill(Some(0)));
            }
        }
        for text in
            ["", "oom_kill", "oom_kill \n", "oom_kill -1\n", "oom_kill 99999999999999999999\n", "oom 4\n"]
        {
            let files = Files::new();
            files.write_own("");
            files.write("memory.events", text);
            assert_eq!(Memory::find("0::/", &files.0).kills(), None, "{text:?}");
        }
    }

    #[test]
    fn each_kill_is_claimed_once_and_only_by_calls_that_ran_meanwhile() {
        let files = Files::new();
        let memory = files.second_version();
        assert!(!memory.claim_kill(Some(0)), "nothing was killed");
        files.write_kills(2);
        assert!(!memory.claim_kill(Some(2)), "it began later");
        assert!(!memory.claim_kill(None), "the count was unknown when it began");
        assert!(memory.claim_kill(Some(0)));
        assert!(memory.claim_kill(Some(0)));
        assert!(!memory.claim_kill(Some(0)), "two were killed");
        files.write_kills(5);
        assert!(memory.claim_kill(Some(4)));
        assert!(!memory.claim_kill(Some(4)));
        files.write("memory.events", "");
        assert!(!memory.claim_kill(Some(0)), "the count is unknown by now");
    }
}
