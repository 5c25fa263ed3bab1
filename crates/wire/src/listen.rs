//! Listening sockets: every interface, IPv4 and IPv6, on one socket.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// Connections waiting to be accepted.
const BACKLOG: i32 = 1024;

/// Listens on `port` of `host`, or of every interface when there is no host.
/// Where the machine has no IPv6, IPv4 alone is used.
pub fn listen(host: Option<IpAddr>, port: u16) -> io::Result<TcpListener> {
    match host {
        Some(host) if !host.is_unspecified() => bind(SocketAddr::new(host, port)),
        _ => bind(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)).or_else(|error| {
            // An address in use on IPv6 is in use: trying IPv4 would only hide that.
            if error.kind() == io::ErrorKind::AddrInUse {
                return Err(error);
            }
            bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))
        }),
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_port_answers_on_both_families() {
        let listener = listen(None, 0).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let connected = tokio::net::TcpStream::connect((host, port)).await;
            assert!(connected.is_ok(), "{host}: {connected:?}");
        }
        let again = listen(None, port).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
    }
}
