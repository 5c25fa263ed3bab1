//! What scalars are and how they are written, by the rules of Kubernetes' Go libraries.

use crate::{Document, Tag, Value};

#[test]
fn plain_scalars_are_what_go_takes_them_for() {
    for (tag, texts) in [
        (Tag::Null, &["", "~", "null", "Null", "NULL"][..]),
        (Tag::Boolean, &["true", "True", "TRUE", "false", "False", "FALSE"]),
        (
            Tag::Integer,
            &[
                "0",
                "-0",
                "+1",
                "80",
                "014",
                "0o14",
                "0x1F",
                "0X1f",
                "0b11",
                "-0b11",
                "1_000",
                "1__0",
                "0o+1",
                "18446744073709551615",
                "-9223372036854775808",
            ],
        ),
        (
            Tag::Float,
            &[
                "1.5",
                "1.",
                ".5",
                "-1e3",
                "12E+03",
                "08",
                "09.5",
                ".inf",
                "-.INF",
                "+.Inf",
                ".nan",
                ".1_000",
                "18446744073709551616",
                "-9223372036854775809",
                "123456789012345678901234567890",
            ],
        ),
        (
            Tag::Timestamp,
            &[
                "2001-01-01",
                "2001-1-1",
                "2024-02-29",
                "2001-12-14T21:59:43.10-05:00",
                "2001-12-14t21:59:43Z",
                "2001-12-14 21:59:43.10",
                "2001-12-14   1:2:3",
            ],
        ),
        (
            Tag::String,
            &[
                "yes",
                "no",
                "on",
                "off",
                "y",
                "N",
                "tRUE",
                "nULL",
                "1e",
                "1e400",
                ".",
                "-",
                "+",
                "0x",
                "0b2",
                "0o8",
                "1:30",
                "_1",
                "2001-02-30",
                "2001-13-01",
                "2001-01-01x",
                "2001-12-14T25:00:00Z",
                ".INf",
                "-.nan",
                "a",
                "<<",
                "=",
                "1.2.3",
                "127.0.0.1",
                "10Gi",
                "é",
            ],
        ),
    ] {
        for text in texts {
            assert_eq!(Tag::of_plain(text), tag, "{text}");
        }
    }
}

#[test]
fn tags_and_quotes_decide() {
    let text = "a: \"1\"\nb: !!str 1\nc: !!int '1'\nd: ! 1\ne: !!binary YQ==\nf: !!float 1\ng: !!bool maybe\nh: |-\n  1\n";
    let document = Document::parse(text).unwrap();
    let tags: Vec<_> =
        document.fields(document.root()).map(|(_, node)| document.tag(node).unwrap()).collect();
    let expected = [
        Tag::String,
        Tag::String,
        Tag::Integer,
        Tag::String,
        Tag::Other,
        Tag::Float,
        Tag::Other,
        Tag::String,
    ];
    assert_eq!(tags, expected);
}

/// What becomes of `a: OLD # c` when `a` is set.
fn set(old: &str, new: impl Into<Value>) -> String {
    let text = format!("x:\n  a: {old} # c\n  b: 1\n");
    let mut document = Document::parse(&text).unwrap();
    let node = document.at(document.root(), &["x", "a"]).unwrap();
    let new = new.into();
    document.set(node, new.clone()).unwrap();
    let out = document.to_text().unwrap();
    let again = Document::parse(&out).unwrap();
    let node = again.at(again.root(), &["x", "a"]).unwrap();
    assert!(again.is_value(node, &new), "{out}");
    assert_eq!(again.line_comment(node).as_deref(), Some("# c"), "{out}");
    out.strip_prefix("x:\n  a: ").unwrap().strip_suffix("\n  b: 1\n").unwrap().to_owned()
}

