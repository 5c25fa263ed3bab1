//! Constraints against what Go's `Masterminds/semver` v3.5.0 answers, and what holds for all of them.
#![allow(clippy::panic, reason = "helpers of tests are not seen as tests")]

use proptest::prelude::*;
use registry::{Constraint, ConstraintProblem, Version, choose, highest};

fn constraint(text: &str) -> Constraint {
    Constraint::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn version(text: &str) -> Version {
    Version::parse_tag(text).unwrap_or_else(|| panic!("{text:?} is no version"))
}

fn matches(text: &str, tag: &str) -> bool {
    constraint(text).matches(&version(tag))
}

const VERSIONS: &str = "0.0.0 0.0.1 0.0.3 0.1.0 v0.2.0 0.2.3 0.4 v0.4.1-rc.1 v0.4.7 0.5.0 1 1.0.0-alpha 1.0.1 \
    v1.2 1.2.0-beta.2 1.2.0-beta.11 1.2.3 1.2.4-rc.1 1.3.0 1.10.0 1.12.9+build.5 2.0.0-rc.1 2 2.0.5 v2.1.0 \
    3.0.0 11.1.0 11.2.1 12.0.0";

#[test]
fn answers_as_go_does() {
    let mut lines = 0;
    // Each line: a constraint, a tab, and those of the versions above for which Go says yes.
    for line in include_str!("constraints-by-go.txt").lines() {
        let (text, expected) = line.split_once('\t').unwrap();
        let found: Vec<_> = VERSIONS.split(' ').filter(|tag| !tag.is_empty() && matches(text, tag)).collect();
        assert_eq!(found.join(" "), expected, "{text}");
        lines += 1;
    }
    assert!(lines > 60, "{lines}");
}

#[test]
fn refuses_what_go_refuses() {
    for text in [
        "",
        " ",
        "||",
        "1||",
        "|| 1",
        "1 |2",
        ",1",
        "1,",
        "1,,2",
        ">=",
        ">= ",
        ">=<1",
        "==1",
        "> =1",
        ">1<2",
        "1.2.3.4",
        "latest",
        "V1",
        "vv1",
        "v",
        "1.",
        ".1",
        "1..2",
        "1.2x",
        "1.-2",
        "-1",
        "1 -2",
        "1- 2",
        "1 - ",
        "- 2",
        "1 - 2 - 3",
        ">=1 - 2",
        "1 - >2",
        "1.2.3-",
        "1.2.3-a..b",
        "1.2.3-01",
        "1.2.3+",
        "1.2.3-a_b",
        "18446744073709551616",
        "~> =1",
        "1;2",
        "1 && 2",
        "1 or 2",
        "é",
        "1\u{a0}2",
        "1\u{b}2",
        "1\0",
    ] {
        let error = Constraint::parse(text).err().unwrap_or_else(|| panic!("{text:?} was taken"));
        let message = error.to_string();
        assert!(message.contains(&format!("{text:?}")) && message.contains("~0.4"), "{message}");
    }
}

#[test]
fn differs_from_go_where_it_says_so() {
    assert!(matches("^*", "3.1.4") && !matches("^*", "3.1.4-rc.1"));
    assert!(matches("!=1.5.0 1.2 - 2.0", "1.4.0") && !matches("!=1.5.0 1.2 - 2.0", "1.5.0"));
    assert!(matches("3||1.2 - 2.0", "3.1.0") && !matches("3||1.2 - 2.0", "2.1.0"));
    assert!(Constraint::parse("1.x.3x").is_err());
}

#[test]
fn errors_are_short_and_say_what_is_wrong() {
    let long = ">=1 ".repeat(10_000);
    let error = Constraint::parse(&long).unwrap_err();
    assert_eq!(*error.problem(), ConstraintProblem::TooLong(40_000));
    assert!(error.to_string().len() < 400, "{error}");
    let error = Constraint::parse("~1, latest").unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid version constraint \"~1, latest\": \"latest\" is not a version with up to three numbers, x or *, \
         as in v1.2.3, 1.x or 1.2.0-rc.1; right ones look like ~0.4, ^1.2, >=1.2 <2 or 1.x"
    );
    assert_eq!(*Constraint::parse("1 ||").unwrap_err().problem(), ConstraintProblem::Missing);
}

