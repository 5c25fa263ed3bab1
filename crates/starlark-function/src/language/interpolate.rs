//! Formats: `"%s" % value` and `"{}".format(value)`.

use starlark::values::dict::DictRef;
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, UnpackValue as _, Value};

use super::{problem, text};

/// What `format % value` is.
pub(super) fn percent<'v>(format: &str, value: Value<'v>, heap: Heap<'v>) -> starlark::Result<String> {
    let single = [value];
    let arguments = TupleRef::from_value(value).map_or(&single[..], TupleRef::content);
    let mut arguments_left = arguments.iter();
    let mut out = String::new();
    let mut rest = format;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        rest = behind;
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let argument = if let Some(behind) = rest.strip_prefix('(') {
            let (key, behind) = behind.split_once(')').ok_or_else(|| problem("incomplete format key"))?;
            let fields = DictRef::from_value(value).ok_or_else(|| problem("format requires a mapping"))?;
            rest = behind;
            // Arguments are not counted by it, but one is used.
            let _ = arguments_left.next();
            fields.get_str(key).ok_or_else(|| problem(format!("key not found: {key}")))?
        } else {
            let next = arguments_left.next();
            *next.ok_or_else(|| problem("not enough arguments for format string"))?
        };
        let mut characters = rest.chars();
        let conversion = characters.next().ok_or_else(|| problem("incomplete format"))?;
        rest = characters.as_str();
        convert(conversion, argument, heap, &mut out)?;
    }
    out.push_str(rest);
    if arguments_left.next().is_some() {
        return Err(problem("too many arguments for format string"));
    }
    Ok(out)
}

/// Writes one argument.
fn convert<'v>(
    conversion: char,
    argument: Value<'v>,
    heap: Heap<'v>,
    out: &mut String,
) -> starlark::Result<()> {
    match conversion {
        's' => out.push_str(&text::str(argument, heap)),
        'r' => out.push_str(&text::repr(argument, heap)),
        'd' | 'i' | 'o' | 'x' | 'X' => {
            let integer = integer(argument, conversion, heap)?;
            let conversion = if conversion == 'i' { 'd' } else { conversion };
            // The interpreter does this as Go does.
            let written = heap.alloc(format!("%{conversion}")).percent(integer, heap)?;
            out.push_str(written.unpack_str().unwrap_or_default());
        }
        'e' | 'f' | 'g' | 'E' | 'F' | 'G' => {
            let number = text::unpack_float(argument).or_else(|| number(argument)).ok_or_else(|| {
                problem(format!("%{conversion} format requires float, not {}", argument.get_type()))
            })?;
            out.push_str(&text::float(number, conversion));
        }
        'c' => out.push(character(argument)?),
        '%' => out.push('%'),
        other => return Err(problem(format!("unknown conversion %{other}"))),
    }
    Ok(())
}

/// An integer as a number with a fraction.
fn number(value: Value<'_>) -> Option<f64> {
    if value.get_type() == "int" { value.to_repr().parse().ok() } else { None }
}

/// The integer that a number is, without its fraction.
fn integer<'v>(value: Value<'v>, conversion: char, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
    if value.get_type() == "int" {
        return Ok(value);
    }
    let refuse = |cause: String| problem(format!("%{conversion} format requires integer: {cause}"));
    let number = text::unpack_float(value)
        .ok_or_else(|| refuse(format!("cannot convert {} to int", value.get_type())))?;
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit is refused")]
    let whole = number.trunc() as i64;
    if number.is_finite() && number.abs() < 9.0e18 {
        Ok(heap.alloc(whole))
    } else {
        Err(refuse(format!("cannot convert float {} to integer", text::float(number, 'g'))))
    }
}

