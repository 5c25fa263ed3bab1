//! `encoding/json.star`: JSON.

use std::fmt::Write as _;

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::dict::DictRef;
use starlark::values::list::ListRef;
use starlark::values::structs::StructRef;
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, Value};

use super::json_decode::decode;
use crate::language::problem;
use crate::language::text::{shortest, unpack_float};

/// As deep as values can be in each other.
const MAXIMUM_DEPTH: usize = 10_000;

#[starlark_module]
fn members(builder: &mut GlobalsBuilder) {
    fn encode<'v>(#[starlark(require = pos)] x: Value<'v>, heap: Heap<'v>) -> starlark::Result<String> {
        let mut out = String::new();
        write(x, heap, &mut out, 0).map_err(|cause| problem(format!("json.encode: {cause}")))?;
        Ok(out)
    }

    fn decode<'v>(
        #[starlark(require = pos)] x: &str,
        default: Option<Value<'v>>,
        heap: Heap<'v>,
    ) -> starlark::Result<Value<'v>> {
        match (decode(x, heap), default) {
            (Ok(value), _) => Ok(value),
            (Err(_), Some(default)) => Ok(default),
            (Err(cause), None) => Err(problem(format!("json.decode: {cause}"))),
        }
    }

    fn indent<'v>(
        #[starlark(require = pos)] x: &str,
        #[starlark(require = named, default = "")] prefix: &str,
        #[starlark(require = named, default = "\t")] indent: &str,
        heap: Heap<'v>,
    ) -> starlark::Result<String> {
        decode(x, heap).map_err(|cause| problem(format!("json.indent: {cause}")))?;
        Ok(indented(x, prefix, indent))
    }
}

fn write<'v>(value: Value<'v>, heap: Heap<'v>, out: &mut String, depth: usize) -> Result<(), String> {
    if depth > MAXIMUM_DEPTH {
        return Err(format!("values are nested more than {MAXIMUM_DEPTH} levels deep, or in themselves"));
    }
    if let Some(text) = value.unpack_str() {
        write_string(text, out);
    } else if let Some(number) = unpack_float(value) {
        if !number.is_finite() {
            return Err(format!(
                "cannot encode non-finite float {}",
                crate::language::text::float(number, 'g')
            ));
        }
        out.push_str(&shortest(number));
    } else if let Some(dict) = DictRef::from_value(value) {
        let mut fields = Vec::with_capacity(dict.len());
        for (key, field) in dict.iter() {
            let name =
                key.unpack_str().ok_or_else(|| format!("dict has {} key, want string", key.get_type()))?;
            fields.push((name, field));
        }
        write_fields(fields, heap, out, depth).map_err(|(key, cause)| {
            format!("in dict key {}: {cause}", crate::language::text::quoted(&key))
        })?;
    } else if let Some(fields) = StructRef::from_value(value) {
        let fields: Vec<_> = fields.iter().collect();
        let fields = fields.iter().map(|(name, field)| (name.as_str(), *field)).collect();
        write_fields(fields, heap, out, depth)
            .map_err(|(name, cause)| format!("in field .{name}: {cause}"))?;
    } else {
        match value.get_type() {
            "NoneType" => out.push_str("null"),
            "bool" => out.push_str(if value.to_bool() { "true" } else { "false" }),
            "int" => out.push_str(&value.to_repr()),
            kind => {
                let list = ListRef::from_value(value).map(ListRef::content);
                let entries = match list.or_else(|| TupleRef::from_value(value).map(TupleRef::content)) {
                    Some(entries) => entries.to_vec(),
                    None => {
                        value.iterate(heap).map_err(|_| format!("cannot encode {kind} as JSON"))?.collect()
                    }
                };
                out.push('[');
                for (at, entry) in entries.into_iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    write(entry, heap, out, depth + 1)
                        .map_err(|cause| format!("at {kind} index {at}: {cause}"))?;
                }
                out.push(']');
            }
        }
    }
    Ok(())
}

/// Writes fields in the order of their keys; an error has the key of the field that it is in.
fn write_fields<'v>(
    mut fields: Vec<(&str, Value<'v>)>,
    heap: Heap<'v>,
    out: &mut String,
    depth: usize,
) -> Result<(), (String, String)> {
    fields.sort_by_key(|(key, _)| *key);
    out.push('{');
    for (at, (key, field)) in fields.into_iter().enumerate() {
        out.push_str(if at > 0 { "," } else { "" });
        write_string(key, out);
        out.push(':');
        write(field, heap, out, depth + 1).map_err(|cause| (key.to_owned(), cause))?;
    }
    out.push('}');
    Ok(())
}

/// Go has two ways: what is not plain ASCII is made fit to be put into HTML, too.
fn write_string(text: &str, out: &mut String) {
    let plain = text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' if !plain => escape(character, out),
            '\u{2028}' | '\u{2029}' => escape(character, out),
            control if control < ' ' => escape(control, out),
            other => out.push(other),
        }
    }
    out.push('"');
}

fn escape(character: char, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\u{:04x}", u32::from(character));
}

/// JSON with each field and entry in a line of its own.
fn indented(json: &str, prefix: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(prefix);
        out.push_str(&indent.repeat(depth));
    };
    let mut rest = json.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' | '\r' | '\n' => {}
            '"' => {
                out.push('"');
                while let Some(inner) = rest.next() {
                    out.push(inner);
                    match inner {
                        '\\' => out.extend(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                out.push(character);
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(close) = rest.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

pub(super) fn json(builder: &mut GlobalsBuilder) {
    builder.namespace("json", members);
}
