//! The health probe: the same file under another name, with the exit codes
//! and flags of the usual one.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::fs::symlink,
    process::{Command, Output},
    sync::Arc,
    time::Duration,
};

use socket2::{Domain, Socket, Type};
use testing::Server;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{self, HealthServer},
};
use wire::{FinishedRpc, Front, Health, Observer, ServeOptions};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wrapper-server");

/// Runs the probe under its name; its exit code and all it said.
fn probe(arguments: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("grpc-health-probe");
    symlink(PROGRAM, &link).unwrap();
    let Output { status, stdout, stderr } = Command::new(link).args(arguments).output().unwrap();
    let said = [stdout, stderr].concat();
    (status.code().unwrap(), String::from_utf8(said).unwrap())
}

struct Unobserved;

impl Observer for Unobserved {
    fn finished(&self, _: &FinishedRpc) {}
}

/// Serves in this process; the address.
fn serve(mount: impl FnOnce(Front) -> Front) -> String {
    let listener = wire::listen(Some(Ipv4Addr::LOCALHOST.into()), 0).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let front = mount(Front::new(10_000, wire::Memory::unlimited(), Arc::new(Unobserved)));
    tokio::spawn(wire::serve(listener, front, ServeOptions::default(), std::future::pending()));
    address
}

#[test]
fn a_serving_server_is_told_and_the_exit_code_is_0() {
    let server = Server::of(PROGRAM).rest(["--", "cat"]).start();
    let port = server.port();
    for arguments in [
        &["-addr", &format!("localhost:{port}")][..],
        &["--addr", &format!("127.0.0.1:{port}")],
        &[&format!("-addr=[::1]:{port}")],
        &[&format!("--addr=:{port}")],
        &[
            "-connect-timeout",
            "10s",
            "-rpc-timeout=250ms",
            "-user-agent",
            "us",
            &format!("-addr=localhost:{port}"),
        ],
        &["-service", "evaluator.FunctionEvaluator", &format!("-addr=localhost:{port}")],
    ] {
        assert_eq!(probe(arguments), (0, "status: SERVING\n".to_owned()), "{arguments:?}");
    }
    let (code, said) = probe(&["-v", &format!("-addr=localhost:{port}")]);
    assert!(code == 0 && said.contains("connect=") && said.ends_with("status: SERVING\n"), "{said}");
}

#[test]
fn a_wrong_command_line_is_told_and_the_exit_code_is_1() {
    for (arguments, told) in [
        (&[][..], "-addr"),
        (&["-addr="], "-addr"),
        (&["-addr", "localhost:1", "more"], "\"more\""),
        (&["-adr", "localhost:1"], "did you mean --addr?"),
        (&["-addr=localhost:1", "-connect-timeout=1"], "-connect-timeout"),
        (&["-addr=localhost:1", "-rpc-timeout=0s"], "-rpc-timeout"),
        (&["-addr=localhost:1", "-rpc-timeout=-1s"], "-rpc-timeout"),
        (&["-addr=localhost:1", "-tls"], "plain gRPC"),
        (&["-addr=no address:1"], "no address"),
        (&["-addr=localhost:1", "-user-agent=a\nb"], "-user-agent"),
    ] {
        let (code, said) = probe(arguments);
        assert_eq!(code, 1, "{arguments:?}: {said}");
        assert!(said.contains(told), "{arguments:?}: {said}");
    }
}

#[test]
fn help_is_no_mistake() {
    let (code, said) = probe(&["-help"]);
    assert!(code == 0 && said.contains("-addr HOST:PORT"), "{said}");
}

#[test]
fn a_server_that_cannot_be_reached_makes_2() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [closed.to_string(), "no-such-host.invalid:1".to_owned(), "localhost:99999".to_owned()] {
        let (code, said) = probe(&["-connect-timeout=20s", "-addr", &address]);
        assert_eq!(code, 2, "{address}: {said}");
        assert!(said.contains(&address), "{said}");
    }
}

#[test]
fn a_connection_that_does_not_come_about_in_time_makes_2() {
    // One place in the queue, taken: whoever comes next is not answered.
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        waiting.push(stream);
    }
    let (code, said) = probe(&["-connect-timeout=300ms", "-rpc-timeout=60s", "-addr", &address.to_string()]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("no connection within 300ms"), "{said}");
}

#[test]
fn a_server_that_accepts_and_says_nothing_makes_3() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let (code, said) = probe(&["-connect-timeout=20s", "-rpc-timeout=300ms", "-addr", &address]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("no answer within 300ms"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_health_makes_3() {
    let address = serve(|front| front);
    let (code, said) = probe(&["-rpc-timeout=20s", "-addr", &address]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("does not implement the grpc health protocol"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_serving_makes_4() {
    let health = Health::new();
    let address = serve(|front| front.mount(health.service(), &[]));
    let (code, said) = probe(&["-rpc-timeout=20s", "-addr", &address]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("NOT_SERVING"), "{said}");
    health.set_serving(true);
    assert_eq!(probe(&["-rpc-timeout=20s", "-addr", &address]).0, 0);
}

/// Knows two services by name.
#[derive(Clone)]
struct Named;

#[tonic::async_trait]
impl health_server::Health for Named {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let status = match request.get_ref().service.as_str() {
            "good" => ServingStatus::Serving,
            "bad" => ServingStatus::NotServing,
            other => return Err(Status::not_found(format!("no service {other:?}"))),
        };
        Ok(Response::new(HealthCheckResponse { status: status.into() }))
    }

    type WatchStream = tokio_stream::Empty<Result<HealthCheckResponse, Status>>;

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Ok(Response::new(tokio_stream::empty()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_asked_about_is_the_one_named() {
    let address = serve(|front| front.mount(HealthServer::new(Named), &[]));
    for (service, code, told) in [
        ("good", 0, "SERVING"),
        ("bad", 4, "NOT_SERVING"),
        ("unknown", 3, "NotFound: no service \"unknown\""),
        ("", 3, ""),
    ] {
        let (ended, said) = probe(&["-rpc-timeout=20s", "-service", service, "-addr", &address]);
        assert_eq!(ended, code, "{service:?}: {said}");
        assert!(said.contains(told), "{service:?}: {said}");
    }
}

#[test]
fn a_server_that_speaks_something_else_makes_3() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
        // Until the probe has gone.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let (code, said) = probe(&["-rpc-timeout=20s", "-addr", &address]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("health rpc failed"), "{said}");
}