/// The one character that a value stands for.
fn character(value: Value<'_>) -> starlark::Result<char> {
    if let Some(string) = value.unpack_str() {
        let mut characters = string.chars();
        return match (characters.next(), characters.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(problem("%c format requires a single-character string")),
        };
    }
    if value.get_type() != "int" {
        let found = value.get_type();
        return Err(problem(format!("%c format requires int or single-character string, not {found}")));
    }
    let code = i64::unpack_value(value).ok().flatten().and_then(|code| u32::try_from(code).ok());
    code.and_then(char::from_u32).ok_or_else(|| {
        let number = value.to_repr();
        problem(format!("%c format requires a valid Unicode code point, got {number}"))
    })
}

/// How the fields of a format are chosen.
#[derive(PartialEq, Eq)]
enum Numbering {
    Unknown,
    Automatic,
    Manual,
}

/// What `format.format(…)` is.
pub(super) fn format<'v>(
    format: &str,
    arguments: &[Value<'v>],
    named: &DictRef<'v>,
    heap: Heap<'v>,
) -> starlark::Result<String> {
    let mut out = String::new();
    let mut rest = format;
    let mut numbering = Numbering::Unknown;
    let mut automatic = arguments.iter();
    loop {
        let open = rest.find('{');
        let (literal, behind) = rest.split_at(open.unwrap_or(rest.len()));
        write_literal(literal, &mut out)?;
        let Some(behind) = behind.strip_prefix('{') else { return Ok(out) };
        if let Some(behind) = behind.strip_prefix('{') {
            out.push('{');
            rest = behind;
            continue;
        }
        let (field, behind) =
            behind.split_once('}').ok_or_else(|| problem("format: unmatched '{' in format"))?;
        rest = behind;
        let (name, conversion, specification) = parts(field);
        let missing = || problem("format: tuple index out of range");
        let value = if name.is_empty() {
            if numbering == Numbering::Manual {
                return Err(problem(
                    "format: cannot switch from manual field specification to automatic field numbering",
                ));
            }
            numbering = Numbering::Automatic;
            *automatic.next().ok_or_else(missing)?
        } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
            if numbering == Numbering::Automatic {
                return Err(problem(
                    "format: cannot switch from automatic field numbering to manual field specification",
                ));
            }
            numbering = Numbering::Manual;
            let at: usize = name.parse().unwrap_or(usize::MAX);
            *arguments.get(at).ok_or_else(missing)?
        } else {
            named.get_str(name).ok_or_else(|| not_found(name))?
        };
        if !specification.is_empty() {
            return Err(problem(format!(
                "format spec features not supported in replacement fields: {specification}"
            )));
        }
        match conversion {
            "s" => out.push_str(&text::str(value, heap)),
            "r" => out.push_str(&text::repr(value, heap)),
            other => return Err(problem(format!("format: unknown conversion {}", text::quoted(other)))),
        }
    }
}

/// Writes what is between the fields of a format.
fn write_literal(literal: &str, out: &mut String) -> starlark::Result<()> {
    let mut rest = literal;
    while let Some((before, behind)) = rest.split_once('}') {
        rest = behind.strip_prefix('}').ok_or_else(|| problem("format: single '}' in format"))?;
        out.push_str(before);
        out.push('}');
    }
    out.push_str(rest);
    Ok(())
}

/// Name, conversion and specification of a field.
fn parts(field: &str) -> (&str, &str, &str) {
    match field.split_once('!') {
        None => match field.split_once(':') {
            None => (field, "s", ""),
            Some((name, specification)) => (name, "s", specification),
        },
        Some((name, rest)) => match rest.split_once(':') {
            None => (name, rest, ""),
            Some((conversion, specification)) => (name, conversion, specification),
        },
    }
}

fn not_found(name: &str) -> starlark::Error {
    problem(if name.contains('.') {
        format!("format: attribute syntax x.y is not supported in replacement fields: {name}")
    } else if name.contains('[') {
        format!("format: element syntax a[i] is not supported in replacement fields: {name}")
    } else if name.contains('{') {
        "format: nested replacement fields not supported".to_owned()
    } else {
        format!("format: keyword {name} not found")
    })
}
