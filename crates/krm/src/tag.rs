//! What a scalar is, by the rules of the YAML library that Kubernetes' Go programs use.

/// The type of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`. What YAML 1.1 also called so (`yes`, `on`) is a string.
    Boolean,
    /// Also `0x1F`, `014`, `0b11` and `1_000`.
    Integer,
    /// Also numbers too large for an integer, `.inf` and `.nan`.
    Float,
    /// A date, with or without a time.
    Timestamp,
    /// All that is quoted, and all else.
    String,
    /// A type of its own, such as `!!binary`.
    Other,
}

impl Tag {
    /// What the plain scalar `text` is.
    pub fn of_plain(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Self::Null,
            "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => return Self::Boolean,
            _ => {}
        }
        match text.as_bytes().first() {
            Some(b'.') if is_special_float(text) || is_fraction(text) => Self::Float,
            Some(b'+' | b'-')
                if is_special_float(text.get(1..).unwrap_or_default()) && !text.ends_with(['n', 'N']) =>
            {
                Self::Float
            }
            Some(b'0'..=b'9' | b'+' | b'-') => Self::of_number(text),
            _ => Self::String,
        }
    }

    fn of_number(text: &str) -> Self {
        if is_timestamp(text) {
            return Self::Timestamp;
        }
        let without_separators: String;
        let digits = if text.contains('_') {
            without_separators = text.replace('_', "");
            &without_separators
        } else {
            text
        };
        if is_integer(digits) {
            Self::Integer
        } else if is_finite(digits) {
            Self::Float
        } else {
            Self::String
        }
    }

    /// What a text with this tag is: of no known type, if the tag cannot be right.
    pub(crate) fn for_text(self, text: &str) -> Self {
        match (self, Self::of_plain(text)) {
            (Self::String | Self::Other, _) | (Self::Float, Self::Integer) => self,
            (_, plain) if plain == self => self,
            _ => Self::Other,
        }
    }

    /// The tag that is written as `!!bool`, or in full as `tag:yaml.org,2002:bool`.
    pub(crate) fn of_name(name: &str) -> Self {
        match name.strip_prefix("tag:yaml.org,2002:") {
            Some("null") => Self::Null,
            Some("bool") => Self::Boolean,
            Some("int") => Self::Integer,
            Some("float") => Self::Float,
            Some("timestamp") => Self::Timestamp,
            Some("str") => Self::String,
            // Alone, it says that a scalar is not to be taken for more than a text.
            None if name == "!" => Self::String,
            _ => Self::Other,
        }
    }
}

/// Whether every reader in the field takes the plain scalar `text` for a string: also those that know the
/// booleans and numbers of YAML 1.1.
pub(crate) fn is_string_to_all(text: &str) -> bool {
    Tag::of_plain(text) == Tag::String
        && !is_old_boolean(text)
        && !is_base_60(text)
        && !matches!(text, "<<" | "=")
}

fn is_old_boolean(text: &str) -> bool {
    matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    )
}

/// `1:30`, once ninety.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut parts = whole.split(':');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    parts.next().is_some_and(|first| first.starts_with(|first: char| first.is_ascii_digit()) && digits(first))
        && whole.contains(':')
        && parts.all(|part| matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit()))
        && digits(fraction)
}

fn is_special_float(text: &str) -> bool {
    matches!(text, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN")
}

/// A number that starts with its point; there may be separators between two digits.
fn is_fraction(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let mut separators = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_').map(|(at, _)| at);
    separators.all(|at| digit(at.checked_sub(1)) && digit(Some(at + 1))) && is_finite(&text.replace('_', ""))
}

/// A number with a base, or an octal one with a zero before it, that fits into 64 bits.
fn is_integer(text: &str) -> bool {
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..)),
        [b'+', ..] => (false, text.get(1..)),
        _ => (false, Some(text)),
    };
    let signed = unsigned.is_none_or(|unsigned| unsigned.len() < text.len());
    let unsigned = unsigned.unwrap_or_default();
    let (base, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, unsigned.get(2..)),
        [b'0', b'b' | b'B', ..] => (2, unsigned.get(2..)),
        [b'0', b'o' | b'O', ..] => (8, unsigned.get(2..)),
        [b'0', _, ..] => (8, unsigned.get(1..)),
        _ => (10, Some(unsigned)),
    };
    let digits = digits.unwrap_or_default();
    // Go's library takes a sign behind these prefixes, too.
    let late_sign = !signed && (text.starts_with("0b") || text.starts_with("0o"));
    let digits = digits.strip_prefix(['+', '-']).filter(|_| late_sign).unwrap_or(digits);
    // The standard library would accept another sign.
    if !digits.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return false;
    }
    let limit = match (negative, signed) {
        (true, _) => 1 << 63,
        (false, true) => (1 << 63) - 1,
        (false, false) => u64::MAX,
    };
    u64::from_str_radix(digits, base).is_ok_and(|number| number <= limit)
}

/// A decimal number with or without fraction and exponent that is not too large.
fn is_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let some_digits = |part: &str| !part.is_empty() && digits(part);
    let mantissa_is_one = match mantissa.split_once('.') {
        Some(("", fraction)) => some_digits(fraction),
        Some((whole, fraction)) => some_digits(whole) && digits(fraction),
        None => some_digits(mantissa),
    };
    mantissa_is_one
        && exponent.is_none_or(|exponent| some_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `2001-12-14`, `2001-12-14T21:59:43.10-05:00`, `2001-12-14 21:59:43`; a day and a month may have one digit.
fn is_timestamp(text: &str) -> bool {
    let Some((year, rest)) = text.split_once('-') else { return false };
    if year.len() != 4 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let Some((month, rest)) = number(rest) else { return false };
    let Some((day, rest)) = rest.strip_prefix('-').and_then(number) else { return false };
    let leap = year.parse::<u32>().is_ok_and(|year| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    if !(1..=days).contains(&day) {
        return false;
    }
    match rest.as_bytes().first() {
        None => true,
        Some(b'T' | b't') => time(rest.get(1..).unwrap_or_default()).is_some_and(is_zone),
        Some(b' ') => time(rest.trim_start_matches(' ')).is_some_and(str::is_empty),
        Some(_) => false,
    }
}

/// A number of one or two digits, and what follows it.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, rest))
}

/// What follows a time of day.
fn time(text: &str) -> Option<&str> {
    let (hour, rest) = number(text)?;
    let (minute, rest) = rest.strip_prefix(':').and_then(number)?;
    let (second, rest) = rest.strip_prefix(':').and_then(number)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let Some(fraction) = rest.strip_prefix(['.', ',']) else { return Some(rest) };
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { Some(rest) } else { fraction.get(digits..) }
}

fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        [b'Z'] => true,
        [b'+' | b'-', hour @ .., b':', tens, ones] => {
            let two = |digits: &[u8]| digits.len() == 2 && digits.iter().all(u8::is_ascii_digit);
            two(hour) && two(&[*tens, *ones]) && hour <= b"24".as_slice() && *tens < b'6'
        }
        _ => false,
    }
}
