//! Asking name servers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Problem;
use super::files::Config;
use super::message::{self, Family, Reply};

/// Once there are addresses of one family, so long are those of the other waited for: some servers never answer
/// questions for IPv6.
const OTHER_FAMILY: Duration = Duration::from_millis(300);
/// We ask for no more than 512 bytes; what sends more is given the chance to be understood.
const LARGEST_DATAGRAM: usize = 4096;

/// The addresses of whatever a name may mean. Goes on for ever where nobody answers.
pub(super) async fn all(config: &Config, name: &str) -> Result<Vec<IpAddr>, Problem> {
    let mut problem = None;
    for meaning in config.meanings(name) {
        match both(config, &meaning).await {
            Ok(found) => return Ok(found),
            // That nobody could tell says more than that there is none under another name.
            Err(new) if problem.is_none() || new.is_failure() => problem = Some(new),
            Err(_) => {}
        }
    }
    Err(problem.unwrap_or(Problem::NotAName))
}

/// The addresses of one complete name, of both families.
async fn both(config: &Config, name: &str) -> Result<Vec<IpAddr>, Problem> {
    let mut asked = JoinSet::new();
    for family in [Family::V6, Family::V4] {
        asked.spawn(one(config.clone(), name.to_owned(), family));
    }
    let mut found = Vec::new();
    let mut problem = Problem::NoAddress;
    loop {
        let next = if found.is_empty() {
            asked.join_next().await
        } else {
            timeout(OTHER_FAMILY, asked.join_next()).await.unwrap_or_default()
        };
        match next {
            Some(Ok(Ok(addresses))) => found.extend(addresses),
            Some(Ok(Err(new))) if !problem.is_failure() => problem = new,
            Some(_) => {}
            None if found.is_empty() => return Err(problem),
            None => return Ok(found),
        }
    }
}

/// The addresses of one family: all servers are asked at once, and the first that knows is believed.
async fn one(config: Config, name: String, family: Family) -> Result<Vec<IpAddr>, Problem> {
    let mut id = [0; 2];
    // Without it, the port that the kernel chooses has to do.
    let _ = SystemRandom::new().fill(&mut id);
    let question = message::question(u16::from_be_bytes(id), &name, family).ok_or(Problem::NotAName)?;
    let attempts = config.attempts;
    let pause = config.patience() / attempts;
    let mut asked = JoinSet::new();
    for server in config.servers {
        let question = question.clone();
        asked.spawn(async move { (server, converse(server, &question, family, attempts, pause).await) });
    }
    let mut problem = Problem::NoAddress;
    while let Some(answer) = asked.join_next().await {
        // A task that does not end by itself was aborted with us.
        let Ok((server, reply)) = answer else { continue };
        let cause = match reply {
            Ok(Reply::Addresses(addresses)) => return Ok(addresses),
            Ok(Reply::NoSuchName) => return Err(Problem::NoSuchHost),
            Ok(Reply::Failed(code)) => format!("answers {}", message::code_name(code)),
            Ok(Reply::Malformed) => "gives an answer that makes no sense".to_owned(),
            Ok(Reply::Truncated) => "has no whole answer".to_owned(),
            Err(error) => format!("cannot be asked: {error}"),
        };
        problem = Problem::Failed { server, cause };
    }
    Err(problem)
}

/// Asks one server, as often as it may be, and waits until it says something.
async fn converse(
    server: SocketAddr,
    question: &[u8],
    family: Family,
    attempts: u32,
    pause: Duration,
) -> io::Result<Reply> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // A port of its own for each question, and no datagrams but of this server.
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    let mut left = attempts;
    let reply = loop {
        socket.send(question).await?;
        left = left.saturating_sub(1);
        if left == 0 {
            break hear(&socket, question, family).await?;
        }
        if let Ok(reply) = timeout(pause, hear(&socket, question, family)).await {
            break reply?;
        }
    };
    match reply {
        Reply::Truncated => converse_at_length(server, question, family).await,
        reply => Ok(reply),
    }
}

async fn hear(socket: &UdpSocket, question: &[u8], family: Family) -> io::Result<Reply> {
    let mut datagram = vec![0; LARGEST_DATAGRAM];
    loop {
        let length = socket.recv(&mut datagram).await?;
        if let Some(reply) = message::read(&datagram[..length], question, family) {
            return Ok(reply);
        }
    }
}

/// The same by TCP, which takes answers of any length.
async fn converse_at_length(server: SocketAddr, question: &[u8], family: Family) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat()).await?;
    let length = stream.read_u16().await?;
    let mut message = vec![0; length.into()];
    stream.read_exact(&mut message).await?;
    Ok(message::read(&message, question, family).unwrap_or(Reply::Malformed))
}

impl Problem {
    /// Whether nobody could tell, as opposed to: there is none.
    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}
