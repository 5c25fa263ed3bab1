//! What [`crate::inspect`] wants to know of a text, as a scanner tells it.

use super::sink::Sink;
use crate::Style;
use crate::nodes::is_null;

/// More top-level fields than this are unusual.
const MAXIMUM_FIELDS: usize = 16;

/// Collects what stands in the top-level mapping.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    text: &'a str,
    pub(super) kind: Option<&'a str>,
    pub(super) api_version: Option<&'a str>,
    /// The text of the value of `results`, if it is a collection.
    pub(super) results: Option<&'a str>,
    seen: Vec<&'a str>,
    depth: usize,
    /// The top-level field whose value is not complete.
    field: Option<Field<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Field<'a> {
    name: &'a str,
    /// Just after its colon.
    value: usize,
    collection: bool,
}

impl<'a> Facts<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let seen = Vec::with_capacity(MAXIMUM_FIELDS);
        Self { text, kind: None, api_version: None, results: None, seen, depth: 0, field: None }
    }

    /// Takes note of a top-level field that ends at `end`.
    fn finish_field(&mut self, end: usize) -> Option<()> {
        let Some(field) = self.field.take() else { return Some(()) };
        match field.name {
            // Unusual without a text.
            "kind" => self.kind.map(|_| ()),
            "apiVersion" => self.api_version.map(|_| ()),
            "results" if field.collection => {
                self.results = Some(self.text.get(field.value..end.min(self.text.len()))?);
                Some(())
            }
            _ => Some(()),
        }
    }

    /// The text of a scalar that is what stands there, or between its quotes.
    fn verbatim(&self, start: usize, end: usize) -> Option<&'a str> {
        let text = self.text.get(start..end)?;
        match text.as_bytes().first() {
            Some(b'"') => text.get(1..text.len() - 1).filter(|text| !text.contains(['\\', '\n'])),
            Some(b'\'') => text.get(1..text.len() - 1).filter(|text| !text.contains(['\'', '\n'])),
            _ => Some(text).filter(|text| !text.contains('\n')),
        }
    }
}

impl Sink for Facts<'_> {
    fn key(&mut self, start: usize, end: usize, colon: usize) -> Option<()> {
        if self.depth != 1 {
            return Some(());
        }
        self.finish_field(start)?;
        let name = self.verbatim(start, end)?;
        if self.seen.len() == MAXIMUM_FIELDS || self.seen.contains(&name) {
            return None;
        }
        self.seen.push(name);
        self.field = Some(Field { name, value: colon + 1, collection: false });
        Some(())
    }

    fn entry(&mut self, _dash: usize, _flow: bool) -> Option<()> {
        Some(())
    }

    fn scalar(&mut self, start: usize, end: usize, style: Style) -> Option<()> {
        let (1, Some(Field { name: name @ ("kind" | "apiVersion"), .. })) = (self.depth, self.field) else {
            return Some(());
        };
        if matches!(style, Style::Literal | Style::Folded) {
            return None;
        }
        let text = self.verbatim(start, end)?;
        let text = if style == Style::Plain && is_null(text) { return None } else { Some(text) };
        match name {
            "kind" => self.kind = text,
            _ => self.api_version = text,
        }
        Some(())
    }

    fn open(&mut self, _mapping: bool, _start: usize, _flow: bool) -> Option<()> {
        if self.depth == 1
            && let Some(field) = &mut self.field
        {
            field.collection = true;
        }
        self.depth += 1;
        Some(())
    }

    fn close(&mut self, end: usize, flow: bool) -> Option<()> {
        self.depth -= 1;
        // In block style, a field goes on up to the next one.
        if self.depth == 0 || (self.depth == 1 && flow) { self.finish_field(end) } else { Some(()) }
    }
}
