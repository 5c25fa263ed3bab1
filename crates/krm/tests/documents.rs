//! Documents that are large, deep or hostile: an answer comes soon, costs little and says where the trouble is.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use krm::{Document, Unreadable, Value};

const LARGEST: usize = 6 * 1024 * 1024;

/// Without optimisation, less must do.
const SIZE: usize = if cfg!(debug_assertions) { LARGEST / 48 } else { LARGEST };

/// What takes longer is taken to hang, also on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_mins(10);

/// Reads a text; if it can be read, changes something and writes it.
fn try_soon(name: &str, text: &str) -> Result<String, Unreadable> {
    let start = Instant::now();
    let answer = Document::parse(text).map(|mut document| {
        assert_eq!(document.to_text().unwrap(), text, "{name}");
        let root = document.root();
        let _ = document.set_field(root, "new", Value::strings([("a", "b")]));
        let children: Vec<_> = document.children(root).take(100).collect();
        for child in children {
            let _ = document.push(child, "new");
            let _ = document.set_field(child, "new", "new");
        }
        document.to_text().unwrap()
    });
    let taken = start.elapsed();
    assert!(taken < PATIENCE, "{name} took {taken:?}");
    answer
}

/// So many fields.
fn numbered(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = writeln!(text, "k{number}: 1");
    }
    text
}

#[test]
fn repeated_pieces_end_soon() {
    let pieces = [
        "[",
        "{",
        "{a: ",
        "{\"a\":",
        "[{",
        "[[],",
        "[],",
        "1,",
        "- ",
        "? ",
        "-\n",
        "? \n",
        ": ",
        "a: ",
        "&a ",
        "&a x\n",
        "- &a x\n",
        "!t ",
        "!!str ",
        "- !t x\n",
        "*a ",
        "- *a\n",
        "\"",
        "'",
        "\\",
        "|",
        "|\n",
        "#",
        "# \n",
        " ",
        "\n",
        "\r",
        "\r\n",
        "\t",
        "---\n",
        "...\n",
        "%TAG ! a\n",
        ",",
        "]",
        "a",
        "a\n",
        ":",
        "é",
        "\u{FEFF}",
        "\0",
        "[a: ",
        "[? ",
        "- a\n",
        " a\n",
        "- - -\n",
        "- []\n",
        "  \"a\n",
        "'a'\n",
        "{}: ",
    ];
    for piece in pieces {
        let many = piece.repeat(SIZE / piece.len());
        for (place, text) in [
            ("alone", many.clone()),
            ("a value", format!("a: {many}")),
            ("entries", format!("x: &a y\nitems:\n{many}")),
            ("a text", format!("a: |\n  {many}")),
            ("in brackets", format!("x: &a y\na: [{many}]\n")),
        ] {
            let _ = try_soon(&format!("{piece:?} as {place}"), &text);
        }
    }
}

#[test]
fn nesting_is_limited() {
    for depth in [10, 400, 600, 10_000, 1_000_000] {
        for text in [
            format!("a: {}1{}\n", "[".repeat(depth), "]".repeat(depth)),
            format!("{}1{}\n", "{\"a\":".repeat(depth), "}".repeat(depth)),
            format!("a:\n{}1\n", "- ".repeat(depth)),
        ] {
            let answer = try_soon("deep", &text);
            assert_eq!(answer.is_ok(), depth <= 400, "{depth}");
            if let Err(error) = answer {
                assert!(error.to_string().starts_with("line "), "{error}");
            }
        }
    }
    let mut deep = String::new();
    for depth in 0..1_000 {
        let _ = writeln!(deep, "{}a:", " ".repeat(depth));
    }
    assert_eq!(try_soon("deep", &deep).unwrap_err().to_string(), "line 501: nested deeper than 500 levels");
}

#[test]
fn brackets_that_never_close_are_errors() {
    for open in ["[", "{"] {
        assert!(try_soon("never closed", &open.repeat(LARGEST)).is_err());
        assert!(try_soon("never closed", &format!("a: {}", open.repeat(LARGEST))).is_err());
    }
}

