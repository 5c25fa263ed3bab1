//! Name servers.

use registry::fuzzing;

/// A message of a name server, to a question for the addresses of `registry.example` with the number 7.
pub(crate) fn answers(input: &[u8]) {
    let found = fuzzing::addresses(input);
    // A message is for one family, and only so many are kept.
    assert!(found.len() <= 32, "too many addresses");
    assert!(
        found.windows(2).all(|pair| pair[0].is_ipv4() == pair[1].is_ipv4()),
        "of both families: {found:?}"
    );
}
