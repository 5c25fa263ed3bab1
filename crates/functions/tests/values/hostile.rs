//! Input that is made to take all memory or time: each ends soon, with an error or without.

use super::*;

const SETTERS: [&str; 3] = ["apply-setters", "create-setters", "list-setters"];

/// Runs a function, which must not make much of little.
#[track_caller]
fn ends(function: &str, config: &str, resources: &[&str]) -> Outcome {
    let outcome = run(function, config, resources);
    assert!(outcome.output.len() < 200 << 20);
    outcome
}

/// Whether a function was stopped for what it would have cost.
fn is_over(outcome: &Outcome) -> bool {
    outcome.over_budget.is_some() && outcome.stderr.contains("the call would take more than ")
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    let lines: Vec<String> = (0..count).map(line).collect();
    lines.concat()
}

#[test]
fn a_long_value_in_many_fields() {
    let long = "x".repeat(1 << 18);
    let fields = |line: &str| lines(500, |at| format!("k{at}: {line}\n"));
    let outcome =
        ends("apply-setters", &config_map(&format!("n: {long}\n")), &[&fields("v # kpt-set: ${n}")]);
    assert!(!outcome.succeeded && is_over(&outcome), "{}", outcome.stderr);
    let outcome =
        ends("apply-setters", &config_map(&format!("n: '[{long}]'\n")), &[&fields("[v] # kpt-set: ${n}")]);
    assert!(!outcome.succeeded && is_over(&outcome), "{}", outcome.stderr);
    let outcome =
        ends("search-replace", &config_map(&format!("by-value: v\nput-value: {long}\n")), &[&fields("v")]);
    assert!(!outcome.succeeded && is_over(&outcome), "{}", outcome.stderr);
    let outcome = ends(
        "search-replace",
        &config_map(&format!("by-path: '*'\nput-comment: {long}\n")),
        &[&fields("[v]")],
    );
    assert!(!outcome.succeeded && is_over(&outcome), "{}", outcome.stderr);
    let name = "n".repeat(1000);
    let values = lines(500, |at| format!("k{at}: {}\n", "v".repeat(500)));
    let outcome = ends("create-setters", &config_map(&format!("{name}: v\n")), &[&values]);
    assert!(!outcome.succeeded && is_over(&outcome), "{}", outcome.stderr);
    let image = "    - image: nginx\n".repeat(500);
    let pod = format!("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n{image}");
    let outcome = ends("set-image", &config_map(&format!("name: nginx\nnewTag: {long}\n")), &[&pod]);
    assert!(!outcome.succeeded && is_over(&outcome), "{}", outcome.stderr);
}

#[test]
fn a_value_many_times_in_one_field() {
    let long = "x".repeat(1 << 20);
    let comment = "${n}".repeat(100_000);
    let outcome = ends(
        "apply-setters",
        &config_map(&format!("n: {long}\n")),
        &[&format!("a: v # kpt-set: {comment}\n")],
    );
    assert!(!outcome.succeeded && is_over(&outcome), "{}", outcome.stderr);
    let config = config_map(&format!("by-value-regex: (.*)\nput-value: {}\n", "${1}".repeat(100_000)));
    let outcome = ends("search-replace", &config, &[&format!("a: {long}\n")]);
    assert!(!outcome.succeeded && is_over(&outcome), "{}", outcome.stderr);
    let name = "n".repeat(1000);
    let outcome = ends("create-setters", &config_map(&format!("{name}: x\n")), &[&format!("a: {long}\n")]);
    assert!(!outcome.succeeded && is_over(&outcome), "{}", outcome.stderr);
    // Nothing of this is a group.
    let config = config_map(&format!("by-value-regex: v\nput-value: '{}}}'\n", "${".repeat(500_000)));
    assert!(ends("search-replace", &config, &["a: v\n"]).succeeded);
}

#[test]
fn many_setters() {
    let setters = lines(5_000, |at| format!("n{at}: v{at}\n"));
    let fields = lines(5_000, |at| format!("k{at}: v{at} # kpt-set: ${{n{at}}}\n"));
    for function in SETTERS {
        ends(function, &config_map(&setters), &[&fields]);
    }
}

#[test]
fn long_paths_and_deep_values() {
    let key = "k".repeat(1_000);
    let keys = lines(5, |at| format!("{}{key}:\n", "  ".repeat(at)));
    let long = keys + &"          - v # kpt-set: ${n}\n".repeat(100);
    for function in SETTERS {
        let outcome = ends(function, &config_map("n: v\n"), &[&long]);
        assert!(
            !outcome.succeeded && outcome.stderr.contains("longer than 4096 bytes"),
            "{}",
            outcome.stderr
        );
    }
    let deep = format!("{}v{}", "[".repeat(480), "]".repeat(480));
    let outcome = ends(
        "apply-setters",
        &config_map(&format!("n: '{deep}'\n")),
        &[&format!("a: {{b: {{c: {deep}}}}}\nd: [e] # kpt-set: ${{n}}\n")],
    );
    assert!(outcome.succeeded, "{}", outcome.stderr);
    let nested =
        lines(100, |at| format!("{}a:\n", "  ".repeat(at))) + &"  ".repeat(100) + "l: [e] # kpt-set: ${n}\n";
    let outcome = ends("apply-setters", &config_map(&format!("n: '{deep}'\n")), &[&nested]);
    assert!(!outcome.succeeded && outcome.stderr.contains("deep"), "{}", outcome.stderr);
}

#[test]
fn expressions_and_patterns() {
    let text = "ab".repeat(500_000);
    let resource = format!("a: {text}\n");
    let outcome =
        ends("search-replace", &config_map("by-value-regex: (?:a|b)*a(?:a|b){1000}c\n"), &[&resource]);
    // A text that repeats itself is searched soon, whatever the expression is.
    assert!(outcome.succeeded, "{}", outcome.stderr);
    for data in ["by-value-regex: (((a{100}){100}){100}){100}\n", "by-value-regex: \\pL{1000}{1000}\n"] {
        assert!(!ends("search-replace", &config_map(data), &[&resource]).succeeded);
    }
    let data = format!("by-value: x\nby-file-path: '{}'\n", "{a,b}*".repeat(20_000));
    assert!(!ends("search-replace", &config_map(&data), &[&resource]).succeeded);
    let data = format!("by-path: '{}'\n", "**.a.".repeat(200_000));
    assert!(ends("search-replace", &config_map(&data), &[&resource]).succeeded);
    let (message, _) =
        failure("set-image", &config_map("name: (a{1000}){1000}\nnewTag: x\n"), &["kind: Pod\n"]);
    assert!(message.contains("too large"), "{message}");
    // Usual ones search all that there can be.
    let many = format!("a: {}\n", "nginx-x ".repeat(700_000));
    assert!(
        ends("search-replace", &config_map("by-value-regex: 'nginx-(\\w+)-us-east-1-(.*)'\n"), &[&many])
            .succeeded
    );
}

#[test]
fn many_fields_in_many_resources() {
    let fields = "- path: metadata/name/x\n".repeat(3_000);
    let config = format!(
        "apiVersion: fn.kpt.dev/v1\nkind: SetImage\nimage: {{name: a, newTag: b}}\nadditionalImageFields:\n{fields}"
    );
    let resources = vec!["metadata: {name: a}\n"; 2_000];
    // What is wrong in a resource is told once.
    let outcome = ends("set-image", &config, &resources);
    assert_eq!(outcome.results.len(), 2_001);
    let outcome = ends("set-image", &config, &resources[..3]);
    assert_eq!(outcome.results.len(), 4);
}
