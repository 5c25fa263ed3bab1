//! The ways to run the same function: bare, through the service as an executable
//! or built in, and through the wrapper server.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use bytes::Bytes;
use testing::{Functions, Server};
use wire::client::{CallOptions, Client};

/// The servers, and the functions they offer.
#[derive(Debug)]
pub struct Stage {
    service: Server,
    binaries: PathBuf,
    _functions: Functions,
}

/// One function in all ways.
#[derive(Debug)]
pub struct Contestants {
    program: PathBuf,
    image: String,
    builtin: String,
    service: Client,
    wrapper: Client,
    wrapper_server: Server,
}

/// A way to run a function over gRPC.
#[derive(Debug, Clone, Copy)]
pub enum Served {
    /// By the service, as a process.
    Service,
    /// By a wrapper server, as a process.
    Wrapper,
    /// By the service, which has the function built in.
    Builtin,
}

impl Stage {
    /// Starts the service with these functions, programs in the folder of binaries.
    pub fn start(binaries: &Path, functions: &[&str]) -> Self {
        let offered = functions
            .iter()
            .fold(Functions::new(), |offered, name| offered.with_program(name, &binaries.join(name)));
        let service = Server::of(binaries.join("function-runner"))
            .flags(offered.flags())
            .flags(["--builtin-functions=all"])
            .metrics()
            .start();
        Self { service, binaries: binaries.to_owned(), _functions: offered }
    }

    pub fn service_process(&self) -> u32 {
        self.service.process()
    }

    /// Starts a wrapper server for one of the functions and connects to both.
    pub async fn contestants(&self, function: &str) -> Contestants {
        let program = self.binaries.join(function);
        let entrypoint = ["--".to_owned(), program.display().to_string()];
        let wrapper_server =
            Server::of(self.binaries.join("wrapper-server")).rest(entrypoint).metrics().start();
        Contestants {
            program,
            image: format!("example.com/{function}:v1"),
            builtin: format!("gcr.io/kpt-fn/{function}:v1"),
            service: self.service.client().await,
            wrapper: wrapper_server.client().await,
            wrapper_server,
        }
    }
}

impl Contestants {
    pub fn wrapper_process(&self) -> u32 {
        self.wrapper_server.process()
    }

    /// They must give the same answer before their speed is of interest.
    pub async fn agree(&self, ways: &[Served], input: &Bytes) -> anyhow::Result<()> {
        let bare = self.bare(input)?;
        for &way in ways {
            let answer = self.served(way, input.clone()).await?;
            let is_same = match way {
                Served::Service | Served::Wrapper => answer == bare,
                // It keeps formatting that the process does not, and tells results as the catalog's does.
                Served::Builtin => items(&answer)? == items(&bare)?,
            };
            ensure!(is_same, "{way:?} gives another answer than the bare process");
        }
        Ok(())
    }

    /// The function as a process and nothing else. It reads all its input
    /// before it writes, so one thread can do all of it.
    pub fn bare(&self, input: &Bytes) -> anyhow::Result<Bytes> {
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input)?;
        }
        let (mut output, mut log) = (Vec::new(), Vec::new());
        if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_end(&mut output)?;
        }
        if let Some(mut stderr) = child.stderr.take() {
            stderr.read_to_end(&mut log)?;
        }
        ensure!(child.wait()?.success(), "the bare function failed: {}", String::from_utf8_lossy(&log));
        Ok(output.into())
    }

    /// The function through one of the servers.
    pub async fn served(&self, way: Served, input: Bytes) -> anyhow::Result<Bytes> {
        let (client, image) = match way {
            Served::Service => (&self.service, &self.image),
            Served::Wrapper => (&self.wrapper, &self.image),
            Served::Builtin => (&self.service, &self.builtin),
        };
        Ok(client.evaluate(image, input, CallOptions::default()).await?.resource_list)
    }
}

/// The resources of a list, however they are written.
fn items(list: &[u8]) -> anyhow::Result<krm::Value> {
    let document = krm::Document::parse_bytes(list)?;
    let items = document.get(document.root(), "items").context("a list without items")?;
    Ok(document.value(items))
}
