//! How long the stages of a pod's start take, by our own clock: that of the
//! cluster's objects counts in seconds.

use std::time::Duration;

use tokio::time::Instant;

use crate::{observe::Sighting, world::ColdStart};

/// The stages of a start that have been seen.
#[derive(Debug)]
pub(crate) struct Stages {
    /// When its launch was asked for; pods of others are not measured.
    since: Option<Instant>,
    resolved: Option<Instant>,
    scheduled: Option<Instant>,
    initialized: Option<Instant>,
    running: Option<Instant>,
}

impl Stages {
    pub(crate) fn new(since: Option<Instant>, resolved: Option<Instant>, sighting: &Sighting) -> Self {
        let mut stages = Self { since, resolved, scheduled: None, initialized: None, running: None };
        stages.saw(sighting);
        stages
    }

    /// Notes how far the pod is.
    pub(crate) fn saw(&mut self, sighting: &Sighting) {
        let now = Instant::now();
        let note = |stage: &mut Option<Instant>, is_reached: bool| {
            if is_reached && stage.is_none() {
                *stage = Some(now);
            }
        };
        note(&mut self.scheduled, sighting.progress.scheduled.is_some());
        note(&mut self.initialized, sighting.progress.initialized.is_some());
        note(&mut self.running, sighting.is_running);
    }

    /// The pod answers: tells what each stage took. What was not seen took no time of its own.
    pub(crate) fn connected(&mut self, mut tell: impl FnMut(ColdStart, Duration)) {
        let Some(mut before) = self.since.take() else { return };
        let now = Instant::now();
        let stages = [
            (ColdStart::Resolve, self.resolved),
            (ColdStart::Schedule, self.scheduled),
            (ColdStart::Start, self.initialized),
            (ColdStart::Pull, self.running),
            (ColdStart::Connect, Some(now)),
        ];
        for (stage, reached) in stages {
            let reached = reached.unwrap_or(before).max(before);
            tell(stage, reached.saturating_duration_since(before));
            before = reached;
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;
    use crate::observe;

    fn sighting(status: &Value) -> Sighting {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "f", "uid": "u", "labels": {"fn.kpt.dev/image": "f-v1-1-01234567"}},
            "spec": {"containers": [{"name": "function", "image": "example.com/f:v1"}]},
            "status": status,
        }))
        .unwrap();
        observe::pod(&pod).unwrap()
    }

    fn conditions(names: &[&str]) -> Value {
        let conditions: Vec<_> = names
            .iter()
            .map(|name| json!({"type": name, "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}))
            .collect();
        json!(conditions)
    }

    #[tokio::test(start_paused = true)]
    async fn each_stage_has_its_own_time() {
        let after = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        let begun = Instant::now();
        after(1).await;
        let resolved = Instant::now();
        after(2).await;
        let scheduled = conditions(&["PodScheduled"]);
        let mut stages =
            Stages::new(Some(begun), Some(resolved), &sighting(&json!({"conditions": scheduled})));
        after(3).await;
        let initialized = conditions(&["PodScheduled", "Initialized"]);
        stages.saw(&sighting(&json!({"conditions": initialized})));
        after(4).await;
        stages.saw(&sighting(&json!({"conditions": initialized, "containerStatuses": [{
            "name": "function", "image": "i", "imageID": "i", "ready": false, "restartCount": 0,
            "state": {"running": {"startedAt": "2025-01-01T00:00:00Z"}},
        }]})));
        after(5).await;
        let mut told = Vec::new();
        stages.connected(|stage, took| told.push((stage.name(), took.as_secs())));
        assert_eq!(told, [("resolve", 1), ("schedule", 2), ("start", 3), ("pull", 4), ("connect", 5)]);
        stages.connected(|_, _| panic!("a start is told once"));
    }

    #[tokio::test(start_paused = true)]
    async fn pods_of_others_are_not_measured() {
        let mut stages = Stages::new(None, None, &sighting(&json!({})));
        stages.connected(|_, _| panic!("nobody knows when it was asked for"));
    }
}
