//! Image references: which texts name an image, and which image they name.
//!
//! The grammar and the meaning of short names are those of `distribution/reference`, which Docker,
//! containerd and the kubelet share: what is accepted here, a node can pull.

use std::fmt;
use std::str::FromStr;

/// The registry of references that name none.
pub(crate) const DOCKER_HUB: &str = "docker.io";
/// Its name of old, still found in configuration files. `registry-1.docker.io` is left alone: it is the
/// address of Docker Hub's API and not a name for it, and nodes treat it as a registry of its own.
pub(crate) const DOCKER_HUB_OF_OLD: &str = "index.docker.io";
/// Where Docker Hub keeps the images without an owner.
const DOCKER_HUB_OFFICIAL: &str = "library";
/// The tag of references without tag and digest.
const DEFAULT_TAG: &str = "latest";

const LONGEST_REPOSITORY: usize = 255;
const LONGEST_TAG: usize = 128;
/// A host name of 253 characters, a port, the longest repository, tag and digest fit with room to spare.
const LONGEST_REFERENCE: usize = 1024;
/// How much of a wrong text an error repeats.
const SHOWN_CHARACTERS: usize = 120;

/// The name of an image, such as `ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0`. Exists only if
/// valid.
///
/// Two references are equal if they are written alike, because pods and messages show them as written.
/// Whether they name the same image is another question: ask their [`key`](Self::key) for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    given: String,
    /// How much of `given` is the name, before tag and digest.
    given_name_length: usize,
    /// Registry and repository as normalised, with a slash between them.
    full_name: String,
    registry_length: usize,
    tag: Option<String>,
    digest: Option<String>,
}

/// The identity of an image: equal for all spellings that lead to the same one.
///
/// It is `registry/repository@digest` if there is a digest, whatever the tag, and otherwise
/// `registry/repository:tag` with `latest` for a missing tag. Its text is itself a reference with that key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageKey(String);

/// A text that names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid image reference {reference}: {problem}; a right one looks like {EXAMPLE}")]
pub struct InvalidReference {
    /// In quotes, shortened when long.
    reference: String,
    problem: Problem,
}

const EXAMPLE: &str = "ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0";

impl InvalidReference {
    fn new(text: &str, problem: Problem) -> Self {
        Self { reference: shown(text), problem }
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// What can be wrong with a reference. Parts of it are quoted and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no text.
    #[error("it is empty")]
    Empty,
    /// No image has such a long name.
    #[error("it has {0} bytes, more than the {LONGEST_REFERENCE} any reference needs")]
    TooLong(usize),
    /// Whitespace, a control character or anything else outside ASCII.
    #[error(
        "it contains {character:?} (byte {position}); no spaces, control or non-ASCII characters are allowed"
    )]
    Character {
        /// The first such character.
        character: char,
        /// Its place, in bytes from 0.
        position: usize,
    },
    /// An address of a web page or an OCI artifact, not the name of an image.
    #[error("it starts with a scheme; leave the {0} out")]
    Scheme(String),
    /// The part before the first slash is no host.
    #[error(
        "the registry {0} is not a host name, IPv4 address or IPv6 address in brackets, with a port after a \
         colon if need be"
    )]
    Registry(String),
    /// Two slashes in a row, or one at an end.
    #[error("the name has an empty part; give a name between slashes and at both ends")]
    EmptyComponent,
    /// Capitals are allowed in registries and tags only.
    #[error("the repository part {0} has capital letters; write it in lower case")]
    UpperCase(String),
    /// A part of the repository breaks the rules.
    #[error(
        "the repository part {0} must be made of lower-case letters and digits, with a single \".\", one or two \
         \"_\", or any number of \"-\" between them"
    )]
    Component(String),
    /// The repository has more characters than registries take.
    #[error("the repository has {0} characters, more than {LONGEST_REPOSITORY}")]
    LongRepository(usize),
    /// The tag breaks the rules.
    #[error(
        "the tag {0} must have 1 to {LONGEST_TAG} letters, digits, \"_\", \".\" and \"-\", and start with none of \
         the last two"
    )]
    Tag(String),
    /// The digest breaks the rules.
    #[error("the digest {0} must be sha256: with 64 or sha512: with 128 digits of 0-9 and a-f")]
    Digest(String),
    /// The id of a local image, which no registry knows.
    #[error("it is the id of a local image; name the image, or its digest after \"@sha256:\"")]
    ImageId,
}

impl Reference {
    /// Reads a reference.
    pub fn parse(text: &str) -> Result<Self, InvalidReference> {
        Self::read(text).map_err(|problem| InvalidReference::new(text, problem))
    }

