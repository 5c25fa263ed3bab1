//! Connections cut on purpose.

use std::{net::IpAddr, process::Command};

/// While it lives, no packet from or to an address and port arrives. To both
/// ends it looks as if a cable were cut: no reset, no answer.
#[derive(Debug)]
pub struct Cut {
    rules: Vec<Vec<String>>,
}

impl Cut {
    /// Cuts `port` of a pod or of the node off.
    pub fn off(address: IpAddr, port: u16) -> Self {
        let mut cut = Self { rules: Vec::new() };
        // Between pods packets are forwarded; those of the node itself go in and out.
        for chain in ["FORWARD", "INPUT", "OUTPUT"] {
            for (end, direction) in [("-d", "--dport"), ("-s", "--sport")] {
                let rule = format!("{chain} {end} {address} -p tcp -m tcp {direction} {port} -j DROP");
                cut.insert(rule.split(' ').map(str::to_owned).collect());
            }
        }
        cut
    }

    fn insert(&mut self, rule: Vec<String>) {
        assert!(iptables("-I", &rule), "iptables takes {rule:?}");
        self.rules.push(rule);
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        for rule in &self.rules {
            iptables("-D", rule);
        }
    }
}

fn iptables(action: &str, rule: &[String]) -> bool {
    // kube-proxy changes rules too: wait for it.
    Command::new("iptables")
        .args(["-w", "20", action])
        .args(rule)
        .status()
        .is_ok_and(|status| status.success())
}
