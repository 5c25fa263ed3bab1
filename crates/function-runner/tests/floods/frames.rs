//! Frames of HTTP/2 as no library would send them.

use std::net::SocketAddr;

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// With what a connection begins: the greeting, and settings that say nothing.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// How many frames of a kind one connection sends.
const FRAMES: u32 = 20_000;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header, neither compressed nor remembered. Names and values are shorter than 127 bytes.
fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

fn call() -> Vec<u8> {
    [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/evaluator.FunctionEvaluator/EvaluateFunction"),
        (":authority", "service"),
        ("content-type", "application/grpc"),
    ]
    .iter()
    .flat_map(|(name, value)| header(name, value))
    .collect()
}

/// The five bytes before a message.
pub(crate) fn prefix(length: usize) -> Vec<u8> {
    [&[0][..], &u32::try_from(length).unwrap().to_be_bytes()].concat()
}

/// A message of protocol buffers with these fields, behind its prefix.
pub(crate) fn message(fields: &[(u8, &[u8])]) -> Bytes {
    let mut message = Vec::new();
    for (number, content) in fields {
        message.push(number << 3 | 2);
        let mut length = content.len();
        while length >= 0x80 {
            message.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        message.push(u8::try_from(length).unwrap());
        message.extend_from_slice(content);
    }
    [prefix(message.len()), message].concat().into()
}

/// What one connection sends of each flood.
pub(crate) fn floods() -> Vec<(&'static str, Vec<u8>)> {
    let headers = |stream: u32| frame(HEADERS, END_HEADERS, stream, &call());
    let filler = |bytes: usize| -> Vec<u8> {
        std::iter::repeat_with(|| header("x-filler", &"x".repeat(100))).take(bytes / 110).flatten().collect()
    };
    let many = |of: &dyn Fn(u32) -> Vec<u8>| (0..FRAMES).flat_map(of).collect::<Vec<_>>();
    let opened_and_reset =
        |n: u32| [headers(2 * n + 1), frame(RST_STREAM, 0, 2 * n + 1, &8_u32.to_be_bytes())].concat();
    let continued = {
        let filler = filler(16_000);
        let rest = (0..500).flat_map(|_| frame(CONTINUATION, 0, 1, &filler));
        frame(HEADERS, 0, 1, &call()).into_iter().chain(rest).collect()
    };
    let large = |n: u32| {
        let stream = 2 * n + 1;
        let rest = frame(CONTINUATION, END_HEADERS, stream, &filler(15_000));
        [frame(HEADERS, 0, stream, &call()), rest].concat()
    };
    vec![
        ("rapid resets", many(&opened_and_reset)),
        ("CONTINUATION without end", continued),
        ("SETTINGS", many(&|_| frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]))),
        ("PING", many(&|n| frame(PING, 0, 0, &u64::from(n).to_be_bytes()))),
        ("large headers", (0..500).flat_map(large).collect()),
        ("empty DATA", headers(1).into_iter().chain(many(&|_| frame(DATA, 0, 1, &[]))).collect()),
    ]
}

/// Sends the same on so many connections at once, and reads nothing until all is sent or the service ends it.
pub(crate) async fn send(address: SocketAddr, connections: usize, bytes: Vec<u8>) -> String {
    let bytes = Bytes::from(bytes);
    let sending = (0..connections).map(|_| {
        let bytes = bytes.clone();
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let sending = async {
                stream.write_all(GREETING).await?;
                stream.write_all(&bytes).await?;
                let mut answer = vec![0; 64 * 1024];
                while stream.read(&mut answer).await? > 0 {}
                Ok::<_, std::io::Error>(())
            };
            tokio::time::timeout(std::time::Duration::from_secs(5), sending).await.is_ok()
        }
    });
    let ended = futures::future::join_all(sending).await.into_iter().filter(|ended| *ended).count();
    format!("the service ended {ended} of {connections} connections within 5 s")
}

/// A connection with a frame on it whose end never comes.
pub(crate) async fn half_a_frame(address: SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let mut bytes = [GREETING, &frame(HEADERS, END_HEADERS, 1, &call())].concat();
    let data = frame(DATA, 0, 1, &vec![0; 60_000]);
    bytes.extend_from_slice(&data[..50_000]);
    let sending = tokio::time::timeout(std::time::Duration::from_secs(5), stream.write_all(&bytes));
    sending.await.ok()?.ok()?;
    Some(stream)
}
