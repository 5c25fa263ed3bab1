use functions::File;

use super::*;

const NAME: &str = "search-replace";

#[track_caller]
fn does(data: &str, before: &str, after: &str) {
    becomes(NAME, &config_map(data), before, after);
}

/// The first run, of a change that can be done again.
#[track_caller]
fn does_once(data: &str, before: &str, after: &str) {
    let config = config_map(data);
    let outcome = run(NAME, &config, &[before]);
    assert!(outcome.succeeded, "{}", outcome.stderr);
    assert_eq!(without_results(outcome.output), list(&config, &[after]));
}

/// A resource in a file.
fn file(path: &str, resource: &str) -> String {
    format!("metadata:\n  annotations:\n    internal.config.kubernetes.io/path: {path}\n{resource}")
}

/// Which paths and values are found.
#[track_caller]
fn found(data: &str, resource: &str) -> Vec<(String, String)> {
    let resource = file("a.yaml", resource);
    let found = results(NAME, &config_map(data), &[&resource]);
    found
        .into_iter()
        .map(|finding| {
            assert_eq!(
                (finding.severity, finding.file),
                (None, Some(File { path: "a.yaml".to_owned(), index: 0 }))
            );
            (finding.field.unwrap().path, finding.message)
        })
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(path, message)| ((*path).to_owned(), (*message).to_owned())).collect()
}

#[test]
fn fields_are_found_by_value() {
    assert_eq!(
        found("by-value: '3'\n", "spec:\n  n: 3\n  s: \"3\" # c\n  t: 33\n  l: [3]\n"),
        pairs(&[
            ("spec.n", "Matched field value \"3\""),
            ("spec.s", "Matched field value \"\\\"3\\\" # c\""),
            ("spec.l[0]", "Matched field value \"3\""),
        ])
    );
}

#[test]
fn fields_are_found_by_expression() {
    assert_eq!(
        found("by-value-regex: 'ngin.-(.*)'\n", "a: nginx-x\nb: my-nginx-y\nc: nginx\n"),
        pairs(&[("a", "Matched field value \"nginx-x\""), ("b", "Matched field value \"my-nginx-y\"")])
    );
}

#[test]
fn fields_are_found_by_path() {
    let resource = "a:\n  b1:\n    c: x\n  b2:\n  - c: y\n  - c: z\nc: w\n";
    for (path, values) in [
        ("a.b1.c", &["x"][..]),
        ("a.*.c", &["x", "y", "z"]),
        ("a.**.c", &["x", "y", "z"]),
        ("**.c", &["x", "y", "z", "w"]),
        ("a.b2[1].c", &["z"]),
        ("a.b2[*].c", &["y", "z"]),
        ("a.b1", &[]),
    ] {
        let messages: Vec<String> = found_or_nothing(&format!("by-path: '{path}'\n"), resource);
        let expected: Vec<String> =
            values.iter().map(|value| format!("Matched field value \"{value}\"")).collect();
        assert_eq!(messages, expected, "{path}");
    }
}

fn found_or_nothing(data: &str, resource: &str) -> Vec<String> {
    let resource = file("a.yaml", resource);
    let found = messages(NAME, &config_map(data), &[&resource]);
    if found == ["no matches"] { Vec::new() } else { found }
}

#[test]
fn all_that_is_given_must_fit() {
    let resource = "a: x\nb: x\n";
    assert_eq!(found_or_nothing("by-path: a\nby-value: x\n", resource).len(), 1);
    assert_eq!(found_or_nothing("by-path: a\nby-value: y\n", resource).len(), 0);
    assert_eq!(found_or_nothing("by-path: a\nby-value-regex: x\n", resource).len(), 1);
    assert_eq!(found_or_nothing("by-value: x\nby-file-path: '*.yaml'\n", resource).len(), 2);
    assert_eq!(found_or_nothing("by-value: x\nby-file-path: 'b/*.yaml'\n", resource).len(), 0);
    assert_eq!(found_or_nothing("by-file-path: '*.yaml'\n", resource).len(), 0);
    assert_eq!(found_or_nothing("put-value: x\n", resource).len(), 0);
    assert_eq!(found_or_nothing("{}\n", resource).len(), 0);
}

