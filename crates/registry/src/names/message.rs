//! Questions to name servers, and their answers, as they are on the wire (RFC 1035).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const HEADER: usize = 12;
const INTERNET: u16 = 1;
/// The longest name, with the length of each of its parts.
const LONGEST_NAME: usize = 255;
const LONGEST_PART: usize = 63;
/// More addresses than anybody tries are not kept.
const MOST_ADDRESSES: usize = 32;

/// What kind of address is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    fn record(self) -> u16 {
        match self {
            Self::V4 => 1,
            Self::V6 => 28,
        }
    }

    fn address(self, data: &[u8]) -> Option<IpAddr> {
        match self {
            Self::V4 => <[u8; 4]>::try_from(data).ok().map(|bytes| Ipv4Addr::from(bytes).into()),
            Self::V6 => <[u8; 16]>::try_from(data).ok().map(|bytes| Ipv6Addr::from(bytes).into()),
        }
    }
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The name's addresses of that family; it may have none.
    Addresses(Vec<IpAddr>),
    NoSuchName,
    /// There is more than fits into a datagram.
    Truncated,
    /// It cannot tell, by this code.
    Failed(u8),
    /// It answers our question, in a way that makes no sense.
    Malformed,
}

/// A question for the addresses of a complete name. `None` if it cannot be one.
pub(crate) fn question(id: u16, name: &str, family: Family) -> Option<Vec<u8>> {
    let mut question = id.to_be_bytes().to_vec();
    // "Please find out", one question, no records.
    question.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for part in name.split('.') {
        let length = u8::try_from(part.len())
            .ok()
            .filter(|length| (1..=LONGEST_PART).contains(&usize::from(*length)))?;
        question.push(length);
        question.extend_from_slice(part.as_bytes());
    }
    question.push(0);
    if question.len() - HEADER > LONGEST_NAME {
        return None;
    }
    question.extend(family.record().to_be_bytes());
    question.extend(INTERNET.to_be_bytes());
    Some(question)
}

/// What a message says to our question. `None` if it is no answer to it: others may send what they like, and the
/// answer is still to come.
pub(crate) fn read(message: &[u8], question: &[u8], family: Family) -> Option<Reply> {
    let (header, rest) = message.split_first_chunk::<HEADER>()?;
    let (our_header, our_question) = question.split_first_chunk::<HEADER>()?;
    let is_answer = header[2] & 0b1111_1000 == 0b1000_0000;
    if header[..2] != our_header[..2] || !is_answer {
        return None;
    }
    let (is_cut, code) = (header[2] & 0b10 != 0, header[3] & 0b1111);
    let records = match (u16::from_be_bytes([header[4], header[5]]), code) {
        (1, _) => {
            let (repeated, records) = rest.split_at_checked(our_question.len())?;
            repeated.eq_ignore_ascii_case(our_question).then_some(records)?
        }
        // Who could not read the question cannot repeat it.
        (0, 1..) => &[],
        _ => return None,
    };
    Some(match code {
        0 if is_cut => Reply::Truncated,
        0 => {
            let count = u16::from_be_bytes([header[6], header[7]]);
            addresses(records, count, family).map_or(Reply::Malformed, Reply::Addresses)
        }
        3 => Reply::NoSuchName,
        code => Reply::Failed(code),
    })
}

/// The addresses among the records of an answer. Those on the way to them, other names of the same host, need not
/// be followed: the server has done it.
fn addresses(mut rest: &[u8], count: u16, family: Family) -> Option<Vec<IpAddr>> {
    let mut found = Vec::new();
    for _ in 0..count {
        let (fixed, after) = skip_name(rest)?.split_first_chunk::<10>()?;
        let [kind, class, _, _, length] =
            [0, 2, 4, 6, 8].map(|at| u16::from_be_bytes([fixed[at], fixed[at + 1]]));
        let (data, after) = after.split_at_checked(usize::from(length))?;
        rest = after;
        if (kind, class) == (family.record(), INTERNET) {
            let address = family.address(data)?;
            if found.len() < MOST_ADDRESSES && !found.contains(&address) {
                found.push(address);
            }
        }
    }
    Some(found)
}

/// What comes behind a name: parts up to an empty one, or up to a pointer to the rest of it elsewhere.
fn skip_name(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let (length, after) = rest.split_first()?;
        match length {
            0 => return Some(after),
            0b1100_0000.. => return after.get(1..),
            0b0100_0000.. => return None,
            length => rest = after.get(usize::from(*length)..)?,
        }
    }
}

