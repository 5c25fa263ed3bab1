//! Durations as Go's `time` package reads and prints them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// What the smallest `i64` is in magnitude.
const LIMIT: u64 = i64::MIN.unsigned_abs();

/// A duration of whole nanoseconds, negative ones included, with Go's range (about 292 years each way).
///
/// Go programs give a meaning to zero and negative durations ("use the default"), which
/// [`std::time::Duration`] cannot hold: ask [`GoDuration::positive`] for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanoseconds: i64,
}

/// A text that Go would not read as a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    /// Not a sequence of numbers with units.
    #[error("not a duration; write it as 30m, 1h30m or 1.5s")]
    Malformed,
    /// A number without its unit.
    #[error("the unit is missing; write it as 30m, 1h30m or 1.5s")]
    MissingUnit,
    /// A unit Go does not know, such as `d`.
    #[error("the unit is not one of ns, us, ms, s, m, h; write it as 30m, 1h30m or 1.5s")]
    UnknownUnit,
    /// Beyond what Go can hold.
    #[error("too long; the longest duration is 2562047h47m16.854775807s")]
    TooLong,
}

impl GoDuration {
    /// No time at all.
    pub const ZERO: Self = Self::from_nanoseconds(0);

    /// A duration of that many nanoseconds.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self { nanoseconds }
    }

    /// A duration of that many seconds, or the longest there is.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self::from_nanoseconds(seconds.saturating_mul(SECOND.cast_signed()))
    }

    /// A duration of that many minutes, or the longest there is.
    pub const fn from_minutes(minutes: i64) -> Self {
        Self::from_nanoseconds(minutes.saturating_mul(MINUTE.cast_signed()))
    }

    /// The whole duration in nanoseconds.
    pub const fn nanoseconds(self) -> i64 {
        self.nanoseconds
    }

    /// Whether the duration is below zero.
    pub const fn is_negative(self) -> bool {
        self.nanoseconds < 0
    }

    /// The duration when it is above zero: `None` is where Go programs commonly take a default.
    pub const fn positive(self) -> Option<Duration> {
        if self.nanoseconds > 0 { Some(Duration::from_nanos(self.nanoseconds.unsigned_abs())) } else { None }
    }
}

impl FromStr for GoDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if unsigned == "0" {
            return Ok(Self::ZERO);
        }
        if unsigned.is_empty() {
            return Err(InvalidDuration::Malformed);
        }
        let mut total: u64 = 0;
        let mut rest = unsigned;
        while !rest.is_empty() {
            let part;
            (part, rest) = leading_part(rest)?;
            total = total.checked_add(part).ok_or(InvalidDuration::TooLong)?;
        }
        let nanoseconds =
            if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
        nanoseconds.map(Self::from_nanoseconds).ok_or(InvalidDuration::TooLong)
    }
}

/// Reads one number with its unit, such as the `1.5h` of `1.5h30m`: its nanoseconds and what follows.
fn leading_part(text: &str) -> Result<(u64, &str), InvalidDuration> {
    let (whole, rest) = leading_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(InvalidDuration::Malformed);
    }
    let unit_length = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_length);
    let unit = match unit {
        "" => return Err(InvalidDuration::MissingUnit),
        "ns" => 1,
        // The micro sign (U+00B5) and the Greek letter mu (U+03BC) look alike and are both in use.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return Err(InvalidDuration::UnknownUnit),
    };
    let whole = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| InvalidDuration::TooLong)? };
    let nanoseconds = u64::checked_mul(whole, unit)
        .and_then(|nanoseconds| nanoseconds.checked_add(fraction_of(fraction, unit)))
        .ok_or(InvalidDuration::TooLong)?;
    Ok((nanoseconds, rest))
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The nanoseconds of `0.<digits>` units, computed with the same floating-point steps as Go: exact integer
/// arithmetic would make `0.3333333333333333333h` one nanosecond shorter than the 20 minutes Go reads.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let mut fraction: u64 = 0;
    let mut scale = 1.0_f64;
    for digit in digits.bytes() {
        // Digits beyond what 63 bits hold are far below a nanosecond.
        if fraction > (LIMIT - 1) / 10 {
            break;
        }
        let longer = fraction * 10 + u64::from(digit - b'0');
        if longer > LIMIT {
            break;
        }
        fraction = longer;
        scale *= 10.0;
    }
    (fraction as f64 * (unit as f64 / scale)) as u64
}

impl fmt::Display for GoDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.nanoseconds.unsigned_abs();
        if self.is_negative() {
            formatter.write_str("-")?;
        }
        match total {
            0 => formatter.write_str("0s"),
            1..MICROSECOND => write!(formatter, "{total}ns"),
            MICROSECOND..MILLISECOND => write_decimal(formatter, total, MICROSECOND, "\u{b5}s"),
            MILLISECOND..SECOND => write_decimal(formatter, total, MILLISECOND, "ms"),
            SECOND.. => {
                if total >= HOUR {
                    write!(formatter, "{}h", total / HOUR)?;
                }
                if total >= MINUTE {
                    write!(formatter, "{}m", total % HOUR / MINUTE)?;
                }
                write_decimal(formatter, total % MINUTE, SECOND, "s")
            }
        }
    }
}

/// Writes `amount / unit` with as many decimals as it takes to be exact; `unit` is a power of ten.
fn write_decimal(formatter: &mut fmt::Formatter<'_>, amount: u64, unit: u64, name: &str) -> fmt::Result {
    write!(formatter, "{}", amount / unit)?;
    let mut rest = amount % unit;
    let mut place = unit;
    if rest > 0 {
        formatter.write_str(".")?;
    }
    while rest > 0 {
        place /= 10;
        write!(formatter, "{}", rest / place)?;
        rest %= place;
    }
    formatter.write_str(name)
}
