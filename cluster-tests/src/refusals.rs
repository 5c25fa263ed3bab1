//! What the API server refused to a workload, by its own record.

use std::{env, fs, path::PathBuf};

use serde_json::Value;

/// The requests of a service account that were forbidden, as `VERB PATH`.
pub fn refusals_of(namespace: &str, account: &str) -> Vec<String> {
    let folder = PathBuf::from(env::var_os("CLUSTER_DIR").expect("inside the cluster")).join("log");
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let files = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let records = files
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("audit")))
        .map(|path| fs::read_to_string(path).unwrap());
    let refusal = |line: &str| {
        let record: Value = serde_json::from_str(line).ok()?;
        let refused = record["user"]["username"] == user.as_str() && record["responseStatus"]["code"] == 403;
        refused.then(|| format!("{} {}", record["verb"], record["requestURI"]))
    };
    records.flat_map(|text| text.lines().filter_map(refusal).collect::<Vec<_>>()).collect()
}
