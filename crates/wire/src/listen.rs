//! Listening sockets: every interface, IPv4 and IPv6, on one socket.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};
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

/// As [`listen`], on an interface that is given by its address or by a name that resolves to it.
pub async fn listen_on(host: &str, port: u16) -> io::Result<TcpListener> {
    if let Ok(address) = host.parse() {
        return listen(Some(address), port);
    }
    let addresses: Vec<IpAddr> =
        tokio::net::lookup_host((host, port)).await?.map(|address| address.ip()).collect();
    let first = addresses.iter().find(|address| address.is_ipv4()).or_else(|| addresses.first());
    match first {
        Some(address) => listen(Some(*address), port),
        None => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
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

/// From now on nobody can begin to connect; who has begun can still be accepted. Closing a listener
/// resets the connections in its queue, so the queue must be empty by then, and stay so.
///
/// The kernel drops the packets that begin a connection. Their senders send them again after a second
/// and are then refused, if the port is closed by that time.
pub(crate) fn ignore_new_connections(listener: &TcpListener) -> io::Result<()> {
    const FLAGS_OF_TCP: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    // A classic packet filter over the TCP header: operations from linux/bpf_common.h.
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS_OF_TCP),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
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

    #[tokio::test]
    async fn an_interface_may_be_named() {
        for host in ["localhost", "127.0.0.1"] {
            let address = listen_on(host, 0).await.unwrap().local_addr().unwrap();
            assert!(address.ip().is_loopback(), "{host}: {address}");
        }
        assert!(listen_on("0.0.0.0", 0).await.unwrap().local_addr().unwrap().ip().is_unspecified());
        assert!(listen_on("not a name", 0).await.is_err());
    }

    #[tokio::test]
    async fn who_has_connected_is_accepted_and_nobody_else_can() {
        use std::{net::TcpStream, time::Duration};
        for host in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let listener = listen(None, 0).unwrap();
            let address = (host, listener.local_addr().unwrap().port()).into();
            let early = TcpStream::connect(address).unwrap();
            ignore_new_connections(&listener).unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            assert_eq!(accepted.peer_addr().unwrap().port(), early.local_addr().unwrap().port());
            let late = TcpStream::connect_timeout(&address, Duration::from_millis(100)).unwrap_err();
            assert_eq!(late.kind(), io::ErrorKind::TimedOut);
            drop(listener);
            let refused = TcpStream::connect(address).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        }
    }
}
