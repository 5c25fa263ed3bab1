//! Pages of HTTP servers.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The page at an address, head included.
pub async fn page(address: &str, path: &str) -> String {
    let get = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await.map(|_| page)
    };
    let page = tokio::time::timeout(Duration::from_secs(10), get).await;
    page.expect("an answer in time").unwrap_or_else(|error| panic!("{address}{path}: {error}"))
}
