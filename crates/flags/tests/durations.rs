//! Durations against tables checked with Go.

use flags::{GoDuration, InvalidDuration};

#[test]
fn durations_as_go_reads_them() {
    const SECOND: i64 = 1_000_000_000;
    for (text, nanoseconds) in [
        ("0", 0),
        ("-0", 0),
        ("+0", 0),
        ("0s", 0),
        ("5s", 5 * SECOND),
        ("+5s", 5 * SECOND),
        ("-1s", -SECOND),
        ("30m", 1800 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("1.5h", 5400 * SECOND),
        ("100ms", 100_000_000),
        ("1us", 1000),
        ("1µs", 1000),
        ("1μs", 1000),
        ("1ns", 1),
        ("1.5ns", 1),
        (".5s", SECOND / 2),
        ("5.s", 5 * SECOND),
        ("5.6s", 5_600_000_000),
        ("-.5m", -30 * SECOND),
        ("1h1h", 7200 * SECOND),
        ("3m1h", 3780 * SECOND),
        ("1.00000000000000000001s", SECOND),
        ("0.3333333333333333333h", 1200 * SECOND),
        ("0.100000000000000000000h", 360 * SECOND),
        ("0.830103483285477580700h", 2_988_372_539_827),
        ("9223372036854775807ns", i64::MAX),
        ("9223372036854775.807us", i64::MAX),
        ("9223372036s854ms775us807ns", i64::MAX),
        ("-9223372036854775808ns", i64::MIN),
        ("-2562047h47m16.854775808s", i64::MIN),
    ] {
        assert_eq!(text.parse::<GoDuration>().map(GoDuration::nanoseconds), Ok(nanoseconds), "{text}");
    }
    for (text, error) in [
        ("", InvalidDuration::Malformed),
        ("-", InvalidDuration::Malformed),
        ("+", InvalidDuration::Malformed),
        ("s", InvalidDuration::Malformed),
        (".", InvalidDuration::Malformed),
        (".s", InvalidDuration::Malformed),
        ("+.s", InvalidDuration::Malformed),
        ("--1s", InvalidDuration::Malformed),
        (" 1s", InvalidDuration::Malformed),
        ("3", InvalidDuration::MissingUnit),
        ("00", InvalidDuration::MissingUnit),
        ("1h30", InvalidDuration::MissingUnit),
        ("1d", InvalidDuration::UnknownUnit),
        ("1 s", InvalidDuration::UnknownUnit),
        ("1s ", InvalidDuration::UnknownUnit),
        ("1h-5m", InvalidDuration::UnknownUnit),
        ("1e3s", InvalidDuration::UnknownUnit),
        ("1S", InvalidDuration::UnknownUnit),
        ("1日", InvalidDuration::UnknownUnit),
        ("9223372036854775808ns", InvalidDuration::TooLong),
        ("-9223372036854775809ns", InvalidDuration::TooLong),
        ("9223372036854775.808us", InvalidDuration::TooLong),
        ("2562048h", InvalidDuration::TooLong),
        ("2562047h47m16.854775808s", InvalidDuration::TooLong),
        ("99999999999999999999h", InvalidDuration::TooLong),
        ("18446744073709551615ns1ns", InvalidDuration::TooLong),
    ] {
        assert_eq!(text.parse::<GoDuration>(), Err(error), "{text}");
    }
}

#[test]
fn durations_as_go_prints_them() {
    for (nanoseconds, text) in [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (999_999_999, "999.999999ms"),
        (1_500_000_000, "1.5s"),
        (60_000_000_000, "1m0s"),
        (305_000_000_001, "5m5.000000001s"),
        (3_600_000_000_000, "1h0m0s"),
        (5_400_000_000_000, "1h30m0s"),
        (-1_000_000_000, "-1s"),
        (i64::MAX, "2562047h47m16.854775807s"),
        (i64::MIN, "-2562047h47m16.854775808s"),
    ] {
        assert_eq!(GoDuration::from_nanoseconds(nanoseconds).to_string(), text);
    }
}

#[test]
fn durations_saturate_when_built() {
    assert_eq!(GoDuration::from_seconds(i64::MAX).nanoseconds(), i64::MAX);
    assert_eq!(GoDuration::from_minutes(i64::MIN).nanoseconds(), i64::MIN);
}
