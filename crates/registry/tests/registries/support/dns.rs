//! A name server that says what a test wants, right or wrong.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

/// A question.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) is_v6: bool,
    pub(crate) is_tcp: bool,
    whole: Vec<u8>,
}

impl Asked {
    fn read(message: &[u8], is_tcp: bool) -> Self {
        let mut parts = Vec::new();
        let mut at = 12;
        while message[at] != 0 {
            let end = at + 1 + usize::from(message[at]);
            parts.push(String::from_utf8(message[at + 1..end].to_vec()).unwrap());
            at = end;
        }
        let is_v6 = message[at + 1..at + 3] == [0, 28];
        Self { name: parts.join("."), is_v6, is_tcp, whole: message.to_vec() }
    }

    /// An answer with a code and no records.
    pub(crate) fn code(&self, code: u8) -> Vec<u8> {
        let mut message = self.whole.clone();
        (message[2], message[3]) = (0x81, 0x80 | code);
        message
    }

    /// An answer that says there is more of it.
    pub(crate) fn cut(&self) -> Vec<u8> {
        let mut message = self.code(0);
        message[2] |= 2;
        message
    }

    /// An answer with those of the addresses that are of the family asked for.
    pub(crate) fn addresses(&self, addresses: &[&str]) -> Vec<u8> {
        let mut message = self.code(0);
        let mut count = 0_u16;
        for address in addresses {
            let address: IpAddr = address.parse().unwrap();
            if address.is_ipv6() == self.is_v6 {
                let data = match address {
                    IpAddr::V4(address) => address.octets().to_vec(),
                    IpAddr::V6(address) => address.octets().to_vec(),
                };
                let kind = if self.is_v6 { 28 } else { 1 };
                message.extend([0xC0, 12, 0, kind, 0, 1, 0, 0, 0, 9, 0, u8::try_from(data.len()).unwrap()]);
                message.extend(data);
                count += 1;
            }
        }
        message[6..8].copy_from_slice(&count.to_be_bytes());
        message
    }
}

pub(crate) struct NameServer {
    /// As `resolv.conf` has it.
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl NameServer {
    /// The names that were asked for until now, each as often as it was.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| asked.name.clone()).collect()
    }

    pub(crate) fn asked_by_tcp(&self) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.is_tcp).count()
    }
}

/// A server on one port for datagrams and connections. Each answer is sent in as many messages as it has.
pub(crate) async fn name_server(
    answer: impl Fn(&Asked) -> Vec<Vec<u8>> + Send + Sync + 'static,
) -> NameServer {
    let (socket, listener) = bind().await;
    let address = format!("[127.0.0.1]:{}", socket.local_addr().unwrap().port());
    let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
    let by_datagram = tokio::spawn({
        let (asked, answer) = (Arc::clone(&asked), Arc::clone(&answer));
        async move {
            let mut message = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut message).await {
                let question = Asked::read(&message[..length], false);
                asked.lock().unwrap().push(question.clone());
                for message in answer(&question) {
                    socket.send_to(&message, from).await.unwrap();
                }
            }
        }
    });
    let by_stream = tokio::spawn({
        let asked = Arc::clone(&asked);
        async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let length = stream.read_u16().await.unwrap();
                let mut message = vec![0; length.into()];
                stream.read_exact(&mut message).await.unwrap();
                let question = Asked::read(&message, true);
                asked.lock().unwrap().push(question.clone());
                for message in answer(&question) {
                    let length = u16::try_from(message.len()).unwrap();
                    stream.write_all(&[&length.to_be_bytes(), message.as_slice()].concat()).await.unwrap();
                }
            }
        }
    });
    NameServer { address, asked, tasks: [by_datagram, by_stream] }
}

/// A port that is free for both.
async fn bind() -> (UdpSocket, TcpListener) {
    loop {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        match TcpListener::bind(socket.local_addr().unwrap()).await {
            Ok(listener) => return (socket, listener),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::AddrInUse),
        }
    }
}
