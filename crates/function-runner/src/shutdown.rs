//! The end of the service, in phases, so that nothing accepted is left
//! without an answer.

use std::{future::Future, time::Duration};

use anyhow::Context as _;
use tokio::{signal::unix::signal, sync::mpsc, time};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use wire::Health;

/// How long calls that are told to end may take to say so.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What happens after a signal, and for how long.
#[derive(Debug)]
pub(crate) struct Phases {
    /// Not wanted but still answered: clients turn to other replicas.
    pub(crate) delay: Duration,
    /// Clients are asked to leave; running calls may finish.
    pub(crate) grace: Duration,
    /// Where NOT_SERVING is told.
    pub(crate) health: Health,
    /// Cancelled when clients are asked to leave.
    pub(crate) drain: CancellationToken,
    /// Cancelled when running calls must be answered at once.
    pub(crate) abandon: CancellationToken,
}

/// How the service ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Every call was answered.
    Orderly,
    /// A signal cut it short.
    Forced,
    /// The server ended before anybody asked for it.
    ByItself,
}

/// One message for each signal that asks us to end.
pub(crate) fn signals() -> anyhow::Result<mpsc::Receiver<()>> {
    let (sender, receiver) = mpsc::channel(8);
    for kind in process::END_SIGNALS {
        let mut arriving = signal(kind).context("cannot listen for signals")?;
        let sender = sender.clone();
        tokio::spawn(
            async move { while arriving.recv().await.is_some() && sender.send(()).await.is_ok() {} },
        );
    }
    Ok(receiver)
}

/// Waits for the first signal and walks through the phases; `ended` resolves
/// when the server has answered everything.
pub(crate) async fn run(
    phases: Phases,
    mut signals: mpsc::Receiver<()>,
    ended: impl Future<Output = ()>,
) -> Ending {
    let Phases { delay, grace, health, drain, abandon } = phases;
    let mut ended = std::pin::pin!(ended);
    tokio::select! {
        () = &mut ended => return Ending::ByItself,
        _ = signals.recv() => {}
    }
    info!(?delay, "told to end: not serving, still answering");
    health.set_serving(false);
    let mut told_again = false;
    tokio::select! {
        () = time::sleep(delay) => {}
        _ = signals.recv() => {
            info!("told again: not waiting any longer");
            told_again = true;
        }
    }
    info!(?grace, "clients are asked to leave; running calls may finish");
    health.close();
    drain.cancel();
    // The second signal skips the delay, also where that is over already; the third ends all.
    let third = async {
        if !told_again {
            signals.recv().await;
            info!("told again: running calls may still finish; a third time ends them");
        }
        signals.recv().await;
    };
    tokio::select! {
        () = &mut ended => return Ending::Orderly,
        () = time::sleep(grace) => warn!("calls are still running after --shutdown-grace; they are ended now"),
        () = third => return forced(),
    }
    abandon.cancel();
    tokio::select! {
        () = &mut ended => {}
        () = time::sleep(LAST_WORDS) => warn!("clients that do not take their answers are left behind"),
        _ = signals.recv() => return forced(),
    }
    Ending::Orderly
}

fn forced() -> Ending {
    warn!("told again: ending at once");
    Ending::Forced
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    struct Scene {
        health: Health,
        drain: CancellationToken,
        abandon: CancellationToken,
        signal: mpsc::Sender<()>,
        begun: Instant,
        ending: tokio::task::JoinHandle<(Ending, Duration)>,
    }

    /// A service with the usual phases whose calls end after `calls_take`, or
    /// as soon as they are abandoned.
    fn scene(calls_take: Duration) -> Scene {
        let health = Health::new();
        health.set_serving(true);
        let (drain, abandon) = (CancellationToken::new(), CancellationToken::new());
        let (signal, signals) = mpsc::channel(8);
        let phases = Phases {
            delay: Duration::from_secs(5),
            grace: Duration::from_secs(20),
            health: health.clone(),
            drain: drain.clone(),
            abandon: abandon.clone(),
        };
        let begun = Instant::now();
        let (draining, abandoned) = (drain.clone(), abandon.clone());
        let ended = async move {
            draining.cancelled().await;
            tokio::select! {
                () = time::sleep(calls_take) => {}
                () = abandoned.cancelled() => {}
            }
        };
        let ending = tokio::spawn(async move { (run(phases, signals, ended).await, begun.elapsed()) });
        Scene { health, drain, abandon, signal, begun, ending }
    }

    #[tokio::test(start_paused = true)]
    async fn it_stays_up_until_a_signal_then_answers_for_the_delay() {
        let scene = scene(Duration::ZERO);
        time::sleep(Duration::from_mins(1)).await;
        assert!(scene.health.is_serving());
        scene.signal.send(()).await.unwrap();
        time::sleep(Duration::from_secs(4)).await;
        assert!(!scene.health.is_serving() && !scene.drain.is_cancelled());
        assert_eq!(scene.ending.await.unwrap(), (Ending::Orderly, Duration::from_secs(65)));
        assert!(scene.drain.is_cancelled() && !scene.abandon.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_skips_the_delay_and_a_third_ends_at_once() {
        let scene = scene(Duration::from_mins(10));
        scene.signal.send(()).await.unwrap();
        scene.signal.send(()).await.unwrap();
        time::sleep(Duration::from_secs(1)).await;
        assert!(scene.drain.is_cancelled(), "after {:?}", scene.begun.elapsed());
        scene.signal.send(()).await.unwrap();
        assert_eq!(scene.ending.await.unwrap(), (Ending::Forced, Duration::from_secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_after_the_delay_ends_nothing_and_a_third_does() {
        let scene = scene(Duration::from_mins(10));
        scene.signal.send(()).await.unwrap();
        time::sleep(Duration::from_secs(6)).await;
        assert!(scene.drain.is_cancelled());
        scene.signal.send(()).await.unwrap();
        time::sleep(Duration::from_secs(1)).await;
        assert!(!scene.ending.is_finished());
        scene.signal.send(()).await.unwrap();
        assert_eq!(scene.ending.await.unwrap(), (Ending::Forced, Duration::from_secs(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_outlast_the_grace_are_answered_and_then_it_ends() {
        let scene = scene(Duration::from_mins(10));
        scene.signal.send(()).await.unwrap();
        assert_eq!(scene.ending.await.unwrap(), (Ending::Orderly, Duration::from_secs(25)));
        assert!(scene.abandon.is_cancelled());
    }
}
