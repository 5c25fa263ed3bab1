//! Helper programs: `docker-credential-NAME get`, with the registry on standard input and its login on
//! standard output.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::error::HelperProblem;
use super::login::{Login, Secret};

/// Such a program asks a key store, or a cloud's metadata server, nearby.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Tokens of clouds have a few thousand bytes.
const LARGEST_OUTPUT: usize = 64 << 10;
/// The name that says: the secret is an identity token.
const TOKEN_USERNAME: &str = "<token>";
/// How the programs say, all in the same words, that they have no login for a registry.
const NOT_FOUND: &[u8] = b"credentials not found in native keychain";
/// Before trying again to start a program that is just being written.
const BUSY_WAIT: Duration = Duration::from_millis(20);

/// The name of a helper program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Helper {
    program: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

impl Helper {
    /// `None` if the name could lead out of the folders of programs.
    pub(super) fn named(name: &str) -> Option<Self> {
        let is_valid = !name.is_empty()
            && name.len() <= 200
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        is_valid.then(|| Self { program: format!("docker-credential-{name}") })
    }

    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Asks for the login of a registry. `None` if the program has none. Dropping the future kills it.
    pub(super) async fn get(&self, server: &str, folders: &OsStr) -> Result<Option<Login>, HelperProblem> {
        let program = self.find(folders).ok_or(HelperProblem::Missing)?;
        timeout(TIME_LIMIT, run(program, server))
            .await
            .unwrap_or(Err(HelperProblem::TimedOut(TIME_LIMIT.as_secs())))
    }

    /// In folders with a full path only: what the working folder holds is not ours to choose.
    pub(super) fn find(&self, folders: &OsStr) -> Option<PathBuf> {
        std::env::split_paths(folders).filter(|folder| folder.is_absolute()).find_map(|folder| {
            let program = folder.join(&self.program);
            let metadata = program.metadata().ok()?;
            (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(program)
        })
    }
}

async fn run(program: PathBuf, server: &str) -> Result<Option<Login>, HelperProblem> {
    let failed = |error: io::Error| HelperProblem::Run(Arc::new(error));
    let mut child = start(program).await.map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // Less than a pipe holds, so this does not wait. A program that does not read it may have its reasons.
        let _ = input.write_all(server.as_bytes()).await;
    }
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let limit = LARGEST_OUTPUT as u64 + 1;
        stdout.take(limit).read_to_end(&mut output).await.map_err(failed)?;
    }
    if output.len() > LARGEST_OUTPUT {
        return Err(HelperProblem::TooMuch(LARGEST_OUTPUT));
    }
    let status = child.wait().await.map_err(failed)?;
    if status.success() {
        return read(&output);
    }
    if output.trim_ascii() == NOT_FOUND {
        return Ok(None);
    }
    Err(HelperProblem::Failed(status.to_string()))
}

async fn start(program: PathBuf) -> io::Result<Child> {
    // In our own process group: by that, what reaps the processes of functions leaves it alone.
    let mut command = Command::new(program);
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    loop {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => sleep(BUSY_WAIT).await,
            started => return started,
        }
    }
}

fn read(output: &[u8]) -> Result<Option<Login>, HelperProblem> {
    let Answer { username, secret } = serde_json::from_slice(output).map_err(|_| HelperProblem::Garbage)?;
    let secret = Secret::new(secret);
    Ok(match username.as_str() {
        _ if secret.is_empty() => None,
        TOKEN_USERNAME => Some(Login::IdentityToken(secret)),
        _ => Some(Login::Basic { username, password: secret }),
    })
}
