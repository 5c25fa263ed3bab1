//! Values of YAML as values of Starlark, and back.

use std::collections::HashMap;
use std::fmt;

use krm::{Tag, Value};
use starlark::values::dict::{AllocDict, DictRef};
use starlark::values::list::{AllocList, ListRef};
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, UnpackValue as _, Value as StarlarkValue};

use crate::language::text::{shortest, unpack_float};

/// As deep as resources can be in a list that is to be read again.
const MAXIMUM_DEPTH: usize = 480;

/// As much as a program can write, in bytes.
const MAXIMUM_SIZE: usize = 256 << 20;

/// As many steps as are shown of where a value is.
const SHOWN_STEPS: usize = 20;

/// What a scalar means to a program.
#[derive(Debug, PartialEq)]
enum Meaning<'s> {
    None,
    Boolean(bool),
    Integer(i128),
    Float(f64),
    Text(&'s str),
}

impl<'s> Meaning<'s> {
    fn of(text: &'s str, tag: Tag) -> Self {
        match tag {
            Tag::Null => Self::None,
            Tag::Boolean => Self::Boolean(text.eq_ignore_ascii_case("true")),
            Tag::Integer => integer(text).map_or(Self::Text(text), Self::Integer),
            Tag::Float => float(text).map_or(Self::Text(text), Self::Float),
            Tag::Timestamp | Tag::String | Tag::Other => Self::Text(text),
        }
    }

    /// Whether a program's value is this.
    fn is(&self, value: StarlarkValue<'_>) -> bool {
        match self {
            Self::None => value.is_none(),
            Self::Boolean(truth) => value.unpack_bool() == Some(*truth),
            Self::Integer(number) => unpack_integer(value) == Some(*number),
            Self::Float(number) => {
                unpack_float(value).is_some_and(|other| other.to_bits() == number.to_bits())
            }
            Self::Text(text) => value.unpack_str() == Some(text),
        }
    }
}

/// A number with or without a base, as YAML writes it.
fn integer(text: &str) -> Option<i128> {
    let text = text.replace('_', "");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    let number = i128::from(u64::from_str_radix(digits, base).ok()?);
    Some(if negative { -number } else { number })
}

fn float(text: &str) -> Option<f64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    match &*text {
        ".inf" | "+.inf" => Some(f64::INFINITY),
        "-.inf" => Some(f64::NEG_INFINITY),
        ".nan" => Some(f64::NAN),
        number => number.parse().ok(),
    }
}

/// The integer that a value is, if it has at most 64 bits.
fn unpack_integer(value: StarlarkValue<'_>) -> Option<i128> {
    if value.get_type() != "int" {
        return None;
    }
    let signed = i64::unpack_value(value).ok().flatten().map(i128::from);
    signed.or_else(|| u64::unpack_value(value).ok().flatten().map(i128::from))
}

/// The value that a program sees.
pub(crate) fn to_starlark<'v>(value: &Value, heap: Heap<'v>) -> StarlarkValue<'v> {
    match value {
        Value::Scalar(text, tag) => match Meaning::of(text, *tag) {
            Meaning::None => StarlarkValue::new_none(),
            Meaning::Boolean(truth) => StarlarkValue::new_bool(truth),
            Meaning::Integer(number) => match i64::try_from(number) {
                Ok(number) => heap.alloc(number),
                // A YAML integer has at most 64 bits.
                Err(_) => heap.alloc(u64::try_from(number).unwrap_or(u64::MAX)),
            },
            Meaning::Float(number) => heap.alloc(number),
            Meaning::Text(text) => heap.alloc(text),
        },
        Value::Sequence(entries) => {
            heap.alloc(AllocList(entries.iter().map(|entry| to_starlark(entry, heap))))
        }
        Value::Mapping(fields) => {
            heap.alloc(AllocDict(fields.iter().map(|(key, field)| (&**key, to_starlark(field, heap)))))
        }
    }
}

