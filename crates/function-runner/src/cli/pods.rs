//! `function-runner pods`: the pool of a running service.

use std::{fmt::Write as _, process::ExitCode, time::Duration};

use anyhow::Context as _;
use flags::{Flags, Mistakes};
use wire::{
    client::endpoint,
    proto::pods::{ListPodsRequest, ListPodsResponse, Pod, pods_client::PodsClient},
};

use super::{in_runtime, say};
use crate::args;

/// How long the service may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the command.
pub(super) fn main(mut flags: Flags) -> Result<ExitCode, Mistakes> {
    flags.refuse_arguments();
    let address = flags.get(&args::RUNNING_AT);
    let is_json = flags.get(&args::OUTPUT) == "json";
    flags.finish(()).map(|()| in_runtime(show(address, is_json)))
}

async fn show(address: String, is_json: bool) -> anyhow::Result<ExitCode> {
    let endpoint =
        endpoint(&address).with_context(|| format!("--address={address} is no address such as :9445"))?;
    let channel = endpoint.connect_timeout(PATIENCE).connect().await;
    let channel = channel.with_context(|| format!("no function runner answers at {address}"))?;
    let answer = tokio::time::timeout(PATIENCE, PodsClient::new(channel).list(ListPodsRequest {}))
        .await
        .with_context(|| format!("the function runner at {address} does not answer"))?;
    let list = answer.map_err(|status| anyhow::anyhow!("{}", status.message()))?.into_inner();
    Ok(say(if is_json { json(&list)? } else { table(&list) }.trim_end()))
}

fn json(list: &ListPodsResponse) -> anyhow::Result<String> {
    let pods = list.pods.iter().map(|pod| {
        serde_json::json!({
            "function": pod.function,
            "name": pod.name,
            "phase": pod.phase,
            "current": pod.current,
            "calls": pod.calls,
            "ageSeconds": pod.age_seconds,
            "keepsSeconds": pod.keeps_seconds,
            "trouble": pod.trouble,
        })
    });
    let value = serde_json::json!({"waiting": list.waiting, "pods": pods.collect::<Vec<_>>()});
    Ok(serde_json::to_string_pretty(&value)?)
}

fn table(list: &ListPodsResponse) -> String {
    let header = ["FUNCTION", "POD", "PHASE", "CALLS", "AGE", "KEPT FOR", "REMARKS"];
    let mut text = super::table::table(header, list.pods.iter().map(row));
    // Writing to a String does not fail.
    let _ = writeln!(text, "\n{} pods, {} calls waiting for one", list.pods.len(), list.waiting);
    text
}

fn row(pod: &Pod) -> [String; 7] {
    let outdated = if pod.current { "" } else { "outdated" };
    let remarks = [outdated, &pod.trouble].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>();
    [
        pod.function.clone(),
        pod.name.clone(),
        pod.phase.clone(),
        pod.calls.to_string(),
        span(pod.age_seconds),
        pod.keeps_seconds.map_or_else(|| "-".to_owned(), span),
        remarks.join(": "),
    ]
}

/// `45s`, `12m5s`, `3h10m`.
fn span(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_troubles_told() {
        let ready = Pod {
            function: "example.com/f:v1".into(),
            name: "f-v1-1-0123abcd-x7x7x".into(),
            phase: "ready".into(),
            current: true,
            calls: 3,
            age_seconds: 65,
            keeps_seconds: Some(1800),
            trouble: String::new(),
        };
        let stuck = Pod {
            name: "g-v1-1-0123abcd".into(),
            phase: "starting".into(),
            current: false,
            calls: 0,
            age_seconds: 4,
            keeps_seconds: None,
            trouble: "no node takes it".into(),
            ..ready.clone()
        };
        let text = table(&ListPodsResponse { waiting: 2, pods: vec![ready, stuck] });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "example.com/f:v1   f-v1-1-0123abcd-x7x7x   ready      3       1m5s   30m0s");
        assert!(lines[2].ends_with("4s     -          outdated: no node takes it"), "{text}");
        assert_eq!(lines.last(), Some(&"2 pods, 2 calls waiting for one"));
    }

    #[test]
    fn spans_are_short() {
        assert_eq!(
            [0, 59, 60, 3599, 3600, 90_000].map(span),
            ["0s", "59s", "1m0s", "59m59s", "1h0m", "25h0m"]
        );
    }
}