    /// Reads a reference after putting the prefix and a slash before a text that has no slash itself.
    /// The prefix may end with a slash; an empty one is never put.
    pub fn parse_with_prefix(text: &str, default_prefix: &str) -> Result<Self, InvalidReference> {
        // A long text is a mistake with a prefix or without: not worth a copy.
        let complete = text.is_empty() || text.len() > LONGEST_REFERENCE || text.contains('/');
        if complete || default_prefix.is_empty() {
            return Self::parse(text);
        }
        let prefix = default_prefix.strip_suffix('/').unwrap_or(default_prefix);
        Self::parse(&format!("{prefix}/{text}"))
    }

    /// Whether a prefix makes references when put before names. The empty one does, as it is never put.
    /// The error shows an image under the prefix; the caller adds where the prefix comes from.
    pub fn check_prefix(default_prefix: &str) -> Result<(), InvalidReference> {
        Self::parse_with_prefix("name", default_prefix).map(|_| ())
    }

    /// Whether a text is a tag.
    pub fn check_tag(tag: &str) -> Result<(), InvalidReference> {
        check_tag(tag).map_err(|problem| InvalidReference::new(tag, problem))
    }

    /// Whether a text is the host of a registry, with or without port, as in `registry.example:5000`.
    pub fn check_registry(registry: &str) -> Result<(), InvalidReference> {
        check_registry(registry).map_err(|problem| InvalidReference::new(registry, problem))
    }

    /// The registry's host, with its port if it has one: `docker.io`, `localhost:5000`, `[::1]:5000`.
    pub fn registry(&self) -> &str {
        self.full_name.get(..self.registry_length).unwrap_or_default()
    }

    /// The path within the registry: `library/ubuntu`.
    pub fn repository(&self) -> &str {
        self.full_name.get(self.registry_length + 1..).unwrap_or_default()
    }

    /// The last part of the repository: `ubuntu`.
    pub fn name(&self) -> &str {
        self.repository().rsplit('/').next().unwrap_or_default()
    }

    /// Registry and repository: `docker.io/library/ubuntu`.
    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// The tag as given; `None` does not become `latest`.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, with its algorithm: `sha256:…`.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The text that was read, with the default prefix if that was put before it, otherwise verbatim.
    pub fn as_given(&self) -> &str {
        &self.given
    }

    /// The full text without abbreviations, with tag and digest as far as given.
    pub fn normalised(&self) -> String {
        let mut text = self.full_name.clone();
        for (separator, part) in [(':', self.tag()), ('@', self.digest())] {
            if let Some(part) = part {
                text.push(separator);
                text.push_str(part);
            }
        }
        text
    }

    /// The image's identity, to compare and to look it up by.
    pub fn key(&self) -> ImageKey {
        let (separator, part) = match self.digest() {
            Some(digest) => ('@', digest),
            None => (':', self.tag().unwrap_or(DEFAULT_TAG)),
        };
        ImageKey(format!("{}{separator}{part}", self.full_name))
    }

    /// The same name without tag and digest, for whoever means all of its images. Alone it means `latest`.
    #[must_use]
    pub fn without_version(&self) -> Self {
        Self {
            given: self.given.get(..self.given_name_length).unwrap_or_default().to_owned(),
            tag: None,
            digest: None,
            ..self.clone()
        }
    }

    /// The same name with this tag and no digest, which would overrule the tag.
    pub fn with_tag(&self, tag: &str) -> Result<Self, InvalidReference> {
        self.with(':', tag, check_tag)
    }

    /// The same name with this digest and no tag, which would mean nothing.
    pub fn with_digest(&self, digest: &str) -> Result<Self, InvalidReference> {
        self.with('@', digest, check_digest)
    }

    /// The part is checked on its own first: a tag with an `@` in it must not pass for tag and digest.
    fn with(&self, separator: char, part: &str, check: Check) -> Result<Self, InvalidReference> {
        let name = self.given.get(..self.given_name_length).unwrap_or_default();
        check(part)
            .map_err(|problem| InvalidReference::new(name, problem))
            .and_then(|()| Self::parse(&format!("{name}{separator}{part}")))
    }

