//! A page of metrics for Prometheus: one path, one answer a connection. An
//! HTTP library would be most of the wrapper's size for these few lines.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
    time,
};

use crate::socket::LINGER;

/// Readers served at once; for one more, the one that has been there for longest must go.
const READERS: usize = 16;
/// The longest head of a request.
const LONGEST_HEAD: usize = 16 * 1024;
/// How long a reader may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a page of metrics is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFormat {
    /// The text that every reader understands.
    Text,
    /// `OpenMetrics`, for readers that ask for it.
    OpenMetrics,
}

impl PageFormat {
    fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Answers `GET /metrics` with what `render` returns, for ever. It is asked for the format that the reader likes
/// best, and tells the one it has.
pub async fn serve_metrics(
    listener: TcpListener,
    render: impl Fn(PageFormat) -> (PageFormat, String) + Send + Sync + 'static,
) {
    let render = Arc::new(render);
    let mut readers: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, say: that may pass.
            time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        readers.retain(|reader| !reader.is_finished());
        if readers.len() >= READERS
            && let Some(oldest) = readers.pop_front()
        {
            oldest.abort();
        }
        let render = render.clone();
        let task = tokio::spawn(async move {
            // A reader that breaks off is no concern of ours.
            let _ = time::timeout(PATIENCE, answer(stream, &*render)).await;
        });
        readers.push_back(task.abort_handle());
    }
}

async fn answer(
    mut stream: TcpStream,
    render: &(dyn Fn(PageFormat) -> (PageFormat, String) + Send + Sync),
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > LONGEST_HEAD || stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    let asked = Asked::read(&head);
    let (status, (format, body)) = match &asked {
        Some(asked) if asked.path == "/metrics" => ("200 OK", render(asked.format)),
        Some(_) => ("404 Not Found", (PageFormat::Text, "the metrics are at /metrics\n".to_owned())),
        None => (
            "400 Bad Request",
            (PageFormat::Text, "only GET and HEAD of /metrics are answered here\n".to_owned()),
        ),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\nVary: Accept\r\nConnection: close\r\n\r\n",
        format.content_type(),
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if asked.is_none_or(|asked| !asked.head_only) {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await?;
    // Closed with something unread, the connection would be reset and the page lost.
    let _ = time::timeout(LINGER, tokio::io::copy(&mut stream, &mut tokio::io::sink())).await;
    Ok(())
}

/// What a reader asks for.
struct Asked<'a> {
    /// The path, without its query.
    path: &'a str,
    head_only: bool,
    format: PageFormat,
}

impl<'a> Asked<'a> {
    fn read(head: &'a [u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if !["GET", "HEAD"].contains(&method) || !version.starts_with("HTTP/1.") {
            return None;
        }
        let accepted = lines
            .filter_map(|line| line.split_once(':'))
            .filter(|(name, _)| name.eq_ignore_ascii_case("accept"))
            .flat_map(|(_, values)| values.split(','));
        let path = target.split('?').next().unwrap_or(target);
        Some(Self { path, head_only: method == "HEAD", format: preferred(accepted) })
    }
}

/// `OpenMetrics` for who names it, and does not like plain text better.
fn preferred<'a>(accepted: impl Iterator<Item = &'a str>) -> PageFormat {
    let (mut open, mut text) = (0.0_f32, 0.0_f32);
    for range in accepted {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
        let weight = weight.filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or_default();
        if kind.eq_ignore_ascii_case("application/openmetrics-text") {
            open = open.max(weight);
        } else if kind.eq_ignore_ascii_case("text/plain") {
            text = text.max(weight);
        }
    }
    if open > 0.0 && open >= text { PageFormat::OpenMetrics } else { PageFormat::Text }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(request: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve_metrics(listener, |format| (format, "a_metric 1\n".to_owned())));
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

    /// The clock stands still while somebody is busy, so that nobody's patience comes to its end.
    #[tokio::test(start_paused = true)]
    async fn readers_that_say_nothing_keep_nobody_from_the_page() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve_metrics(listener, |format| (format, "a_metric 1\n".to_owned())));
        let mut silent = Vec::new();
        for _ in 0..5 * READERS {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let busy = async {
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_mins(1) {
                tokio::task::yield_now().await;
            }
        };
        let page = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
            let mut page = vec![0; 15];
            stream.read_exact(&mut page).await.unwrap();
            page
        };
        tokio::select! {
            () = busy => panic!("it waits for others to give up"),
            page = page => assert_eq!(page, b"HTTP/1.1 200 OK"),
        }
        server.abort();
    }

    #[tokio::test]
    async fn the_head_of_the_page_is_the_page_without_its_body() {
        let whole = ask(b"GET /metrics HTTP/1.1\r\n\r\n").await;
        let head = ask(b"HEAD /metrics HTTP/1.1\r\n\r\n").await;
        assert!(head.contains("\r\nContent-Length: 11\r\n"), "{head}");
        assert_eq!(whole.strip_prefix(&head), Some("a_metric 1\n"));
        let missing = ask(b"HEAD / HTTP/1.1\r\n\r\n").await;
        assert!(missing.starts_with("HTTP/1.1 404 ") && missing.ends_with("\r\n\r\n"), "{missing}");
    }

    #[tokio::test]
    async fn open_metrics_is_for_readers_that_like_it_best() {
        for (accept, expected) in [
            ("", PageFormat::Text),
            ("Accept: */*\r\n", PageFormat::Text),
            ("Accept: text/plain\r\n", PageFormat::Text),
            ("ACCEPT: Application/OpenMetrics-Text\r\n", PageFormat::OpenMetrics),
            // What Prometheus sends.
            (
                "accept: application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2\r\n",
                PageFormat::OpenMetrics,
            ),
            ("Accept: text/plain, application/openmetrics-text;q=0.1\r\n", PageFormat::Text),
            ("Accept: application/openmetrics-text;q=0\r\n", PageFormat::Text),
            ("Accept: application/openmetrics-text;q=nan\r\n", PageFormat::Text),
            ("Accept: ;;;,,q=\r\nAccept\r\n: x\r\n", PageFormat::Text),
        ] {
            let page = ask(format!("GET /metrics HTTP/1.1\r\n{accept}\r\n").as_bytes()).await;
            assert!(
                page.contains(&format!("\r\nContent-Type: {}\r\n", expected.content_type())),
                "{accept}: {page}"
            );
        }
    }
}
