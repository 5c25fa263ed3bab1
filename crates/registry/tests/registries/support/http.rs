//! A small HTTP server that says what a test wants, right or wrong.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::certificates;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) target: String,
    pub(crate) headers: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// What is said of a body's length.
#[derive(Default, Clone, Copy)]
pub(crate) enum Announced {
    #[default]
    Truth,
    Bytes(usize),
    Nothing,
}

#[derive(Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) announced: Announced,
    /// A pause after each byte.
    pub(crate) drip: Option<Duration>,
    /// Whether the body begins again at its end.
    pub(crate) is_endless: bool,
}

impl Reply {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200, body)
    }

    pub(crate) fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), ..Self::default() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) requests: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) fn count(&self, part: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|request| request.target.contains(part)).count()
    }
}

pub(crate) async fn serve(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
    start(None, reply).await
}

pub(crate) async fn serve_tls(
    certificate: &certificates::Server,
    reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> Server {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(certificate.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    start(Some(tokio_rustls::TlsAcceptor::from(Arc::new(config))), reply).await
}

async fn start(
    tls: Option<tokio_rustls::TlsAcceptor>,
    reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = if tls.is_some() { "localhost" } else { "127.0.0.1" };
    let host = format!("{name}:{}", listener.local_addr().unwrap().port());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let reply = Arc::new(reply);
    let task = tokio::spawn({
        let requests = Arc::clone(&requests);
        async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, reply) = (tls.clone(), Arc::clone(&reply));
                let requests = Arc::clone(&requests);
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                converse(stream, &*reply, &requests).await;
                            }
                        }
                        None => converse(stream, &*reply, &requests).await,
                    }
                });
            }
        }
    });
    Server { host, requests, task }
}

/// A proxy that leads every tunnel to one place, whatever the name asked for. Its requests are those names.
pub(crate) async fn tunnel(place: String) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (place, seen) = (place.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let Some(request) = read_head(&mut stream).await else { return };
                seen.lock().unwrap().push(request);
                let mut there = TcpStream::connect(place).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
            });
        }
    });
    Server { host, requests, task }
}

/// A client that speaks TLS with us has no first line.
async fn read_head(stream: &mut (impl AsyncBufRead + Unpin)) -> Option<Request> {
    let mut first = String::new();
    if stream.read_line(&mut first).await.is_err() || !first.contains("HTTP/1.1") {
        return None;
    }
    let mut headers = String::new();
    while stream.read_line(&mut headers).await.is_ok_and(|read| read > 2) {}
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Some(Request { target, headers })
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    reply: &(impl Fn(&Request) -> Reply + ?Sized),
    requests: &Mutex<Vec<Request>>,
) {
    let mut stream = BufReader::new(stream);
    let Some(request) = read_head(&mut stream).await else { return };
    let reply = reply(&request);
    requests.lock().unwrap().push(request);
    let mut head = format!("HTTP/1.1 {} Word\r\nConnection: close\r\n", reply.status);
    let length = match reply.announced {
        Announced::Truth => Some(reply.body.len()),
        Announced::Bytes(length) => Some(length),
        Announced::Nothing => None,
    };
    let length = length.map(|length| ("Content-Length", length.to_string()));
    for (name, value) in length.iter().chain(&reply.headers) {
        head.extend([*name, ": ", value.as_str(), "\r\n"]);
    }
    head.push_str("\r\n");
    if stream.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    let size = if reply.drip.is_some() { 1 } else { 64 * 1024 };
    loop {
        for chunk in reply.body.chunks(size) {
            if stream.write_all(chunk).await.is_err() || stream.flush().await.is_err() {
                return;
            }
            if let Some(pause) = reply.drip {
                tokio::time::sleep(pause).await;
            }
        }
        if !reply.is_endless {
            break;
        }
    }
    let _ = stream.shutdown().await;
}
