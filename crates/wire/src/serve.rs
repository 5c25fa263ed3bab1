//! A server from its first connection to its last: how many there may be, and
//! an end at which nobody who has connected is turned away.

use std::{
    collections::HashMap, convert::Infallible, future::Future, io, pin::pin, sync::Arc, time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{Id, JoinSet},
    time::{Instant, sleep, timeout},
};
use tracing::warn;

use crate::{
    Front,
    connection::{self, Handle},
    listen,
};

/// Connections at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;
/// So many of them are about to end or free: when there are fewer, the connection that has been idle for
/// longest is asked to end for each new one.
const SPARE_CONNECTIONS: usize = 256;
/// How long after it is told to end a server still takes connections, while calls are running.
const ACCEPT_WHILE_DRAINING: Duration = Duration::from_secs(5);
/// Connections that were begun when the last had been accepted are there within this time.
const QUIET_PERIOD: Duration = Duration::from_millis(200);
/// How long after a failure to accept it is tried again.
const BACKOFF: Duration = Duration::from_millis(100);
/// How often such failures are told.
const WARN_INTERVAL: Duration = Duration::from_secs(30);

/// How connections are kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServeOptions {
    /// Connections older than this are asked to close, so that clients spread
    /// over replicas.
    pub max_connection_age: Option<Duration>,
}

/// Serves until `shutdown`, then asks clients to leave and returns when every
/// call that arrived is answered. The port is closed as soon as the clients of
/// before have left, and a little later at the latest.
pub async fn serve(
    listener: TcpListener,
    front: Front,
    options: ServeOptions,
    shutdown: impl Future<Output = ()>,
) {
    let (alive, mut earlier) = mpsc::channel(1);
    let mut connections = Connections {
        front,
        options,
        tasks: JoinSet::new(),
        handles: HashMap::new(),
        alive,
        is_draining: false,
        warned: None,
    };
    until(pin!(shutdown), connections.accept_all(&listener)).await;

    connections.drain();
    (connections.alive, _) = mpsc::channel(1);
    let left = async { earlier.recv().await.map_or((), |never| match never {}) };
    until(pin!(timeout(ACCEPT_WHILE_DRAINING, left)), connections.accept_all(&listener)).await;

    // Where it cannot be had, those who connect in the instant before the port is closed are reset.
    let _ = listen::ignore_new_connections(&listener);
    loop {
        connections.room().await;
        let Ok(accepted) = timeout(QUIET_PERIOD, connections.accept(&listener)).await else { break };
        connections.begin(accepted).await;
    }
    drop(listener);
    while !connections.tasks.is_empty() {
        connections.one_ended().await;
    }
}

async fn until(end: impl Future, endless: impl Future<Output = Infallible>) {
    tokio::select! {
        _ = end => {}
        never = endless => match never {},
    }
}

/// The connections of a server.
struct Connections {
    front: Front,
    options: ServeOptions,
    tasks: JoinSet<()>,
    handles: HashMap<Id, Arc<Handle>>,
    /// Each task has one; who has the other end sees when all are gone.
    alive: mpsc::Sender<Infallible>,
    is_draining: bool,
    /// When we last said that connections cannot be accepted.
    warned: Option<Instant>,
}

impl Connections {
    async fn accept_all(&mut self, listener: &TcpListener) -> Infallible {
        loop {
            self.room().await;
            let accepted = self.accept(listener).await;
            self.begin(accepted).await;
        }
    }

    /// Waits until there is room for one more.
    async fn room(&mut self) {
        while self.tasks.len() >= MAX_CONNECTIONS {
            self.one_ended().await;
        }
    }

    async fn accept(&mut self, listener: &TcpListener) -> io::Result<TcpStream> {
        loop {
            tokio::select! {
                accepted = listener.accept() => return accepted.map(|(stream, _)| stream),
                () = self.one_ended(), if !self.tasks.is_empty() => {}
            }
        }
    }

    /// Begins to serve what was accepted.
    async fn begin(&mut self, accepted: io::Result<TcpStream>) {
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => return self.not_accepted(&error).await,
        };
        let staying = || self.handles.values().filter(|handle| !handle.is_draining()).count();
        if self.handles.len() + SPARE_CONNECTIONS >= MAX_CONNECTIONS
            && staying() + SPARE_CONNECTIONS >= MAX_CONNECTIONS
        {
            self.make_room();
        }
        let (handle, alive) = (Arc::new(Handle::new()), self.alive.clone());
        if self.is_draining {
            handle.drain();
        }
        let served =
            connection::serve(stream, self.front.clone(), self.options.max_connection_age, handle.clone());
        let task = self.tasks.spawn(async move {
            let _alive = alive;
            served.await;
        });
        self.handles.insert(task.id(), handle);
    }

    /// Whoever connected meanwhile waits; trying again at once would only cost
    /// the calls that are running their time.
    async fn not_accepted(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARN_INTERVAL) {
            self.warned = Some(Instant::now());
            let open = self.tasks.len();
            warn!(
                open,
                "new connections wait: {error}; raise the limit of open files (ulimit -n) or of memory, or \
                 have fewer clients"
            );
        }
        self.make_room();
        sleep(BACKOFF).await;
    }

    /// Asks the connection to end that has been idle for longest.
    fn make_room(&self) {
        let idle = self.handles.values().filter_map(|handle| Some((handle.idle_since()?, handle)));
        if let Some((_, handle)) = idle.min_by_key(|(since, _)| *since) {
            handle.drain();
        }
    }

    /// Asks all connections to end, and those that are still to come.
    fn drain(&mut self) {
        self.is_draining = true;
        for handle in self.handles.values() {
            handle.drain();
        }
    }

    /// Waits until one has ended.
    async fn one_ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => self.handles.remove(&id),
            Some(Err(error)) => self.handles.remove(&error.id()),
            None => None,
        };
    }
}