#[test]
fn a_changed_scalar_keeps_its_style() {
    for (old, new, written) in [
        ("old", "new", "new # c"),
        ("old", "yes", "\"yes\" # c"),
        ("old", "014", "\"014\" # c"),
        ("old", "1_000", "\"1_000\" # c"),
        ("old", "2001-01-01", "\"2001-01-01\" # c"),
        ("old", "1:30", "\"1:30\" # c"),
        ("old", "", "\"\" # c"),
        ("old", "~", "\"~\" # c"),
        ("old", "<<", "\"<<\" # c"),
        ("old", "a: b", "'a: b' # c"),
        ("old", "- a", "'- a' # c"),
        ("old", "it's #1", "'it''s #1' # c"),
        ("old", "#a", "'#a' # c"),
        ("old", " a", "' a' # c"),
        ("old", "{a}", "'{a}' # c"),
        ("old", "http://a:1/b?c#d", "http://a:1/b?c#d # c"),
        ("old", "tab\there", "\"tab\\there\" # c"),
        ("old", "bell\u{7}", "\"bell\\x07\" # c"),
        ("old", "line\u{2028}", "\"line\\u2028\" # c"),
        ("old", "😀 é", "😀 é # c"),
        ("old", "a\nb\n", "| # c\n    a\n    b"),
        ("old", "a\n\n  b", "|- # c\n    a\n\n      b"),
        ("old", "a\n\n", "|+ # c\n    a\n"),
        ("old", " a\nb", "|2- # c\n     a\n    b"),
        ("old", "\n", "\"\\n\" # c"),
        ("'old'", "new", "'new' # c"),
        ("'old'", "yes", "'yes' # c"),
        ("'old'", "it's", "'it''s' # c"),
        ("'old'", "a\nb", "\"a\\nb\" # c"),
        ("\"old\"", "new", "\"new\" # c"),
        ("\"old\"", "say \"hi\" \\", "\"say \\\"hi\\\" \\\\\" # c"),
        ("", "new", "new  # c"),
        ("1", "2", "\"2\" # c"),
        ("[a, b]", "new", "new # c"),
        ("!!str 1", "2", "!!str \"2\" # c"),
        ("!!int 1", "a", "a # c"),
        ("&x old", "new", "&x new # c"),
    ] {
        assert_eq!(set(old, new), written, "{old} becomes {new:?}");
    }
}

#[test]
fn numbers_and_the_like_are_plain() {
    for (old, new, written) in [
        ("old", "80", "80 # c"),
        ("\"70\"", "80", "80 # c"),
        ("'x'", "true", "true # c"),
        ("old", "~", "~ # c"),
        ("old", "2001-01-01", "2001-01-01 # c"),
    ] {
        assert_eq!(set(old, Value::plain(new)), written);
    }
    assert_eq!(set("1", Value::null()), "null # c");
    assert_eq!(set("1", true), "true # c");
    assert_eq!(set("a", -5), "-5 # c");
    assert_eq!(set("null", Value::plain("~")), "null # c", "it is null already");
}

#[test]
fn block_scalars_stay_block_scalars() {
    let set = |old: &str, new: &str| {
        let mut document = Document::parse(old).unwrap();
        let node = document.get(document.root(), "a").unwrap();
        document.set(node, new).unwrap();
        let out = document.to_text().unwrap();
        let again = Document::parse(&out).unwrap();
        assert_eq!(again.text(again.get(again.root(), "a").unwrap()).unwrap(), new, "{out}");
        out
    };
    let literal = "a: | # c\n    one\n    two\n\nb: 1\n";
    assert_eq!(set(literal, "three\n"), "a: | # c\n    three\n\nb: 1\n");
    assert_eq!(set(literal, "three"), "a: |- # c\n    three\n\nb: 1\n");
    assert_eq!(set(literal, ""), "a: \"\" # c\n\nb: 1\n");
    assert_eq!(set(literal, "three\n\n"), "a: \"three\\n\\n\" # c\n\nb: 1\n", "a blank line follows");
    assert_eq!(set(literal, " x\ny"), "a: |2- # c\n   x\n  y\n\nb: 1\n");
    let folded = "a: >-\n  one\n  two\nb: 1\n";
    assert_eq!(set(folded, "three four"), "a: >-\n  three four\nb: 1\n");
    assert_eq!(set(folded, "three\nfour\n"), "a: >\n  three\n\n  four\nb: 1\n");
    assert_eq!(set(folded, "three\n  four"), "a: |-\n  three\n    four\nb: 1\n");
    assert_eq!(set("a: |\n  one", "two\n"), "a: \"two\\n\"", "no line break follows");
    assert_eq!(set("a: |\n  one\n  # no comment\n# c\n", "two\n"), "a: |\n  two\n# c\n");
}

#[test]
fn keys_are_quoted_like_values() {
    let mut document = Document::parse("a: 1\n").unwrap();
    let root = document.root();
    for key in ["on", "8080", "a: b", "x y", "", "a\nb", "example.com/name", "null", "- a", "?"] {
        document.set_field(root, key, "v").unwrap();
    }
    let expected = "a: 1\n\"on\": v\n\"8080\": v\n'a: b': v\nx y: v\n\"\": v\n\"a\\nb\": v\nexample.com/name: v\n\"null\": v\n'- a': v\n'?': v\n";
    assert_eq!(document.to_text().unwrap(), expected);
}