#[test]
fn what_is_in_no_file_is_changed_and_not_told() {
    assert_eq!(messages(NAME, &config_map("by-value: x\n"), &["a: x\n"]), ["no matches"]);
    does("by-value: x\nput-value: z\n", "a: x\n", "a: z\n");
}

#[test]
fn values_are_put() {
    does("by-value: '3'\nput-value: '4'\n", "a: 3 # c\nb: \"3\"\nc: 33\n", "a: 4 # c\nb: \"4\"\nc: 33\n");
    does("by-value: '3'\nput-value: four\n", "a:   3\n", "a:   four\n");
    does("by-value: four\nput-value: '4'\n", "a: four\nb: 'four'\n", "a: 4\nb: '4'\n");
    does("by-path: a[1].c\nput-value: x\n", "a:\n- c: 1\n- c: 2\n", "a:\n- c: 1\n- c: x\n");
    does("by-path: a[2]\nput-value: x\n", "a:\n- b\n- c\n", "a:\n- b\n- c\n");
    does("by-path: '**.c'\nput-value: x\n", "a:\n  c: 1\nc: [d]\n", "a:\n  c: x\nc: [d]\n");
    does(
        "by-value-regex: (\\w+)-dev-(\\w+)\nput-value: ${2}-prod-${1}${2}\n",
        "a: x-dev-z\n",
        "a: z-prod-xz\n",
    );
    does_once("by-value-regex: my-(.*)\nput-value: my-new-${1}\n", "a: my-x\n", "a: my-new-x\n");
    does("by-value: x\nput-value: ${1}\n", "a: x\n", "a: ${1}\n");
    does("by-value-regex: ^x(y)?$\nput-value: a${1}${b}\n", "a: x\n", "a: a${b}\n");
}

#[test]
fn a_field_is_made_where_its_path_is_all_that_is_given() {
    let data = "by-path: metadata.namespace\nput-value: shop\n";
    does(data, "metadata:\n  name: x\nspec: y\n", "metadata:\n  name: x\n  namespace: shop\nspec: y\n");
    does(
        data,
        "metadata:\n  name: x\n  namespace: 'old' # c\n",
        "metadata:\n  name: x\n  namespace: 'shop' # c\n",
    );
    does(data, "metadata:\nspec: y\n", "metadata:\n  namespace: shop\nspec: y\n");
    does("by-path: a.b.c\nput-value: '1'\n", "x: y\n", "x: y\na:\n  b:\n    c: 1\n");
    does("by-path: a\nput-value: b\n", "a:\n  c: d\n", "a: b\n");
    assert_eq!(found(data, ""), pairs(&[("metadata.namespace", "Mutated field value to \"shop\"")]));
    // With a value to look for, nothing is made.
    does("by-path: metadata.namespace\nby-value: x\nput-value: shop\n", "metadata: {}\n", "metadata: {}\n");
}

#[test]
fn comments_are_put() {
    does(
        "by-value: '3'\nput-comment: 'kpt-set: ${replicas}'\n",
        "a: 3\nb: 3 # old\n",
        "a: 3 # kpt-set: ${replicas}\nb: 3 # kpt-set: ${replicas}\n",
    );
    does("by-value: x\nput-comment: '# note'\n", "a: x\n", "a: x # note\n");
    does(
        "by-value-regex: 'my-(.*)'\nput-comment: 'kpt-set: ${project}-${1}'\n",
        "a: my-x\nb: my-y\n",
        "a: my-x # kpt-set: ${project}-x\nb: my-y # kpt-set: ${project}-y\n",
    );
    does_once(
        "by-value-regex: '(\\w+)-dev'\nput-value: '${1}-prod'\nput-comment: 'kpt-set: ${1}-${env}'\n",
        "a: x-dev\n",
        "a: x-prod # kpt-set: x-${env}\n",
    );
    assert_eq!(
        found("by-path: a\nby-value: x\nput-comment: note\nput-value: z\n", "a: x\n"),
        pairs(&[("a", "Mutated field value to \"z # note\"")])
    );
}

