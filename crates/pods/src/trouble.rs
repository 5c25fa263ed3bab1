//! What the API server's refusals mean, and how long it is worth to ask again.

use std::{future::Future, time::Duration};

use kube::core::Status;
use wire::Failure;

/// Tries of one request, and the pause before the second; it doubles.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How long one answer of the API server is waited for.
const LATEST: Duration = Duration::from_secs(10);
/// After how long those who wait for an answer are told so.
const NOTICE: Duration = Duration::from_secs(1);

/// What an error of the API server means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// An object of that name is there already.
    Exists,
    /// The object changed, or is not the one that was meant.
    Conflict,
    /// There is no such object.
    Missing,
    /// It is not allowed, or not valid: asking again is of no use.
    Refused,
    /// It may work later.
    Passing,
}

/// What an error of the API server means.
pub(crate) fn meaning(error: &kube::Error) -> Meaning {
    match error {
        kube::Error::Api(status) if status.reason == "AlreadyExists" => Meaning::Exists,
        kube::Error::Api(status) => match status.code {
            409 => Meaning::Conflict,
            404 => Meaning::Missing,
            // Room may be made; and a quota just created refuses until it is counted.
            403 if status.message.contains("exceeded quota") || status.message.contains("status unknown") => {
                Meaning::Passing
            }
            // A webhook that cannot be reached is reported as an internal error: that may pass.
            400 | 401 | 403 | 405 | 406 | 413 | 415 | 422 => Meaning::Refused,
            _ => Meaning::Passing,
        },
        kube::Error::BuildRequest(_) | kube::Error::SerdeError(_) => Meaning::Refused,
        _ => Meaning::Passing,
    }
}

/// The API server's words, without the library's.
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => match status.as_ref() {
            Status { message, reason, code, .. } if message.is_empty() => format!("{reason} ({code})"),
            Status { message, .. } => message.clone(),
        },
        other => {
            // The innermost cause says it best: "connection refused", "timed out".
            let mut cause: &dyn std::error::Error = other;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            format!("the API server cannot be asked: {cause}")
        }
    }
}

/// The failure of a call because `what` could not be done.
pub(crate) fn failure(what: &str, error: &kube::Error) -> (Failure, bool) {
    let cause = format!("{what}: {}", words(error));
    match meaning(error) {
        // Nobody has written what is to be created: a conflict is about what it is counted in, such as a quota.
        Meaning::Passing | Meaning::Conflict => (Failure::Unavailable { cause }, false),
        Meaning::Missing => (
            Failure::Unusable { cause: format!("{cause}; create it, or name another with --pod-namespace") },
            true,
        ),
        _ => (Failure::Unusable { cause }, true),
    }
}

/// An answer of the API server, but not later than it is of use.
pub async fn in_time<T>(answer: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    tokio::time::timeout(LATEST, answer)
        .await
        .unwrap_or_else(|_| Err(kube::Error::Service("it does not answer".into())))
}

/// Asks again while the trouble may pass, a few times. `tell` hears at once what the trouble is.
pub(crate) async fn persistently<T, R: Future<Output = kube::Result<T>>>(
    mut ask: impl FnMut() -> R,
    tell: impl Fn(&str),
) -> kube::Result<T> {
    let mut tries = Tries::default();
    loop {
        match patiently(in_time(ask()), &tell).await {
            Err(error) if may_pass(meaning(&error)) => match tries.next(&error, &tell) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            },
            outcome => return outcome,
        }
    }
}

/// Waits for work that the API server has a part in. `tell` hears of it if that takes long.
pub(crate) async fn patiently<T>(work: impl Future<Output = T>, tell: impl Fn(&str)) -> T {
    let mut work = Box::pin(work);
    match tokio::time::timeout(NOTICE, work.as_mut()).await {
        Ok(outcome) => outcome,
        Err(_) => {
            tell("the API server has not answered yet");
            work.await
        }
    }
}

/// Whether another try may do better.
pub(crate) fn may_pass(meaning: Meaning) -> bool {
    matches!(meaning, Meaning::Passing | Meaning::Conflict)
}

/// The tries of one request.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    failed: u32,
}

