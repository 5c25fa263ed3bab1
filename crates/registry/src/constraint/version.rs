//! Versions as tags spell them, and their order.

use std::cmp::Ordering;
use std::fmt;

/// As in Go. Tags of registries have at most 128 bytes.
const LONGEST_VERSION: usize = 256;

/// A semantic version as a tag spells it: `v0.4` is 0.4.0.
///
/// A leading `v` and leading zeros are allowed, minor and patch number may be missing. Compare versions by
/// [`precedence`](Self::precedence): two spellings of one version are not equal, as they are different tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    tag: String,
    pub(super) core: Core,
    written_parts: usize,
}

/// What counts when versions are compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Core {
    pub(super) major: u64,
    pub(super) minor: u64,
    pub(super) patch: u64,
    /// Without its hyphen; empty for a release.
    pub(super) pre_release: String,
}

impl Version {
    /// Reads a tag; `None` if it is no version. The text is kept.
    pub fn parse_tag(tag: &str) -> Option<Self> {
        let Split { numbers, pre_release } = split(tag)?;
        let mut parts = [0; 3];
        let mut written_parts = 0;
        for (part, number) in parts.iter_mut().zip(&numbers) {
            *part = parse_number(number)?;
            written_parts += 1;
        }
        let [major, minor, patch] = parts;
        let core = Core { major, minor, patch, pre_release: pre_release.to_owned() };
        Some(Self { tag: tag.to_owned(), core, written_parts })
    }

    /// The tag as it was read.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The first number.
    pub fn major(&self) -> u64 {
        self.core.major
    }

    /// The second number, 0 if it was left out.
    pub fn minor(&self) -> u64 {
        self.core.minor
    }

    /// The third number, 0 if it was left out.
    pub fn patch(&self) -> u64 {
        self.core.patch
    }

    /// `rc.1` of `1.2.0-rc.1`; empty for a release.
    pub fn pre_release(&self) -> &str {
        &self.core.pre_release
    }

    /// Whether it comes before the release of the same numbers.
    pub fn is_pre_release(&self) -> bool {
        !self.core.pre_release.is_empty()
    }

    /// Which of two versions is the newer one, by the rules of semantic versions: build metadata and
    /// spelling do not count.
    pub fn precedence(&self, other: &Self) -> Ordering {
        self.core.precedence(&other.core)
    }

    /// Which of two tags to take: the newer version, and of one version's spellings the fuller, since
    /// `v0.4` is often moved from one release to the next and `v0.4.0` is not. A total order of tags.
    pub(super) fn preference(&self, other: &Self) -> Ordering {
        // Leading zeros make a spelling longer, not fuller.
        self.precedence(other)
            .then_with(|| self.written_parts.cmp(&other.written_parts))
            .then_with(|| other.has_leading_zeros().cmp(&self.has_leading_zeros()))
            .then_with(|| self.tag.len().cmp(&other.tag.len()))
            .then_with(|| self.tag.cmp(&other.tag))
    }

    fn has_leading_zeros(&self) -> bool {
        split(&self.tag)
            .is_some_and(|parts| parts.numbers.iter().any(|part| part.len() > 1 && part.starts_with('0')))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.tag)
    }
}

impl Core {
    pub(super) fn precedence(&self, other: &Self) -> Ordering {
        let numbers = |core: &Self| (core.major, core.minor, core.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (false, false) => compare_pre_releases(&self.pre_release, &other.pre_release),
                // A release is newer than all its pre-releases.
                (self_is_release, other_is_release) => self_is_release.cmp(&other_is_release),
            }
        })
    }
}

/// The first different identifier decides; having more of them is newer.
fn compare_pre_releases(one: &str, other: &str) -> Ordering {
    one.split('.').map(Identifier::new).cmp(other.split('.').map(Identifier::new))
}

/// In the order of the variants: numbers come before words. A number too large for 64 bits is a word, as
/// in Go.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identifier<'a> {
    Number(u64),
    Word(&'a str),
}

impl<'a> Identifier<'a> {
    fn new(text: &'a str) -> Self {
        text.parse().map_or(Self::Word(text), Self::Number)
    }
}

/// The parts of a version's text that count.
pub(super) struct Split<'a> {
    /// One to three texts, not looked into.
    pub(super) numbers: Vec<&'a str>,
    /// Checked, without its hyphen, empty if there is none.
    pub(super) pre_release: &'a str,
}

/// Takes a version's text apart. Build metadata is checked and dropped.
pub(super) fn split(text: &str) -> Option<Split<'_>> {
    if text.len() > LONGEST_VERSION {
        return None;
    }
    let text = text.strip_prefix('v').unwrap_or(text);
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (numbers, pre_release) =
        rest.split_once('-').map_or((rest, None), |(numbers, pre_release)| (numbers, Some(pre_release)));
    let is_valid = build.is_none_or(|build| build.split('.').all(is_identifier))
        && pre_release.is_none_or(|pre_release| pre_release.split('.').all(is_pre_release_identifier));
    let numbers: Vec<_> = numbers.splitn(4, '.').collect();
    (is_valid && numbers.len() <= 3)
        .then_some(Split { numbers, pre_release: pre_release.unwrap_or_default() })
}

pub(super) fn parse_number(text: &str) -> Option<u64> {
    // Rust's own parser would take a leading plus sign.
    is_number(text).then(|| text.parse().ok()).flatten()
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_pre_release_identifier(text: &str) -> bool {
    let has_leading_zero = text.len() > 1 && text.starts_with('0') && is_number(text);
    is_identifier(text) && !has_leading_zero
}
