//! Who counts how often a function was run, whatever became of it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{net::TcpListener, task::JoinHandle};

use crate::NODE;

/// Counts the connections to an address of the node. A function that is told to knock there does nothing before
/// it was counted.
#[derive(Debug)]
pub struct Knocks {
    address: String,
    count: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Knocks {
    /// Listens.
    pub async fn listen() -> Self {
        let listener = TcpListener::bind((NODE, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let count = Arc::<AtomicUsize>::default();
        let counter = count.clone();
        let task = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                drop(connection);
            }
        });
        Self { address, count, task }
    }

    /// Where to knock.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How often somebody has.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

impl Drop for Knocks {
    fn drop(&mut self) {
        self.task.abort();
    }
}
