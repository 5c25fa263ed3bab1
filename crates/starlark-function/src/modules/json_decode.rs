//! JSON as values of Starlark: integers of any length are integers, all other numbers floats.

use std::str::FromStr as _;

use num_bigint::BigInt;
use starlark::collections::SmallMap;
use starlark::values::dict::AllocDict;
use starlark::values::list::AllocList;
use starlark::values::{Heap, Value};

/// As deep as values can be in each other.
const MAXIMUM_DEPTH: usize = 10_000;

/// The value that a text is; or what is wrong with it, and where.
pub(super) fn decode<'v>(text: &str, heap: Heap<'v>) -> Result<Value<'v>, String> {
    let mut decoder = Decoder { text, at: 0, heap };
    let value = decoder.value(0).and_then(|value| match decoder.skip_blanks() {
        Some(more) => Err(format!("unexpected character {} after value", shown(more))),
        None => Ok(value),
    });
    value.map_err(|cause| format!("at offset {}, {cause}", decoder.at))
}

struct Decoder<'t, 'v> {
    text: &'t str,
    at: usize,
    heap: Heap<'v>,
}

/// A character as Go shows it.
fn shown(byte: u8) -> String {
    format!("{:?}", char::from(byte))
}

impl<'t, 'v> Decoder<'t, 'v> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) -> Option<u8> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, String> {
        self.skip_blanks().ok_or_else(|| "unexpected end of file".to_owned())
    }

    fn value(&mut self, depth: usize) -> Result<Value<'v>, String> {
        if depth > MAXIMUM_DEPTH {
            return Err(format!("values are nested more than {MAXIMUM_DEPTH} levels deep"));
        }
        let first = self.next()?;
        match first {
            b'"' => {
                let text = self.string()?;
                return Ok(self.heap.alloc(text));
            }
            b'[' => return self.array(depth),
            b'{' => return self.object(depth),
            b'-' | b'0'..=b'9' => return self.number(),
            _ => {}
        }
        let words =
            [("null", Value::new_none()), ("true", Value::new_bool(true)), ("false", Value::new_bool(false))];
        for (word, value) in words {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(format!("unexpected character {}", shown(first)))
    }

    fn array(&mut self, depth: usize) -> Result<Value<'v>, String> {
        let mut entries = Vec::new();
        self.at += 1;
        if self.next()? != b']' {
            loop {
                entries.push(self.value(depth + 1)?);
                match self.next()? {
                    b',' => self.at += 1,
                    b']' => break,
                    other => return Err(format!("got {}, want ',' or ']'", shown(other))),
                }
            }
        }
        self.at += 1;
        Ok(self.heap.alloc(AllocList(entries)))
    }

    fn object(&mut self, depth: usize) -> Result<Value<'v>, String> {
        // Of a key that is there twice, the last value counts.
        let mut fields: SmallMap<String, Value<'v>> = SmallMap::new();
        self.at += 1;
        if self.next()? != b'}' {
            loop {
                if self.next()? != b'"' {
                    let other = self.value(depth + 1)?.get_type();
                    return Err(format!("got {other} for object key, want string"));
                }
                let key = self.string()?;
                match self.next()? {
                    b':' => self.at += 1,
                    other => return Err(format!("after object key, got {}, want ':' ", shown(other))),
                }
                let value = self.value(depth + 1)?;
                fields.insert(key, value);
                match self.next()? {
                    b',' => self.at += 1,
                    b'}' => break,
                    other => return Err(format!("in object, got {}, want ',' or '}}'", shown(other))),
                }
            }
        }
        self.at += 1;
        Ok(self.heap.alloc(AllocDict(fields)))
    }

    fn number(&mut self) -> Result<Value<'v>, String> {
        let rest = self.rest();
        let part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
        let length = rest.bytes().position(|byte| !part(byte)).unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or_default();
        self.at += length;
        let refuse = || format!("invalid number: {text}");
        let digits = text.strip_prefix('-').unwrap_or(text);
        let leading_zero =
            digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if !digits.starts_with(|first: char| first.is_ascii_digit()) || leading_zero {
            return Err(refuse());
        }
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return match text.parse::<i64>() {
                Ok(number) => Ok(self.heap.alloc(number)),
                Err(_) => BigInt::from_str(text).map(|number| self.heap.alloc(number)).map_err(|_| refuse()),
            };
        }
        let number: f64 = text.parse().map_err(|_| refuse())?;
        if number.is_finite() { Ok(self.heap.alloc(number)) } else { Err(refuse()) }
    }

    fn string(&mut self) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = self.rest().chars();
        // Its quote.
        rest.next();
        let unclosed = || "unclosed string literal".to_owned();
        loop {
            match rest.next().ok_or_else(unclosed)? {
                '"' => break,
                '\\' => {
                    let escaped = rest.next().ok_or_else(unclosed)?;
                    let rest = &mut rest;
                    out.push(match escaped {
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        'b' => '\x08',
                        'f' => '\x0c',
                        '"' | '\\' | '/' => escaped,
                        'u' => unicode(rest)?,
                        other => return Err(format!("invalid character {other:?} in string escape code")),
                    });
                }
                plain => out.push(plain),
            }
        }
        self.at = self.text.len() - rest.as_str().len();
        Ok(out)
    }
}

/// What follows `\u`: a character, or the first of two halves of one.
fn unicode(rest: &mut std::str::Chars<'_>) -> Result<char, String> {
    let half = |rest: &mut std::str::Chars<'_>| {
        let digits = rest.as_str().get(..4)?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        *rest = rest.as_str().get(4..)?.chars();
        Some(code)
    };
    let first = half(rest).ok_or("invalid character in \\u hexadecimal character escape")?;
    if let Some(character) = char::from_u32(first) {
        return Ok(character);
    }
    let mut ahead = rest.clone();
    if ahead.next() == Some('\\')
        && ahead.next() == Some('u')
        && let Some(second) = half(&mut ahead)
        && let Some(Ok(character)) =
            char::decode_utf16([first, second].map(|half| u16::try_from(half).unwrap_or_default())).next()
    {
        *rest = ahead;
        return Ok(character);
    }
    Ok(char::REPLACEMENT_CHARACTER)
}
