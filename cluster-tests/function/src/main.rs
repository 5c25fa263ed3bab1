//! A KRM function that behaves as its configuration tells it to, so that
//! tests can make it do what functions do: take long, need much memory, fail,
//! crash. Told nothing, it answers with what it was given, byte for byte.
//!
//! The `data` of its functionConfig is carried out in this order:
//!
//! | key        | what it does |
//! | ---------- | --- |
//! | `knock`    | connects to that address and waits until the other side has ended the connection |
//! | `allocate` | fills that many megabytes of memory |
//! | `sleep`    | waits for that many milliseconds |
//! | `log`      | writes that to standard error |
//! | `crash`    | dies by a signal, if it is `true` |
//! | `host`     | writes the name of its host into an annotation of every resource, if it is `true` |
//! | `grow`     | adds a resource of that many bytes |
//! | `exit`     | ends with that code, and with `message` as a result |
//!
//! The argument `crash` makes it die before it reads anything. With the arguments
//! `relay FROM TO MILLISECONDS` it is no function but passes connections from one
//! port to the other, as the sidecar of a service mesh does; those that come
//! sooner than that long after its start it accepts and holds back until then.

use std::{
    env, fs,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use krm::{Budget, Document, EditError, Value};

/// Where the name of the host is written.
const HOST: &str = "test/host";
const MEGABYTE: usize = 1024 * 1024;

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["crash", ..] => {
            writeln!(io::stderr(), "crashing before anything was read")?;
            std::process::abort();
        }
        ["relay", from, to, hold] => {
            let number = |text: &str| text.parse().map_err(io::Error::other);
            relay(number(from)?, number(to)?, Duration::from_millis(number(hold)?.into()))
        }
        _ => evaluate(),
    }
}

fn evaluate() -> io::Result<ExitCode> {
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let text = std::str::from_utf8(&input).map_err(io::Error::other)?;
    let mut list = Document::parse_within(text, &Budget::unlimited()).map_err(io::Error::other)?;
    let data = list.at(list.root(), &["functionConfig", "data"]);
    let orders = Orders(data.map_or_else(Value::mapping, |data| list.value(data)));
    obey(&orders, &mut list)
}

fn obey(orders: &Orders, list: &mut Document<'_>) -> io::Result<ExitCode> {
    if let Some(address) = orders.text("knock") {
        // Whoever listens counts the connections, and so the runs.
        io::copy(&mut TcpStream::connect(address)?, &mut io::sink())?;
    }
    // Kept to the end: memory that nobody uses is not needed, and would not be taken.
    let filled = vec![1_u8; orders.number("allocate")? * MEGABYTE];
    thread::sleep(Duration::from_millis(orders.number("sleep")? as u64));
    if let Some(text) = orders.text("log") {
        writeln!(io::stderr(), "{text}")?;
    }
    if orders.is_on("crash") {
        std::process::abort();
    }
    if orders.is_on("host") {
        let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
        tell_host(list, host.trim()).map_err(io::Error::other)?;
    }
    let size = orders.number("grow")?;
    if size > 0 {
        grow(list, size).map_err(io::Error::other)?;
    }
    let code = orders.number("exit")?;
    if code > 0 {
        let message = orders.text("message").unwrap_or("told to fail");
        let result = Value::strings([("severity", "error"), ("message", message)]);
        list.set_field(list.root(), "results", Value::Sequence(vec![result])).map_err(io::Error::other)?;
    }
    // What nothing was done to is written as it was read.
    io::stdout().write_all(list.to_text().map_err(io::Error::other)?.as_bytes())?;
    drop(filled);
    Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The `data` of the configuration.
struct Orders(Value);

impl Orders {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.text()
    }

    /// A number, written as text because the values of a ConfigMap are; 0 where there is none.
    fn number(&self, key: &str) -> io::Result<usize> {
        let wrong = |_| io::Error::other(format!("data.{key} is no number"));
        self.text(key).map_or(Ok(0), |text| text.parse().map_err(wrong))
    }

    fn is_on(&self, key: &str) -> bool {
        self.text(key) == Some("true")
    }
}

/// Writes who answers into every resource.
fn tell_host(list: &mut Document<'_>, host: &str) -> Result<(), EditError> {
    let items = list.get(list.root(), "items");
    for item in items.map(|items| list.entries(items).collect::<Vec<_>>()).into_iter().flatten() {
        let annotations = list.ensure_path(item, &["metadata", "annotations"])?;
        list.set_field(annotations, HOST, host)?;
    }
    Ok(())
}

/// Adds a resource of about this size.
fn grow(list: &mut Document<'_>, size: usize) -> Result<(), EditError> {
    let Some(items) = list.get(list.root(), "items") else { return Ok(()) };
    let grown = list.push(items, Value::strings([("apiVersion", "v1"), ("kind", "ConfigMap")]))?;
    list.set_field(grown, "metadata", Value::strings([("name", "grown")]))?;
    list.set_field(grown, "data", Value::strings([("text", "x".repeat(size))]))?;
    Ok(())
}

/// Passes connections on, none before `hold` is over.
fn relay(from: u16, to: u16, hold: Duration) -> io::Result<ExitCode> {
    let begun = Instant::now();
    for inbound in TcpListener::bind(("0.0.0.0", from))?.incoming() {
        let inbound = inbound?;
        thread::spawn(move || {
            thread::sleep(hold.saturating_sub(begun.elapsed()));
            let passed = TcpStream::connect(("127.0.0.1", to)).and_then(|outbound| pass(&inbound, &outbound));
            let _ = writeln!(io::stderr(), "a connection ended: {passed:?}");
        });
        writeln!(io::stderr(), "accepted a connection after {:?}", begun.elapsed())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Passes both ways until one of them ends.
fn pass(inbound: &TcpStream, outbound: &TcpStream) -> io::Result<()> {
    let (mut reader, mut writer) = (outbound.try_clone()?, inbound.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut reader, &mut writer);
        let _ = writer.shutdown(std::net::Shutdown::Both);
    });
    io::copy(&mut &*inbound, &mut &*outbound)?;
    outbound.shutdown(std::net::Shutdown::Both)
}
