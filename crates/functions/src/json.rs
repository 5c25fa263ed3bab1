//! Texts as Go's JSON has them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use krm::{Tag, Value};

/// An object of strings.
pub(crate) fn strings(fields: &BTreeMap<String, String>) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(key, value)| format!("{}:{}", string(key), string(value))).collect();
    format!("{{{}}}", fields.join(","))
}

/// A string in quotes; what has a meaning in HTML is escaped, too.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{C}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..=' ' if character != ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}

/// The text that a scalar becomes where a string is wanted, as Kubernetes' own YAML library makes one of it:
/// numbers and booleans lose how they were written.
pub(crate) fn string_of(value: &Value) -> Option<String> {
    let Value::Scalar(text, tag) = value else { return None };
    Some(match tag {
        Tag::Null => String::new(),
        Tag::Boolean => text.to_ascii_lowercase(),
        Tag::Integer => integer(text).map_or_else(|| text.clone(), |number| number.to_string()),
        Tag::Float => float(text),
        _ => text.clone(),
    })
}

/// A number in one of the bases that YAML knows.
fn integer(text: &str) -> Option<i128> {
    let text = text.replace('_', "");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)?),
        [b'0', b'b', ..] => (2, lower.get(2..)?),
        [b'0', b'o', ..] => (8, lower.get(2..)?),
        [b'0', _, ..] => (8, lower.get(1..)?),
        _ => (10, &*lower),
    };
    let number = i128::from_str_radix(digits, base).ok()?;
    Some(if negative { -number } else { number })
}

/// In single precision, as short as can be, with an exponent from a million on and below a ten thousandth.
fn float(text: &str) -> String {
    let Ok(number) = text.replace('_', "").parse::<f32>() else {
        return match text.trim_start_matches(['+', '-']).to_ascii_lowercase().as_str() {
            ".nan" => "NaN".to_owned(),
            _ if text.starts_with('-') => "-Inf".to_owned(),
            _ => "+Inf".to_owned(),
        };
    };
    let shortest = format!("{number:e}");
    let Some((digits, exponent)) = shortest.split_once('e') else { return shortest };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_become_strings_as_in_go() {
        let string = |text: &str| string_of(&Value::plain(text)).unwrap();
        for (plain, expected) in [
            ("web", "web"),
            ("TRUE", "true"),
            ("~", ""),
            ("80", "80"),
            ("014", "12"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("-0b11", "-3"),
            ("1_000", "1000"),
            ("1.50", "1.5"),
            ("1234567.5", "1.2345675e+06"),
            ("1e6", "1e+06"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("0.0", "0"),
            ("2001-01-01", "2001-01-01"),
            (".inf", "+Inf"),
        ] {
            assert_eq!(string(plain), expected, "{plain}");
        }
        assert_eq!(string_of(&Value::string("014")).unwrap(), "014");
        assert_eq!(string_of(&Value::mapping()), None);
    }

    #[test]
    fn strings_are_escaped_as_in_go() {
        assert_eq!(string("a\"b\\c<>&\n\u{1}\u{2028} é"), r#""a\"b\\c\u003c\u003e\u0026\n\u0001\u2028 é""#);
    }
}
