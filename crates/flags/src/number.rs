//! Booleans and whole numbers as Go's `strconv` package reads them.

/// The words of `strconv.ParseBool`, and no others.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A number as `strconv.ParseInt` with base 0 reads it, which is what Go's integer flags use: `0x`, `0o`
/// and `0b` prefixes, a leading `0` for octal, and underscores between digits.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let starts_with =
        |prefix: &str| unsigned.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let (base, skipped) = if starts_with("0x") {
        (16, 2)
    } else if starts_with("0o") {
        (8, 2)
    } else if starts_with("0b") {
        (2, 2)
    } else if unsigned.len() > 1 && unsigned.starts_with('0') {
        (8, 1)
    } else {
        (10, 0)
    };
    let digits = unsigned.get(skipped..).filter(|digits| !digits.is_empty())?;
    // Counted downwards, because the smallest number has no positive counterpart.
    let mut negated: i64 = 0;
    // A prefix counts as a digit for the underscore that may follow it.
    let mut after_digit = skipped > 0;
    for character in digits.chars() {
        if character == '_' && after_digit {
            after_digit = false;
            continue;
        }
        let digit = i64::from(character.to_digit(base)?);
        negated = negated.checked_mul(i64::from(base))?.checked_sub(digit)?;
        after_digit = true;
    }
    if !after_digit {
        return None;
    }
    if negative { Some(negated) } else { negated.checked_neg() }
}
