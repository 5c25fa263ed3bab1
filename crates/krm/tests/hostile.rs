//! Whatever the bytes are, an answer comes soon and costs little.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use krm::{MAXIMUM_RESULT_TEXT, MAXIMUM_RESULTS, Malformed, Summary, inspect};

/// The largest output that the services around let through.
const LARGEST: usize = 6 * 1024 * 1024;

/// Without optimisation, less must do.
const SIZE: usize = if cfg!(debug_assertions) { LARGEST / 48 } else { LARGEST };

/// What takes longer is taken to hang, also on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_mins(10);

fn inspect_soon(name: &str, text: &str) -> Result<Summary, Malformed> {
    let start = Instant::now();
    let answer = inspect(text.as_bytes());
    let taken = start.elapsed();
    assert!(taken < PATIENCE, "{name} took {taken:?}");
    answer
}

fn numbered(piece: impl Fn(usize) -> String) -> String {
    (0..SIZE / 12).map(piece).collect()
}

/// Six megabytes of one piece, at the start of the text, as a value, and in a list of results.
#[test]
fn repeated_pieces_end_soon() {
    let pieces = [
        "[",
        "{",
        "{a: ",
        "{\"a\":",
        "[{",
        "[[],",
        "- ",
        "? ",
        "-\n",
        "? \n",
        ": ",
        "a: ",
        "&a ",
        "&a x\n",
        "!t ",
        "!!str ",
        "*a ",
        "\"",
        "'",
        "\"a\" ",
        "\\",
        "|",
        ">",
        "|\n",
        "#",
        "# \n",
        " ",
        "\n",
        "\r",
        "\t",
        "---\n",
        "...\n",
        "%TAG ! a\n",
        "%YAML 1.2\n",
        ",",
        "]",
        "}",
        "a",
        "a\n",
        "a ",
        "a,",
        "a\n\n",
        ":",
        ":\n",
        "é",
        "\u{FEFF}",
        "\0",
        "@",
        "[a, ",
        "[a: ",
        "[? ",
        "- a\n",
        " a\n",
        "- - -\n",
        "  \"a\n",
        "'a'\n",
        "[]\n",
        "{}: ",
    ];
    for piece in pieces {
        let many = piece.repeat(SIZE / piece.len());
        let _ = inspect_soon(&format!("{piece:?}"), &many);
        let _ = inspect_soon(&format!("a: {piece:?}"), &format!("kind: ResourceList\na: {many}"));
        let _ = inspect_soon(&format!("- {piece:?}"), &format!("kind: ResourceList\nresults:\n- {many}"));
        let _ = inspect_soon(&format!("| {piece:?}"), &format!("kind: ResourceList\na: |\n  {many}"));
    }
}

#[test]
fn deep_nesting_is_no_danger() {
    for depth in [100, 1_000, 9_990, 10_010, 1_000_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let value = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for text in [
                format!("{{\"kind\": \"ResourceList\", \"items\": {value}}}"),
                format!("kind: ResourceList\nitems: {value}\n"),
                format!("kind: ResourceList\nresults: {value}\n"),
            ] {
                let answer = inspect_soon(&format!("{open} {depth} deep"), &text);
                assert_eq!(answer.is_ok(), depth < 10_000, "{answer:?}");
            }
        }
        let answer =
            inspect_soon("dashes", &format!("kind: ResourceList\nitems:\n{}1\n", "- ".repeat(depth)));
        assert_eq!(answer.is_ok(), depth < 10_000, "{answer:?}");
    }
}

#[test]
fn brackets_that_never_close_are_errors() {
    for open in ["[", "{"] {
        let many = open.repeat(LARGEST);
        assert!(inspect_soon("never closed", &many).is_err());
        let inside = format!("{{\"kind\": \"ResourceList\", \"items\": {many}");
        assert!(matches!(inspect_soon("never closed", &inside), Err(Malformed::Yaml { line: 1, .. })));
    }
}

