//! The health probe, with the flags and exit codes of the usual one.

use std::{process::ExitCode, time::Duration};

use flags::{Command, Flag, Flags, GoDuration, Group, Mistakes};
use tonic::{Code, Request};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::log;

const ADDR: Flag<String> = Flag::text("addr", "", "The server to ask.").placeholder("HOST:PORT");
const SERVICE: Flag<String> =
    Flag::text("service", "", "The service to ask about; empty means the whole server.");
const CONNECT_TIMEOUT: Flag<GoDuration> =
    Flag::duration("connect-timeout", GoDuration::from_seconds(1), "How long connecting may take.");
const RPC_TIMEOUT: Flag<GoDuration> =
    Flag::duration("rpc-timeout", GoDuration::from_seconds(1), "How long the answer may take.");
const USER_AGENT: Flag<String> =
    Flag::text("user-agent", "grpc_health_probe", "The name the probe gives itself.");
const VERBOSE: Flag<bool> = Flag::boolean("v", false, "Tell how long connecting and asking took.");
const TLS: Flag<bool> = Flag::boolean("tls", false, "Not offered: function pods speak plain gRPC.");

pub(crate) static COMMAND: Command = Command {
    name: "grpc-health-probe",
    usage: "-addr HOST:PORT [flags]",
    summary: "Asks a gRPC server for its health. Exits with 0 when it is serving, 1 for a wrong command line, \
              2 when it cannot be reached, 3 when it does not answer, 4 when it is not serving.",
    groups: &[Group {
        heading: "Flags",
        flags: &[
            ADDR.spec(),
            SERVICE.spec(),
            CONNECT_TIMEOUT.spec(),
            RPC_TIMEOUT.spec(),
            USER_AGENT.spec(),
            VERBOSE.spec(),
            TLS.spec(),
        ],
    }],
};

const UNREACHABLE: u8 = 2;
const NO_ANSWER: u8 = 3;
const NOT_SERVING: u8 = 4;

struct Probe {
    address: String,
    service: String,
    connect_timeout: Duration,
    rpc_timeout: Duration,
    user_agent: String,
    verbose: bool,
}

pub(crate) fn main(mut flags: Flags) -> Result<ExitCode, Mistakes> {
    flags.refuse_arguments();
    let probe = Probe {
        address: flags.get(&ADDR),
        service: flags.get(&SERVICE),
        connect_timeout: flags.get(&CONNECT_TIMEOUT).positive().unwrap_or_default(),
        rpc_timeout: flags.get(&RPC_TIMEOUT).positive().unwrap_or_default(),
        user_agent: flags.get(&USER_AGENT),
        verbose: flags.get(&VERBOSE),
    };
    if probe.address.is_empty() {
        flags.reject(&ADDR, "name the server to ask, such as -addr=localhost:9446");
    }
    for (flag, value) in [(&CONNECT_TIMEOUT, probe.connect_timeout), (&RPC_TIMEOUT, probe.rpc_timeout)] {
        if value.is_zero() {
            flags.reject(flag, "must be more than 0");
        }
    }
    if flags.get(&TLS) {
        flags.reject(&TLS, "this probe speaks plain gRPC only");
    }
    let probe = flags.finish(probe)?;
    let outcome = match crate::runtime() {
        Ok(runtime) => runtime.block_on(probe.run()),
        Err(error) => Err((UNREACHABLE, format!("cannot start: {error}"))),
    };
    Ok(match outcome {
        Ok(text) => {
            log::say(&text);
            ExitCode::SUCCESS
        }
        Err((code, text)) => {
            log::say(&text);
            ExitCode::from(code)
        }
    })
}

impl Probe {
    async fn run(self) -> Result<String, (u8, String)> {
        let address = &self.address;
        let unreachable =
            |cause: String| (UNREACHABLE, format!("error: failed to connect to {address:?}: {cause}"));
        let begun = std::time::Instant::now();
        let endpoint = wire::client::endpoint(address)
            .and_then(|endpoint| endpoint.user_agent(self.user_agent.clone()))
            .map_err(|error| {
                (1, format!("-addr {address:?} is not HOST:PORT, or -user-agent is malformed: {error}"))
            })?;
        let channel = tokio::time::timeout(self.connect_timeout, endpoint.connect())
            .await
            .map_err(|_| unreachable(format!("no connection within {:?}", self.connect_timeout)))?
            .map_err(|error| unreachable(chain(&error)))?;
        let connected = begun.elapsed();
        let request = Request::new(HealthCheckRequest { service: self.service.clone() });
        let answer = tokio::time::timeout(self.rpc_timeout, HealthClient::new(channel).check(request))
            .await
            .map_err(|_| (NO_ANSWER, format!("error: no answer within {:?}", self.rpc_timeout)))?
            .map_err(|status| {
                let text = match status.code() {
                    Code::Unimplemented => {
                        "error: this server does not implement the grpc health protocol".to_owned()
                    }
                    code => format!("error: health rpc failed: {code:?}: {}", status.message()),
                };
                (NO_ANSWER, text)
            })?;
        let status = answer.into_inner().status();
        if status != ServingStatus::Serving {
            return Err((
                NOT_SERVING,
                format!("service unhealthy (responded with {:?})", status.as_str_name()),
            ));
        }
        let mut text = format!("status: {}", status.as_str_name());
        if self.verbose {
            let answered = begun.elapsed().saturating_sub(connected);
            text = format!("time elapsed: connect={connected:?} rpc={answered:?}\n{text}");
        }
        Ok(text)
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    text
}
