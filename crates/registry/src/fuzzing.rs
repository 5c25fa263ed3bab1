//! What reads strangers' texts, for inputs that a fuzzer makes.

use std::net::IpAddr;

use crate::Reference;
use crate::credentials::{self, Login, Malformed};
use crate::names::{Family, Reply, question, read};

/// The logins that a Docker configuration itself has for an image.
pub fn logins(config: &[u8], image: &Reference) -> Result<Vec<Login>, Malformed> {
    credentials::logins(config, image)
}

/// The addresses of either family that a name server's message has for `registry.example`, asked with the number 7.
pub fn addresses(message: &[u8]) -> Vec<IpAddr> {
    let of = |family| match question(7, "registry.example", family).map(|asked| read(message, &asked, family))
    {
        Some(Some(Reply::Addresses(found))) => found,
        _ => Vec::new(),
    };
    [of(Family::V4), of(Family::V6)].concat()
}