#[test]
fn tags_are_versions_or_not() {
    for (tag, numbers, pre_release) in [
        ("v0.4", (0, 4, 0), ""),
        ("1", (1, 0, 0), ""),
        ("v1.2.3", (1, 2, 3), ""),
        ("01.002.3", (1, 2, 3), ""),
        ("1.2-alpine", (1, 2, 0), "alpine"),
        ("1.2.3-rc.1-x", (1, 2, 3), "rc.1-x"),
        ("1.2.3+a-b", (1, 2, 3), ""),
        ("1.2.3-a+b.01", (1, 2, 3), "a"),
        ("20240131", (20_240_131, 0, 0), ""),
        ("18446744073709551615.0.0", (u64::MAX, 0, 0), ""),
    ] {
        let version = version(tag);
        assert_eq!((version.major(), version.minor(), version.patch()), numbers, "{tag}");
        assert_eq!((version.pre_release(), version.tag()), (pre_release, tag));
        assert_eq!(version.is_pre_release(), !pre_release.is_empty());
    }
    let long = "1.2.3-".to_owned() + &"a".repeat(251);
    for tag in [
        "", "v", "latest", "V1", "1.2.3.4", "1.x", "*", " 1", "1 ", "1.2.", "1..2", "+1", "1.+2", "1.2.3-01",
        &long,
    ] {
        assert_eq!(Version::parse_tag(tag), None, "{tag}");
    }
}

#[test]
fn precedence_is_that_of_semantic_versions() {
    let ascending = [
        "0.0.0",
        "0.4",
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "v1",
        "1.0.1",
        "1.2",
        "1.10",
        "2",
    ];
    for (index, tag) in ascending.iter().enumerate() {
        for (other_index, other) in ascending.iter().enumerate() {
            assert_eq!(version(tag).precedence(&version(other)), index.cmp(&other_index), "{tag} {other}");
        }
    }
    assert!(version("1.0.0+a").precedence(&version("v1+b")).is_eq());
}

#[test]
fn the_highest_tag() {
    let tags =
        ["latest", "v0.4", "v0.4.0", "0.4.0", "v0.3.9", "v0.5.0-rc.1", "v0.10.0", "main", "sha-1234", "0.4"];
    for (text, expected) in [
        ("~0.4", Some("v0.4.0")),
        ("v0.4", Some("v0.4.0")),
        ("*", Some("v0.10.0")),
        ("<0.4", Some("v0.3.9")),
        (">=0.4 <0.6", Some("v0.4.0")),
        (">=0.5.0-0 <0.6", Some("v0.5.0-rc.1")),
        (">=1", None),
    ] {
        assert_eq!(highest(&constraint(text), tags.into_iter()), expected, "{text}");
        assert_eq!(highest(&constraint(text), tags.into_iter().rev()), expected, "{text}");
    }
    assert_eq!(highest(&constraint("*"), std::iter::empty()), None);
    assert_eq!(highest(&constraint("1"), ["1.0", "01.0.00", "v1", "1.0.0"].into_iter()), Some("1.0.0"));
}

#[test]
fn a_tag_of_the_name_wins_over_a_constraint() {
    let tags = ["v0.4.7", "v0.4", "latest", "v0.5.1", "~1"];
    for (wanted, expected) in [
        ("v0.4", Some("v0.4")),
        ("0.4", Some("v0.4.7")),
        ("~0.4", Some("v0.4.7")),
        ("0.4.7", Some("v0.4.7")),
        ("v0.5", Some("v0.5.1")),
        ("latest", Some("latest")),
        ("~1", Some("~1")),
        ("2.x", None),
    ] {
        assert_eq!(choose(wanted, tags), Ok(expected), "{wanted}");
    }
    assert!(choose("stable", tags).is_err());
    assert!(choose("", tags).is_err());
}

/// Mostly small numbers, so that versions meet.
fn tag() -> impl Strategy<Value = String> {
    "v?[0-3](\\.[0-3]){0,2}(-(rc|[0-2]|a-b)(\\.[0-2a]){0,2})?(\\+b)?"
}

fn release() -> impl Strategy<Value = (u64, u64, u64)> {
    (0..4_u64, 0..4_u64, 0..4_u64)
}

fn comparison() -> impl Strategy<Value = String> {
    "(|=|!=|>|<|>=|=>|<=|=<|~|~>|\\^)[ \t]?v?[0-3xX*](\\.[0-3xX*]){0,2}(-(rc|[0-2])(\\.[0-2])?)?"
}

