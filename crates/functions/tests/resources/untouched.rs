//! Whatever the resources look like: what a function has nothing to do with stays as it is, byte for byte, and
//! the second run changes nothing.

use proptest::collection::vec;
use proptest::prelude::*;

use super::lines::{LINES, resource};
use super::*;

const REPLACEMENT: &str = "apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata:
  name: x
replacements:
- source: {kind: Pod, name: first, fieldPath: metadata.name}
  targets:
  - select: {kind: Pod, name: target}
    fieldPaths: [spec.copy]
    options: {create: true}
";

const PREFIX: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {prepend: t}\n";

/// What a function does to the metadata and other lines of the second of three resources.
const CHANGES: &[(&str, &str, &str, &str)] = &[
    (
        "apply-replacements",
        REPLACEMENT,
        "metadata:\n  name: target # it\nspec:\n  copy:   'old'   # here\n",
        "metadata:\n  name: target # it\nspec:\n  copy:   'first'   # here\n",
    ),
    (
        "apply-replacements",
        REPLACEMENT,
        "metadata: {name: target} # it\nspec: {a:  b} # c\n",
        "metadata: {name: target} # it\nspec: {a:  b, copy: first} # c\n",
    ),
    (
        "ensure-name-substring",
        PREFIX,
        "metadata:\n  # above\n  name:   \"name\"   # it\n",
        "metadata:\n  # above\n  name:   \"tname\"   # it\n",
    ),
    ("ensure-name-substring", PREFIX, "metadata: {name: at}\n", "metadata: {name: at}\n"),
];

fn text(config: &str, resources: &[String], windows: bool) -> String {
    let resources: Vec<&str> = resources.iter().map(|resource| &**resource).collect();
    let text = list(config, &resources);
    if windows { text.replace('\n', "\r\n") } else { text }
}

/// Runs a function twice on a list, which must become another.
fn check(function: &str, before: &str, after: &str) -> Result<(), TestCaseError> {
    let first = functions::run(function, before.as_bytes()).unwrap();
    prop_assert!(first.succeeded, "{}{:?}\n{}", first.stderr, first.results, before);
    let second = functions::run(function, &first.output).unwrap();
    for outcome in [first, second] {
        let output = String::from_utf8(outcome.output).unwrap();
        let output = output.split("\nresults:").next().unwrap().trim_end();
        prop_assert_eq!(output, after.trim_end());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fields_beside_those_that_are_set(
        lines in vec(vec(0..LINES.len(), 0..8), 3),
        change in 0..CHANGES.len(),
        at in 0..8_usize,
        windows in any::<bool>(),
    ) {
        let (function, config, before, after) = CHANGES[change];
        let list = |target: &str| {
            let names = ["metadata: {name: first} # t\n", target, "metadata:\n  name: last-t\n"];
            let resources: Vec<String> =
                lines.iter().zip(names).map(|(lines, metadata)| resource(lines, metadata, at)).collect();
            text(config, &resources, windows)
        };
        check(function, &list(before), &list(after))?;
    }

    #[test]
    fn resources_beside_those_that_come_and_go(
        lines in vec(vec(0..LINES.len(), 0..8), 3),
        at in 0..8_usize,
        windows in any::<bool>(),
    ) {
        let [first, second, third] = ["first", "second", "third"].map(|name| format!("metadata: {{name: {name}}}\n"));
        let [first, second, third] = [(0, first), (1, second), (2, third)]
            .map(|(place, metadata)| resource(&lines[place], &metadata, at));
        // Blank lines and comments at the end of all stay there.
        let third = third + "end: here\n";
        let local = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: local\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n";
        let both = [first.clone(), local.to_owned(), second.clone()];
        let config = "apiVersion: v1\nkind: ConfigMap\n";
        check(
            "remove-local-config-resources",
            &text(config, &both, windows),
            &text(config, &[first.clone(), second.clone()], windows),
        )?;
        let simple = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: new # c\ndata:\n  a:   'b'\n";
        check(
            "upsert-resource",
            &text(simple, &[first.clone(), second.clone(), third.clone()], windows),
            &text(simple, &[first, second, third, simple.to_owned()], windows),
        )?;
    }
}
