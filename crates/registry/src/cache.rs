//! What registries have said, kept so that a warm call asks none.
//!
//! One question at a time about an image, whoever asks; those who come meanwhile wait for its answer. What a
//! digest names never changes. What a tag names may: after a while it is asked for again, in the background,
//! while calls go on with what is known. Refusals are kept for moments, so that a storm of calls for a missing
//! image is one question, and an image pushed just now is soon found.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::error::{RegistryError, RegistryErrorKind};
use crate::metadata::Metadata;
use crate::{Reference, Registry};

/// Where answers come from.
pub trait Source: Send + Sync + 'static {
    /// What is learned of an image.
    type Answer: Clone + Send + Sync + 'static;

    /// Asks.
    fn fetch(
        &self,
        image: &Reference,
        deadline: Instant,
    ) -> impl Future<Output = Result<Self::Answer, RegistryError>> + Send;

    /// Under which name the answer is kept: equal for images that share it.
    fn key(&self, image: &Reference) -> String {
        image.key().as_str().to_owned()
    }

    /// Whether the answer holds for ever.
    fn is_lasting(&self, image: &Reference) -> bool {
        image.digest().is_some()
    }

    /// The answer as told to one who has spelled the image so.
    fn told(&self, answer: Self::Answer, image: &Reference) -> Self::Answer {
        let _ = image;
        answer
    }
}

/// The metadata of images.
impl Source for Registry {
    type Answer = Arc<Metadata>;

    async fn fetch(&self, image: &Reference, deadline: Instant) -> Result<Arc<Metadata>, RegistryError> {
        self.metadata(image, Some(deadline)).await.map(Arc::new)
    }

    fn told(&self, mut answer: Arc<Metadata>, image: &Reference) -> Arc<Metadata> {
        if answer.reference != *image {
            Arc::make_mut(&mut answer).reference = image.clone();
        }
        answer
    }
}

/// The tags of repositories.
#[derive(Debug, Clone)]
pub struct TagSource(pub Registry);

impl Source for TagSource {
    type Answer = Arc<[String]>;

    async fn fetch(&self, image: &Reference, deadline: Instant) -> Result<Arc<[String]>, RegistryError> {
        self.0.tags(image, Some(deadline)).await.map(Arc::from)
    }

    fn key(&self, image: &Reference) -> String {
        image.full_name().to_owned()
    }

    fn is_lasting(&self, _image: &Reference) -> bool {
        false
    }
}

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct CacheSettings {
    /// How many images.
    pub capacity: usize,
    /// When what a tag names is asked for again.
    pub refresh_interval: Duration,
    /// How long a definite refusal is kept: missing, denied, invalid, untrusted.
    pub refusal: Duration,
    /// How long trouble that may pass is kept, and how long after a failed refresh the next one is tried.
    pub trouble: Duration,
    /// How long a question may take that no caller's deadline bounds.
    pub bound: Duration,
    /// How many questions there are at once.
    pub questions: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            capacity: 1000,
            refresh_interval: Duration::from_mins(10),
            refusal: Duration::from_secs(10),
            trouble: Duration::from_secs(2),
            bound: Duration::from_secs(30),
            questions: 32,
        }
    }
}

/// Keeps a source's answers. A clone shares them.
pub struct Cache<S: Source>(Arc<Shared<S>>);

struct Shared<S: Source> {
    source: S,
    settings: CacheSettings,
    entries: Mutex<HashMap<String, Entry<S::Answer>>>,
    questions: Semaphore,
}

type Outcome<A> = Result<A, RegistryError>;
/// The answer to come, and by when its question gives up.
type Flight<A> = (watch::Receiver<Option<Outcome<A>>>, Instant);

struct Entry<A> {
    known: Option<Known<A>>,
    flight: Option<Flight<A>>,
    used: Instant,
}

struct Known<A> {
    outcome: Outcome<A>,
    since: Instant,
    /// When it was last asked for, with whatever success.
    asked: Instant,
}