#[test]
fn aliases_are_limited() {
    let mut laughs = "a0: &a0 [lol, lol]\n".to_owned();
    for level in 1..100 {
        let below = level - 1;
        let _ = writeln!(laughs, "a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]");
    }
    let error = try_soon("billion laughs", &laughs).unwrap_err();
    assert!(matches!(error, Unreadable::TooManyAliases { line: 6..=9, .. }), "{error}");
    assert!(error.to_string().contains(" values"), "{error}");

    let endless = try_soon("endless", "a: &a\n  b: *a\n").unwrap_err();
    assert_eq!(endless.to_string(), "line 2: the alias stands for something that contains it");

    let long = "x".repeat(SIZE);
    let many = format!("a: &a {long}\nb:\n{}", "- *a\n".repeat(1_000));
    assert!(try_soon("aliases to a long text", &many).unwrap().len() < many.len() + 1_000);
}

#[test]
fn fields_that_are_there_twice_are_errors() {
    for (text, line) in [
        ("a: 1\nb: 2\na: 3\n".to_owned(), 3),
        ("x:\n- a: 1\n  \"a\": 2\n".to_owned(), 3),
        ("{\"a\": 1, \"b\": {\"c\": 1,\n\"c\": 2}}".to_owned(), 2),
        ("x: {a: 1, 'a': 2}\n".to_owned(), 1),
        (numbered(100) + "k7: 2\n", 101),
        ("? a\n: 1\n? a\n: 2\n".to_owned(), 3),
    ] {
        let error = Document::parse(&text).unwrap_err();
        assert!(
            matches!(&error, Unreadable::DuplicateField { line: found, .. } if *found == line),
            "{error}"
        );
    }
    assert!(try_soon("many fields", &numbered(SIZE / 12)).is_ok());
}

#[test]
fn what_is_no_text_is_an_error() {
    let error = |bytes: &[u8]| Document::parse_bytes(bytes).unwrap_err().to_string();
    assert_eq!(error(b"a: b\nc: \xFF\n"), "line 2: not valid UTF-8");
    assert_eq!(error(b""), "there is nothing in it but blanks and comments");
    assert_eq!(error(b"# a\n---\n"), "there is nothing in it but blanks and comments");
    assert_eq!(error(b"a: b\n---\nc: d\n"), "line 3: a second document starts here; there must be one only");
    assert!(error(b"a: b\rc: d").starts_with("line 1: a carriage return"), "{}", error(b"a: b\rc: d"));
    assert!(error(b"a: [b\n").starts_with("line "));
    assert!(error(b"{a: b}: c\n").starts_with("line 1: expected a text as key"));
}

/// Adding and removing much takes time in proportion to it.
#[test]
fn many_changes_are_made_soon() {
    let many = SIZE / 20;
    let mut text = "items:\n".to_owned();
    for number in 0..many {
        let _ = writeln!(text, "- name: item-{number}");
    }
    text.push_str("results:\n- a\n");
    let start = Instant::now();
    let mut document = Document::parse(&text).unwrap();
    let items = document.get(document.root(), "items").unwrap();
    let results = document.get(document.root(), "results").unwrap();
    let entries: Vec<_> = document.entries(items).collect();
    for (number, entry) in entries.into_iter().enumerate() {
        match number % 3 {
            0 => document.remove(entry),
            1 => drop(document.set_field(entry, "namespace", "new")),
            _ => document.set_line_comment(entry, Some("# odd")),
        }
        document.push(results, Value::strings([("message", format!("item {number}"))])).unwrap();
    }
    let out = document.to_text().unwrap();
    let again = Document::parse(&out).unwrap();
    let length = |key: &str| again.len(again.get(again.root(), key).unwrap());
    assert_eq!((length("items"), length("results")), (many - many.div_ceil(3), many + 1));
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
}