impl Tries {
    /// After a failed try: how long to pause before the next, if there is to be one. `tell` hears of it.
    pub(crate) fn next(&mut self, error: &kube::Error, tell: impl Fn(&str)) -> Option<Duration> {
        self.failed += 1;
        (self.failed < TRIES).then(|| {
            tell(&format!("{}; trying again", words(error)));
            FIRST_PAUSE * 2_u32.pow(self.failed - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, reason: &str, message: &str) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure(message, reason).with_code(code)))
    }

    #[test]
    fn refusals_are_told_from_trouble_that_may_pass() {
        assert_eq!(meaning(&api(409, "AlreadyExists", "")), Meaning::Exists);
        assert_eq!(meaning(&api(409, "Conflict", "")), Meaning::Conflict);
        assert_eq!(meaning(&api(404, "NotFound", "")), Meaning::Missing);
        assert_eq!(meaning(&api(403, "Forbidden", "violates PodSecurity \"restricted\"")), Meaning::Refused);
        assert_eq!(meaning(&api(422, "Invalid", "")), Meaning::Refused);
        assert_eq!(meaning(&api(403, "Forbidden", "exceeded quota: q, used: pods=2")), Meaning::Passing);
        for code in [429, 500, 502, 503, 504] {
            assert_eq!(meaning(&api(code, "", "")), Meaning::Passing, "{code}");
        }
    }

    #[test]
    fn the_servers_own_words_are_told() {
        let (failure, is_lasting) =
            failure("cannot create the pod", &api(403, "Forbidden", "pods \"x\" is forbidden: no"));
        assert_eq!(failure.to_string(), "cannot create the pod: pods \"x\" is forbidden: no");
        assert!(is_lasting);
        assert_eq!(words(&api(500, "InternalError", "")), "InternalError (500)");
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_asked_again_and_nothing_else() {
        let nobody = |_: &str| {};
        for (code, reason, expected) in [
            (503, "", TRIES),
            (429, "TooManyRequests", TRIES),
            (409, "Conflict", TRIES),
            (422, "Invalid", 1),
            (409, "AlreadyExists", 1),
            (404, "NotFound", 1),
        ] {
            let mut asked = 0;
            let outcome: kube::Result<()> = persistently(
                || {
                    asked += 1;
                    std::future::ready(Err(api(code, reason, "")))
                },
                nobody,
            )
            .await;
            assert!(outcome.is_err());
            assert_eq!(asked, expected, "{code} {reason}");
        }

        let mut asked = 0;
        let outcome: kube::Result<()> = persistently(
            || {
                asked += 1;
                std::future::ready(if asked < 3 { Err(api(503, "", "")) } else { Ok(()) })
            },
            nobody,
        )
        .await;
        assert!(outcome.is_ok());
        assert_eq!(asked, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_are_told_of_the_trouble_before_it_is_over() {
        let told = std::sync::Mutex::new(Vec::new());
        let tell = |words: &str| told.lock().unwrap().push(words.to_owned());
        let mut asked = 0;
        let outcome: kube::Result<()> = persistently(
            || {
                asked += 1;
                let error = (asked == 1).then(|| api(503, "", "etcd is away"));
                async move {
                    match error {
                        Some(error) => Err(error),
                        None => std::future::pending().await,
                    }
                }
            },
            tell,
        )
        .await;
        assert_eq!(
            words(&outcome.unwrap_err()),
            "the API server cannot be asked: it does not answer",
            "and an answer is not waited for without end"
        );
        let told = told.into_inner().unwrap();
        assert_eq!(
            told[..3],
            [
                "etcd is away; trying again",
                "the API server has not answered yet",
                "the API server cannot be asked: it does not answer; trying again"
            ]
        );
    }

    #[test]
    fn a_conflict_about_a_quota_does_not_last() {
        let quota = "Operation cannot be fulfilled on resourcequotas \"q\": the object has been modified";
        let (failure, is_lasting) = failure("cannot create the pod", &api(409, "Conflict", quota));
        assert!(!is_lasting && failure.to_string().ends_with(quota), "{failure}");
    }
}
