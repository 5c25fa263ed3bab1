//! Where pods are called.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

/// Which address of a pod calls go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressMode {
    /// The pod's own until its Service answers, then the Service's; only the
    /// Service's where a service mesh is at work in the pod.
    #[default]
    Auto,
    /// Only the Service's.
    Service,
    /// Only the pod's own.
    Pod,
}

impl FromStr for AddressMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "service" => Ok(Self::Service),
            "pod" => Ok(Self::Pod),
            _ => Err("must be auto, service or pod".to_owned()),
        }
    }
}

/// The addresses to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Addresses {
    /// The pod's own, if calls may go there.
    pub(crate) direct: Option<SocketAddr>,
    /// Its Service's, if calls may go there.
    pub(crate) service: Option<SocketAddr>,
}

impl AddressMode {
    /// What to try, given what is known.
    pub(crate) fn choose(
        self,
        pod: Option<IpAddr>,
        service: Option<IpAddr>,
        has_mesh: bool,
        port: u16,
    ) -> Addresses {
        let at = |address: IpAddr| SocketAddr::new(address, port);
        Addresses {
            direct: pod.filter(|_| self == Self::Pod || (self == Self::Auto && !has_mesh)).map(at),
            service: service.filter(|_| self != Self::Pod).map(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const POD: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1));
    const SERVICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1));

    fn tried(mode: &str, has_mesh: bool) -> (bool, bool) {
        let mode: AddressMode = mode.parse().unwrap();
        let Addresses { direct, service } = mode.choose(Some(POD), Some(SERVICE), has_mesh, 9446);
        (direct.is_some(), service.is_some())
    }

    #[test]
    fn a_mesh_is_never_bypassed_unasked() {
        assert_eq!(tried("auto", false), (true, true));
        assert_eq!(tried("auto", true), (false, true));
        assert_eq!(tried("service", false), (false, true));
        assert_eq!(tried("service", true), (false, true));
        assert_eq!(tried("pod", true), (true, false));
    }

    #[test]
    fn what_is_not_known_yet_is_not_tried() {
        assert_eq!(AddressMode::Auto.choose(None, None, false, 9446), Addresses::default());
    }

    #[test]
    fn other_words_are_refused() {
        assert!("Auto".parse::<AddressMode>().is_err());
        assert!("".parse::<AddressMode>().is_err());
    }
}
