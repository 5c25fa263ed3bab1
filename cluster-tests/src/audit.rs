//! What workloads asked of the API server and what they were answered, by its own record.

use std::{env, fs, path::PathBuf};

use serde_json::Value;

/// A request of a service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The verb, as roles name it.
    pub verb: String,
    /// The path and what follows it.
    pub path: String,
    /// The HTTP status it was answered with.
    pub status: u64,
}

/// All requests of a service account that were answered to the end, the oldest first. A watch that goes on
/// is none of them.
pub fn requests_of(namespace: &str, account: &str) -> Vec<Request> {
    let folder = PathBuf::from(env::var_os("CLUSTER_DIR").expect("inside the cluster")).join("log");
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("audit")));
    // Full ones have a time in their names; the one that is written to has none, and is the last.
    files.sort_by_key(|path| (path.ends_with("audit"), path.clone()));
    let request = |line: &str| {
        // Cheaper than to read each line to its end; the name stands in the line as it is.
        let record: Value = line.contains(&user).then(|| serde_json::from_str(line).ok())??;
        (record["user"]["username"] == user.as_str()).then(|| Request {
            verb: record["verb"].as_str().unwrap_or_default().to_owned(),
            path: record["requestURI"].as_str().unwrap_or_default().to_owned(),
            status: record["responseStatus"]["code"].as_u64().unwrap_or_default(),
        })
    };
    let texts = files.into_iter().map(|path| fs::read_to_string(path).unwrap());
    texts.flat_map(|text| text.lines().filter_map(request).collect::<Vec<_>>()).collect()
}

/// The requests of a service account that were forbidden, the oldest first.
pub fn refusals_of(namespace: &str, account: &str) -> Vec<Request> {
    requests_of(namespace, account).into_iter().filter(|it| it.status == 403).collect()
}