/// The name of a code that says why a server cannot tell.
pub(super) fn code_name(code: u8) -> String {
    match code {
        1 => "FORMERR".to_owned(),
        2 => "SERVFAIL".to_owned(),
        4 => "NOTIMP".to_owned(),
        5 => "REFUSED".to_owned(),
        code => format!("code {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "registry.example";

    fn asked(family: Family) -> Vec<u8> {
        question(7, NAME, family).unwrap()
    }

    /// An answer with this code and these records.
    fn answer(family: Family, code: u8, records: &[&[u8]]) -> Vec<u8> {
        let mut message = asked(family);
        (message[2], message[3], message[7]) = (0x81, 0x80 | code, u8::try_from(records.len()).unwrap());
        message.extend(records.concat());
        message
    }

    /// A record whose name points to that of the question.
    fn record(kind: u16, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(data.len()).unwrap();
        [&[0xC0, 12][..], &kind.to_be_bytes(), &[0, 1, 0, 0, 0, 9], &length.to_be_bytes(), data].concat()
    }

    #[test]
    fn a_question_is_as_the_rfc_has_it() {
        let expected = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x08registry\x07example\0\0\x01\0\x01";
        assert_eq!(asked(Family::V4), expected);
        let (part, whole) =
            ("a".repeat(63), ["a".repeat(62), "b".repeat(62), "c".repeat(62), "d".repeat(62)]);
        assert!(question(0, &part, Family::V6).is_some());
        assert!(question(0, &whole.join("."), Family::V6).is_some());
        for wrong in ["", ".", "a..b", ".a", &"a".repeat(64), &"a".repeat(300), &(whole.join(".") + ".e.f")] {
            assert_eq!(question(0, wrong, Family::V4), None, "{wrong}");
        }
    }

    #[test]
    fn addresses_are_read_from_among_other_records() {
        let alias = record(5, b"\x05other\xC0\x15");
        let (one, two) = (record(1, &[10, 0, 0, 1]), record(1, &[10, 0, 0, 2]));
        let message = answer(Family::V4, 0, &[&alias, &one, &two, &one, &record(28, &[1; 16])]);
        let found = Reply::Addresses(vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()]);
        assert_eq!(read(&message, &asked(Family::V4), Family::V4), Some(found));
        let message = answer(Family::V6, 0, &[&record(28, &[0; 16])]);
        let found = Reply::Addresses(vec!["::".parse().unwrap()]);
        assert_eq!(read(&message, &asked(Family::V6), Family::V6), Some(found));
        assert_eq!(
            read(&answer(Family::V6, 0, &[]), &asked(Family::V6), Family::V6),
            Some(Reply::Addresses(Vec::new()))
        );
    }

    #[test]
    fn codes_tell_what_has_no_address_from_what_cannot_be_told() {
        let reply = |message: &[u8]| read(message, &asked(Family::V4), Family::V4);
        assert_eq!(reply(&answer(Family::V4, 3, &[])), Some(Reply::NoSuchName));
        for code in [1, 2, 4, 5, 9, 15] {
            assert_eq!(reply(&answer(Family::V4, code, &[])), Some(Reply::Failed(code)));
        }
        let mut brief = answer(Family::V4, 1, &[]);
        brief[5] = 0;
        assert_eq!(reply(&brief[..12]), Some(Reply::Failed(1)), "without the question");
        let mut cut = answer(Family::V4, 0, &[]);
        cut[2] |= 2;
        assert_eq!(reply(&cut), Some(Reply::Truncated));
    }

    #[test]
    fn what_is_no_answer_to_the_question_is_told_from_one_that_makes_no_sense() {
        let reply = |message: &[u8]| read(message, &asked(Family::V4), Family::V4);
        let good = answer(Family::V4, 0, &[&record(1, &[10, 0, 0, 1])]);
        for (at, value) in
            [(0, 9), (1, 9), (2, 0x01), (2, 0x89), (4, 1), (5, 0), (5, 2), (13, b'x'), (30, 28)]
        {
            let mut other = good.clone();
            other[at] = value;
            assert_eq!(reply(&other), None, "byte {at}");
        }
        let mut shouted = good.clone();
        shouted[13] = b'R';
        assert!(matches!(reply(&shouted), Some(Reply::Addresses(_))), "case does not matter");
        let end = asked(Family::V4).len();
        for length in 0..good.len() {
            let expected = (length >= end).then_some(Reply::Malformed);
            assert_eq!(reply(&good[..length]), expected, "{length} bytes");
        }
        for records in [
            &[record(1, &[10, 0, 0])][..],
            &[b"\x40a\0\x01\0\x01\0\0\0\0\0\0".to_vec()],
            &[vec![63; 40]],
            &[b"\xC0".to_vec()],
        ] {
            let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
            assert_eq!(reply(&answer(Family::V4, 0, &records)), Some(Reply::Malformed), "{records:?}");
        }
        let mut many = answer(Family::V4, 0, &[]);
        (many[6], many[7]) = (0xFF, 0xFF);
        many.extend((0..65535_u16).flat_map(|number| record(1, &[[10, 0], number.to_be_bytes()].concat())));
        let Some(Reply::Addresses(found)) = reply(&many) else { panic!("not read") };
        assert_eq!(found.len(), MOST_ADDRESSES);
    }
}