/// Why a value cannot be written, and which part of it.
#[derive(Debug)]
pub(crate) struct Refusal {
    cause: String,
    /// Where it is, the last step first.
    path: Vec<String>,
}

impl Refusal {
    fn new(cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), path: Vec::new() }
    }

    /// The same, said of what the value is in.
    pub(crate) fn within(mut self, step: impl Into<String>) -> Self {
        self.path.push(step.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in self.path.iter().rev().take(SHOWN_STEPS) {
            out.write_str(step)?;
        }
        out.write_str(if self.path.len() > SHOWN_STEPS { "..." } else { "" })?;
        out.write_str(if self.path.is_empty() { "" } else { ": " })?;
        out.write_str(&self.cause)
    }
}

/// Turns what a program made into YAML.
#[derive(Debug)]
pub(crate) struct Writer {
    left: usize,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self { left: MAXIMUM_SIZE }
    }

    /// The value in YAML. Where it means what was there before, it is what was there before: a number may be
    /// written in many ways.
    pub(crate) fn write(&mut self, value: StarlarkValue<'_>, old: Option<&Value>) -> Result<Value, Refusal> {
        self.convert(value, old, 0)
    }

    fn convert(
        &mut self,
        value: StarlarkValue<'_>,
        old: Option<&Value>,
        depth: usize,
    ) -> Result<Value, Refusal> {
        if depth > MAXIMUM_DEPTH {
            return Err(Refusal::new(format!(
                "values are nested more than {MAXIMUM_DEPTH} levels deep, or in themselves"
            )));
        }
        if let Some(Value::Scalar(text, tag)) = old
            && Meaning::of(text, *tag).is(value)
        {
            self.spend(text.len())?;
            return Ok(Value::Scalar(text.clone(), *tag));
        }
        if let Some(list) = ListRef::from_value(value) {
            return self.sequence(list.content(), old, depth);
        }
        if let Some(tuple) = TupleRef::from_value(value) {
            return self.sequence(tuple.content(), old, depth);
        }
        if let Some(dict) = DictRef::from_value(value) {
            return self.mapping(&dict, old, depth);
        }
        let scalar = match value.get_type() {
            "NoneType" => Value::null(),
            "bool" => value.to_bool().into(),
            "int" => match unpack_integer(value) {
                Some(number) => Value::plain(number.to_string()),
                None => {
                    return Err(Refusal::new("an integer of more than 64 bits cannot be part of a resource"));
                }
            },
            // YAML could say it, but JSON cannot, and every resource is sent as JSON in the end.
            "float" => match unpack_float(value).filter(|number| number.is_finite()) {
                Some(number) => Value::plain(shortest(number)),
                None => return Err(Refusal::new(format!("the number {value} cannot be part of a resource"))),
            },
            "string" => Value::string(value.unpack_str().unwrap_or_default()),
            other => {
                return Err(Refusal::new(format!("a value of type {other} cannot be part of a resource")));
            }
        };
        self.spend(scalar.text().unwrap_or_default().len())?;
        Ok(scalar)
    }

    fn sequence(
        &mut self,
        entries: &[StarlarkValue<'_>],
        old: Option<&Value>,
        depth: usize,
    ) -> Result<Value, Refusal> {
        self.spend(0)?;
        let old = match old {
            Some(Value::Sequence(old)) => &**old,
            _ => &[],
        };
        // Those at the end are compared with the end, since entries come and go.
        let before = entries.iter().zip(old).take_while(|(new, old)| is_same(**new, old, depth)).count();
        let most = entries.len().min(old.len()) - before;
        let pairs = entries.iter().rev().zip(old.iter().rev());
        let after = pairs.take(most).take_while(|(new, old)| is_same(**new, old, depth)).count();
        let first_after = entries.len() - after;
        let of_old = |at: usize| if at < first_after { at } else { at + old.len() - entries.len() };
        let entries = entries.iter().enumerate();
        let converted = entries.map(|(at, entry)| {
            let entry = self.convert(*entry, old.get(of_old(at)), depth + 1);
            entry.map_err(|refusal| refusal.within(format!("[{at}]")))
        });
        Ok(Value::Sequence(converted.collect::<Result<_, _>>()?))
    }

    fn mapping(&mut self, dict: &DictRef<'_>, old: Option<&Value>, depth: usize) -> Result<Value, Refusal> {
        self.spend(0)?;
        let old: HashMap<&str, &Value> = match old {
            Some(Value::Mapping(old)) => old.iter().map(|(key, value)| (&**key, value)).collect(),
            _ => HashMap::new(),
        };
        let mut fields = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            let key = key.unpack_str().ok_or_else(|| {
                let found = key.get_type();
                Refusal::new(format!("the keys of a resource must be strings, but one is of type {found}"))
            })?;
            self.spend(key.len())?;
            let field = self.convert(value, old.get(key).copied(), depth + 1);
            fields.push((key.to_owned(), field.map_err(|refusal| refusal.within(format!("[{key:?}]")))?));
        }
        // As in Go, where maps have no order: what was there keeps it, what is new is sorted.
        fields.sort_by(|(one, _), (other, _)| match (old.contains_key(&**one), old.contains_key(&**other)) {
            (false, false) => one.cmp(other),
            (one, other) => other.cmp(&one),
        });
        Ok(Value::Mapping(fields))
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Refusal> {
        let left = self.left.checked_sub(bytes + 64);
        self.left = left.ok_or_else(|| {
            let most = MAXIMUM_SIZE >> 20;
            Refusal::new(format!("what the program wants written is larger than {most} MiB"))
        })?;
        Ok(())
    }
}