fn nearly() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[0-2xv.*<>=~^!|, +-]{0,24}", 1 => any::<String>(), 1 => comparison()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in nearly(), tag in nearly()) {
        let parsed = Version::parse_tag(&tag);
        match Constraint::parse(&text) {
            Ok(constraint) => {
                prop_assert_eq!(constraint.as_given(), &text);
                if let Some(version) = &parsed {
                    let spaced = constraint.as_given().replace(',', " , ").replace("||", " || ");
                    let spaced = Constraint::parse(&format!("\n{spaced}\t")).unwrap();
                    prop_assert_eq!(constraint.matches(version), spaced.matches(version));
                }
            }
            Err(error) => prop_assert!(error.to_string().len() < 2500),
        }
        let _ = choose(&text, [tag.as_str()]);
    }

    #[test]
    fn or_and_and_are_what_they_say(one in comparison(), other in comparison(), tag in tag()) {
        let one_holds = matches(&one, &tag);
        let other_holds = matches(&other, &tag);
        prop_assert_eq!(matches(&format!("{one}||{other}"), &tag), one_holds || other_holds);
        if !version(&tag).is_pre_release() {
            for separator in [" ", ",", ", ", " , "] {
                prop_assert_eq!(matches(&format!("{one}{separator}{other}"), &tag), one_holds && other_holds);
            }
        }
    }

    #[test]
    fn operators_are_ranges((major, minor, patch) in release(), tag in tag()) {
        let full = format!("{major}.{minor}.{patch}");
        let same = |one: &str, other: &str| matches(one, &tag) == matches(other, &tag);
        if full != "0.0.0" {
            let until = format!("{major}.{}.0", minor + 1);
            let range = format!(">={full} <{until}");
            prop_assert!(same(&format!("~{full}"), &range), "~{full} {tag}");
        }
        let until = match (major, minor) {
            (0, 0) => format!("0.0.{}", patch + 1),
            (0, _) => format!("0.{}.0", minor + 1),
            _ => format!("{}.0.0", major + 1),
        };
        let range = format!(">={full} <{until}");
        prop_assert!(same(&format!("^{full}"), &range), "^{full} {tag}");
        let range = format!(">={major}.{minor}.0 <{major}.{}.0", minor + 1);
        for short in ["", "=", "~", "v", "=v"] {
            for open in ["", ".x", ".*", ".X"] {
                prop_assert!(same(&format!("{short}{major}.{minor}{open}"), &range), "{short} {open} {range} {tag}");
            }
        }
    }

    #[test]
    fn not_is_the_opposite_for_releases(
        version in "v?[0-3](\\.[0-3x*]){0,2}", (major, minor, patch) in release(),
    ) {
        let tag = format!("{major}.{minor}.{patch}");
        for (operator, opposite) in [("=", "!="), (">", "<=")] {
            let (one, other) = (format!("{operator}{version}"), format!("{opposite}{version}"));
            prop_assert_ne!(matches(&one, &tag), matches(&other, &tag), "{} {} {}", one, other, tag);
        }
    }

    #[test]
    fn pre_releases_only_when_named(text in comparison(), tag in tag()) {
        if version(&tag).is_pre_release() && !text.contains('-') {
            prop_assert!(!matches(&text, &tag));
        }
    }

    #[test]
    fn precedence_is_an_order(one in tag(), two in tag(), three in tag()) {
        let (one, two, three) = (version(&one), version(&two), version(&three));
        prop_assert_eq!(one.precedence(&two), two.precedence(&one).reverse());
        if one.precedence(&two).is_le() && two.precedence(&three).is_le() {
            prop_assert!(one.precedence(&three).is_le());
        }
    }

    #[test]
    fn the_highest_is_highest_in_any_order(
        text in comparison(), tags in prop::collection::vec(tag(), 0..12), turn in 0..12_usize,
    ) {
        let wanted = constraint(&text);
        let found = highest(&wanted, tags.iter().map(String::as_str));
        let fitting: Vec<_> = tags.iter().filter(|tag| wanted.matches(&version(tag))).collect();
        prop_assert_eq!(found.is_some(), !fitting.is_empty());
        if let Some(found) = found {
            prop_assert!(fitting.iter().any(|tag| *tag == found));
            prop_assert!(fitting.iter().all(|tag| version(tag).precedence(&version(found)).is_le()));
        }
        let mut turned = tags.clone();
        turned.rotate_left(turn.min(tags.len()));
        prop_assert_eq!(highest(&wanted, turned.iter().map(String::as_str)), found);
        if tags.contains(&text) {
            prop_assert_eq!(choose(&text, turned.iter().map(String::as_str)), Ok(Some(text.as_str())));
        } else {
            prop_assert_eq!(choose(&text, turned.iter().map(String::as_str)), Ok(found));
        }
    }
}
