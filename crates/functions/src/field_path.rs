//! Fields named by a path with dots between its parts, as replacements name them.
//!
//! A part is the key of a field, the number of an entry, `*` for all entries, or `[key=value]` for the
//! entries that have such a field (`[=value]` for those that are such a scalar). `\.` is a dot in a key, and
//! so is a dot in brackets: `metadata.annotations.[example.com/owner]`.

use krm::{Budget, Document, Kind, NodeId, Value};

use crate::identity::text;
use crate::pattern::Pattern;

/// Far more than any field is deep.
const MAXIMUM_PARTS: usize = 200;

/// A path to fields.
#[derive(Debug)]
pub(crate) struct FieldPath {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Field(String),
    Index(usize),
    Every,
    /// What an entry must match is an expression where fields are written, and a text where one is read.
    Entry {
        key: String,
        value: String,
        pattern: Result<Pattern, String>,
    },
}

/// What a path leads to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) node: NodeId,
    /// It was not there before.
    pub(crate) created: bool,
    /// It is in the text of a scalar, which is YAML or JSON itself.
    pub(crate) embedded: bool,
}

/// What is done at the end of a path.
type Visit<'v> = dyn FnMut(&mut Document<'_>, Place) -> Result<(), String> + 'v;

impl FieldPath {
    pub(crate) fn parse(text: &str, budget: &Budget) -> Result<Self, String> {
        let parts = split(text);
        if parts.len() > MAXIMUM_PARTS {
            return Err(format!("a field path has {} parts, more than {MAXIMUM_PARTS}", parts.len()));
        }
        let parts = parts.iter().map(|part| Part::parse(part, budget)).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), parts })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The one value that the path leads to, if there is one.
    pub(crate) fn lookup(&self, document: &Document<'_>, node: NodeId) -> Result<Option<NodeId>, String> {
        let mut node = node;
        for part in &self.parts {
            if document.is_null(node) {
                return Ok(None);
            }
            let next = match part {
                Part::Every => return Err("wildcard is not supported in PathGetter".to_owned()),
                Part::Field(key) if key == "-" => {
                    expect(document, node, Kind::Sequence)?;
                    document.entries(node).last()
                }
                Part::Field(key) if key.trim().is_empty() => Some(node),
                Part::Field(key) => {
                    expect(document, node, Kind::Mapping)?;
                    document.get(node, key.trim())
                }
                Part::Index(index) => {
                    expect(document, node, Kind::Sequence)?;
                    document.entries(node).nth(*index)
                }
                Part::Entry { key, value, .. } => {
                    expect(document, node, Kind::Sequence)?;
                    let is_it = |&entry: &NodeId| entry_text(document, entry, key).as_ref() == Some(value);
                    document.entries(node).find(is_it)
                }
            };
            match next {
                Some(next) => node = next,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    /// Visits all values that the path leads to, and gives their number. What is missing is made, if the kind
    /// of the value at the end is given.
    pub(crate) fn visit(
        &self,
        document: &mut Document<'_>,
        node: NodeId,
        create: Option<Kind>,
        visit: &mut Visit<'_>,
    ) -> Result<usize, String> {
        let place = Place { node, created: false, embedded: false };
        Walk { create, visit }.walk(document, place, &self.parts)
    }
}

impl Part {
    fn parse(part: &str, budget: &Budget) -> Result<Self, String> {
        if part == "*" {
            return Ok(Self::Every);
        }
        if let Ok(index) = part.parse() {
            return Ok(Self::Index(index));
        }
        let Some(condition) = part.strip_prefix('[').and_then(|part| part.strip_suffix(']')) else {
            return Ok(Self::Field(part.to_owned()));
        };
        let (key, value) = condition
            .split_once('=')
            .ok_or("list path element must contain fieldName=fieldValue for element to match")?;
        Ok(Self::Entry {
            key: key.to_owned(),
            value: value.to_owned(),
            pattern: Pattern::part(value, budget),
        })
    }
}

/// The parts of a path.
fn split(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    // Those in brackets, until they are closed.
    let mut open: Option<String> = None;
    let mut pieces = path.strip_prefix('.').unwrap_or(path).split('.');
    while let Some(piece) = pieces.next() {
        let mut piece = piece.to_owned();
        while piece.ends_with('\\') {
            let Some(next) = pieces.next() else { break };
            piece.pop();
            piece.push('.');
            piece.push_str(next);
        }
        let bracketed = match open.take() {
            Some(mut before) => {
                before.push('.');
                before.push_str(&piece);
                before
            }
            None if piece.starts_with('[') && !piece.ends_with(']') => piece,
            None => {
                parts.push(piece);
                continue;
            }
        };
        if bracketed.ends_with(']') {
            parts.push(unbracketed(bracketed));
        } else {
            open = Some(bracketed);
        }
    }
    parts.extend(open.map(unbracketed));
    parts
}

/// A key is bare, a condition keeps its brackets.
fn unbracketed(part: String) -> String {
    if part.contains('=') { part } else { part.trim_matches(['[', ']']).to_owned() }
}

fn expect(document: &Document<'_>, node: NodeId, kind: Kind) -> Result<(), String> {
    let name = |kind: Kind| match kind {
        Kind::Mapping => "MappingNode",
        Kind::Sequence => "SequenceNode",
        Kind::Scalar => "ScalarNode",
    };
    let found = document.kind(node);
    if found == kind {
        return Ok(());
    }
    let line = document.line(node);
    Err(format!("wrong node kind: expected {} but got {} in line {line}", name(kind), name(found)))
}

/// The text of a field of an entry, or of the entry itself.
fn entry_text(document: &Document<'_>, entry: NodeId, key: &str) -> Option<String> {
    text(document, if key.is_empty() { entry } else { document.get(entry, key)? })
}

struct Walk<'w, 'v> {
    create: Option<Kind>,
    visit: &'w mut Visit<'v>,
}

impl Walk<'_, '_> {
    fn walk(&mut self, document: &mut Document<'_>, place: Place, parts: &[Part]) -> Result<usize, String> {
        let Some((part, rest)) = parts.split_first() else {
            (self.visit)(document, place)?;
            return Ok(1);
        };
        let wanted = match part {
            Part::Field(_) => Kind::Mapping,
            _ => Kind::Sequence,
        };
        if document.is_null(place.node) {
            match self.create {
                Some(_) => document.set(place.node, empty(wanted))?,
                None => return Ok(0),
            }
        }
        if document.kind(place.node) == Kind::Scalar {
            return self.walk_text(document, place, parts, wanted);
        }
        expect(document, place.node, wanted)?;
        let node = place.node;
        let entries: Vec<NodeId> = document.entries(node).collect();
        document.budget().work(8 + 4 * entries.len())?;
        match part {
            Part::Field(key) => match document.get(node, key) {
                Some(field) => self.walk(document, Place { node: field, created: false, ..place }, rest),
                None => self.add(document, place, Some(key), None, rest),
            },
            Part::Index(index) => match entries.get(*index) {
                Some(&entry) => self.walk(document, Place { node: entry, created: false, ..place }, rest),
                None if *index == entries.len() && self.create.is_some() => {
                    self.add(document, place, None, None, rest)
                }
                None => Err(format!("index {index} specified but only {} elements found", entries.len())),
            },
            Part::Every => self.walk_all(document, place, entries, rest),
            Part::Entry { key, value, pattern } => {
                let pattern = pattern.as_ref().map_err(Clone::clone)?;
                let mut found = Vec::new();
                for entry in entries {
                    if let Some(text) = entry_text(document, entry, key)
                        && pattern.matches(&text)?
                    {
                        found.push(entry);
                    }
                }
                // A scalar is the end of the path.
                let rest = if key.is_empty() { &[] } else { rest };
                if found.is_empty() {
                    let new = match &**key {
                        "" => Value::plain(value),
                        key => Value::Mapping(vec![(key.to_owned(), Value::plain(value))]),
                    };
                    return self.add(document, place, None, Some(new), rest);
                }
                self.walk_all(document, place, found, rest)
            }
        }
    }

    fn walk_all(
        &mut self,
        document: &mut Document<'_>,
        place: Place,
        entries: Vec<NodeId>,
        rest: &[Part],
    ) -> Result<usize, String> {
        entries.into_iter().try_fold(0, |count, node| {
            Ok(count + self.walk(document, Place { node, created: false, ..place }, rest)?)
        })
    }

    /// Makes a field or an entry, if it is to be made, and goes on from it.
    fn add(
        &mut self,
        document: &mut Document<'_>,
        place: Place,
        key: Option<&str>,
        value: Option<Value>,
        rest: &[Part],
    ) -> Result<usize, String> {
        let Some(create) = self.create else { return Ok(0) };
        let value = value.unwrap_or_else(|| {
            empty(match rest.first() {
                None => create,
                Some(Part::Index(_) | Part::Entry { .. }) => Kind::Sequence,
                Some(Part::Field(_) | Part::Every) => Kind::Mapping,
            })
        });
        let added = match key {
            Some(key) => document.set_field(place.node, key, value),
            None => document.push(place.node, value),
        };
        let node = added?;
        self.walk(document, Place { node, created: true, ..place }, rest)
    }

    /// Goes on in the text of a scalar, if that is a document itself.
    fn walk_text(
        &mut self,
        document: &mut Document<'_>,
        place: Place,
        parts: &[Part],
        wanted: Kind,
    ) -> Result<usize, String> {
        let inner = document.string(place.node).map(std::borrow::Cow::into_owned).unwrap_or_default();
        // It, and what becomes of it, is there beside all texts around it.
        document.budget().memory(2 * inner.len())?;
        let Ok(mut embedded) = Document::parse_within(&inner, document.budget()) else {
            document.budget().check()?;
            return expect(document, place.node, wanted).map(|()| 0);
        };
        let root = embedded.root();
        if embedded.kind(root) == Kind::Scalar {
            return expect(document, place.node, wanted).map(|()| 0);
        }
        let place_inside = Place { node: root, created: false, embedded: true };
        let count = self.walk(&mut embedded, place_inside, parts)?;
        if embedded.is_changed() {
            let inner = embedded.to_text()?;
            drop(embedded);
            document.set(place.node, inner)?;
        }
        Ok(count)
    }
}

fn empty(kind: Kind) -> Value {
    match kind {
        Kind::Mapping => Value::mapping(),
        Kind::Sequence => Value::Sequence(Vec::new()),
        Kind::Scalar => Value::null(),
    }
}
