//! Values as texts.

use std::collections::HashSet;
use std::fmt::Write as _;

use starlark::values::dict::DictRef;
use starlark::values::float::UnpackFloat;
use starlark::values::list::ListRef;
use starlark::values::structs::StructRef;
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, UnpackValue as _, Value, ValueIdentity};

/// The text of a value: a string is itself.
pub(crate) fn str<'v>(value: Value<'v>, heap: Heap<'v>) -> String {
    value.unpack_str().map_or_else(|| repr(value, heap), str::to_owned)
}

/// A value as a program would write it.
pub(crate) fn repr<'v>(value: Value<'v>, heap: Heap<'v>) -> String {
    let mut out = String::new();
    Writer { out: &mut out, heap, around: HashSet::new() }.write(value);
    out
}

/// The number that a value is, if it is a float.
pub(crate) fn unpack_float(value: Value<'_>) -> Option<f64> {
    if value.get_type() == "float" {
        UnpackFloat::unpack_value(value).ok().flatten().map(|float| float.0)
    } else {
        None
    }
}

struct Writer<'o, 'v> {
    out: &'o mut String,
    heap: Heap<'v>,
    /// The collections that are being written, since one may be in itself.
    around: HashSet<ValueIdentity<'v>>,
}

impl<'v> Writer<'_, 'v> {
    fn write(&mut self, value: Value<'v>) {
        if let Some(text) = value.unpack_str() {
            quote(text, self.out);
        } else if let Some(number) = unpack_float(value) {
            self.out.push_str(&float(number, 'g'));
        } else if let Some(list) = ListRef::from_value(value) {
            self.collection(value, ("[", "]"), "[...]", list.iter());
        } else if let Some(tuple) = TupleRef::from_value(value) {
            let close = if tuple.len() == 1 { ",)" } else { ")" };
            self.collection(value, ("(", close), "(...)", tuple.iter());
        } else if let Some(dict) = DictRef::from_value(value) {
            let fields: Vec<_> = dict.iter().collect();
            self.fields(value, fields);
        } else if value.get_type() == "set"
            && let Ok(entries) = value.iterate(self.heap)
        {
            self.collection(value, ("set([", "])"), "set(...)", entries);
        } else if let Some(fields) = StructRef::from_value(value) {
            self.out.push_str("struct(");
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
            for (at, (name, field)) in fields.into_iter().enumerate() {
                self.out.push_str(if at > 0 { ", " } else { "" });
                self.out.push_str(name.as_str());
                self.out.push_str(" = ");
                self.write(field);
            }
            self.out.push(')');
        } else if value.get_type() == "function" {
            // Those of a program are shown with its name.
            let name = value.to_repr();
            let (kind, name) = match name.rsplit_once('.') {
                Some((_, name)) => ("function", name),
                None => ("built-in function", &*name),
            };
            // Writing to a String cannot fail.
            let _ = write!(self.out, "<{kind} {name}>");
        } else {
            self.out.push_str(&value.to_repr());
        }
    }

    fn collection(
        &mut self,
        value: Value<'v>,
        (open, close): (&str, &str),
        again: &str,
        entries: impl Iterator<Item = Value<'v>>,
    ) {
        if !self.around.insert(value.identity()) {
            return self.out.push_str(again);
        }
        self.out.push_str(open);
        for (at, entry) in entries.enumerate() {
            self.out.push_str(if at > 0 { ", " } else { "" });
            self.write(entry);
        }
        self.out.push_str(close);
        self.around.remove(&value.identity());
    }

    fn fields(&mut self, value: Value<'v>, fields: Vec<(Value<'v>, Value<'v>)>) {
        if !self.around.insert(value.identity()) {
            return self.out.push_str("{...}");
        }
        self.out.push('{');
        for (at, (key, field)) in fields.into_iter().enumerate() {
            self.out.push_str(if at > 0 { ", " } else { "" });
            self.write(key);
            self.out.push_str(": ");
            self.write(field);
        }
        self.out.push('}');
        self.around.remove(&value.identity());
    }
}

/// A string in quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::new();
    quote(text, &mut out);
    out
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\x0b' => out.push_str("\\v"),
            // Writing to a String cannot fail.
            control if control < ' ' || control == '\x7f' => {
                let _ = write!(out, "\\x{:02x}", u32::from(control));
            }
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

/// A number in one of the forms `e`, `f` and `g`, or with large letters.
pub(crate) fn float(number: f64, form: char) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+inf" } else { "-inf" }.to_owned();
    }
    let text = match form.to_ascii_lowercase() {
        'e' => with_exponent(&format!("{number:.6e}")),
        'f' => format!("{number:.6}"),
        _ => {
            let text = shortest(number);
            // It is to be seen that it is no integer.
            if text.contains(['.', 'e']) { text } else { text + ".0" }
        }
    };
    if form.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text }
}

/// A number, which is finite, with as few digits as tell it from all others, as Go writes it.
pub(crate) fn shortest(number: f64) -> String {
    let scientific = format!("{number:e}");
    let exponent: Option<i32> = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    // Numbers that are very large or small have an exponent.
    if exponent.is_some_and(|exponent| (-4..6).contains(&exponent)) {
        format!("{number}")
    } else {
        with_exponent(&scientific)
    }
}

/// A number with an exponent that has a sign and at least two digits.
fn with_exponent(scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific.to_owned() };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_go_writes_them() {
        for (number, text) in [
            (1.5, "1.5"),
            (3.0, "3"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (123_456.0, "123456"),
            (1_000_000.0, "1e+06"),
            (1_234_567.5, "1.2345675e+06"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-07"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(shortest(number), text);
        }
        assert_eq!(float(3.0, 'g'), "3.0");
        assert_eq!(float(1e30, 'G'), "1E+30");
        assert_eq!(float(1.5, 'e'), "1.500000e+00");
        assert_eq!(float(1.5, 'f'), "1.500000");
        assert_eq!(float(f64::INFINITY, 'f'), "+inf");
    }
}