/// The value in YAML, with the fields in the order of their keys.
pub(crate) fn sorted(value: StarlarkValue<'_>) -> Result<Value, Refusal> {
    fn sort(value: &mut Value) {
        match value {
            Value::Scalar(..) => {}
            Value::Sequence(entries) => entries.iter_mut().for_each(sort),
            Value::Mapping(fields) => {
                fields.sort_by(|(one, _), (other, _)| one.cmp(other));
                for (_, field) in fields {
                    sort(field);
                }
            }
        }
    }
    let mut value = Writer::new().write(value, None)?;
    sort(&mut value);
    Ok(value)
}

/// Whether a program's value is what was there before.
fn is_same(value: StarlarkValue<'_>, old: &Value, depth: usize) -> bool {
    if depth > MAXIMUM_DEPTH {
        return false;
    }
    match old {
        Value::Scalar(text, tag) => Meaning::of(text, *tag).is(value),
        Value::Sequence(old) => ListRef::from_value(value).is_some_and(|list| {
            list.len() == old.len() && list.iter().zip(old).all(|(value, old)| is_same(value, old, depth + 1))
        }),
        Value::Mapping(old) => DictRef::from_value(value).is_some_and(|dict| {
            dict.len() == old.len()
                && old
                    .iter()
                    .all(|(key, old)| dict.get_str(key).is_some_and(|value| is_same(value, old, depth + 1)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_yaml_writes_them() {
        for (text, number) in [
            ("7", 7),
            ("-7", -7),
            ("+7", 7),
            ("0x1F", 31),
            ("014", 12),
            ("0o14", 12),
            ("0b11", 3),
            ("1_000", 1000),
            ("0", 0),
        ] {
            assert_eq!(integer(text), Some(number), "{text}");
        }
        assert_eq!(integer("18446744073709551615"), Some(i128::from(u64::MAX)));
        assert_eq!(float("1_0.5"), Some(10.5));
        assert_eq!(float("-.Inf"), Some(f64::NEG_INFINITY));
        assert!(float(".NaN").unwrap().is_nan());
    }
}
