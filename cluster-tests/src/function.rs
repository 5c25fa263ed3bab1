//! Calls of the test function: what it is told to do, and who answered.

use std::fmt::Write as _;

use bytes::Bytes;

/// A ResourceList of one ConfigMap that tells the test function what to do; see its source for what it can.
pub fn order(orders: &[(&str, &str)]) -> Bytes {
    let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- apiVersion: v1\n  \
                    kind: ConfigMap\n  metadata:\n    name: one # kept\nfunctionConfig:\n  apiVersion: v1\n  \
                    kind: ConfigMap\n  metadata:\n    name: orders\n  data:\n"
        .to_owned();
    for (key, value) in orders {
        writeln!(text, "    {key}: {value:?}").unwrap();
    }
    text.into()
}

/// The host that answered, if it was told to tell: the name of its pod.
pub fn host_of(resource_list: &[u8]) -> String {
    let text = String::from_utf8_lossy(resource_list);
    let host = text.lines().find_map(|line| line.trim().strip_prefix("test/host: "));
    host.unwrap_or_else(|| panic!("no host in\n{text}")).to_owned()
}
