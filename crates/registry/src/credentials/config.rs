//! The content of a Docker config file.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use super::error::{BrokenEntry, Malformed};
use super::helper::Helper;
use super::key::Pattern;
use super::login::{Login, Secret};
use crate::Reference;

/// Kubernetes and hand-written files leave the padding out at times.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a file says, in the order in which it is to be asked.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// The most specific first; of those equally specific, helpers first, as in Docker.
    entries: Vec<Entry>,
    /// Where to ask for registries that have no entry with a login.
    store: Option<Result<Helper, BrokenEntry>>,
}

#[derive(Debug)]
pub(super) struct Entry {
    /// As spelled in the file.
    pub(super) key: String,
    pattern: Pattern,
    pub(super) source: Result<Source, BrokenEntry>,
}

/// Where a login is.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Here(Login),
    Helper(Helper),
    /// Docker leaves entries without content for logins that are in the store.
    Store,
}

impl Config {
    pub(super) fn parse(content: &[u8]) -> Result<Self, Malformed> {
        // Go takes the file of nothing for one without entries.
        if content.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        // The text of the error stays here: it repeats what it stumbled over.
        let document: Value = serde_json::from_slice(content)
            .map_err(|error| Malformed::Json { line: error.line(), column: error.column() })?;
        let Value::Object(document) = document else {
            return Err(Malformed::Shape("the content", "an object"));
        };
        let mut entries = Vec::new();
        for (key, value) in object(&document, "auths")? {
            entries.push(Entry::new(key, entry_source(value)));
        }
        for (key, value) in object(&document, "credHelpers")? {
            entries.push(Entry::new(key, helper(value).map(Source::Helper)));
        }
        entries.sort_by(|one, other| {
            let is_helper = |entry: &Entry| matches!(entry.source, Ok(Source::Helper(_)));
            other
                .pattern
                .specificity(&one.pattern)
                .then_with(|| is_helper(other).cmp(&is_helper(one)))
                // Several spellings of one key: the plainest.
                .then_with(|| one.key.len().cmp(&other.key.len()))
                .then_with(|| one.key.cmp(&other.key))
        });
        let store = match field(&document, "credsStore") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if name.is_empty() => None,
            Some(Value::String(name)) => Some(Helper::named(name).ok_or(BrokenEntry::HelperName)),
            Some(_) => return Err(Malformed::Shape("\"credsStore\"", "a string")),
        };
        Ok(Self { entries, store })
    }

    /// All entries.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries for an image, the one to ask first before the others.
    pub(super) fn entries_for(&self, image: &Reference) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.pattern.matches(image))
    }

    pub(super) fn store(&self) -> Option<&Result<Helper, BrokenEntry>> {
        self.store.as_ref()
    }
}

impl Entry {
    fn new(key: &str, source: Result<Source, BrokenEntry>) -> Self {
        Self { key: key.to_owned(), pattern: Pattern::new(key), source }
    }

    pub(super) fn is_glob(&self) -> bool {
        self.pattern.is_glob()
    }
}

/// The case of names does not count, as it does not in Go, for which such files are written.
fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object
        .get(name)
        .or_else(|| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
}

fn object<'a>(
    document: &'a Map<String, Value>,
    name: &'static str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, Malformed> {
    match field(document, name) {
        None | Some(Value::Null) => Ok(None.into_iter().flatten()),
        Some(Value::Object(object)) => Ok(Some(object.iter()).into_iter().flatten()),
        Some(_) if name == "auths" => Err(Malformed::Shape("\"auths\"", "an object")),
        Some(_) => Err(Malformed::Shape("\"credHelpers\"", "an object")),
    }
}

fn helper(value: &Value) -> Result<Helper, BrokenEntry> {
    value.as_str().and_then(Helper::named).ok_or(BrokenEntry::HelperName)
}

/// An entry's login. Of several the one that is most directly usable, as in Docker.
fn entry_source(value: &Value) -> Result<Source, BrokenEntry> {
    let Value::Object(entry) = value else {
        return if value.is_null() { Ok(Source::Store) } else { Err(BrokenEntry::Shape) };
    };
    let registry_token = text(entry, "registrytoken")?;
    if !registry_token.is_empty() {
        return Ok(Source::Here(Login::RegistryToken(Secret::new(registry_token))));
    }
    let identity_token = text(entry, "identitytoken")?;
    if !identity_token.is_empty() {
        return Ok(Source::Here(Login::IdentityToken(Secret::new(identity_token))));
    }
    let auth = text(entry, "auth")?.trim_ascii();
    let (username, password) = if auth.is_empty() {
        (text(entry, "username")?.to_owned(), Secret::new(text(entry, "password")?))
    } else {
        decode(auth).ok_or(BrokenEntry::Auth)?
    };
    if username.is_empty() && password.is_empty() {
        return Ok(Source::Store);
    }
    Ok(Source::Here(Login::Basic { username, password }))
}

fn text<'a>(entry: &'a Map<String, Value>, name: &'static str) -> Result<&'a str, BrokenEntry> {
    match field(entry, name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(BrokenEntry::Field(name)),
    }
}

/// Takes USER:PASSWORD out of its base64. The password may have colons. Docker of old padded it with zeros.
fn decode(auth: &str) -> Option<(String, Secret)> {
    let decoded = String::from_utf8(BASE64.decode(auth).ok()?).ok()?;
    let (username, password) = decoded.split_once(':')?;
    Some((username.to_owned(), Secret::new(password.trim_matches('\0'))))
}
