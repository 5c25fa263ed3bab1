//! One request of HTTP to a collector.

use std::io::{Error, ErrorKind, Result};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::Target;

/// The most that is read of an answer: its first line is all that counts.
const ANSWER: usize = 256;

impl Target {
    /// Sends a message, and expects to be told that it was taken.
    pub(super) async fn post(&self, body: Vec<u8>) -> Result<()> {
        let late = |_| Error::new(ErrorKind::TimedOut, format!("no answer within {:?}", self.timeout));
        timeout(self.timeout, self.ask(&body)).await.map_err(late)?
    }

    async fn ask(&self, body: &[u8]) -> Result<()> {
        let mut stream = TcpStream::connect(self.host_and_port()).await?;
        let Self { authority, path, headers, .. } = self;
        let headers: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {}/{}\r\n{}\
             Content-Type: application/x-protobuf\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            headers.concat(),
            body.len(),
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        while !answer.contains(&b'\n') && answer.len() < ANSWER && stream.read_buf(&mut answer).await? > 0 {}
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.lines().next().unwrap_or_default();
        match status.split(' ').nth(1) {
            Some(code) if status.starts_with("HTTP/1.") && code.len() == 3 && code.starts_with('2') => Ok(()),
            _ => Err(Error::other(format!("it answered {status:?}"))),
        }
    }
}
