//! The cache, with an invented source and a paused clock.
#![allow(clippy::unwrap_used, clippy::unnecessary_wraps, reason = "helpers of tests")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use registry::{Cache, CacheSettings, Reference, RegistryError, RegistryErrorKind, Source};
use tokio::time::Instant;

/// Answers from a list, each after a second; after the last, the number of the question.
#[derive(Default)]
struct Fake {
    outcomes: Mutex<VecDeque<Result<usize, RegistryErrorKind>>>,
    asked: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

#[derive(Clone, Default)]
struct Shared(Arc<Fake>);

const LATENCY: Duration = Duration::from_secs(1);

impl Source for Shared {
    type Answer = usize;

    async fn fetch(&self, image: &Reference, deadline: Instant) -> Result<usize, RegistryError> {
        let number = self.0.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let at_once = self.0.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        let outcome = self.0.outcomes.lock().unwrap().pop_front().unwrap_or(Ok(number));
        assert_ne!(outcome, Ok(usize::MAX), "as asked for by the test");
        let slept = tokio::time::timeout_at(deadline, tokio::time::sleep(LATENCY)).await;
        self.0.at_once.fetch_sub(1, Ordering::SeqCst);
        let error = |kind| RegistryError::new(kind, image.as_given(), "invented", "none");
        slept.map_err(|_| error(RegistryErrorKind::TimedOut))?;
        outcome.map_err(error)
    }
}

impl Shared {
    fn with(outcomes: &[Result<usize, RegistryErrorKind>]) -> Self {
        let fake = Fake { outcomes: Mutex::new(outcomes.iter().copied().collect()), ..Fake::default() };
        Self(Arc::new(fake))
    }

