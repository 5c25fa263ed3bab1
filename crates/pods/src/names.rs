//! What pods and services are called.
//!
//! A pod's id is `name-tag-slot-hash`: the last part of the image's name, its tag without dots, the pod's
//! number, and the first digits of the image's digest. It is the Service's name, the value of a label and,
//! with five more characters from the API server, the pod's name, so it must be a short DNS label.

use registry::Reference;
use ring::digest::{SHA256, digest};

/// With the dash and the five characters that the API server adds to it, an id is still a DNS label.
pub const LONGEST_ID: usize = 57;

/// Slots up to five digits leave the rest of the name room enough, and are more than a cluster has pods.
const LAST_SLOT: usize = 99_999;
const SLOT_DIGITS: usize = 5;
const HASH_LENGTH: usize = 8;
const LONGEST_TITLE: usize = LONGEST_ID - 1 - SLOT_DIGITS - 1 - HASH_LENGTH;

/// What stands for the slot in a stem: no id contains it.
const ANY_SLOT: &str = "*";

/// The names of one image's pods.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodName {
    title: String,
    hash: String,
}

impl PodName {
    /// The names for an image whose manifest has this digest.
    ///
    /// Different images get different names by their hash, however long and alike their references are.
    /// An image without a tag is called `latest`, or nothing if it is pinned by digest.
    pub fn new(image: &Reference, digest: &str) -> Self {
        let tag = match (image.tag(), image.digest()) {
            (Some(tag), _) => Some(tag),
            (None, None) => Some("latest"),
            (None, Some(_)) => None,
        };
        Self { title: shortened(title(image.name(), tag)), hash: first_digits(digest) }
    }

    /// The id of the pod in a slot. Slots count from 1.
    pub fn id(&self, slot: usize) -> String {
        self.with_slot(&slot.min(LAST_SLOT).to_string())
    }

    /// What the ids of all slots have in common.
    pub fn stem(&self) -> String {
        self.with_slot(ANY_SLOT)
    }

    fn with_slot(&self, slot: &str) -> String {
        format!("{}-{slot}-{}", self.title, self.hash)
    }
}

/// The stem and the slot of an id. Ids of older releases have no slot: theirs is 0, and each is its own stem.
/// `None` if it is no id at all.
pub fn parse_id(id: &str) -> Option<(String, usize)> {
    let (rest, hash) = id.rsplit_once('-')?;
    let is_label = rest.bytes().all(|byte| is_label_byte(byte) || byte == b'-');
    let starts_well = rest.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !is_label || !starts_well || !is_hash(hash) || id.len() > LONGEST_ID {
        return None;
    }
    let slotted = rest.rsplit_once('-').and_then(|(title, slot)| Some((title, parse_slot(slot)?)));
    Some(
        slotted
            .map_or_else(|| (id.to_owned(), 0), |(title, slot)| (format!("{title}-{ANY_SLOT}-{hash}"), slot)),
    )
}

fn parse_slot(text: &str) -> Option<usize> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|slot| is_plain && *slot <= LAST_SLOT)
}

/// Name and tag in the characters of a DNS label, starting with a letter.
fn title(name: &str, tag: Option<&str>) -> String {
    let mut title = String::with_capacity(LONGEST_ID);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        title.push_str("fn-");
    }
    title.push_str(name);
    if let Some(tag) = tag {
        title.push('-');
        title.extend(tag.chars().filter(|character| *character != '.'));
    }
    title.make_ascii_lowercase();
    title.replace(|character: char| !character.is_ascii() || !is_label_byte(character as u8), "-")
}

/// A long title gives way to its beginning and a checksum of all of it.
fn shortened(title: String) -> String {
    if title.len() <= LONGEST_TITLE {
        return title;
    }
    let beginning = title.get(..LONGEST_TITLE - 1 - HASH_LENGTH).unwrap_or_default();
    format!("{}-{}", beginning.trim_end_matches('-'), checksum(title.as_bytes()))
}

/// The first digits of a digest such as `sha256:0123…`.
fn first_digits(digest: &str) -> String {
    let digits = digest.split_once(':').map_or(digest, |(_, digits)| digits);
    match digits.get(..HASH_LENGTH) {
        Some(first) if is_hash(first) => first.to_owned(),
        // No registry answers this, but a name is needed all the same.
        _ => checksum(digest.as_bytes()),
    }
}

/// Eight digits that tell texts apart.
pub(crate) fn checksum(text: &[u8]) -> String {
    let digest = digest(&SHA256, text);
    let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
    format!("{:08x}", u32::from_be_bytes(first))
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_LENGTH && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}