#[test]
fn aliases_multiply_nothing() {
    let mut laughs = "kind: ResourceList\na0: &a0 [lol, lol]\n".to_owned();
    for level in 1..100 {
        let below = level - 1;
        let _ = writeln!(laughs, "a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]");
    }
    laughs += "results: *a99\n";
    assert_eq!(inspect_soon("billion laughs", &laughs), Ok(Summary::default()));

    // A long text with an escape cannot be borrowed from the output; a million aliases must not copy it.
    let long = format!("\"\\x41{}\"", "a".repeat(LARGEST / 2));
    for place in ["items", "results"] {
        let text = format!("kind: ResourceList\nx: &a {long}\n{place}: [{}]\n", "*a,".repeat(SIZE / 6));
        let summary = inspect_soon("aliases to a long text", &text).unwrap();
        assert!(summary.results.len() <= 1);
    }

    let anchors = numbered(|number| format!("- &a{number} x\n"));
    assert!(inspect_soon("many anchors", &format!("kind: ResourceList\nitems:\n{anchors}")).is_ok());
}

#[test]
fn results_are_bounded_in_number() {
    for (many, errors) in [(1000, 0), (1001, 1), (20_000, 19_000)] {
        let results = "- {message: a, severity: error}\n".repeat(many);
        let summary =
            inspect_soon("many results", &format!("kind: ResourceList\nresults:\n{results}")).unwrap();
        assert_eq!(summary.results.len(), MAXIMUM_RESULTS);
        assert_eq!((summary.omitted, summary.omitted_errors), (many - 1000, errors));
    }
}

#[test]
fn results_are_bounded_in_text() {
    let message = "ü".repeat(50_000);
    let mut results = format!("- message: {message}\n  severity: info\n").repeat(5);
    results += "- message: last\n  severity: error\n";
    let summary = inspect_soon("long results", &format!("results:\n{results}kind: ResourceList\n")).unwrap();
    let kept: usize = summary.results.iter().map(|result| result.message.len()).sum();
    assert!(kept <= MAXIMUM_RESULT_TEXT + '…'.len_utf8(), "{kept}");
    assert_eq!(summary.results.len(), 3);
    assert!(summary.results[2].message.ends_with("ü…"));
    assert_eq!((summary.omitted, summary.omitted_errors), (3, 1));
    assert!(summary.has_error_result());
    assert!(summary.render_results().ends_with("\n\n(3 more results omitted)"));

    let huge = format!("kind: ResourceList\nresults:\n- message: {}\n", "a".repeat(LARGEST));
    let summary = inspect_soon("one huge result", &huge).unwrap();
    assert_eq!(summary.results[0].message.len(), MAXIMUM_RESULT_TEXT + '…'.len_utf8());

    let text = format!("{{\"kind\": \"ResourceList\", \"apiVersion\": \"{}\"}}", "a".repeat(LARGEST));
    assert!(inspect_soon("huge version", &text).unwrap().api_version.unwrap().len() < 1000);
    let Err(Malformed::WrongKind { kind }) = inspect(format!("kind: {}", "a".repeat(SIZE)).as_bytes()) else {
        panic!("a huge kind passed");
    };
    assert!(kind.len() < 100);
}

#[test]
fn fields_are_bounded_in_number() {
    let fields = numbered(|number| format!("a{number}: 1\n"));
    let answer = inspect_soon("many fields", &format!("kind: ResourceList\n{fields}"));
    assert_eq!(answer, Err(Malformed::TooManyFields { limit: 1000 }));
}

#[test]
fn long_keys_are_judged_alike_in_every_style() {
    for length in [900, 1000, 1020, 1030, 100_000] {
        let key = "k".repeat(length);
        for text in [
            format!("kind: ResourceList\nitems:\n- {key}: 1\n"),
            format!("kind: ResourceList\nitems:\n- \"{key}\": 1\n"),
            format!("kind: ResourceList\nitems: {{{key}: 1}}\n"),
            format!("{{\"kind\": \"ResourceList\", \"items\": {{\"{key}\": 1}}}}"),
        ] {
            assert_eq!(inspect(text.as_bytes()).is_ok(), length <= 1020, "{length}");
        }
    }
}
