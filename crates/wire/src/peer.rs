//! The client at the other end of a connection.

use std::{net::IpAddr, sync::Arc};

use tokio::sync::Notify;

/// Who it is, as every request of the connection knows it, and how to be rid of it.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    address: Option<IpAddr>,
    close: Arc<Notify>,
}

impl Peer {
    pub(crate) fn new(address: Option<IpAddr>) -> Self {
        Self { address: address.map(|address| address.to_canonical()), close: Arc::default() }
    }

    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Closes the connection at once, and with it all that is under way on it.
    pub(crate) fn close(&self) {
        self.close.notify_one();
    }

    /// Resolves when the connection is to be closed.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }
}
