//! The health probe, with the flags and exit codes of the usual one.

use std::{
    io,
    process::ExitCode,
    time::{Duration, Instant},
};

use flags::{Command, Flag, Flags, GoDuration, Group, Mistakes};
use h2::client::SendRequest;
use prost::{Message, bytes::Bytes};
use tokio::{net::TcpStream, time::timeout};
use tonic::{Code, Status};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus};

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
        // As with the usual probe, a port alone is one of this machine.
        let target = if address.starts_with(':') { format!("localhost{address}") } else { address.clone() };
        let request = self.request(&target).map_err(|error| {
            (1, format!("-addr {address:?} is not HOST:PORT, or -user-agent is malformed: {error}"))
        })?;
        let unreachable =
            |cause: String| (UNREACHABLE, format!("error: failed to connect to {address:?}: {cause}"));
        let begun = Instant::now();
        let connect = async {
            let stream = TcpStream::connect(&target).await?;
            h2::client::handshake(stream).await.map_err(io::Error::other)
        };
        let (client, connection) = timeout(self.connect_timeout, connect)
            .await
            .map_err(|_| unreachable(format!("no connection within {:?}", self.connect_timeout)))?
            .map_err(|error| unreachable(error.to_string()))?;
        tokio::spawn(connection);
        let connected = begun.elapsed();
        let status = timeout(self.rpc_timeout, self.ask(client, request))
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

    fn request(&self, target: &str) -> http::Result<http::Request<()>> {
        http::Request::post(format!("http://{target}/grpc.health.v1.Health/Check"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", &self.user_agent)
            .body(())
    }

    /// One call, by hand: the library's client would be a tenth of the file's size.
    async fn ask(
        &self,
        client: SendRequest<Bytes>,
        request: http::Request<()>,
    ) -> Result<ServingStatus, Status> {
        let (response, mut sending) =
            client.ready().await.map_err(lost)?.send_request(request, false).map_err(lost)?;
        let message = HealthCheckRequest { service: self.service.clone() }.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
        sending.send_data([&[0], &length[..], &message].concat().into(), true).map_err(lost)?;
        let (head, mut body) = response.await.map_err(lost)?.into_parts();
        let mut answer = Vec::new();
        while let Some(piece) = body.data().await {
            answer.extend_from_slice(&piece.map_err(lost)?);
        }
        let trailers = body.trailers().await.map_err(lost)?.unwrap_or_default();
        let status = Status::from_header_map(&trailers).or_else(|| Status::from_header_map(&head.headers));
        match status {
            Some(status) if status.code() != Code::Ok => Err(status),
            Some(_) => {
                let message = answer.get(PREFIX..).unwrap_or_default();
                let decoded = HealthCheckResponse::decode(message);
                decoded.map(|answer| answer.status()).map_err(|error| Status::internal(error.to_string()))
            }
            None => Err(Status::unknown(format!("no gRPC answer, but HTTP {}", head.status))),
        }
    }
}

/// The bytes before a message: a flag and its length.
const PREFIX: usize = 5;

/// A connection that broke, or that never spoke HTTP/2.
#[allow(clippy::needless_pass_by_value, reason = "to be handed to map_err")]
fn lost(error: h2::Error) -> Status {
    Status::unavailable(error.to_string())
}
