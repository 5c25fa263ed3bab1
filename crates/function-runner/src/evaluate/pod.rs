//! The pod runtime: functions as images in warm pods of the cluster.

use std::{sync::Arc, time::Duration};

use pods::{Lost, Runtime};
use registry::Metadata;
use tokio::time::Instant;
use tonic::Code;
use wire::{Answer, Failure, client::CallOptions};

use super::{Call, Evaluator, Stage, head_start};
use crate::{images::Images, telemetry::PodMetrics};

/// Runs any image in a pod.
#[derive(Debug)]
pub struct PodEvaluator {
    runtime: Runtime,
    images: Arc<Images>,
    metrics: PodMetrics,
    /// How long one function may run where its own settings do not say, if there is a limit; the caller's deadline may
    /// be shorter.
    timeout: Option<Duration>,
}

impl PodEvaluator {
    /// An evaluator that leases pods of `runtime`.
    pub(crate) fn new(
        runtime: Runtime,
        images: Arc<Images>,
        metrics: PodMetrics,
        timeout: Option<Duration>,
    ) -> Self {
        Self { runtime, images, metrics, timeout }
    }

    /// One try: a pod, and the call in it.
    async fn run(&self, call: &Call, metadata: &Metadata, since: Instant) -> Result<Answer, Lost> {
        let image = &metadata.reference;
        call.progress.enter(Stage::WaitingForPod);
        let deadline = call.deadline.map(|at| at - head_start(at.saturating_duration_since(Instant::now())));
        let lease = self.runtime.lease(image, metadata, since, deadline).await.map_err(Lost::Call)?;
        call.progress.enter(Stage::Running);
        let timeout = self.runtime.timeout(image).or(self.timeout);
        let (limit, own_limit) = first_end(Instant::now(), timeout, deadline);
        let options = CallOptions { timeout: None, trace: Some(call.trace.clone()) };
        let begun = Instant::now();
        let outcome = lease.run(image.as_given(), call.resource_list.clone(), limit, options).await;
        let code = match &outcome {
            Ok(_) => Code::Ok,
            Err(Lost::Call(failure) | Lost::Pod(failure)) => failure.code(),
        };
        self.metrics.called(code, begun.elapsed());
        let is_over = limit.is_some_and(|limit| Instant::now() >= limit);
        match outcome {
            Err(Lost::Call(Failure::Pod { status, .. })) if status.code() == Code::DeadlineExceeded => {
                Err(Lost::Call(too_late(call, own_limit, status.message())))
            }
            Err(Lost::Pod(failure)) if is_over => {
                Err(Lost::Call(too_late(call, own_limit, &failure.to_string())))
            }
            outcome => outcome,
        }
    }
}

/// When a call ends at the latest, if it must, and the time limit that ends it then, unless the caller's deadline does.
fn first_end(
    begun: Instant,
    timeout: Option<Duration>,
    deadline: Option<Instant>,
) -> (Option<Instant>, Option<Duration>) {
    let own = timeout.map(|timeout| (begun + timeout, timeout));
    match own.filter(|(latest, _)| deadline.is_none_or(|deadline| *latest < deadline)) {
        Some((latest, timeout)) => (Some(latest), Some(timeout)),
        None => (deadline, None),
    }
}

/// The failure of a call that took too long in its pod. Of what the pod says about it, only what the function
/// wrote is news.
fn too_late(call: &Call, own_limit: Option<Duration>, words: &str) -> Failure {
    let stderr = wire::stderr_so_far(words).to_owned();
    let Some(timeout) = own_limit else { return call.timed_out(stderr) };
    let cause = format!("the function ran longer than its time limit allows ({timeout:?})");
    Failure::TimedOut { image: call.asked(), cause, stderr }
}

#[tonic::async_trait]
impl Evaluator for PodEvaluator {
    fn name(&self) -> &'static str {
        "pod"
    }

    async fn evaluate(&self, call: &Call) -> Result<Answer, Failure> {
        call.progress.enter(Stage::Resolving);
        let since = Instant::now();
        let resolved = self.images.resolve(&call.image, call.constraint.as_ref(), call.deadline).await;
        let metadata = resolved.map_err(|cause| no_pod(call, cause))?;
        match self.run(call, &metadata, since).await {
            Ok(answer) => Ok(answer),
            Err(Lost::Call(failure)) => Err(failure),
            // The pod went away before it answered. Functions change nothing but their output: once more.
            Err(Lost::Pod(first)) => {
                tracing::warn!(image = call.image.as_given(), cause = %first, "trying another pod");
                self.run(call, &metadata, Instant::now()).await.map_err(Lost::into_failure)
            }
        }
    }
}

fn no_pod(call: &Call, cause: Failure) -> Failure {
    match cause {
        late @ Failure::TimedOut { .. } => late,
        cause => Failure::NoPod { image: call.asked(), cause: Box::new(cause) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_by_what_was_asked_for_and_by_nothing_else() {
        let now = Instant::now();
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(1000));
        let ends = |timeout, deadline: Option<Duration>| first_end(now, timeout, deadline.map(|it| now + it));
        assert_eq!(ends(None, None), (None, None), "who sets no deadline waits for ever");
        assert_eq!(ends(None, Some(long)), (Some(now + long), None));
        assert_eq!(ends(Some(short), None), (Some(now + short), Some(short)));
        assert_eq!(ends(Some(short), Some(long)), (Some(now + short), Some(short)));
        assert_eq!(ends(Some(long), Some(short)), (Some(now + short), None));
    }
}
