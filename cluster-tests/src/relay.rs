//! A way to a server that can be closed and opened again, as if the server were restarted.

use std::net::SocketAddr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Passes connections on while it is open. Closing it ends those there are.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    is_open: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// An open one to a server.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let is_open = watch::Sender::new(true);
        let task = tokio::spawn(pass_on(listener, server, is_open.clone()));
        Self { address, is_open, task }
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and lets no new one last.
    pub fn close(&self) {
        self.is_open.send_replace(false);
    }

    /// Passes connections on again.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(listener: TcpListener, server: SocketAddr, is_open: watch::Sender<bool>) {
    loop {
        let Ok((mut client, _)) = listener.accept().await else { continue };
        let mut is_open = is_open.subscribe();
        tokio::spawn(async move {
            if !*is_open.borrow() {
                return;
            }
            let Ok(mut server) = TcpStream::connect(server).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut client, &mut server) => {}
                _ = is_open.wait_for(|is_open| !is_open) => {}
            }
        });
    }
}
