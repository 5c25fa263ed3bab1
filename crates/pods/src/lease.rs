//! A lease: one call's hold on one pod.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use pool::{CallId, PodId};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;
use wire::{
    Answer, Failure,
    client::{CallOptions, Client},
};

use crate::{
    connect::{self, Connection},
    observe::{Trouble, TroubleKind},
    worker::{Message, Verdict},
};

/// How long after a lost connection the cluster is given to say what happened to the pod.
const POST_MORTEM: Duration = Duration::from_secs(3);

/// A call as the pool knows it: dropping this tells the pool that it is over.
#[derive(Debug)]
pub(crate) struct Ticket {
    call: CallId,
    messages: mpsc::UnboundedSender<Message>,
}

impl Ticket {
    pub(crate) fn new(call: CallId, messages: mpsc::UnboundedSender<Message>) -> Self {
        Self { call, messages }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Without a pool there is nobody to tell.
        let _ = self.messages.send(Message::Left(self.call));
    }
}

/// What a call is given.
#[derive(Debug, Clone)]
pub(crate) struct Granted {
    pub(crate) pod: PodId,
    pub(crate) uid: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) end: Arc<End>,
}

/// The end of a pod, if it comes while calls are in it.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// Cancelled when the pod is dead.
    pub(crate) token: CancellationToken,
    /// What the cluster says killed it, having been in use.
    pub(crate) cause: OnceLock<Trouble>,
}

/// One call's hold on one pod. Dropping it, also by cancellation, gives the pod back.
#[derive(Debug)]
pub struct Lease {
    ticket: Ticket,
    granted: Granted,
}

/// Why a call in a pod has no answer.
#[derive(Debug)]
pub enum Lost {
    /// The pod or the way to it broke before there was an answer: another pod may do better.
    Pod(Failure),
    /// It is the call's own doing, or there is no time left.
    Call(Failure),
}

impl Lost {
    /// What the caller is told if nothing more is tried.
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Pod(failure) | Self::Call(failure) => failure,
        }
    }
}

impl Lease {
    pub(crate) fn new(ticket: Ticket, granted: Granted) -> Self {
        Self { ticket, granted }
    }

    /// The pod's name.
    pub fn pod(&self) -> &str {
        &self.granted.name
    }

    /// Runs the function in the pod.
    pub async fn run(
        &self,
        image: &str,
        resource_list: Bytes,
        deadline: Option<Instant>,
        mut options: CallOptions,
    ) -> Result<Answer, Lost> {
        options.timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let client = self.granted.connection.client();
        let call = client.evaluate(image, resource_list, options);
        let outcome = tokio::select! {
            // An answer that is there counts, whatever became of the pod since.
            biased;
            outcome = call => outcome,
            () = self.granted.end.token.cancelled() => return Err(self.granted.judge_death(image, "it was ended by the cluster")),
        };
        match outcome {
            Ok(response) => {
                Ok(Answer { resource_list: response.resource_list, log: response.log, notes: Vec::new() })
            }
            // The wrapper's own answer has no source; a broken connection has one.
            Err(status) if std::error::Error::source(&status).is_some() => {
                let investigation = Investigation {
                    granted: self.granted.clone(),
                    messages: self.ticket.messages.clone(),
                    client,
                    image: image.to_owned(),
                    words: status.message().to_owned(),
                };
                Err(investigation.run(deadline).await)
            }
            Err(status) if status.code() == tonic::Code::Unavailable => {
                Err(Lost::Pod(failure(image, &format!("the pod answered: {}", status.message()))))
            }
            Err(status) => {
                Err(Lost::Call(Failure::Pod { image: image.to_owned(), status: Box::new(status) }))
            }
        }
    }
}

impl Granted {
    fn judge_death(&self, image: &str, words: &str) -> Lost {
        match self.end.cause.get() {
            Some(trouble) if trouble.kind == TroubleKind::OutOfMemory => Lost::Call(Failure::Exhausted {
                image: image.to_owned(),
                cause: format!(
                    "its pod {} ran out of memory while it ran: {}; give the function more with resources.limits.memory",
                    self.name, trouble.text
                ),
                stderr: String::new(),
            }),
            Some(trouble) => {
                Lost::Pod(failure(image, &format!("its pod {} died: {}", self.name, trouble.text)))
            }
            None => Lost::Pod(failure(image, &format!("its pod {} died: {words}", self.name))),
        }
    }
}

/// A search for what became of a pod whose connection broke.
struct Investigation {
    granted: Granted,
    messages: mpsc::UnboundedSender<Message>,
    client: Client,
    image: String,
    words: String,
}

impl Investigation {
    /// Keeps new calls from the pod until it is known what became of it. That comes to its end also
    /// when the caller does not wait for it.
    async fn run(self, deadline: Option<Instant>) -> Lost {
        self.tell(Verdict::Doubtful);
        let (image, words) = (self.image.clone(), self.words.clone());
        let verdict = tokio::spawn(self.judge(deadline)).await;
        verdict.unwrap_or_else(|_| Lost::Pod(failure(&image, &words)))
    }

    async fn judge(self, deadline: Option<Instant>) -> Lost {
        let end = &self.granted.end;
        if !end.token.is_cancelled() && connect::answers(&self.client).await {
            self.tell(Verdict::Alive);
            let cause = format!("the connection to the pod {} broke: {}", self.granted.name, self.words);
            return Lost::Pod(failure(&self.image, &cause));
        }
        // What the cluster says decides whether another pod would fare better.
        let latest = Instant::now() + POST_MORTEM;
        let latest = deadline.map_or(latest, |deadline| deadline.min(latest));
        let _ = tokio::time::timeout_at(latest, end.token.cancelled()).await;
        let lost = self.granted.judge_death(&self.image, &self.words);
        let (Lost::Pod(failure) | Lost::Call(failure)) = &lost;
        self.tell(Verdict::Dead(Arc::new(failure.clone())));
        lost
    }

    fn tell(&self, verdict: Verdict) {
        let (pod, uid) = (self.granted.pod, self.granted.uid.clone());
        // Without a pool there is nobody to tell.
        let _ = self.messages.send(Message::Judged { pod, uid, verdict });
    }
}

fn failure(image: &str, cause: &str) -> Failure {
    Failure::Unavailable { cause: format!("unable to evaluate {image} with pod evaluator: {cause}") }
}