impl<S: Source> Clone for Cache<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Source> fmt::Debug for Cache<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cache").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl<S: Source> Cache<S> {
    /// An empty cache.
    pub fn new(source: S, settings: CacheSettings) -> Self {
        Self(Arc::new(Shared {
            source,
            entries: Mutex::new(HashMap::new()),
            questions: Semaphore::new(settings.questions.max(1)),
            settings,
        }))
    }

    /// The source, to be asked past the cache.
    pub fn source(&self) -> &S {
        &self.0.source
    }

    /// What is known of an image, or what the source says of it. Must be called within a Tokio runtime.
    pub async fn get(&self, image: &Reference, deadline: Option<Instant>) -> Outcome<S::Answer> {
        let key = self.0.source.key(image);
        loop {
            let (mut answer, gives_up) = match self.look_up(&key, image, deadline)? {
                Found::Known(answer) => return Ok(self.0.source.told(answer, image)),
                Found::Coming(flight) => flight,
            };
            let coming = answer.wait_for(Option::is_some);
            let landed = match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline, coming).await.map_err(|_| late(image))?,
                None => coming.await,
            };
            // Without an answer the question died, which only a bug can do; it must not hang the caller.
            let outcome = landed.ok().and_then(|outcome| outcome.clone()).unwrap_or_else(|| Err(died(image)));
            match outcome {
                Ok(answer) => return Ok(self.0.source.told(answer, image)),
                // The question was asked for one who had less time.
                Err(error)
                    if error.kind() == RegistryErrorKind::TimedOut
                        && deadline.is_some_and(|deadline| deadline > gives_up + self.0.settings.trouble) => {
                }
                Err(error) => return Err(error.about(image.as_given())),
            }
        }
    }

    fn look_up(
        &self,
        key: &str,
        image: &Reference,
        deadline: Option<Instant>,
    ) -> Result<Found<S::Answer>, RegistryError> {
        let now = Instant::now();
        let settings = &self.0.settings;
        let mut entries = self.0.entries();
        if let Some(entry) = entries.get_mut(key) {
            entry.used = now;
            match &entry.known {
                Some(Known { outcome: Ok(answer), since, asked }) => {
                    let answer = answer.clone();
                    let is_stale =
                        !self.0.source.is_lasting(image) && now - *since >= settings.refresh_interval;
                    if is_stale && entry.flight.is_none() && now - *asked >= settings.trouble {
                        entry.flight = Some(self.start(key, image, now + settings.bound));
                    }
                    return Ok(Found::Known(answer));
                }
                Some(Known { outcome: Err(error), since, .. })
                    if now - *since < settings.keep(error.kind()) =>
                {
                    return Err(error.clone().about(image.as_given()));
                }
                _ => {}
            }
            if let Some(flight) = &entry.flight {
                return Ok(Found::Coming(flight.clone()));
            }
        } else {
            make_room(&mut entries, settings.capacity).map_err(|()| crowded(image))?;
        }
        // A little early, so that the registry's own words arrive in time.
        let bound = deadline.map_or(now + settings.bound, |deadline| {
            deadline - (deadline.saturating_duration_since(now) / 20).min(Duration::from_millis(50))
        });
        let flight = self.start(key, image, bound);
        let entry = entries.entry(key.to_owned()).or_insert(Entry { known: None, flight: None, used: now });
        entry.flight = Some(flight.clone());
        Ok(Found::Coming(flight))
    }

    /// Asks in a task of its own: a caller who goes away does not take the answer from the others.
    fn start(&self, key: &str, image: &Reference, deadline: Instant) -> Flight<S::Answer> {
        let (sender, receiver) = watch::channel(None);
        let landing = Landing { shared: Arc::clone(&self.0), key: key.to_owned(), sender, is_done: false };
        let image = image.clone();
        tokio::spawn(async move {
            let shared = Arc::clone(&landing.shared);
            let asking = async {
                // The semaphore is never closed.
                let _permit = shared.questions.acquire().await;
                shared.source.fetch(&image, deadline).await
            };
            let outcome =
                tokio::time::timeout_at(deadline, asking).await.unwrap_or_else(|_| Err(late(&image)));
            landing.land(outcome);
        });
        (receiver, deadline)
    }
}

enum Found<A> {
    Known(A),
    Coming(Flight<A>),
}

impl CacheSettings {
    /// How long a failure is kept. That one caller's time was short says nothing to the next.
    fn keep(&self, kind: RegistryErrorKind) -> Duration {
        match kind {
            RegistryErrorKind::TimedOut => Duration::ZERO,
            RegistryErrorKind::Unavailable => self.trouble,
            _ => self.refusal,
        }
    }
}

impl<S: Source> Shared<S> {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry<S::Answer>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a question: also if its task is dropped or panics, it no longer counts as under way.
struct Landing<S: Source> {
    shared: Arc<Shared<S>>,
    key: String,
    sender: watch::Sender<Option<Outcome<S::Answer>>>,
    is_done: bool,
}

impl<S: Source> Landing<S> {
    fn land(mut self, outcome: Outcome<S::Answer>) {
        self.is_done = true;
        let now = Instant::now();
        if let Some(entry) = self.shared.entries().get_mut(&self.key) {
            entry.flight = None;
            match (&mut entry.known, &outcome) {
                // Trouble on the way takes nothing from what is known; a definite refusal does.
                (Some(known @ Known { outcome: Ok(_), .. }), Err(error)) if !error.kind().is_definite() => {
                    tracing::warn!(image = self.key, cause = %error, "cannot refresh what is known of the image");
                    known.asked = now;
                }
                (known, outcome) => {
                    *known = Some(Known { outcome: outcome.clone(), since: now, asked: now });
                }
            }
        }
        self.sender.send_replace(Some(outcome));
    }
}

impl<S: Source> Drop for Landing<S> {
    fn drop(&mut self) {
        if !self.is_done
            && let Some(entry) = self.shared.entries().get_mut(&self.key)
        {
            entry.flight = None;
        }
    }
}

/// Drops the entry that was not used for longest. Questions under way are not dropped.
fn make_room<A>(entries: &mut HashMap<String, Entry<A>>, capacity: usize) -> Result<(), ()> {
    while entries.len() >= capacity.max(1) {
        let oldest = entries
            .iter()
            .filter(|(_, entry)| entry.flight.is_none())
            .min_by_key(|(_, entry)| entry.used)
            .map(|(key, _)| key.clone());
        entries.remove(&oldest.ok_or(())?);
    }
    Ok(())
}

fn late(image: &Reference) -> RegistryError {
    RegistryError::new(
        RegistryErrorKind::TimedOut,
        image.as_given(),
        format!("{} did not answer in time", image.registry()),
        "check that the registry is well and can be reached, or allow more time",
    )
}

fn died(image: &Reference) -> RegistryError {
    RegistryError::new(
        RegistryErrorKind::Unavailable,
        image.as_given(),
        "the question to the registry ended without an answer",
        "try again; if it happens again, report it",
    )
}

fn crowded(image: &Reference) -> RegistryError {
    RegistryError::new(
        RegistryErrorKind::Unavailable,
        image.as_given(),
        "too many images are being asked for at once",
        "try again later",
    )
}
