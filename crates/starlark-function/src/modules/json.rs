//! `encoding/json.star`: JSON.

use std::fmt::Write as _;

use krm::{Tag, Value as Yaml};
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::{Heap, Value};

use super::problem;
use crate::convert::sorted;

#[starlark_module]
fn members(builder: &mut GlobalsBuilder) {
    fn encode<'v>(#[starlark(require = pos)] x: Value<'v>) -> starlark::Result<String> {
        let mut out = String::new();
        write(&sorted(x).map_err(|refusal| problem(refusal.to_string()))?, &mut out)?;
        Ok(out)
    }

    fn decode<'v>(
        #[starlark(require = pos)] x: &str,
        default: Option<Value<'v>>,
        heap: Heap<'v>,
    ) -> starlark::Result<Value<'v>> {
        match (parse(x), default) {
            (Ok(value), _) => Ok(heap.alloc(&value)),
            (Err(_), Some(default)) => Ok(default),
            (Err(error), None) => Err(error),
        }
    }

    fn indent(
        #[starlark(require = pos)] x: &str,
        #[starlark(require = named, default = "")] prefix: &str,
        #[starlark(require = named, default = "\t")] indent: &str,
    ) -> starlark::Result<String> {
        parse(x)?;
        Ok(indented(x, prefix, indent))
    }
}

fn parse(text: &str) -> starlark::Result<serde_json::Value> {
    serde_json::from_str(text).map_err(|error| problem(format!("this is not JSON: {error}")))
}

fn write(value: &Yaml, out: &mut String) -> starlark::Result<()> {
    match value {
        Yaml::Scalar(_, Tag::Null) => out.push_str("null"),
        Yaml::Scalar(text, Tag::Boolean | Tag::Integer | Tag::Float) => out.push_str(text),
        Yaml::Scalar(text, _) => write_string(text, out),
        Yaml::Sequence(entries) => {
            out.push('[');
            for (at, entry) in entries.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(entry, out)?;
            }
            out.push(']');
        }
        Yaml::Mapping(fields) => {
            out.push('{');
            for (at, (key, field)) in fields.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_string(key, out);
                out.push(':');
                write(field, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
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
