//! A program under test, started as a user would start it.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tonic::transport::Channel;
use wire::client::{Client, endpoint};

/// A server to start.
#[derive(Debug)]
pub struct ServerBuilder {
    program: PathBuf,
    launcher: Vec<String>,
    folder: Option<PathBuf>,
    flags: Vec<String>,
    rest: Vec<String>,
    environment: Vec<(String, String)>,
    metrics: bool,
}

impl ServerBuilder {
    /// More flags.
    #[must_use]
    pub fn flags<T: Into<String>>(mut self, flags: impl IntoIterator<Item = T>) -> Self {
        self.flags.extend(flags.into_iter().map(Into::into));
        self
    }

    /// What follows the flags, such as `--` and an entrypoint.
    #[must_use]
    pub fn rest<T: Into<String>>(mut self, rest: impl IntoIterator<Item = T>) -> Self {
        self.rest.extend(rest.into_iter().map(Into::into));
        self
    }

    /// A program, with its arguments, that starts the server: `setpriv`, say.
    #[must_use]
    pub fn under<T: Into<String>>(mut self, launcher: impl IntoIterator<Item = T>) -> Self {
        self.launcher.extend(launcher.into_iter().map(Into::into));
        self
    }

    /// The folder it is started in.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// An environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Offers metrics, on a port of its own.
    #[must_use]
    pub fn metrics(mut self) -> Self {
        self.metrics = true;
        self
    }

    /// Starts it and waits until it serves.
    pub fn start(self) -> Server {
        let metrics_port = if self.metrics { free_port() } else { 0 };
        let mut words: Vec<_> = self.launcher.iter().map(OsString::from).collect();
        words.push(self.program.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
            .args(["--port", "0"])
            .args(&self.flags)
            .args(&self.rest)
            .env_remove("KUBECONFIG")
            .env("OTEL_METRICS_EXPORTER", if self.metrics { "prometheus" } else { "none" })
            .env("OTEL_EXPORTER_PROMETHEUS_PORT", metrics_port.to_string())
            .envs(self.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (writer, (sender, receiver)) = (log.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(port) = serving_port(&line) {
                    let _ = sender.send(port);
                }
                let mut log = writer.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let Ok(port) = receiver.recv_timeout(Duration::from_mins(2)) else {
            let _ = child.kill();
            panic!("the server does not serve:\n{}", log.lock().unwrap());
        };
        Server { child, port, metrics_port, log }
    }
}

/// A running server, ended with the test.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    metrics_port: u16,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// A server of `program`, listening on any free port.
    pub fn of(program: impl AsRef<Path>) -> ServerBuilder {
        ServerBuilder {
            program: program.as_ref().to_owned(),
            launcher: Vec::new(),
            folder: None,
            flags: Vec::new(),
            rest: Vec::new(),
            environment: Vec::new(),
            metrics: false,
        }
    }

    /// The port of its gRPC service.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// A connection to it.
    pub async fn channel(&self) -> Channel {
        endpoint(&format!("127.0.0.1:{}", self.port)).unwrap().connect().await.expect("the server accepts")
    }

    /// A client with a connection of its own and the usual limit.
    pub async fn client(&self) -> Client {
        Client::new(self.channel().await, 6 * 1024 * 1024 + 1024)
    }

    /// Its page of metrics.
    pub fn metrics(&self) -> String {
        self.ask_metrics("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n")
    }

    /// What its port of metrics answers to a request.
    pub fn ask_metrics(&self, request: &str) -> String {
        use std::io::{Read, Write};
        let mut stream =
            std::net::TcpStream::connect(("127.0.0.1", self.metrics_port)).expect("metrics are offered");
        stream.write_all(request.as_bytes()).unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(process, signal).unwrap();
    }

    /// Waits for its end.
    pub fn wait(&mut self, patience: Duration) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < patience, "still running after {patience:?}:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Server {
    /// Ends what its functions still run, which would outlive a server that is killed. Stopped, it reaps
    /// nobody, so no number can come to mean another process.
    fn end_functions(&self) {
        let Some(process) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return };
        if kill_process(process, Signal::STOP).is_err() {
            return;
        }
        // Those that lose their parent become children of the server in the next round.
        for _ in 0..100 {
            let children = crate::children_of(self.child.id());
            let alive = children.iter().filter(|child| child.split(' ').nth(1) != Some("Z"));
            let pids: Vec<_> =
                alive.filter_map(|child| Pid::from_raw(child.split(' ').next()?.parse().ok()?)).collect();
            if pids.is_empty() {
                return;
            }
            for pid in pids {
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end_functions();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprint_log(&self.log());
        }
    }
}

/// A failed test shows what its server said.
fn eprint_log(log: &str) {
    use std::io::Write;
    let _ = writeln!(io::stderr(), "the server's log:\n{log}");
}

/// The port in a line such as `INFO serving address=[::]:9445`, or the same in JSON.
fn serving_port(line: &str) -> Option<u16> {
    let (_, told) = line.split_once("serving")?;
    told.rsplit_once("]:")
        .or_else(|| told.rsplit_once("0.0.0.0:"))?
        .1
        .trim_end_matches(['"', '}'])
        .parse()
        .ok()
}

/// A port that nobody has now and that is given to nobody else soon: not one of those that the kernel gives to
/// whoever connects or asks for any, and none twice.
pub fn free_port() -> u16 {
    const FIRST: u16 = 16_000;
    const COUNT: u16 = 16_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = u16::try_from(std::process::id().wrapping_mul(97) % u32::from(COUNT)).unwrap();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (begin + number) % COUNT;
        if TcpListener::bind(("::", port)).is_ok() {
            return port;
        }
    }
}
