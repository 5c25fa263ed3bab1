//! When to ask again: after growing pauses, as the registry wishes, and never past the deadline.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// With pauses of our own, that is about six seconds: what lasts longer is for the caller to know.
const MOST_ATTEMPTS: u32 = 6;

/// Whether to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    /// Once, after a short pause.
    Once,
    /// After pauses of our choice.
    Soon,
    /// After the pause the registry wishes.
    After(Duration),
}

/// The pauses of one question.
#[derive(Debug)]
pub(super) struct Pauses {
    deadline: Instant,
    attempts: u32,
}

impl Pauses {
    pub(super) fn new(deadline: Instant) -> Self {
        Self { deadline, attempts: 0 }
    }

    /// The pause before the next attempt. `None`: there is none, or the deadline would pass meanwhile.
    pub(super) fn next(&mut self, again: Again) -> Option<Duration> {
        self.attempts += 1;
        let (most, wished) = match again {
            Again::Never => (1, None),
            Again::Once => (2, None),
            Again::Soon => (MOST_ATTEMPTS, None),
            Again::After(wished) => (MOST_ATTEMPTS, Some(wished)),
        };
        if self.attempts >= most {
            return None;
        }
        let own = LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(self.attempts - 1));
        // Spread, so that all who were refused at once do not come back at once.
        let spread = own.mul_f64(0.75 + 0.5 * fraction());
        let pause = wished.map_or(spread, |wished| wished.max(FIRST_PAUSE));
        (pause < self.deadline.saturating_duration_since(Instant::now())).then_some(pause)
    }

    /// How many attempts were made.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }
}

/// A number from 0 to 1, random enough to spread pauses.
fn fraction() -> f64 {
    let bits = u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or_default();
    f64::from(bits) / f64::from(u32::MAX)
}

/// What `Retry-After` asks for: seconds, or a date.
pub(super) fn retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit mean: longer than anybody waits.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::from(u32::MAX))));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_and_end() {
        let mut pauses = Pauses::new(Instant::now() + Duration::from_mins(10));
        let all: Vec<_> = std::iter::from_fn(|| pauses.next(Again::Soon)).collect();
        assert_eq!(all.len(), 5);
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        assert!(all[0] >= Duration::from_millis(150) && all[4] <= Duration::from_secs(5), "{all:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_pause_passes_the_deadline() {
        let mut pauses = Pauses::new(Instant::now() + Duration::from_secs(10));
        assert_eq!(pauses.next(Again::After(Duration::from_secs(9))), Some(Duration::from_secs(9)));
        assert_eq!(pauses.next(Again::After(Duration::from_secs(11))), None);
        assert_eq!(
            pauses.next(Again::After(Duration::ZERO)),
            Some(FIRST_PAUSE),
            "a registry cannot make us spin"
        );
        let mut late = Pauses::new(Instant::now());
        assert_eq!(late.next(Again::Soon), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_not_pass_soon_is_not_asked_for_long() {
        let pauses = || Pauses::new(Instant::now() + Duration::from_mins(10));
        assert_eq!(pauses().next(Again::Never), None);
        let mut once = pauses();
        assert!(once.next(Again::Once).is_some_and(|pause| pause < 2 * FIRST_PAUSE));
        assert_eq!(once.next(Again::Once), None);
        let mut later = pauses();
        assert!(later.next(Again::Soon).is_some());
        assert_eq!(later.next(Again::Once), None, "it was there a moment ago");
    }

    #[test]
    fn both_forms_of_retry_after_are_read() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("0"), Some(Duration::ZERO));
        assert!(retry_after("99999999999999999999999").unwrap() > Duration::from_secs(1_000_000));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        assert!((98..=100).contains(&retry_after(&soon).unwrap().as_secs()));
        assert_eq!(retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        for wrong in ["", "soon", "-1", "1.5", "1 2", "\u{661}"] {
            assert_eq!(retry_after(wrong), None, "{wrong:?}");
        }
    }
}
