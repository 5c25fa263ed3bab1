//! `encoding/csv.star`: tables of texts.

#![expect(clippy::too_many_arguments, reason = "they are named, and have defaults")]

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::list::{AllocList, ListRef};
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, Value};

use crate::language::problem;
use crate::language::text::{shortest, unpack_float};

#[starlark_module]
fn members(builder: &mut GlobalsBuilder) {
    /// The rows of a text, each a list of its fields.
    fn read_all<'v>(
        source: &str,
        #[starlark(default = "")] comma: &str,
        #[starlark(default = "")] comment: &str,
        #[starlark(default = false)] lazy_quotes: bool,
        #[starlark(default = false)] trim_leading_space: bool,
        #[starlark(default = 0)] fields_per_record: i32,
        #[starlark(default = 0)] skip: i32,
        heap: Heap<'v>,
    ) -> starlark::Result<Value<'v>> {
        let comment = single(comment, "comment")?;
        let text = source.replace("\r\n", "\n").replace('\r', "\n");
        let options = Options {
            comma: single(comma, "comma")?.unwrap_or(','),
            comment,
            lazy_quotes,
            trim_leading_space,
        };
        let mut reader = Reader { rest: &text, current: "", line: 0, options };
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut expected = usize::try_from(fields_per_record).ok().filter(|expected| *expected > 0);
        let mut skipped = 0;
        while let Some((line, row)) = reader.row()? {
            let wrong = expected.is_some_and(|expected| expected != row.len());
            // A negative number is for rows of any length; otherwise the first one decides.
            if fields_per_record == 0 {
                expected.get_or_insert(row.len());
            }
            if skipped < skip {
                skipped += 1;
                continue;
            }
            if wrong {
                return Err(problem(format!("record on line {line}: wrong number of fields")));
            }
            rows.push(row);
        }
        Ok(heap.alloc(AllocList(rows.into_iter().map(AllocList))))
    }

    /// A text with a line for each row.
    fn write_all<'v>(source: Value<'v>, #[starlark(default = "")] comma: &str) -> starlark::Result<String> {
        let comma = single(comma, "comma")?.unwrap_or(',');
        let rows = entries(source).ok_or_else(|| problem("expected value to be an array type"))?;
        let mut out = String::new();
        for (at, row) in rows.iter().enumerate() {
            let fields = entries(*row).ok_or_else(|| problem(format!("row {at} is not an array type")))?;
            for (at, field) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(comma);
                }
                write_field(&cell(*field)?, comma, &mut out);
            }
            out.push('\n');
        }
        Ok(out)
    }
}

fn entries(value: Value<'_>) -> Option<&[Value<'_>]> {
    ListRef::from_value(value)
        .map(ListRef::content)
        .or_else(|| TupleRef::from_value(value).map(TupleRef::content))
}

/// The only character of a text, if it is not empty.
fn single(text: &str, name: &str) -> starlark::Result<Option<char>> {
    match text.len() {
        0 => Ok(None),
        1 => Ok(text.chars().next()),
        _ => Err(problem(format!("expected {name} param to be a single-character string"))),
    }
}

/// A value as Go prints it.
fn cell(value: Value<'_>) -> starlark::Result<String> {
    Ok(match value.get_type() {
        "string" => value.unpack_str().unwrap_or_default().to_owned(),
        "NoneType" => "<nil>".to_owned(),
        "bool" => value.to_bool().to_string(),
        "int" => value.to_repr(),
        "float" => unpack_float(value).map(shortest).unwrap_or_default(),
        other => return Err(problem(format!("a value of type {other} cannot be a field of a table here"))),
    })
}

fn write_field(field: &str, comma: char, out: &mut String) {
    let special = |character: char| character == comma || matches!(character, '"' | '\n' | '\r');
    if field == "\\." || field.contains(special) || field.starts_with(char::is_whitespace) {
        out.push('"');
        out.push_str(&field.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(field);
    }
}

struct Options {
    comma: char,
    comment: Option<char>,
    lazy_quotes: bool,
    trim_leading_space: bool,
}

struct Reader<'t> {
    rest: &'t str,
    /// The line that is being read, and its number.
    current: &'t str,
    line: usize,
    options: Options,
}

impl<'t> Reader<'t> {
    /// The next line, with its break.
    fn next_line(&mut self) -> Option<&'t str> {
        let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
        let (line, rest) = self.rest.split_at(end);
        if line.is_empty() {
            return None;
        }
        (self.rest, self.current) = (rest, line);
        self.line += 1;
        Some(line)
    }

    /// The next row, and the line that it starts on. Empty lines and comments are passed over.
    fn row(&mut self) -> starlark::Result<Option<(usize, Vec<String>)>> {
        let mut text = loop {
            let Some(line) = self.next_line() else { return Ok(None) };
            let comment = self.options.comment.is_some_and(|comment| line.starts_with(comment));
            if !comment && line != "\n" {
                break line;
            }
        };
        let start = self.line;
        let mut row = Vec::new();
        loop {
            if self.options.trim_leading_space {
                text =
                    text.trim_start_matches(|character: char| character.is_whitespace() && character != '\n');
            }
            let Some(quoted) = text.strip_prefix('"') else {
                let end = text.find([self.options.comma, '\n']).unwrap_or(text.len());
                let (field, rest) = text.split_at(end);
                if let Some(quote) = field.find('"').filter(|_| !self.options.lazy_quotes) {
                    let behind = text.get(quote..).unwrap_or_default();
                    return Err(self.wrong(start, behind, "bare \" in non-quoted-field"));
                }
                row.push(field.to_owned());
                match rest.strip_prefix(self.options.comma) {
                    Some(rest) => text = rest,
                    None => return Ok(Some((start, row))),
                }
                continue;
            };
            let (field, rest) = self.quoted(start, quoted)?;
            row.push(field);
            match rest {
                Some(rest) => text = rest,
                None => return Ok(Some((start, row))),
            }
        }
    }

    /// A field from behind its first quote on, which may go over several lines, and what is behind its comma.
    fn quoted(&mut self, start: usize, text: &'t str) -> starlark::Result<(String, Option<&'t str>)> {
        let mut field = String::new();
        let mut text = text;
        loop {
            let Some((before, rest)) = text.split_once('"') else {
                field.push_str(text);
                match self.next_line() {
                    Some(line) => text = line,
                    None if self.options.lazy_quotes => return Ok((field, None)),
                    None => return Err(self.wrong(start, "", "extraneous or missing \" in quoted-field")),
                }
                continue;
            };
            field.push_str(before);
            if let Some(rest) = rest.strip_prefix('"') {
                field.push('"');
                text = rest;
            } else if let Some(rest) = rest.strip_prefix(self.options.comma) {
                return Ok((field, Some(rest)));
            } else if matches!(rest, "" | "\n") {
                return Ok((field, None));
            } else if self.options.lazy_quotes {
                field.push('"');
                text = rest;
            } else {
                let behind = text.get(before.len()..).unwrap_or_default();
                return Err(self.wrong(start, behind, "extraneous or missing \" in quoted-field"));
            }
        }
    }

    /// What is wrong in the current line, of which this much is behind it.
    fn wrong(&self, start: usize, behind: &str, cause: &str) -> starlark::Error {
        let line = self.line;
        let column = self.current.len().saturating_sub(behind.len()) + 1;
        problem(if start == line {
            format!("parse error on line {line}, column {column}: {cause}")
        } else {
            format!("record on line {start}; parse error on line {line}, column {column}: {cause}")
        })
    }
}

pub(super) fn csv(builder: &mut GlobalsBuilder) {
    builder.namespace("csv", members);
}
