//! What a failed test tells about the cluster.

use std::{fmt::Write as _, io::Write as _};

use crate::kubectl;

/// Describes the pods of `namespaces`, with events and logs, on standard error.
pub(crate) async fn describe(test: &str, namespaces: &[String]) {
    let mut page = format!("---- the cluster after {test} failed ----\n");
    for namespace in namespaces {
        let place = format!("--namespace={namespace}");
        let views: [&[&str]; 3] = [
            &["get", "all", "--output=wide", &place],
            &["describe", "pods", &place],
            &["get", "events", "--sort-by=.lastTimestamp", &place],
        ];
        for view in views {
            let told = kubectl(view, b"").await.unwrap_or_else(|complaint| complaint);
            let _ = writeln!(page, "---- kubectl {}\n{told}", view.join(" "));
        }
        let pods = kubectl(&["get", "pods", "--output=name", &place], b"").await.unwrap_or_default();
        for pod in pods.lines() {
            let view = ["logs", "--all-containers", "--prefix", "--tail=200", &place, pod];
            let told = kubectl(&view, b"").await.unwrap_or_else(|complaint| complaint);
            let _ = writeln!(page, "---- kubectl {}\n{told}", view.join(" "));
        }
    }
    let _ = std::io::stderr().write_all(page.as_bytes());
}