#[test]
fn comments_are_put_to_lists() {
    let data = "by-path: spec.images\nput-comment: 'kpt-set: ${images}'\n";
    does(data, "spec:\n  images:\n  - a\n  - b\n", "spec:\n  images: # kpt-set: ${images}\n  - a\n  - b\n");
    does(
        data,
        "spec:\n  images: [a, b]\n  more: [c]\n",
        "spec:\n  images: [a, b] # kpt-set: ${images}\n  more: [c]\n",
    );
    does(data, "spec:\n  images: []\n", "spec:\n  images: []\n");
    assert_eq!(
        found(data, "spec:\n  images:\n  - a\n  - \"b\"\n  - {c: d}\n  - e: [f]\n    g: h\n"),
        pairs(&[(
            "spec.images # kpt-set: ${images}",
            "Mutated field value to \"[a, \\\"b\\\", {c: d}, {e: [f], g: h}]\""
        )])
    );
}

#[test]
fn entries_in_brackets_get_lines_for_their_comments() {
    does("by-value: b\nput-comment: c\n", "a: [a, b]\nx: {w: z}\n", "a:\n- a\n- b # c\nx: {w: z}\n");
    does_once("by-value: b\nput-comment: c\nput-value: d\n", "a: {x: b}\n", "a:\n  x: d # c\n");
}

#[test]
fn files_are_chosen() {
    let resources = ["a.yaml", "b/a.yaml", "b/c/setters.yaml", "x.yml"].map(|path| file(path, "v: x\n"));
    let resources: Vec<&str> = resources.iter().map(|resource| &**resource).collect();
    for (pattern, files) in [
        ("a.yaml", &["a.yaml"][..]),
        ("**/a.yaml", &["a.yaml", "b/a.yaml"]),
        ("b/**", &["b/a.yaml", "b/c/setters.yaml"]),
        ("*", &["a.yaml", "x.yml"]),
        ("**/*.{yml,txt}", &["x.yml"]),
        ("[!a]*", &["x.yml"]),
    ] {
        let found =
            results(NAME, &config_map(&format!("by-value: x\nby-file-path: '{pattern}'\n")), &resources);
        let found: Vec<String> = found.into_iter().map(|finding| finding.file.unwrap().path).collect();
        assert_eq!(found, files, "{pattern}");
    }
}

#[track_caller]
fn fails(data: &str, resource: &str, cause: &str) {
    let (message, stderr) = failure(NAME, &config_map(data), &[resource]);
    assert!(message.starts_with("failed to perform search-replace operation: \""), "{message}");
    assert!(stderr.contains(cause) && stderr.ends_with('\n'), "{stderr}");
}

#[test]
fn what_cannot_be_done_is_refused() {
    fails(
        "by-value: x\nput-values: y\n",
        "a: x\n",
        "invalid matcher \"put-values\", must be one of [\"by-value\" \"by-file-path\" \"by-value-regex\" \"by-path\" \"put-value\" \"put-comment\"]",
    );
    fails(
        "by-value: x\nby-value-regex: x\n",
        "a: x\n",
        "only one of [\"by-value\", \"by-value-regex\"] can be provided",
    );
    fails("by-value-regex: '('\n", "a: x\n", "error parsing regexp: ");
    fails("by-file-path: '['\nby-value: x\n", "a: x\n", "syntax error in pattern: ");
    let groups = "unable to resolve capture groups";
    fails("by-value-regex: (x)\nput-value: ${1}${2}\n", "a: x\n", groups);
    fails("by-value-regex: (x)\nput-comment: ${0}\n", "a: x\n", groups);
    fails("by-value-regex: (x)\nput-comment: ${01}\n", "a: x\n", groups);
    fails("by-value-regex: (x)\nput-comment: ${99999999999999999999}\n", "a: x\n", groups);
    fails("by-path: a.b\nput-value: x\n", "a: [b]\n", "expected a mapping, found a sequence");
    fails("by-value: [x]\n", "a: x\n", "\"by-value\" in `data` of the functionConfig must be a text");
    fails(&format!("by-path: {}\nput-value: x\n", vec!["a"; 1000].join(".")), "a: x\n", "levels deep");
}
