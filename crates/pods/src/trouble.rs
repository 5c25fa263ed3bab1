//! What the API server's refusals mean, and how long it is worth to ask again.

use std::{future::Future, time::Duration};

use kube::core::Status;
use wire::Failure;

/// Tries of one request, and the pause before the second; it doubles.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How long one answer of the API server is waited for.
const LATEST: Duration = Duration::from_secs(10);

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
        Meaning::Passing => (Failure::Unavailable { cause }, false),
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

/// Asks again while the trouble may pass, a few times.
pub(crate) async fn persistently<T, R: Future<Output = kube::Result<T>>>(
    mut ask: impl FnMut() -> R,
) -> kube::Result<T> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match in_time(ask()).await {
            Err(error) if meaning(&error) == Meaning::Passing => {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
    in_time(ask()).await
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
        let mut asked = 0;
        let outcome: kube::Result<()> = persistently(|| {
            asked += 1;
            std::future::ready(if asked < 3 { Err(api(503, "", "")) } else { Ok(()) })
        })
        .await;
        assert!(outcome.is_ok());
        assert_eq!(asked, 3);

        let mut asked = 0;
        let outcome: kube::Result<()> = persistently(|| {
            asked += 1;
            std::future::ready(Err(api(422, "Invalid", "")))
        })
        .await;
        assert!(outcome.is_err());
        assert_eq!(asked, 1);

        let mut asked = 0;
        let _: kube::Result<()> = persistently(|| {
            asked += 1;
            std::future::ready(Err(api(503, "", "")))
        })
        .await;
        assert_eq!(asked, TRIES);
    }
}