    fn asked(&self) -> usize {
        self.0.asked.load(Ordering::SeqCst)
    }
}

fn image(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

fn cache(source: &Shared) -> Cache<Shared> {
    Cache::new(source.clone(), CacheSettings::default())
}

fn kind(outcome: Result<usize, RegistryError>) -> Result<usize, RegistryErrorKind> {
    outcome.map_err(|error| error.kind())
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn within(seconds: f64) -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs_f64(seconds))
}

#[tokio::test(start_paused = true)]
async fn all_who_ask_at_once_share_one_question() {
    let source = Shared::default();
    let cache = cache(&source);
    let begin = Instant::now();
    let spellings = ["docker.io/library/a:latest", "a", "index.docker.io/library/a"];
    let calls: Vec<_> = (0..100)
        .map(|number| {
            let cache = cache.clone();
            let name = spellings[number % 3];
            tokio::spawn(async move { cache.get(&image(name), None).await })
        })
        .collect();
    for call in calls {
        assert_eq!(kind(call.await.unwrap()), Ok(1));
    }
    assert_eq!(source.asked(), 1);
    assert_eq!(begin.elapsed(), LATENCY);
    assert_eq!(kind(cache.get(&image("a"), within(0.0)).await), Ok(1), "a warm call needs no time");
    assert_eq!(source.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tag_is_refreshed_in_the_background_and_a_digest_never() {
    let source = Shared::default();
    let cache = cache(&source);
    let tagged = image("h.io/a:v1");
    let pinned = image(&format!("h.io/a@sha256:{}", "0".repeat(64)));
    assert_eq!(kind(cache.get(&tagged, None).await), Ok(1));
    assert_eq!(kind(cache.get(&pinned, None).await), Ok(2));
    pass(590).await;
    assert_eq!(kind(cache.get(&tagged, None).await), Ok(1));
    pass(5).await;
    assert_eq!(source.asked(), 2, "nothing is asked before the interval has passed");
    pass(10).await;
    let begin = Instant::now();
    for _ in 0..10 {
        assert_eq!(kind(cache.get(&tagged, None).await), Ok(1));
    }
    assert_eq!(begin.elapsed(), Duration::ZERO, "a refresh delays nobody");
    pass(2).await;
    assert_eq!(source.asked(), 3, "one refresh for many calls");
    assert_eq!(kind(cache.get(&tagged, None).await), Ok(3));
    pass(1_000_000).await;
    assert_eq!(kind(cache.get(&pinned, None).await), Ok(2));
    pass(2).await;
    assert_eq!(source.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn trouble_at_a_refresh_keeps_what_is_known_and_a_refusal_replaces_it() {
    let source =
        Shared::with(&[Ok(7), Err(RegistryErrorKind::Unavailable), Err(RegistryErrorKind::Missing), Ok(8)]);
    let cache = cache(&source);
    let tagged = image("h.io/a:v1");
    assert_eq!(kind(cache.get(&tagged, None).await), Ok(7));
    pass(600).await;
    assert_eq!(kind(cache.get(&tagged, None).await), Ok(7));
    pass(2).await;
    for _ in 0..10 {
        assert_eq!(kind(cache.get(&tagged, None).await), Ok(7));
    }
    assert_eq!(source.asked(), 2, "a failed refresh is not repeated at once");
    pass(3).await;
    assert_eq!(kind(cache.get(&tagged, None).await), Ok(7));
    pass(2).await;
    assert_eq!(source.asked(), 3);
    assert_eq!(kind(cache.get(&tagged, None).await), Err(RegistryErrorKind::Missing));
    pass(10).await;
    assert_eq!(kind(cache.get(&tagged, None).await), Ok(8));
}

#[tokio::test(start_paused = true)]
async fn failures_are_kept_for_moments() {
    for (failure, seconds) in [
        (RegistryErrorKind::Missing, 10),
        (RegistryErrorKind::Denied, 10),
        (RegistryErrorKind::Invalid, 10),
        (RegistryErrorKind::Untrusted, 10),
        (RegistryErrorKind::Unavailable, 2),
    ] {
        let source = Shared::with(&[Err(failure)]);
        let cache = cache(&source);
        assert_eq!(kind(cache.get(&image("h.io/a"), None).await), Err(failure));
        tokio::time::sleep(Duration::from_millis(seconds * 1000 - 1)).await;
        let error = cache.get(&image("h.io/a:latest"), None).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.image()),
            (failure, "h.io/a:latest"),
            "told in the caller's spelling"
        );
        assert_eq!(source.asked(), 1, "{failure:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(kind(cache.get(&image("h.io/a"), None).await), Ok(2), "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_caller_has_their_own_deadline() {
    let source = Shared::default();
    let cache = cache(&source);
    let begin = Instant::now();
    let patient = tokio::spawn({
        let cache = cache.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            cache.get(&image("h.io/a"), within(20.0)).await
        }
    });
    assert_eq!(kind(cache.get(&image("h.io/a"), within(0.5)).await), Err(RegistryErrorKind::TimedOut));
    assert!(begin.elapsed() <= Duration::from_millis(500), "{:?}", begin.elapsed());
    assert_eq!(kind(patient.await.unwrap()), Ok(2), "another's haste is no answer for the patient");
    assert_eq!(kind(cache.get(&image("h.io/b"), within(0.0)).await), Err(RegistryErrorKind::TimedOut));
    assert_eq!(kind(cache.get(&image("h.io/b"), within(5.0)).await), Ok(4), "short time is not kept");
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_does_not_take_the_answer_along() {
    let source = Shared::default();
    let cache = cache(&source);
    let call = tokio::spawn({
        let cache = cache.clone();
        async move { cache.get(&image("h.io/a"), None).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    call.abort();
    assert_eq!(kind(cache.get(&image("h.io/a"), None).await), Ok(1));
    assert_eq!(source.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_dies_is_an_error_and_can_be_asked_again() {
    let source = Shared::with(&[Ok(usize::MAX)]);
    let cache = cache(&source);
    assert_eq!(kind(cache.get(&image("h.io/a"), None).await), Err(RegistryErrorKind::Unavailable));
    assert_eq!(kind(cache.get(&image("h.io/a"), None).await), Ok(2));
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_bounded_and_forgets_what_was_not_used() {
    let source = Shared::default();
    let settings = CacheSettings { capacity: 3, questions: 2, ..CacheSettings::default() };
    let cache = Cache::new(source.clone(), settings);
    for name in ["h.io/a", "h.io/b", "h.io/c"] {
        cache.get(&image(name), None).await.unwrap();
    }
    assert_eq!(kind(cache.get(&image("h.io/a"), None).await), Ok(1));
    assert_eq!(kind(cache.get(&image("h.io/d"), None).await), Ok(4));
    assert_eq!(kind(cache.get(&image("h.io/a"), None).await), Ok(1));
    assert_eq!(kind(cache.get(&image("h.io/b"), None).await), Ok(5), "it had gone for d");

    let calls: Vec<_> = (0..50)
        .map(|number| {
            let cache = cache.clone();
            tokio::spawn(async move { cache.get(&image(&format!("h.io/x{number}")), within(5.0)).await })
        })
        .collect();
    let mut crowded = 0;
    for call in calls {
        crowded += usize::from(kind(call.await.unwrap()) == Err(RegistryErrorKind::Unavailable));
    }
    assert_eq!(crowded, 47, "only as many questions as there is room for answers");
    assert!(source.0.most_at_once.load(Ordering::SeqCst) <= 2);
}
