//! Clients that call all the time and retry nothing, until nobody listens any more.

use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};
use wire::client::{CallOptions, Client, endpoint};

/// Hangs are told from slowness by this.
const PATIENCE: Duration = Duration::from_mins(2);

/// What clients saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Calls that had their answer.
    pub answered: usize,
    /// What became of the others.
    pub lost: Vec<String>,
}

impl Seen {
    /// Adds what others saw.
    pub fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.lost.extend(other.lost);
    }
}

/// What clients call.
#[derive(Debug, Clone)]
pub struct Question {
    /// The function.
    pub image: String,
    /// Its input.
    pub input: Bytes,
    /// What is in its answer.
    pub expected: String,
}

/// Clients with a thread each.
#[derive(Debug)]
pub struct Callers {
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Seen>>,
}

impl Callers {
    /// Begins to call the server on `port`. Every other client connects anew for each call; the others keep
    /// their connection, as Porch does, until they are told to leave it.
    pub fn start(clients: usize, port: u16, question: &Question) -> Self {
        let answered = Arc::<AtomicUsize>::default();
        let start = |number: usize| {
            let (question, answered) = (question.clone(), answered.clone());
            in_own_thread(call_until_refused(port, question, number.is_multiple_of(2), answered))
        };
        let clients = (0..clients).map(start).collect();
        Self { answered, clients }
    }

    /// Waits until so many calls were answered.
    pub async fn have_answers(&self, calls: usize) {
        let enough = async {
            while self.answered.load(Ordering::Relaxed) < calls {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, enough).await.unwrap();
    }

    /// Waits until nobody listens any more.
    pub async fn finish(self) -> Seen {
        let mut all = Seen::default();
        for client in self.clients {
            all.add(client.await.unwrap());
        }
        all
    }
}

async fn call_until_refused(port: u16, question: Question, keeps: bool, count: Arc<AtomicUsize>) -> Seen {
    let (mut seen, mut kept) = (Seen::default(), None);
    let server = endpoint(&format!("127.0.0.1:{port}")).unwrap();
    loop {
        let client = match kept.take() {
            Some(client) => client,
            None => match timeout(PATIENCE, server.connect()).await.unwrap() {
                Ok(channel) => Client::new(channel, 1 << 20),
                Err(error) if is_refused(&error) => return seen,
                Err(error) => {
                    seen.lost.push(format!("cannot connect: {error:?}"));
                    return seen;
                }
            },
        };
        let call = client.evaluate(&question.image, question.input.clone(), CallOptions::default());
        match timeout(PATIENCE, call).await.unwrap() {
            Ok(answer) if String::from_utf8_lossy(&answer.resource_list).contains(&question.expected) => {
                seen.answered += 1;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) => seen.lost.push(format!("another answer: {answer:?}")),
            Err(status) if is_refused(&status) => return seen,
            Err(status) => seen.lost.push(format!("keeps: {keeps}, call {}: {status:?}", seen.answered)),
        }
        kept = keeps.then_some(client);
    }
}

/// Whether a call failed because nobody listened: nothing was sent. That is all that a client may see of
/// a server that ends.
pub fn is_refused(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(|error| {
        error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    })
}

/// Runs a client in a thread of its own. With several threads, the library may take a request for a
/// connection that another thread is just closing, and hand it back unsent; most gRPC libraries would send
/// it again without a word.
pub fn in_own_thread<T: Send + 'static>(client: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    spawn_blocking(|| {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(client)
    })
}
