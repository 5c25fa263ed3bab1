//! `kubectl`, for what it does better than a library: building from
//! kustomizations, describing for people.

use std::{path::Path, process::Stdio};

use tokio::{io::AsyncWriteExt, process::Command};

/// Runs `kubectl` with `input`; its output, or what it complained about.
pub async fn kubectl(arguments: &[&str], input: &[u8]) -> Result<String, String> {
    let mut child = Command::new("kubectl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot start kubectl: {error}"))?;
    let mut pipe = child.stdin.take().unwrap();
    let write = async move {
        // Who does not read its input says why on its own.
        let _ = pipe.write_all(input).await;
    };
    let (output, ()) = tokio::join!(child.wait_with_output(), write);
    let output = output.map_err(|error| format!("kubectl: {error}"))?;
    let [text, complaint] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    if output.status.success() {
        Ok(text)
    } else {
        Err(format!("kubectl {}: {}\n{complaint}{text}", arguments.join(" "), output.status))
    }
}

/// The manifests of a kustomization.
pub async fn kustomize(folder: &Path) -> String {
    let manifests = kubectl(&["kustomize", folder.to_str().unwrap()], b"").await;
    manifests.unwrap_or_else(|complaint| panic!("{}: {complaint}", folder.display()))
}