    fn read(text: &str) -> Result<Self, Problem> {
        check_text(text)?;
        let (rest, digest) = text.split_once('@').map_or((text, None), |(rest, digest)| (rest, Some(digest)));
        // A colon before the last slash belongs to a port.
        let last_part = rest.rfind('/').map_or(0, |slash| slash + 1);
        let colon = rest.get(last_part..).and_then(|part| part.find(':')).map(|colon| last_part + colon);
        let (name, tag) = match colon {
            Some(colon) => (rest.get(..colon).unwrap_or_default(), rest.get(colon + 1..)),
            None => (rest, None),
        };
        let (registry, path) = split_registry(name);
        check_registry(registry)?;
        path.split('/').try_for_each(check_component)?;
        tag.map_or(Ok(()), check_tag)?;
        digest.map_or(Ok(()), check_digest)?;
        let is_official = registry == DOCKER_HUB && !path.contains('/');
        let full_name = if is_official {
            format!("{registry}/{DOCKER_HUB_OFFICIAL}/{path}")
        } else {
            format!("{registry}/{path}")
        };
        let repository_length = full_name.len() - registry.len() - 1;
        if repository_length > LONGEST_REPOSITORY {
            return Err(Problem::LongRepository(repository_length));
        }
        Ok(Self {
            given: text.to_owned(),
            given_name_length: name.len(),
            registry_length: registry.len(),
            full_name,
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }
}

type Check = fn(&str) -> Result<(), Problem>;

/// What holds for the text as a whole.
fn check_text(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(Problem::Empty);
    }
    if text.len() > LONGEST_REFERENCE {
        return Err(Problem::TooLong(text.len()));
    }
    if let Some((position, character)) =
        text.char_indices().find(|(_, character)| !character.is_ascii_graphic())
    {
        return Err(Problem::Character { character, position });
    }
    if let Some(scheme) = scheme(text) {
        return Err(Problem::Scheme(shown(scheme)));
    }
    if text.len() == 64 && is_lower_hex(text) {
        return Err(Problem::ImageId);
    }
    Ok(())
}

/// `https://` of `https://ghcr.io/x`.
fn scheme(text: &str) -> Option<&str> {
    let end = text.find("://")?;
    let is_scheme =
        text.get(..end)?.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    text.get(..end + 3).filter(|_| is_scheme)
}

/// The first part is a registry only if it cannot be an owner's name on Docker Hub.
fn split_registry(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some((DOCKER_HUB_OF_OLD, path)) => (DOCKER_HUB, path),
        Some((first, path))
            if first == "localhost"
                || first.bytes().any(|byte| matches!(byte, b'.' | b':') || byte.is_ascii_uppercase()) =>
        {
            (first, path)
        }
        _ => (DOCKER_HUB, name),
    }
}

fn check_registry(registry: &str) -> Result<(), Problem> {
    let bracketed = registry.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host_is_valid, after_host) = if let Some((address, rest)) = bracketed {
        let is_address = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
        (!address.is_empty() && address.bytes().all(is_address), rest)
    } else {
        let (host, rest) = registry.split_at(registry.find(':').unwrap_or(registry.len()));
        (host.split('.').all(is_host_label), rest)
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port_is_valid = after_host.is_empty() || after_host.strip_prefix(':').is_some_and(is_port);
    if host_is_valid && port_is_valid { Ok(()) } else { Err(Problem::Registry(shown(registry))) }
}

fn is_host_label(label: &str) -> bool {
    !label.is_empty()
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn check_component(component: &str) -> Result<(), Problem> {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if component.is_empty() {
        return Err(Problem::EmptyComponent);
    }
    if component.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(Problem::UpperCase(shown(component)));
    }
    // Between letters and digits stand separators. Neither end may be one.
    let bytes = component.as_bytes();
    let ends_are_alphanumeric =
        [bytes.first(), bytes.last()].iter().flatten().all(|byte| is_alphanumeric(**byte));
    let mut separators = bytes.split(|byte| is_alphanumeric(*byte));
    let separators_are_valid = separators.all(|separator| match separator {
        [] | [b'.' | b'_'] | b"__" => true,
        dashes => dashes.iter().all(|byte| *byte == b'-'),
    });
    if ends_are_alphanumeric && separators_are_valid {
        Ok(())
    } else {
        Err(Problem::Component(shown(component)))
    }
}

fn check_tag(tag: &str) -> Result<(), Problem> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_valid = tag.len() <= LONGEST_TAG
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'));
    if is_valid { Ok(()) } else { Err(Problem::Tag(shown(tag))) }
}

fn check_digest(digest: &str) -> Result<(), Problem> {
    let is_valid = match digest.split_once(':') {
        Some(("sha256", hex)) => hex.len() == 64 && is_lower_hex(hex),
        Some(("sha512", hex)) => hex.len() == 128 && is_lower_hex(hex),
        _ => false,
    };
    if is_valid { Ok(()) } else { Err(Problem::Digest(shown(digest))) }
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Text fit for an error message: in quotes, without control characters, shortened.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{:?}", text.get(..end).unwrap_or_default().to_owned() + "…"),
        None => format!("{text:?}"),
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.given)
    }
}

impl ImageKey {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ImageKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}
