//! A page of metrics for Prometheus: one path, one answer a connection. An
//! HTTP library would be most of the wrapper's size for these few lines.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time,
};

use crate::socket::LINGER;

/// Readers served at once; more wait.
const READERS: usize = 16;
/// The longest head of a request.
const LONGEST_HEAD: usize = 16 * 1024;
/// How long a reader may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers `GET /metrics` with what `render` returns, for ever.
pub async fn serve_metrics(listener: TcpListener, render: impl Fn() -> String + Send + Sync + 'static) {
    let (render, readers) = (Arc::new(render), Arc::new(Semaphore::new(READERS)));
    loop {
        let Ok(permit) = readers.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, say: that may pass.
            time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let render = render.clone();
        tokio::spawn(async move {
            // A reader that breaks off is no concern of ours.
            let _ = time::timeout(PATIENCE, answer(stream, &*render)).await;
            drop(permit);
        });
    }
}

async fn answer(mut stream: TcpStream, render: &(dyn Fn() -> String + Send + Sync)) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > LONGEST_HEAD || stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    let (status, body) = match target(&head) {
        Some("/metrics") => ("200 OK", render()),
        Some(_) => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        None => ("400 Bad Request", "only GET /metrics is answered here\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await?;
    // Closed with something unread, the connection would be reset and the page lost.
    let _ = time::timeout(LINGER, tokio::io::copy(&mut stream, &mut tokio::io::sink())).await;
    Ok(())
}

/// The path a `GET` asks for, without its query.
fn target(head: &[u8]) -> Option<&str> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    (method == "GET" && version.starts_with("HTTP/1.")).then(|| target.split('?').next().unwrap_or(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(request: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve_metrics(listener, || "a_metric 1\n".to_owned()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        server.abort();
        answer
    }

    #[tokio::test]
    async fn metrics_are_served_and_nothing_else() {
        let page = ask(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\na_metric 1\n"), "{page}");
        assert!(ask(b"GET / HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 404 "));
        let endless = vec![b'x'; 64 * 1024];
        for bad in [&b""[..], b"POST /metrics HTTP/1.1\r\n\r\n", b"GET", b"\xff\xfe \r\n\r\n", &endless] {
            let answer = ask(bad).await;
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
        }
    }
}
