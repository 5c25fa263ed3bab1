//! Inputs made to do harm: the answer comes soon, and says where the trouble is.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::{config_map, list};

const PATIENCE: Duration = Duration::from_secs(30);

/// What each function says about an input with these items.
fn stderr(items: &str) -> Vec<String> {
    let config = config_map(&[("namespace", "new")]);
    let input = list(&config, items);
    let start = Instant::now();
    let said = functions::all().iter().map(|function| function.run(input.as_bytes())).map(|outcome| {
        assert!(!outcome.succeeded);
        assert!(outcome.output.is_empty(), "an input that cannot be read has no output");
        outcome.stderr
    });
    let said: Vec<String> = said.collect();
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    said
}

#[test]
fn inputs_that_cannot_be_read() {
    let mut laughs = "- a0: &a0 [lol, lol]\n".to_owned();
    for level in 1..50 {
        let below = level - 1;
        let _ = writeln!(laughs, "  a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]");
    }
    for (name, items, problem) in [
        ("billion laughs", laughs, "the aliases up to here stand for more than 100000 values"),
        ("depth", format!("- a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000)), "line 11"),
        ("dashes", format!("- {}a\n", "- ".repeat(10_000)), "line 11"),
        ("brackets", format!("- a: {}\n", "[".repeat(6 << 20)), "line 11"),
        ("duplicate", "- a: 1\n  a: 2\n".to_owned(), "line 12: the field \"a\" is there already"),
        ("tab", "- a: 1\n\tb: 2\n".to_owned(), "found a tab"),
        (
            "endless alias",
            "- &a [*a]\n".to_owned(),
            "line 11: the alias stands for something that contains it",
        ),
    ] {
        for said in stderr(&items) {
            let start = "failed to evaluate function: failed to parse ResourceList: line ";
            assert!(said.starts_with(start) && said.contains(problem), "{name}: {said}");
        }
    }
}

/// Aliases are values of their own: setting one changes no other place.
#[test]
fn what_aliases_stand_for() {
    let items = "\
- apiVersion: v1
  kind: ConfigMap
  metadata: &meta
    name: a
    labels: &labels {app: x}
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: b
    labels: *labels
  data: *labels
";
    let outcome = super::run("set-labels", &config_map(&[("app", "new")]), items);
    let expected = items.replace("{app: x}", "{app: new}").replace("data: *labels", "data: {app: x}");
    assert_eq!(super::items_of(&outcome), expected);
}
