//! The known name somebody most likely meant.

/// Longer than any name worth comparing with: keeps hostile input cheap.
const LONGEST: usize = 64;

/// The candidate closest to `given`, when it is close enough to be a slip of the fingers.
///
/// Case and the choice between `_` and `-` do not count as differences.
pub(crate) fn nearest<'a>(given: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if given.is_empty() || given.len() > LONGEST {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace('_', "-").into_bytes();
    let given = plain(given);
    candidates
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (distance(&given, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= given.len().min(candidate.len()).div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance < candidate.len())
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn one text into the other.
fn distance(left: &[u8], right: &[u8]) -> usize {
    // Row i holds the distances of the first i bytes of `left` to every prefix of `right`.
    let mut before_previous: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    let mut last_left = None;
    for (row, &from) in left.iter().enumerate() {
        let mut current = Vec::with_capacity(previous.len());
        let mut best = row + 1;
        current.push(best);
        let mut last_right = None;
        for (column, (&to, pair)) in right.iter().zip(previous.windows(2)).enumerate() {
            let &[diagonal, above] = pair else { break };
            best = (diagonal + usize::from(from != to)).min(above + 1).min(best + 1);
            if last_left == Some(to) && last_right == Some(from) {
                // Two back in both directions; the swap costs one.
                let swapped = column.checked_sub(1).and_then(|index| before_previous.get(index));
                best = swapped.map_or(best, |cost| best.min(cost + 1));
            }
            current.push(best);
            last_right = Some(to);
        }
        before_previous = std::mem::replace(&mut previous, current);
        last_left = Some(from);
    }
    previous.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("port", "port", 0),
            ("prot", "port", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("flaw", "lawn", 2),
        ] {
            assert_eq!(distance(left.as_bytes(), right.as_bytes()), expected, "{left} {right}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["port", "pod-ttl", "log-level", "max-request-body-size"];
        for (given, expected) in [
            ("prot", Some("port")),
            ("Pod_TTL", Some("pod-ttl")),
            ("loglevel", Some("log-level")),
            ("max-request-size", Some("max-request-body-size")),
            ("kubeconfig", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(given, names.into_iter()), expected, "{given}");
        }
        assert_eq!(nearest(&"p".repeat(10_000_000), names.into_iter()), None);
    }
}
