//! The one time that everything in an image bears.

use std::fmt;

/// Seconds since 1970, written as images want it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timestamp(u64);

/// The last second of the year 9999, beyond which the written form has no room.
const LAST: u64 = 253_402_300_799;

impl Timestamp {
    /// From the text of `SOURCE_DATE_EPOCH`; without one, the beginning of 1970.
    pub fn from_source_date_epoch(text: Option<&str>) -> anyhow::Result<Self> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Self::default()) };
        match text.parse() {
            Ok(seconds) if seconds <= LAST => Ok(Self(seconds)),
            _ => anyhow::bail!("SOURCE_DATE_EPOCH is {text:?}; accepted: seconds since 1970, up to {LAST}"),
        }
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0 / 86_400, self.0 % 86_400);
        // Days are counted in years that begin in March, so that a leap day
        // is the last of its year; 400 years are always 146097 days.
        let shifted = days + 719_468;
        let (era, day) = (shifted / 146_097, shifted % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, early) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = era * 400 + year + early;
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(formatter, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        Timestamp::from_source_date_epoch(Some(text)).unwrap().to_string()
    }

    #[test]
    fn it_is_written_as_a_date() {
        assert_eq!(Timestamp::default().to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(written("951827696"), "2000-02-29T12:34:56Z");
        assert_eq!(written("951868800"), "2000-03-01T00:00:00Z");
        assert_eq!(written("1709164800"), "2024-02-29T00:00:00Z");
        assert_eq!(written("1735689599"), "2024-12-31T23:59:59Z");
        assert_eq!(written("4107542400"), "2100-03-01T00:00:00Z");
        assert_eq!(written("253402300799"), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        assert_eq!(Timestamp::from_source_date_epoch(Some("")).unwrap(), Timestamp::default());
        assert_eq!(Timestamp::from_source_date_epoch(None).unwrap(), Timestamp::default());
        for odd in ["-1", "now", "1e9", "253402300800"] {
            let error = Timestamp::from_source_date_epoch(Some(odd)).unwrap_err().to_string();
            assert!(error.contains(odd), "{error}");
        }
    }
}
