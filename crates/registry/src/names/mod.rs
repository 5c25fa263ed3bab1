//! The addresses of names: `/etc/hosts` and the name servers of `/etc/resolv.conf`, asked by ourselves.
//!
//! The C library's `getaddrinfo` does not do here. That of musl waits for its whole patience after a server has
//! said that it cannot tell, and what it returns does not say whether there was an answer at all.

mod ask;
mod files;
mod message;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::task::spawn_blocking;

use self::files::Config;
#[cfg(feature = "fuzzing")]
pub(crate) use self::message::{Family, Reply, question, read};

/// More is in no such file that is meant.
const LARGEST_FILE: u64 = 4 << 20;

/// Finds the addresses of names as the C library would.
///
/// Both files are read for each name: a change is in force at once, and connections are kept long.
#[derive(Debug, Clone)]
pub struct Resolver {
    hosts: PathBuf,
    resolv_conf: PathBuf,
}

impl Default for Resolver {
    fn default() -> Self {
        Self::with_files("/etc/hosts".into(), "/etc/resolv.conf".into())
    }
}

impl Resolver {
    /// One that reads other files.
    pub fn with_files(hosts: PathBuf, resolv_conf: PathBuf) -> Self {
        Self { hosts, resolv_conf }
    }

    /// All addresses of a name: those to which there is a route first, and of these IPv6 first, as the C library
    /// has them.
    async fn lookup(&self, given: &str) -> Result<Vec<IpAddr>, LookupError> {
        let failed = |problem| LookupError { name: given.to_owned(), problem };
        let name = given.strip_suffix('.').unwrap_or(given);
        let (hosts, resolv_conf) = (self.hosts.clone(), self.resolv_conf.clone());
        let read = spawn_blocking(move || (read_file(&hosts), read_file(&resolv_conf)));
        let (hosts, resolv_conf) = read.await.map_err(|error| failed(Problem::Files(error.to_string())))?;
        let hosts = hosts.map_err(|error| failed(Problem::Files(error)))?;
        let known = files::find(&hosts, name);
        if !known.is_empty() {
            return Ok(known);
        }
        // By RFC 6761 these are never asked for.
        if is_localhost(name) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let config = Config::parse(&resolv_conf.map_err(|error| failed(Problem::Files(error)))?);
        let patience = config.patience();
        let asked = tokio::time::timeout(patience, ask::all(&config, given)).await;
        let mut found = asked
            .unwrap_or_else(|_| Err(Problem::Silent { servers: config.servers.clone(), patience }))
            .map_err(failed)?;
        found.sort_by_key(|address| (!has_route(*address), address.is_ipv4()));
        Ok(found)
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let found = resolver.lookup(name.as_str()).await?;
            let addresses: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// A file's text; of one that is missing, none.
fn read_file(path: &Path) -> Result<String, String> {
    match ::files::read(path, LARGEST_FILE) {
        Ok((text, _)) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether the kernel knows a way to an address. Connecting a socket for datagrams sends nothing.
fn has_route(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    std::net::UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((address, 9))).is_ok()
}

/// Why a name has no address for us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name {name:?} cannot be looked up: {problem}")]
pub(crate) struct LookupError {
    name: String,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    /// It cannot be put into a question.
    NotAName,
    /// A server says that there is no such name.
    NoSuchHost,
    /// There is such a name, and it is not that of a host.
    NoAddress,
    /// A server was asked in vain, and no other knows more.
    Failed { server: SocketAddr, cause: String },
    /// No server has answered.
    Silent { servers: Vec<SocketAddr>, patience: Duration },
    /// The files that say where to ask cannot be read.
    Files(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAName => formatter.write_str("it is not the name of a host"),
            Self::NoSuchHost => formatter.write_str("no such host"),
            Self::NoAddress => formatter.write_str("it has no address"),
            Self::Failed { server, cause } => write!(formatter, "the name server {} {cause}", shown(*server)),
            Self::Silent { servers, patience } => {
                let servers: Vec<_> = servers.iter().map(|server| shown(*server)).collect();
                let (word, list) =
                    (if servers.len() == 1 { "server" } else { "servers" }, servers.join(", "));
                write!(formatter, "no answer of the name {word} {list} within {} s", patience.as_secs())
            }
            Self::Files(cause) => formatter.write_str(cause),
        }
    }
}

/// A server as `resolv.conf` has it.
fn shown(server: SocketAddr) -> String {
    if server.port() == files::PORT { server.ip().to_string() } else { server.to_string() }
}
