//! A server from its first connection to its last: how many there may be, and
//! an end at which nobody who has connected is turned away.

use std::{
    collections::HashMap, convert::Infallible, future::Future, io, net::IpAddr, pin::pin, sync::Arc,
    time::Duration,
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
    peer::Peer,
};

/// Connections at a time, unless less is said; more wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;
/// One of so many places is free or about to be: when there are fewer, the connection that has been idle for
/// longest is asked to end for each new one.
const SPARE: usize = 4;
/// One client may have so many times the connections that it leaves to others.
const GREED: usize = 4;
/// How long after it is told to end a server still takes connections, while calls are running.
const ACCEPT_WHILE_DRAINING: Duration = Duration::from_secs(5);
/// Connections that were begun when the last had been accepted are there within this time.
const QUIET_PERIOD: Duration = Duration::from_millis(200);
/// How long after a failure to accept it is tried again.
const BACKOFF: Duration = Duration::from_millis(100);
/// How often such failures are told.
const WARN_INTERVAL: Duration = Duration::from_secs(30);

/// How connections are kept.
#[derive(Debug, Clone, Copy)]
pub struct ServeOptions {
    /// How many there may be at a time.
    pub max_connections: usize,
    /// Connections older than this are asked to close, so that clients spread
    /// over replicas.
    pub max_connection_age: Option<Duration>,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { max_connections: MAX_CONNECTIONS, max_connection_age: None }
    }
}

impl ServeOptions {
    /// At most so many connections, and no more than there are by default.
    #[must_use]
    pub fn at_most(self, connections: usize) -> Self {
        Self { max_connections: connections.min(self.max_connections), ..self }
    }
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
        open: HashMap::new(),
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
    open: HashMap<Id, Open>,
    /// Each task has one; who has the other end sees when all are gone.
    alive: mpsc::Sender<Infallible>,
    is_draining: bool,
    /// When we last said that there are too many.
    warned: Option<Instant>,
}

/// One of them.
struct Open {
    handle: Arc<Handle>,
    peer: Peer,
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
        while self.tasks.len() >= self.options.max_connections {
            self.warn("new connections wait: there are as many as may be");
            // Those that are closed already are soon gone.
            if self.staying().count() == self.open.len() {
                let busiest = self.busiest();
                let _ = self.close_idle(|open| open.peer.address() == busiest) || self.close_idle(|_| true);
            }
            // Where none is idle, one may be soon.
            let _ = timeout(BACKOFF, self.one_ended()).await;
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
        let peer = Peer::new(stream.peer_addr().ok().map(|address| address.ip()));
        if self.has_its_share(&peer) {
            let busiest = self.busiest();
            let is_closed = self.close_idle(|open| open.peer.address() == busiest);
            let is_refused = !is_closed && self.has_most(&peer);
            let what =
                if is_refused { "it gets no more" } else { "those of its own that are idle are closed" };
            self.warn(&format!("one client has most connections: for new ones {what}"));
            if is_refused {
                return;
            }
        }
        let full = self.options.max_connections - self.options.max_connections / SPARE;
        let lasting = || self.open.values().filter(|open| !open.handle.is_draining()).count();
        if self.open.len() >= full && lasting() >= full {
            self.make_room();
        }
        let (handle, alive) = (Arc::new(Handle::new()), self.alive.clone());
        if self.is_draining {
            handle.drain();
        }
        let age = self.options.max_connection_age;
        let served = connection::serve(stream, self.front.clone(), age, handle.clone(), peer.clone());
        let task = self.tasks.spawn(async move {
            let _alive = alive;
            served.await;
        });
        self.open.insert(task.id(), Open { handle, peer });
    }

    /// Whether a client has as many connections as one may have.
    fn has_its_share(&self, peer: &Peer) -> bool {
        let free = self.options.max_connections.saturating_sub(self.staying().count());
        self.count_of(peer) >= GREED * free
    }

    /// Those that are not closed.
    fn staying(&self) -> impl Iterator<Item = &Open> {
        self.open.values().filter(|open| !open.handle.is_given_up())
    }

    /// How many connections a client has.
    fn count_of(&self, peer: &Peer) -> usize {
        self.staying().filter(|open| open.peer.address() == peer.address()).count()
    }

    /// How many connections each client has.
    fn counts(&self) -> HashMap<Option<IpAddr>, usize> {
        let mut counts = HashMap::new();
        for open in self.staying() {
            *counts.entry(open.peer.address()).or_insert(0) += 1;
        }
        counts
    }

    /// The address of the client that has most connections.
    fn busiest(&self) -> Option<IpAddr> {
        self.counts().into_iter().max_by_key(|(_, count)| *count).and_then(|(address, _)| address)
    }

    /// Whether no other client has more.
    fn has_most(&self, peer: &Peer) -> bool {
        let counts = self.counts();
        counts.values().all(|count| *count <= counts.get(&peer.address()).copied().unwrap_or_default())
    }

    /// Closes, at once, that of the connections meant which was never called on, or has been idle for longest. `false`
    /// if none is idle.
    fn close_idle(&self, is_meant: impl Fn(&Open) -> bool) -> bool {
        let idle = self.open.values().filter(|open| is_meant(open));
        let idle = idle.filter_map(|open| Some((open.handle.idle()?, open)));
        let missed_least = idle.min_by_key(|(idle, _)| *idle);
        missed_least.is_some_and(|(_, open)| {
            open.handle.give_up();
            open.peer.close();
            true
        })
    }

    /// Whoever connected meanwhile waits; trying again at once would only cost
    /// the calls that are running their time.
    async fn not_accepted(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        self.warn(&format!("new connections wait: {error}"));
        self.make_room();
        sleep(BACKOFF).await;
    }

    /// Says, now and then, that there are too many connections.
    fn warn(&mut self, what: &str) {
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARN_INTERVAL) {
            self.warned = Some(Instant::now());
            let (open, most) = (self.tasks.len(), self.options.max_connections);
            warn!(
                open,
                most, "{what}; raise the limit of open files (ulimit -n) or of memory, or have fewer clients"
            );
        }
    }

    /// Asks the connection to end that was never called on, or has been idle for longest.
    fn make_room(&self) {
        let lasting = self.open.values().filter(|open| !open.handle.is_draining());
        let idle = lasting.filter_map(|open| Some((open.handle.idle()?, open)));
        if let Some((_, open)) = idle.min_by_key(|(idle, _)| *idle) {
            open.handle.drain();
        }
    }

    /// Asks all connections to end, and those that are still to come.
    fn drain(&mut self) {
        self.is_draining = true;
        for open in self.open.values() {
            open.handle.drain();
        }
    }

    /// Waits until one has ended.
    async fn one_ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => self.open.remove(&id),
            Some(Err(error)) => self.open.remove(&error.id()),
            None => None,
        };
    }
}
