//! Connections to pods: made as soon as something answers, moved to the
//! Service's address once that answers too.

use std::{
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use http::Uri;
use tokio::sync::watch;
use wire::client::{Client, endpoint};

use crate::address::Addresses;

/// Between two tries; a pod that starts answers within the first few.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
/// How long one try may take. A sidecar may hold a connection back; another try costs little.
const TRY: Duration = Duration::from_secs(2);
/// A dead peer is noticed by the system, not by HTTP/2 pings: servers in Go, such as
/// the original's wrapper, end connections that ping more often than they like.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How pods are called.
#[derive(Debug, Clone)]
pub(crate) struct Dial {
    /// The name the pod is called by, whatever address is dialled.
    pub(crate) authority: String,
    /// The largest message, both ways.
    pub(crate) max_message: usize,
}

/// The way to one pod. It may change while calls are on it: they end on the one they began on.
#[derive(Debug)]
pub(crate) struct Connection {
    current: Mutex<Client>,
}

impl Connection {
    fn new(client: Client) -> Self {
        Self { current: Mutex::new(client) }
    }

    /// The way to take now.
    pub(crate) fn client(&self) -> Client {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, client: Client) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

/// How a pod was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    Directly,
    ByService,
}

impl Dial {
    /// Connects as soon as the wrapper answers, trying every address that is
    /// known by then; those that come to be known later too.
    pub(crate) async fn connect(&self, addresses: watch::Receiver<Addresses>) -> (Connection, Reached) {
        let direct = self.keep_trying(addresses.clone(), |known| known.direct);
        let service = self.keep_trying(addresses, |known| known.service);
        let (client, reached) = tokio::select! {
            client = direct => (client, Reached::Directly),
            client = service => (client, Reached::ByService),
        };
        (Connection::new(client), reached)
    }

    /// Moves a connection to the Service's address once that answers.
    pub(crate) async fn move_to_service(
        &self,
        connection: &Connection,
        addresses: watch::Receiver<Addresses>,
    ) {
        connection.replace(self.keep_trying(addresses, |known| known.service).await);
    }

    async fn keep_trying(
        &self,
        mut addresses: watch::Receiver<Addresses>,
        choose: impl Fn(&Addresses) -> Option<SocketAddr>,
    ) -> Client {
        let mut pause = PAUSES.0;
        loop {
            let known = addresses.wait_for(|known| choose(known).is_some()).await.map(|known| choose(&known));
            let Ok(Some(address)) = known else {
                // Nobody will tell an address any more: the pod is gone, and with it who waits here.
                return std::future::pending().await;
            };
            if let Ok(Some(client)) = tokio::time::timeout(TRY, self.try_once(address)).await {
                return client;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 5 / 4).min(PAUSES.1);
        }
    }

    /// One try. What answers must also say that it is well.
    async fn try_once(&self, address: SocketAddr) -> Option<Client> {
        let origin: Uri = format!("http://{}", self.authority).parse().ok()?;
        let endpoint = endpoint(&address.to_string())
            .ok()?
            .origin(origin)
            .connect_timeout(TRY)
            .tcp_keepalive(Some(KEEP_ALIVE))
            .tcp_keepalive_interval(Some(KEEP_ALIVE / 2))
            .tcp_keepalive_retries(Some(3));
        let client = Client::new(endpoint.connect().await.ok()?, self.max_message);
        client.is_serving().await.ok()?.then_some(client)
    }
}

/// Whether a pod still answers.
pub(crate) async fn answers(client: &Client) -> bool {
    let asked = async {
        if matches!(client.is_serving().await, Ok(true)) {
            return true;
        }
        // That question may have gone the way that broke; the next goes another.
        tokio::time::sleep(PAUSES.1).await;
        matches!(client.is_serving().await, Ok(true))
    };
    tokio::time::timeout(TRY / 2, asked).await.unwrap_or(false)
}
