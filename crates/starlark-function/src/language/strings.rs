//! Strings as bytes: their length, their elements, and places in them.
//!
//! The interpreter counts characters. As long as all of them are ASCII that is the same; otherwise it is done here.
//! What would be a part of a character cannot be a string in this interpreter, and is refused.

use starlark::values::list::AllocList;
use starlark::values::{AllocValue as _, Heap, UnpackValue as _, Value};

use super::{problem, text};

/// The methods of strings that are told, or tell, places in them.
pub(super) const METHODS: &[&str] = &[
    "codepoint_ords",
    "codepoints",
    "count",
    "elem_ords",
    "elems",
    "endswith",
    "find",
    "format",
    "index",
    "rfind",
    "rindex",
    "startswith",
];

pub(super) fn length(string: &str) -> starlark::Result<i32> {
    i32::try_from(string.len()).map_err(|_| problem("len: the string is too long"))
}

/// A string of bytes from another one.
fn cut(string: &str, from: usize, to: usize) -> starlark::Result<&str> {
    string.get(from..to).ok_or_else(|| {
        problem(format!(
            "bytes {from} to {to} of {} are a part of a character, which cannot be a string in the built-in \
             starlark function; use codepoints(), or let the service run the function's image instead",
            text::quoted(string)
        ))
    })
}

fn unpack(value: Value<'_>) -> Option<i64> {
    if value.get_type() == "int" { i64::unpack_value(value).ok().flatten() } else { None }
}

/// `value[index]`, if it is done here.
pub(super) fn index<'v>(
    value: Value<'v>,
    index: Value<'v>,
    heap: Heap<'v>,
) -> starlark::Result<Option<Value<'v>>> {
    let Some(string) = value.unpack_str().filter(|string| !string.is_ascii()) else { return Ok(None) };
    let Some(wanted) = unpack(index) else { return Ok(None) };
    let length = i64::from(length(string)?);
    let at = usize::try_from(if wanted < 0 { wanted + length } else { wanted });
    match at.ok().filter(|at| *at < string.len()) {
        Some(at) => Ok(Some(heap.alloc(cut(string, at, at + 1)?))),
        None => Err(super::words::of_index(value, index).unwrap_or_else(|| problem("index out of range"))),
    }
}

/// Where from and where to in a sequence of this length, as slices say it.
fn range(length: usize, start: Value<'_>, stop: Value<'_>) -> Option<(usize, usize)> {
    let length = i64::try_from(length).ok()?;
    let place = |value: Value<'_>, otherwise: i64| {
        if value.is_none() {
            return Some(otherwise);
        }
        let wanted = unpack(value)?;
        Some(if wanted < 0 { (wanted + length).max(0) } else { wanted.min(length) })
    };
    let (start, stop) = (place(start, 0)?, place(stop, length)?);
    Some((usize::try_from(start).ok()?, usize::try_from(stop.max(start)).ok()?))
}

/// `value[start:stop:step]`, if it is done here.
pub(super) fn slice<'v>(
    value: Value<'v>,
    start: Value<'v>,
    stop: Value<'v>,
    stride: Value<'v>,
) -> starlark::Result<Option<String>> {
    let Some(string) = value.unpack_str().filter(|string| !string.is_ascii()) else { return Ok(None) };
    if !stride.is_none() && unpack(stride) != Some(1) {
        return Err(problem(
            "a slice with a step of a string that is not ASCII is not available in the built-in starlark \
             function; let the service run the function's image instead",
        ));
    }
    match range(string.len(), start, stop) {
        Some((from, to)) => cut(string, from, to).map(|part| Some(part.to_owned())),
        None => Ok(None),
    }
}

/// A method of a string, if it is done here.
pub(super) fn call<'v>(
    string: &str,
    name: &str,
    arguments: &[Value<'v>],
    heap: Heap<'v>,
) -> starlark::Result<Option<Value<'v>>> {
    let none = Value::new_none();
    let argument = |at: usize| arguments.get(at).copied().unwrap_or(none);
    let is_missing = || match name {
        "index" | "rindex" => Err(problem(format!("{name}: substring not found"))),
        _ => Ok(Some(heap.alloc(-1))),
    };
    if arguments.is_empty() {
        let listed = match name {
            "codepoints" => AllocList(string.chars().map(String::from)).alloc_value(heap),
            "codepoint_ords" => AllocList(string.chars().map(u32::from)).alloc_value(heap),
            "elem_ords" => AllocList(string.bytes().map(u32::from)).alloc_value(heap),
            "elems" => {
                let parts: Result<Vec<&str>, _> =
                    (0..string.len()).map(|at| cut(string, at, at + 1)).collect();
                AllocList(parts?).alloc_value(heap)
            }
            _ => return Ok(None),
        };
        return Ok(Some(listed));
    }
    if string.is_ascii() {
        // Only what is not found is told in other words.
        let part = argument(0).unpack_str().filter(|_| arguments.len() == 1);
        return match (name, part) {
            ("index" | "rindex", Some(part)) if !string.contains(part) => is_missing(),
            _ => Ok(None),
        };
    }
    let (Some(part), Some((from, to))) =
        (argument(0).unpack_str(), range(string.len(), argument(1), argument(2)))
    else {
        return Ok(None);
    };
    if matches!(name, "startswith" | "endswith") && arguments.len() == 1 {
        return Ok(None);
    }
    // A part that is found begins and ends between characters, wherever it is looked for.
    let within = string.as_bytes().get(from..to).unwrap_or_default();
    let mut places = memchr::memmem::find_iter(within, part);
    let found = match name {
        "find" | "index" => places.next(),
        "rfind" | "rindex" => memchr::memmem::rfind(within, part.as_bytes()),
        "count" if part.is_empty() => {
            return Ok(Some(heap.alloc(cut(string, from, to)?.chars().count() + 1)));
        }
        "count" => return Ok(Some(heap.alloc(places.count()))),
        "startswith" => return Ok(Some(Value::new_bool(within.starts_with(part.as_bytes())))),
        "endswith" => return Ok(Some(Value::new_bool(within.ends_with(part.as_bytes())))),
        _ => return Ok(None),
    };
    match found {
        Some(at) => Ok(Some(heap.alloc(from + at))),
        None => is_missing(),
    }
}
