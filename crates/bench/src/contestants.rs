//! The three ways to run the same function: bare, through the service, and
//! through the wrapper server.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::ensure;
use bytes::Bytes;
use testing::{Functions, Server};
use wire::client::{CallOptions, Client};

const IMAGE: &str = "example.com/set-owner:v1";

pub(crate) struct Contestants {
    function: PathBuf,
    service: Server,
    wrapper: Server,
    pub(crate) service_client: Client,
    pub(crate) wrapper_client: Client,
    _functions: Functions,
}

impl Contestants {
    pub(crate) async fn start(binaries: &Path) -> Self {
        let function = binaries.join("set-owner");
        let functions = Functions::new().with_program("set-owner", &function);
        let service = Server::of(binaries.join("function-runner")).flags(functions.flags()).metrics().start();
        let entrypoint = ["--".to_owned(), function.display().to_string()];
        let wrapper = Server::of(binaries.join("wrapper-server")).rest(entrypoint).metrics().start();
        let (service_client, wrapper_client) = (service.client().await, wrapper.client().await);
        Self { function, service, wrapper, service_client, wrapper_client, _functions: functions }
    }

    pub(crate) fn service_process(&self) -> u32 {
        self.service.process()
    }

    pub(crate) fn wrapper_process(&self) -> u32 {
        self.wrapper.process()
    }

    /// The function as a process and nothing else. It reads all its input
    /// before it writes, so one thread can do all of it.
    pub(crate) fn bare(&self, input: &Bytes) -> anyhow::Result<()> {
        let mut child = Command::new(&self.function)
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
        ensure!(child.wait()?.success() && output.len() > input.len(), "the bare function failed");
        Ok(())
    }

    /// The function through one of the servers.
    pub(crate) async fn served(client: &Client, input: Bytes) -> anyhow::Result<()> {
        let length = input.len();
        let answer = client.evaluate(IMAGE, input, CallOptions::default()).await?;
        ensure!(answer.resource_list.len() > length, "the answer is not the function's");
        Ok(())
    }
}
