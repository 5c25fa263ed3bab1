//! What `hosts` and `resolv.conf` say.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

/// The most time for a name, whatever `resolv.conf` allows: some of that for a connection must be left.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);
/// Where name servers listen.
pub(super) const PORT: u16 = 53;
/// As many servers as the C libraries take.
const MOST_SERVERS: usize = 3;
/// As many as Kubernetes allows.
const MOST_SEARCHED: usize = 32;

/// The addresses that `hosts` has for a name.
pub(super) fn find(hosts: &str, name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in hosts.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse().ok()) else { continue };
        if words.any(|word| word.eq_ignore_ascii_case(name)) && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// Whom to ask, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) servers: Vec<SocketAddr>,
    /// What is put behind names that are not complete.
    search: Vec<String>,
    /// With so many dots, a name is tried as it is first.
    ndots: usize,
    /// How long an answer is waited for, each time.
    timeout: Duration,
    /// How often a question is sent.
    pub(super) attempts: u32,
}

impl Config {
    /// How long a question may take in all.
    pub(super) fn patience(&self) -> Duration {
        (self.timeout * self.attempts).min(PATIENCE)
    }

    /// What is not understood is passed over, as the C libraries do.
    pub(super) fn parse(text: &str) -> Self {
        let mut config = Self {
            servers: Vec::new(),
            search: Vec::new(),
            ndots: 1,
            timeout: Duration::from_secs(5),
            attempts: 2,
        };
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => config.servers.extend(words.next().and_then(server)),
                // The last line of either kind counts.
                Some("search" | "domain") => {
                    let domains = words.map(|domain| domain.trim_matches('.').to_owned());
                    config.search = domains.filter(|domain| !domain.is_empty()).take(MOST_SEARCHED).collect();
                }
                Some("options") => words.for_each(|option| config.set(option)),
                _ => {}
            }
        }
        config.servers.truncate(MOST_SERVERS);
        if config.servers.is_empty() {
            config.servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
        }
        config
    }

    fn set(&mut self, option: &str) {
        let Some((name, Ok(value))) =
            option.split_once(':').map(|(name, value)| (name, value.parse::<u32>()))
        else {
            return;
        };
        match name {
            "ndots" => self.ndots = value.min(15) as usize,
            "timeout" => self.timeout = Duration::from_secs(value.clamp(1, 30).into()),
            "attempts" => self.attempts = value.clamp(1, 5),
            _ => {}
        }
    }

    /// The complete names that a name may mean, in the order they are asked for.
    pub(super) fn meanings(&self, name: &str) -> Vec<String> {
        if let Some(complete) = name.strip_suffix('.') {
            return vec![complete.to_owned()];
        }
        let searched = self.search.iter().map(|domain| format!("{name}.{domain}"));
        let itself = std::iter::once(name.to_owned());
        if name.matches('.').count() >= self.ndots {
            itself.chain(searched).collect()
        } else {
            searched.chain(itself).collect()
        }
    }
}

/// `ADDRESS`, `ADDRESS%INTERFACE`, or `[ADDRESS]:PORT`.
fn server(word: &str) -> Option<SocketAddr> {
    if let Some((address, port)) = word.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        return Some(SocketAddr::new(address.parse().ok()?, port.parse().ok()?));
    }
    if let Some((address, interface)) = word.split_once('%') {
        let scope = interface.parse().ok().or_else(|| interface_number(interface))?;
        return Some(SocketAddrV6::new(address.parse().ok()?, PORT, 0, scope).into());
    }
    Some(SocketAddr::new(word.parse().ok()?, PORT))
}

fn interface_number(name: &str) -> Option<u32> {
    std::fs::read_to_string(format!("/sys/class/net/{name}/ifindex")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_hosts_with_all_their_addresses() {
        let hosts = "127.0.0.1 localhost\n# 1.1.1.1 a\n\n10.0.0.1\ta.example A b # c\nfe80::1%1 a\nx a\n\
                     ::1 localhost a\n10.0.0.1 a\n10.0.0.2";
        let found = |name| find(hosts, name).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(found("a"), ["10.0.0.1", "::1"]);
        assert_eq!(found("A.Example"), ["10.0.0.1"]);
        assert_eq!(found("localhost"), ["127.0.0.1", "::1"]);
        for name in ["c", "#", "10.0.0.1", "", "example"] {
            assert!(found(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_pods_file_is_understood() {
        let config = Config::parse(
            "search fn.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\n\
             options ndots:5\n",
        );
        assert_eq!(config.servers, ["10.96.0.10:53".parse().unwrap()]);
        assert_eq!((config.timeout, config.attempts), (Duration::from_secs(5), 2));
        assert_eq!(config.patience(), PATIENCE);
        let patience = |options: &str| Config::parse(&format!("options {options}")).patience();
        assert_eq!(patience("timeout:1 attempts:3"), Duration::from_secs(3));
        assert_eq!(patience("timeout:2 attempts:1"), Duration::from_secs(2));
        assert_eq!(
            config.meanings("registry"),
            [
                "registry.fn.svc.cluster.local",
                "registry.svc.cluster.local",
                "registry.cluster.local",
                "registry"
            ]
        );
        assert_eq!(config.meanings("a.b.c.d.e.f")[0], "a.b.c.d.e.f");
        assert_eq!(config.meanings("a.b.c.d.e")[3], "a.b.c.d.e");
        assert_eq!(config.meanings("ghcr.io."), ["ghcr.io"]);
    }

    #[test]
    fn odd_files_are_taken_as_far_as_they_go() {
        let empty = Config::parse("");
        assert_eq!(empty.servers, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(empty.meanings("a"), ["a"]);
        let odd = Config::parse(
            "nameserver\nnameserver no.address\n;nameserver 1.1.1.1\n#x\n\0\u{fffd}\nnameserver ::1 2.2.2.2\n\
             nameserver [127.0.0.1]:5353\nnameserver fe80::1%1\nnameserver 4.4.4.4\nnameserver fe80::1%none\n\
             search a b\ndomain .c. ..\noptions ndots:99999999999 timeout:0 attempts:1000 rotate ndots:x ndots:99",
        );
        let servers = ["[::1]:53", "127.0.0.1:5353", "[fe80::1%1]:53"];
        assert_eq!(odd.servers, servers.map(|server| server.parse().unwrap()));
        assert_eq!(odd.search, ["c"]);
        assert_eq!((odd.ndots, odd.timeout, odd.attempts), (15, Duration::from_secs(1), 5));
        let many = Config::parse(&format!("search {}", "a ".repeat(100_000)));
        assert_eq!(many.meanings("x").len(), MOST_SEARCHED + 1);
    }
}
