//! A shell in which the commands of a document are run.

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use documents::{Block, Step};
use tempfile::TempDir;
use testing::{checkout, released};

/// A folder like a checkout after `make build`.
pub(crate) struct Session {
    folder: TempDir,
}

/// What became of a command.
pub(crate) struct Done {
    /// On both outputs.
    pub(crate) output: String,
    pub(crate) status: i32,
}

/// The commands of a block, as long as a shell would ask for more.
pub(crate) fn steps(block: &Block) -> Vec<Step> {
    documents::steps(block, |command| {
        !command.ends_with('\\')
            && Command::new("bash").args(["-n", "-c", command]).output().unwrap().status.success()
    })
}

impl Session {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let session = Self { folder };
        session.link("examples", &checkout().join("examples"));
        for program in ["function-runner", "wrapper-server", "set-owner"] {
            session.link(&format!("target/release/{program}"), &released(program));
        }
        session.link("target/examples/functions/set-owner", &released("set-owner"));
        session
    }

    /// A path within.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), content).unwrap();
    }

    pub(crate) fn link(&self, path: &str, to: &Path) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        symlink(to, self.path(path)).unwrap();
    }

    /// Runs the commands one after the other, in one shell, after a script that prepares for them. All that they
    /// leave running ends with them.
    pub(crate) fn run(&self, set_up: &str, commands: &[&str]) -> Vec<Done> {
        let mut script = format!("ip link set lo up || exit\n{set_up}\nstatus=0\n");
        for (number, command) in commands.iter().enumerate() {
            self.write(&format!(".steps/{number}"), &format!("{command}\n"));
            // `$?` is that of the command before.
            writeln!(
                script,
                "(exit $status); . .steps/{number} >.steps/{number}.output 2>&1 </dev/null; status=$?\n\
                 echo $status >.steps/{number}.status"
            )
            .unwrap();
        }
        self.write(".steps/script", &script);
        let namespaces =
            ["--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
        let path =
            format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", self.path("target/release").display());
        let shell = Command::new("timeout")
            .args(["300", "unshare"])
            .args(namespaces)
            .args(["--", "bash", "--norc", ".steps/script"])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&shell.stderr);
        let read = |number: usize, what: &str| {
            fs::read_to_string(self.path(&format!(".steps/{number}.{what}"))).unwrap_or_else(|error| {
                panic!("command {number} has no {what}: {error}; {:?} {said}", shell.status)
            })
        };
        let done = |number| Done {
            output: read(number, "output"),
            status: read(number, "status").trim().parse().unwrap(),
        };
        (0..commands.len()).map(done).collect()
    }
}
