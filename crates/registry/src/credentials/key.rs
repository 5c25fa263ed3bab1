//! The keys of a Docker config file: which images each is for.

use std::cmp::Ordering;

use crate::reference::{DOCKER_HUB, DOCKER_HUB_OF_OLD, Reference};

/// The name under which helper programs keep the login of Docker Hub.
const DOCKER_HUB_ADDRESS: &str = "https://index.docker.io/v1/";

/// A key, ready to be matched. The rules are the kubelet's, so that here and there the same entry is used:
/// - a scheme is dropped, and so is `/v1/` or `/v2/` at the path's beginning;
/// - in each part of the host `*` stands for any text without a dot; ports must be equal;
/// - the path must begin the image's repository, as text: `/team` is for `/team/app` and for `/teams` too.
///
/// Other than there, the case of hosts does not count, and all names of Docker Hub are one.
#[derive(Debug)]
pub(super) struct Pattern {
    host: String,
    path: String,
}

impl Pattern {
    pub(super) fn new(key: &str) -> Self {
        let rest = ["https://", "http://"].iter().find_map(|scheme| key.strip_prefix(scheme)).unwrap_or(key);
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let version = ["/v1", "/v2"].iter().find_map(|version| path.strip_prefix(version));
        let path = match version {
            Some(after) if after.is_empty() || after.starts_with('/') => after,
            _ => path,
        };
        let host = host.to_ascii_lowercase();
        let host = if host == DOCKER_HUB_OF_OLD { DOCKER_HUB.to_owned() } else { host };
        Self { host, path: if path == "/" { String::new() } else { path.to_owned() } }
    }

    pub(super) fn matches(&self, image: &Reference) -> bool {
        // The repository without the slash that begins the path, as both follow a host.
        let path_matches = match self.path.strip_prefix('/') {
            Some(path) => image.repository().starts_with(path),
            None => true,
        };
        path_matches && host_matches(&self.host, &image.registry().to_ascii_lowercase())
    }

    /// Which of two keys for the same image to prefer. Greater is more specific.
    ///
    /// The order of texts does it, in the kubelet too: `*` sorts before all that hosts are made of, and a path
    /// before those it begins. The slash ends the host also where no path follows: `a.io` is more than `a.io*`.
    pub(super) fn specificity(&self, other: &Self) -> Ordering {
        let host = |pattern: &Self| pattern.host.clone() + "/";
        host(self).cmp(&host(other)).then_with(|| self.path.cmp(&other.path))
    }

    pub(super) fn is_glob(&self) -> bool {
        self.host.contains('*')
    }
}

/// The name of an image's registry that helper programs know.
pub(super) fn server_address(image: &Reference) -> &str {
    match image.registry() {
        DOCKER_HUB => DOCKER_HUB_ADDRESS,
        registry => registry,
    }
}

fn host_matches(pattern: &str, host: &str) -> bool {
    let (pattern, pattern_port) = split_port(pattern);
    let (host, port) = split_port(host);
    pattern_port == port
        && pattern.split('.').count() == host.split('.').count()
        && pattern.split('.').zip(host.split('.')).all(|(pattern, part)| part_matches(pattern, part))
}

/// Host and port. The colons of an IPv6 address stand in brackets.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

/// Whether a part of a host fits a pattern with any number of `*`.
fn part_matches(pattern: &str, part: &str) -> bool {
    let Some((beginning, rest)) = pattern.split_once('*') else { return pattern == part };
    let Some(mut part) = part.strip_prefix(beginning) else { return false };
    let (middles, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    // What stands between two wildcards is best taken where it is first found: it leaves most to the rest.
    for middle in middles.split('*') {
        match part.split_once(middle) {
            Some((_, after)) => part = after,
            None => return false,
        }
    }
    part.ends_with(end)
}
